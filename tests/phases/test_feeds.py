"""Inputs for the oracle: names, forms and types, all problems at once."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.io import write_npz
from manifest.model import Manifest, Note, Quantization, Tensor
from phases import feeds as module
from phases.feeds import as_onnx, chunks, read_feeds, take_feeds
from tests.ports import small_manifest

ONE = small_manifest()
X = np.arange(4, dtype=np.float32).reshape(1, 4)


def two_inputs() -> Manifest:
    """Like the small one, with a uint8 input `mask` (2,) more."""
    mask = Tensor(name="mask", shape=(2,), dtype="uint8", onnx_dtype="uint8", role="input")
    model = dataclasses.replace(ONE.model, inputs=("image", "mask"))
    return dataclasses.replace(ONE, model=model, tensors=(*ONE.tensors, mask))


MASK = np.array([1, 2], np.uint8)


def codes(arrays: dict[str, Any], manifest: Manifest = ONE) -> list[str]:
    with pytest.raises(RefusedError) as caught:
        take_feeds(arrays, manifest)
    return [p.code for p in caught.value.problems]


@pytest.mark.parametrize("name", ["image", "in_0", "x"])
def test_names_that_are_understood(name: str) -> None:
    found = take_feeds({name: X}, ONE)
    assert not found.leading
    np.testing.assert_array_equal(found.arrays["image"], X[None])
    assert found.notes == (() if name == "image" else (f"{name} = input 'image'",))


def test_a_feed_axis_is_kept() -> None:
    found = take_feeds({"image": np.stack([X, X + 1])}, ONE)
    assert found.leading
    assert found.count == 2


def test_one_feed_with_its_axis_stays_with_axis() -> None:
    assert take_feeds({"image": X[None]}, ONE).leading


def test_two_inputs_by_position() -> None:
    found = take_feeds({"in_0": X[None], "in_1": MASK[None], "out_0": X}, two_inputs())
    assert found.count == 1
    assert "array 'out_0' is no input and was left out" in found.notes


def test_labels_beside_x_are_left_out() -> None:
    found = take_feeds({"x": X, "y": np.array([1])}, ONE)
    assert found.notes == ("x = input 'image'", "array 'y' is no input and was left out")


@pytest.mark.parametrize("name", ["y", "y_eval", "x_eval", "x_calib"])
def test_labels_beside_a_named_input_are_left_out(name: str) -> None:
    found = take_feeds({"image": X, name: np.array([1])}, ONE)
    assert found.notes == (f"array {name!r} is no input and was left out",)


def test_arrays_for_graph_inputs_that_the_import_left_out_are_too() -> None:
    noted = dataclasses.replace(ONE, notes=(Note(code="INPUT-UNUSED", where="mask", text="unused"),))
    found = take_feeds({"image": X, "mask": np.zeros((7, 7))}, noted)
    assert list(found.arrays) == ["image"]
    assert found.notes == ("array 'mask' is no input and was left out",)
    assert codes({"image": X, "mask": X}) == ["ORACLE-INPUT-EXTRA"]


def test_all_problems_at_once() -> None:
    assert codes({"image": X.astype(np.float64)[:, :3], "other": X}, two_inputs()) == [
        "ORACLE-INPUT-MISSING",
        "ORACLE-INPUT-EXTRA",
        "ORACLE-INPUT-TYPE",
        "ORACLE-INPUT-SHAPE",
    ]


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({}, "ORACLE-INPUT-MISSING"),
        ({"image": X, "z": X}, "ORACLE-INPUT-EXTRA"),
        ({"image": X, "x": X}, "ORACLE-INPUT-EXTRA"),
        ({"in_0": X, "in_1": X}, "ORACLE-INPUT-EXTRA"),
        ({"image": X.astype(np.float64)}, "ORACLE-INPUT-TYPE"),
        ({"image": X.astype(np.int8)}, "ORACLE-INPUT-TYPE"),
        ({"image": X[0]}, "ORACLE-INPUT-SHAPE"),
        ({"image": X[:, :3]}, "ORACLE-INPUT-SHAPE"),
        ({"image": X.reshape(2, 2)}, "ORACLE-INPUT-SHAPE"),
        ({"image": np.zeros((0, 1, 4), np.float32)}, "ORACLE-INPUT-SHAPE"),
        ({"image": np.zeros((2, 4), np.float32)}, "ORACLE-INPUT-SHAPE"),
        ({"image": X[None, None]}, "ORACLE-INPUT-SHAPE"),
        ({"image": np.where(X == 2, np.nan, X)}, "ORACLE-INPUT-FINITE"),
        ({"image": np.where(X == 2, np.float32(np.inf), X)}, "ORACLE-INPUT-FINITE"),
    ],
)
def test_one_problem(arrays: dict[str, Any], code: str) -> None:
    arrays = {k: v.astype(np.float32) if code == "ORACLE-INPUT-FINITE" else v for k, v in arrays.items()}
    assert codes(arrays) == [code]


def test_a_batch_gets_the_remedy() -> None:
    with pytest.raises(RefusedError, match=r"array\[:, None\]"):
        take_feeds({"image": np.zeros((5, 4), np.float32)}, ONE)


@pytest.mark.parametrize(("image", "mask"), [((1, 1, 4), (2,)), ((2, 1, 4), (3, 2))])
def test_different_numbers_of_feeds(image: tuple[int, ...], mask: tuple[int, ...]) -> None:
    arrays = {"image": np.zeros(image, np.float32), "mask": np.zeros(mask, np.uint8)}
    assert codes(arrays, two_inputs()) == ["ORACLE-FEEDS"]


def test_an_input_named_like_a_position_is_taken_by_its_name() -> None:
    mask = Tensor(name="in_0", shape=(2,), dtype="uint8", onnx_dtype="uint8", role="input")
    model = dataclasses.replace(ONE.model, inputs=("image", "in_0"))
    manifest = dataclasses.replace(ONE, model=model, tensors=(*ONE.tensors, mask))
    found = take_feeds({"image": X, "in_0": MASK}, manifest)
    np.testing.assert_array_equal(found.arrays["in_0"], MASK[None])


def test_a_file_is_read_and_a_large_one_refused(tmp_path: Path) -> None:
    write_npz(tmp_path / "x.npz", {"image": X})
    assert read_feeds(tmp_path / "x.npz", ONE, max_bytes=X.nbytes + 200).count == 1
    with pytest.raises(RefusedError):
        read_feeds(tmp_path / "x.npz", ONE, max_bytes=X.nbytes - 1)


def test_chunks_cover_every_feed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = take_feeds({"image": np.arange(28, dtype=np.float32).reshape(7, 1, 4)}, ONE)
    monkeypatch.setattr(module, "CHUNK_BYTES", 2 * 8 * 12)
    pieces = [piece["image"] for piece in chunks(found, ONE)]
    assert [len(piece) for piece in pieces] == [2, 2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(pieces), found.arrays["image"])
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)
    assert len(list(chunks(found, ONE))) == 7


def test_codes_of_a_float_tensor_come_back_as_floats() -> None:
    quant = Quantization(scales=(0.1, 0.2), zero_points=(0, 5), axis=0)
    tensor = Tensor(name="t", shape=(2, 2), dtype="int8", onnx_dtype="float32", role="activation", quant=quant)
    array = np.array([[[1, -128], [5, 127]]], np.int8)
    want = np.array([[[1, -128], [0, 122]]], np.float32) * np.array([0.1, 0.2], np.float32).reshape(1, 2, 1)
    np.testing.assert_array_equal(as_onnx(tensor, array), want)
    assert as_onnx(tensor, array).dtype == np.float32
    integer = dataclasses.replace(tensor, onnx_dtype="int8")
    assert as_onnx(integer, array) is array
