"""Arrays and kernels that a person gives for a design file, and the way of a lowered design between processes."""

from pathlib import Path

import numpy as np
import pytest

from manifest.errors import RefusedError
from presim.design import Design, Transfer
from presim.iron.feeds import expected_of, inputs_of, results_of
from presim.iron.lowered import External, Lowered, read_lowered, write_lowered
from presim.iron.traced import TracedKernel
from presim.iron.twins import load_twins, split_pairs

SEQUENCE = (
    Transfer(fifo="a", direction="fill", tensor="x", objects=1),
    Transfer(fifo="b", direction="fill", tensor="ones", objects=1),
    Transfer(fifo="c", direction="drain", tensor="y", objects=1),
)


def design(**more: object) -> Lowered:
    values: dict[str, object] = {
        "design": Design(dispatch="d", device="npu2", workers=(), fifos=(), sequence=SEQUENCE),
        "arrays": {"ones": np.ones(4, np.int32)},
        "externals": (External(symbol="k", object_file="k.o", arg_types=(("int32", (4,)), "int32")),),
        "traced": (),
        "device": "npu2",
        "columns": 8,
        "argument_types": (("x", "int8", (2, 4)), ("y", "int32", (4,))),
    }
    return Lowered(**{**values, **more})  # type: ignore[arg-type]


def test_one_inference_and_several() -> None:
    one, leading = inputs_of(design(), {"x": np.arange(8).reshape(2, 4)}, "x.npz")
    assert (len(one), leading) == (1, False)
    assert (one[0]["x"].dtype.name, one[0]["x"].shape) == ("int8", (2, 4))
    three, leading = inputs_of(design(), {"x": np.arange(24).reshape(3, 2, 4)}, "x.npz")
    assert (len(three), leading) == (3, True)
    assert three[2]["x"][1, 3] == 23
    single, leading = inputs_of(design(), {"x": np.zeros((1, 2, 4))}, "x.npz")
    assert (len(single), leading) == (1, True)


def test_results_have_the_axis_that_the_inputs_have() -> None:
    outputs = [{"y": np.arange(4)}, {"y": np.arange(4) + 1}]
    assert results_of(design(), outputs, leading=True)["y"].tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert results_of(design(), outputs[:1], leading=False)["y"].tolist() == [0, 1, 2, 3]
    assert results_of(design(), [], leading=True) == {}


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        ({}, "'x'", "is absent"),
        ({"x": np.zeros((2, 5))}, "'x'", "does not fit: float64 (2, 5)"),
        ({"x": np.full((2, 4), 300)}, "'x'", "does not fit"),
        ({"x": np.full((2, 4), 0.5)}, "'x'", "does not fit"),
        ({"x": np.zeros((2, 4)), "ones": np.ones(4)}, "'ones'", "there is no such tensor that the sequence fills from"),
    ],
)
def test_an_array_that_does_not_fit_is_named(given: dict[str, np.ndarray], where: str, what: str) -> None:
    with pytest.raises(RefusedError) as refused:
        inputs_of(design(), given, "x.npz")
    (problem,) = refused.value.problems
    assert problem.code == "IRON-DATA"
    assert problem.where == f"x.npz: array {where}"
    assert what in problem.what


def test_arrays_of_different_counts_are_refused() -> None:
    made = design(arrays={}, argument_types=(("x", "int8", (2,)), ("ones", "int8", (2,)), ("y", "int8", (2,))))
    with pytest.raises(RefusedError, match=r"are of \[2, 3\] inferences"):
        inputs_of(made, {"x": np.zeros((2, 2)), "ones": np.zeros((3, 2))}, "x.npz")


def test_expected_results_may_be_a_part() -> None:
    found, leading = expected_of(design(), {"y": np.arange(8).reshape(2, 4)}, "z.npz")
    assert ([f["y"][0] for f in found], leading) == ([0, 4], True)


def test_pairs_of_symbols_and_files() -> None:
    assert split_pairs(["a=x.py:f", "b=y=z.cc"]) == {"a": "x.py:f", "b": "y=z.cc"}
    for values, what in ((["a"], "no option"), (["=x"], "no option"), (["a="], "no option"), (["a=x", "a=y"], "twice")):
        with pytest.raises(RefusedError, match=what):
            split_pairs(values)


def test_twins_come_from_files(tmp_path: Path) -> None:
    path = tmp_path / "t.py"
    path.write_text("def k():\n    return 1\ndef other():\n    return 2\nnumber = 3\n", encoding="utf-8")
    found = load_twins({"k": str(path), "j": f"{path}:other"})
    assert {s: f() for s, f in found.items()} == {"k": 1, "j": 2}
    for text in (f"{path}:number", f"{path}:absent", str(tmp_path / "u.py")):
        with pytest.raises(RefusedError):
            load_twins({"k": text})


def test_a_twin_that_fails_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.py"
    path.write_text("raise ValueError('no\\nmore')\n", encoding="utf-8")
    with pytest.raises(RefusedError) as refused:
        load_twins({"k": str(path)})
    (problem,) = refused.value.problems
    assert (problem.code, problem.what) == ("IRON-KERNEL", "fails: ValueError: no")


def test_a_lowered_design_is_the_same_behind_its_files(tmp_path: Path) -> None:
    made = design(
        traced=(TracedKernel(symbol="t", parameters=(("int8", (4,), True),), counters=("n",), statements=()),)
    )
    write_lowered(made, tmp_path)
    found = read_lowered(tmp_path, "design.py")
    assert found.design == made.design
    assert found.externals == made.externals
    assert found.traced == made.traced
    assert found.argument_types == made.argument_types
    assert (found.device, found.columns) == ("npu2", 8)
    assert {k: v.tolist() for k, v in found.arrays.items()} == {"ones": [1, 1, 1, 1]}
