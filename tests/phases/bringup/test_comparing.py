"""`compare`: first difference in the order of the graph, element, op, cause."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phases import api
from phases.__main__ import main
from phases.bringup.comparing import compare_dumps, difference

Dump = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def loaded(digits_port: Path) -> api.LoadedPort:
    return api.load(digits_port)


@pytest.fixture(scope="module")
def dump(loaded: api.LoadedPort, root: Path) -> Dump:
    with np.load(root / "examples/digits/digits.npz") as data:
        x = data["x"][:3]
    return {"x": x, **loaded.run({"x": x}, all_tensors=True, arithmetic="target")}


def codes(loaded: api.LoadedPort) -> list[str]:
    """Names of quantised outputs, in the order of the graph."""
    made = [n for op in loaded.manifest.ops for n in op.outputs]
    return [n for n in made if loaded.manifest.tensor(n).quant is not None]


def test_equal_dumps_have_no_difference(dump: Dump, loaded: api.LoadedPort) -> None:
    found = compare_dumps(dump, dict(dump), loaded)
    assert found.first is None
    assert len(found.rows) == len(dump)


def test_one_element_of_one_tensor_is_found(dump: Dump, loaded: api.LoadedPort) -> None:
    name = codes(loaded)[2]
    got = {**dump, name: dump[name].copy()}
    got[name].reshape(-1)[7] ^= 1
    first = compare_dumps(dump, got, loaded).first
    assert first is not None
    assert first.name == name
    assert first.different == 1
    assert first.index == tuple(np.unravel_index(7, dump[name].shape))
    assert (first.expected, first.got) == (dump[name].reshape(-1)[7], got[name].reshape(-1)[7])


def test_the_first_wrong_tensor_is_that_of_the_graph_whatever_the_order_of_the_dump(
    dump: Dump, loaded: api.LoadedPort
) -> None:
    early, late = codes(loaded)[1], codes(loaded)[-1]
    got = {n: dump[n] for n in reversed(dump)}
    got |= {early: dump[early] + 1, late: dump[late] + 1}
    backwards = {n: dump[n] for n in reversed(dump)}
    found = compare_dumps(backwards, got, loaded)
    assert found.first is not None
    assert found.first.name == early
    assert found.op in {op.name for op in loaded.manifest.ops if early in op.outputs}
    assert compare_dumps({n: dump[n] for n in (late, early)}, got).first.name == late  # type: ignore[union-attr]


def test_a_cause_in_the_arithmetic_of_the_op_needs_the_port(dump: Dump, loaded: api.LoadedPort) -> None:
    conv = next(op for op in loaded.manifest.ops if op.type == "Conv")
    weights = loaded.arrays[loaded.manifest.tensor(conv.inputs[1]).array or ""]
    turned = {**loaded.arrays, loaded.manifest.tensor(conv.inputs[1]).array or "": weights.swapaxes(2, 3)}
    other = api.LoadedPort(port=loaded.port, manifest=loaded.manifest, arrays=turned)
    name = conv.outputs[0]
    got = {**dump, name: other.run({"x": dump["x"]}, all_tensors=True, arithmetic="target")[name]}
    found = compare_dumps(dump, got, loaded)
    assert "kernel rows and columns swapped" in found.causes[0].text
    assert found.causes[0].certain
    plain = compare_dumps(dump, got)
    assert not any(c.certain for c in plain.causes)
    assert "--port" in plain.not_tried


def test_without_a_feed_axis_it_is_the_same(dump: Dump, loaded: api.LoadedPort) -> None:
    name = codes(loaded)[1]
    one = {n: a[0] for n, a in dump.items()}
    found = compare_dumps(one, {**one, name: one[name] * 0}, loaded)
    assert found.causes[0].kind == "uniform"


@pytest.mark.parametrize(
    ("want", "got", "different", "note"),
    [
        (np.zeros(3, np.int8), np.zeros(4, np.int8), 3, "shape [4], expected [3]"),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), 0, ""),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), 1, ""),
        (np.array([1, 2], np.int8), np.array([1.0, 2.0], np.float32), 0, ""),
        (np.array([1, 2], np.int8), np.array([1.0, 2.5], np.float32), 1, ""),
        (np.array([255], np.uint8), np.array([-1], np.int8), 1, ""),
        (np.array([2**53 + 1]), np.array([2.0**53]), 1, ""),
        (np.array([2**53]), np.array([2.0**53]), 0, ""),
        (np.array([2.0**64]), np.array([2**64 - 1], np.uint64), 1, ""),
        (np.array([-(2**63)]), np.array([-(2.0**63)]), 0, ""),
        (np.array([-1]), np.array([2**64 - 1], np.uint64), 1, ""),
        (np.array([1, 2]), np.array([np.inf, np.nan], np.float16), 2, ""),
        (np.array(3), np.array(4), 1, ""),
        (np.array([True]), np.array([False]), 1, ""),
        (np.array([True]), np.array([1.0]), 0, ""),
        (np.array(["a"]), np.array(["a"]), 0, "no numbers to compare"),
    ],
)
def test_one_tensor(want: Any, got: Any, different: int, note: str) -> None:
    found = difference("t", want, got)
    assert found.different == different
    assert note in found.note
    assert found.same == (not different and not note)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (np.array(3), np.array(4)),
        (np.zeros(2, bool), np.ones(2, bool)),
        (np.array([1, 2, 3], np.uint64), np.array([2, 3, 4], np.uint64)),
        (np.array([1, 2], np.int8), np.array([True, False])),
    ],
)
def test_causes_are_looked_for_in_tensors_of_every_kind(want: Any, got: Any) -> None:
    found = compare_dumps({"t": want}, {"t": got})
    assert found.first is not None
    assert found.first.different


def test_op_and_causes_are_those_of_the_first_wrong_tensor_even_where_it_has_another_shape(
    dump: Dump, loaded: api.LoadedPort
) -> None:
    early, late = codes(loaded)[1], codes(loaded)[-1]
    found = compare_dumps(dump, {**dump, early: dump[early][:1], late: dump[late] + 1}, loaded)
    assert found.first is not None
    assert found.first.name == early
    assert found.op in {op.name for op in loaded.manifest.ops if early in op.outputs}
    assert not found.causes


def test_the_command_names_tensor_op_element_and_cause(
    dump: Dump, digits_port: Path, tmp_path: Path, loaded: api.LoadedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    name = codes(loaded)[1]
    np.savez(tmp_path / "a.npz", allow_pickle=False, **dump)
    np.savez(tmp_path / "b.npz", allow_pickle=False, **{**dump, name: dump[name] * 0, "more": dump["x"]})
    words = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--port", str(digits_port)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"tensor {name!r}, made by op" in out
    assert "expected" in out
    assert "cause: the tensor holds 0 everywhere" in out
    assert "only got: more" in out
    assert main([*words, "--fail-on-difference"]) == 1
    assert main([*words[:2], words[1], "--fail-on-difference"]) == 0


def test_dumps_without_a_common_name_are_not_called_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(2))
    np.savez(tmp_path / "b.npz", b=np.zeros(2))
    assert main(["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--fail-on-difference"]) == 1
    assert "nothing was compared" in capsys.readouterr().out


def test_nothing_compared_is_no_success_of_a_script(tmp_path: Path) -> None:
    for name, arrays in (("none", {}), ("empty", {"t": np.zeros((0, 3))}), ("one", {"t": np.zeros(1)})):
        np.savez(tmp_path / f"{name}.npz", allow_pickle=False, **arrays)
    codes = {
        name: main(["compare", *2 * [str(tmp_path / f"{name}.npz")], "--fail-on-difference"])
        for name in ("none", "empty", "one")
    }
    assert codes == {"none": 1, "empty": 1, "one": 0}


def test_what_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]) == 2
    assert "NPZ-MISSING" in capsys.readouterr().err
