import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from manifest.errors import RefusedError
from manifest.onnx_import.load import load_bytes, load_model
from manifest.onnx_import.validate import validate
from tests.onnx_models import linear_model

WEIGHTS = bytes(range(12))


def write(folder: Path, entries: dict[str, str] | list[tuple[str, str]], name: str = "m.onnx") -> Path:
    """The linear model with its int8 weights [4, 3] outside, as `entries` say."""
    made = linear_model()
    weights = next(t for t in made.graph.initializer if t.name == "w")
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items() if isinstance(entries, dict) else entries:
        weights.external_data.add(key=key, value=value)
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def weights_of(path: Path) -> Any:
    loaded = load_model(path)
    assert validate(loaded) == []
    tensor = next(t for t in loaded.graph.initializer if t.name == "w")
    assert not tensor.external_data
    return numpy_helper.to_array(tensor)


def refusal(path: Path) -> str:
    with pytest.raises(RefusedError) as caught:
        load_model(path)
    text = str(caught.value)
    assert "external" in text
    assert "'w'" in text
    assert text.count("\n") == 0
    return text


def test_data_beside_the_model_is_embedded(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    expected = np.frombuffer(WEIGHTS, np.int8).reshape(4, 3)
    assert np.array_equal(weights_of(write(tmp_path, {"location": "w.bin"})), expected)
    assert np.array_equal(weights_of(write(tmp_path, {"location": "./w.bin", "length": "12"})), expected)


def test_offset_length_subfolder_and_checksum(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"xyz" + WEIGHTS + b"tail")
    entries = {"location": "sub/w.bin", "offset": "3", "length": "12", "checksum": "ignored"}
    assert weights_of(write(tmp_path, entries)).tobytes() == WEIGHTS


def test_offset_up_to_the_end_and_one_beyond(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"x" + WEIGHTS)
    assert weights_of(write(tmp_path, {"location": "w.bin", "offset": "1"})).tobytes() == WEIGHTS
    assert "too short" in refusal(write(tmp_path, {"location": "w.bin", "offset": "2"}))


@pytest.mark.parametrize("length", ["11", "13", "0"])
def test_length_has_to_be_that_of_the_dims(tmp_path: Path, length: str) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS + b"more")
    text = refusal(write(tmp_path, {"location": "w.bin", "length": length}))
    assert f"expected 12 bytes; got {length} bytes" in text


@pytest.mark.parametrize("offset", ["-1", "1e3", "0x10", "", "٣", " 0", "9" * 30])
def test_offset_that_is_no_number_of_bytes(tmp_path: Path, offset: str) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    assert "offset" in refusal(write(tmp_path, {"location": "w.bin", "offset": offset}))


def outside(tmp_path: Path) -> tuple[Path, Path]:
    """(model folder, a file beside that folder)."""
    folder = tmp_path / "model"
    folder.mkdir()
    target = tmp_path / "outside.bin"
    target.write_bytes(WEIGHTS)
    return folder, target


def test_escapes_are_refused_and_nothing_outside_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, target = outside(tmp_path)
    (folder / "sub").mkdir()
    (folder / "link.bin").symlink_to(target)
    (folder / "inner.bin").write_bytes(WEIGHTS)
    (folder / "inner_link.bin").symlink_to(folder / "inner.bin")
    (folder / "up").symlink_to(tmp_path)
    (folder / "hard.bin").hardlink_to(target)
    os.mkfifo(folder / "fifo.bin")
    locations = {
        "../outside.bin": "leaves",
        "sub/../../outside.bin": "leaves",
        "sub/..": "leaves",
        str(target): "leaves",
        "//outside.bin": "leaves",
        "..\\outside.bin": "leaves",
        "nul\0.bin": "leaves",
        "": "leaves",
        ".": "no file",
        "sub/": "no file",
        "link.bin": "symbolic link",
        "inner_link.bin": "symbolic link",
        "up/outside.bin": "symbolic link",
        "hard.bin": "hard link",
        "fifo.bin": "not a regular file",
        "sub": "not a regular file",
        "absent.bin": "No such file",
        "inner.bin/x": "cannot be opened",
        "/dev/zero": "leaves",
    }
    opened: list[str] = []
    real_open = os.open

    def recorded(path: Any, *args: Any, **kwargs: Any) -> int:
        opened.append(str(path))
        return real_open(path, *args, **kwargs)

    paths = [write(folder, {"location": location}, f"m{i}.onnx") for i, location in enumerate(locations)]
    monkeypatch.setattr(os, "open", recorded)
    for path, (location, word) in zip(paths, locations.items(), strict=True):
        assert word in refusal(path), location
    allowed = {str(folder), "sub", "up", "inner.bin", *(str(path) for path in paths)}
    assert set(opened) <= allowed


def test_link_that_the_person_named_is_followed_but_its_folder_is_not(tmp_path: Path) -> None:
    folder, _ = outside(tmp_path)
    path = write(folder, {"location": "w.bin"})
    (folder / "w.bin").write_bytes(WEIGHTS)
    link = tmp_path / "link.onnx"
    link.symlink_to(path)
    assert "No such file" in refusal(link)
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    assert weights_of(link).tobytes() == WEIGHTS


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ([], "has no location"),
        ([("offset", "0")], "has no location"),
        ([("location", "w.bin"), ("location", "v.bin")], "given twice"),
    ],
)
def test_entries_that_say_too_little_or_too_much(tmp_path: Path, entries: list[tuple[str, str]], word: str) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    assert word in refusal(write(tmp_path, entries))


def test_total_size_is_limited_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    path = write(tmp_path, {"location": "w.bin"})
    size = path.stat().st_size + len(WEIGHTS)
    load_model(path, max_bytes=size)
    with pytest.raises(RefusedError, match=r"external.*too large"):
        load_model(path, max_bytes=size - 1)


def test_absurd_dims_of_an_external_tensor_allocate_nothing(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    path = write(tmp_path, {"location": "w.bin"})
    made = onnx.ModelProto.FromString(path.read_bytes())
    weights = next(t for t in made.graph.initializer if t.name == "w")
    weights.dims[:] = [2**31 - 1]
    path.write_bytes(made.SerializeToString())
    assert "too large" in refusal(path)
    weights.dims[:] = [2**62, 2**62]
    path.write_bytes(made.SerializeToString())
    with pytest.raises(RefusedError, match="ONNX-TENSOR-SIZE"):
        load_model(path)


def test_model_from_memory_has_no_folder(tmp_path: Path) -> None:
    path = write(tmp_path, {"location": "w.bin"})
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    with pytest.raises(RefusedError, match="external data needs the model's folder"):
        load_bytes(path.read_bytes())


def test_external_value_of_a_constant_node_is_embedded_too(tmp_path: Path) -> None:
    made = linear_model()
    weights = next(t for t in made.graph.initializer if t.name == "w")
    made.graph.initializer.remove(weights)
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="w.bin")
    constant = made.graph.node.add(op_type="Constant", output=["w"])
    constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=weights)
    (tmp_path / "w.bin").write_bytes(WEIGHTS)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    loaded = load_model(tmp_path / "m.onnx")
    assert validate(loaded) == []
    assert next(n for n in loaded.graph.node if n.op_type == "Constant").attribute[0].t.raw_data == WEIGHTS


def test_model_cases(shared: Path) -> None:
    models = shared / "cases" / "models"
    with pytest.raises(RefusedError, match="external"):
        load_model(models / "m61_external_data_escapes.onnx")
    good = load_model(models / "m64_external_data_good.onnx")
    assert validate(good) == []
    assert all(t.data_location == onnx.TensorProto.DEFAULT for t in good.graph.initializer)
