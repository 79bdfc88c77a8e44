"""Stages: groups between integer tensors, in an order in which they can run."""

from fractions import Fraction

import numpy as np
from hypothesis import given

from manifest.model import Manifest
from oracle.run import Oracle
from oracle.sketch import Sketch, quantization, requantization
from oracle.stages import Stage, stages
from oracle.strategies import Case, graphs

ONE = quantization([1.0], [0])
SAME = requantization([Fraction(1)], "int8")


def _codes(sketch: Sketch, *names: str) -> None:
    for name in names:
        sketch.activation(name, (2,), "int8", ONE)


def _exact(sketch: Sketch, *names: str) -> None:
    for name in names:
        sketch.activation(name, (2,), "exact")


def _names(manifest: Manifest) -> list[tuple[str, ...]]:
    return [s.ops for s in stages(manifest)]


def test_every_op_between_integers_is_a_stage_of_its_own() -> None:
    sketch = Sketch()
    _codes(sketch, "x", "a", "y")
    sketch.op("Relu", ("x",), "a")
    sketch.op("Add", ("a", "x"), "y", requant=requantization([Fraction(1), Fraction(1)], "int8", shared_shift=True))
    assert stages(sketch.manifest(["x"], ["y"])) == (
        Stage(name="relu_0", ops=("relu_0",), inputs=("x",), outputs=("a",)),
        Stage(name="add_1", ops=("add_1",), inputs=("a", "x"), outputs=("y",)),
    )


def test_ops_that_share_an_exact_tensor_are_one_stage() -> None:
    sketch = Sketch()
    _codes(sketch, "x", "y", "z")
    _exact(sketch, "e", "r")
    sketch.op("Mul", ("x", "x"), "e")
    sketch.op("Relu", ("e",), "r")
    sketch.op("QuantizeLinear", ("r",), "y", requant=SAME)
    sketch.op("QuantizeLinear", ("e",), "z", requant=SAME)
    (stage,) = stages(sketch.manifest(["x"], ["y", "z"]))
    assert stage.ops == ("mul_0", "relu_1", "quantizelinear_2", "quantizelinear_3")
    assert (stage.inputs, stage.outputs) == (("x",), ("y", "z"))


def test_two_quantizations_of_one_float_input_stay_apart() -> None:
    sketch = Sketch()
    sketch.activation("x", (2,), "float32", role="input")
    _codes(sketch, "a", "b")
    sketch.op("QuantizeLinear", ("x",), "a", host=True)
    sketch.op("QuantizeLinear", ("x",), "b", host=True)
    assert _names(sketch.manifest(["x"], ["a", "b"])) == [("quantizelinear_0",), ("quantizelinear_1",)]


def test_an_op_on_a_path_that_leaves_a_stage_and_comes_back_joins_it() -> None:
    """e is exact; x -> e -> q -> p (integers) -> s needs e again: q and p cannot run between halves of the stage."""
    sketch = Sketch()
    _codes(sketch, "x", "q", "p", "y")
    _exact(sketch, "e", "s")
    sketch.op("Mul", ("x", "x"), "e")
    sketch.op("QuantizeLinear", ("e",), "q", requant=SAME)
    sketch.op("Relu", ("q",), "p")
    sketch.op("Add", ("e", "p"), "s")
    sketch.op("QuantizeLinear", ("s",), "y", requant=SAME)
    assert len(stages(sketch.manifest(["x"], ["y"]))) == 1


def test_a_stage_waits_for_what_it_reads() -> None:
    """The first op of stage one comes first in the manifest, but it reads what stage two makes."""
    sketch = Sketch()
    _codes(sketch, "x", "a", "y")
    _exact(sketch, "e", "f")
    sketch.op("Mul", ("x", "x"), "e")
    sketch.op("Relu", ("x",), "a")
    sketch.op("Add", ("e", "a"), "f")
    sketch.op("QuantizeLinear", ("f",), "y", requant=SAME)
    assert _names(sketch.manifest(["x"], ["y"])) == [("relu_1",), ("mul_0", "add_2", "quantizelinear_3")]


@given(graphs())
def test_stages_run_one_by_one_give_the_whole(case: Case) -> None:
    oracle = Oracle(case.manifest, case.arrays)
    whole = oracle.run(case.inputs, keep="all")
    values = dict(case.inputs)
    found = stages(case.manifest)
    assert sorted(n for s in found for n in s.ops) == sorted(op.name for op in case.manifest.ops)
    for stage in found:
        got = oracle.run_ops(stage.ops, {n: values[n] for n in stage.inputs})
        assert set(got) == set(stage.outputs)
        values |= got
    for name in case.manifest.model.outputs:
        np.testing.assert_array_equal(values[name], whole[name])
