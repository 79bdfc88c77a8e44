from typing import Any

import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.graph import build
from manifest.onnx_import.inputs import resolve
from tests.qdq_models import Sketch, assert_exact


def relu(*dims: Any) -> Sketch:
    s = Sketch()
    s.output(s.qdq(s.node("Relu", [s.qdq(s.input("x", dims), 0.5)]), 0.5, out="y"), dims)
    return s


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (("N", 3), "dim 0 ('N', probably the batch) is open"),
        ((None, 3), "dim 0 (probably the batch) is open"),
        (("N", 2, 8, "W"), "dim 0 ('N', probably the batch), dim 3 ('W') are open"),
        (("seq_len", 3), "dim 0 ('seq_len') is open"),
        ((1, None), "dim 1 is open"),
    ],
)
def test_every_open_dimension_is_named_with_the_option_that_fixes_it(dims: tuple[Any, ...], words: str) -> None:
    with pytest.raises(RefusedError) as error:
        relu(*dims).load()
    (problem,) = error.value.problems
    assert problem.code == "ONNX-OPEN-DIM"
    assert words in problem.line()
    assert "--shape x=" in problem.remedy


def test_the_example_in_the_remedy_keeps_what_is_fixed() -> None:
    with pytest.raises(RefusedError, match=r"--shape x=1,3,<n>,7"):
        relu("N", 3, "H", 7).load()


def test_a_given_shape_fixes_them_in_manifest_and_model() -> None:
    imported = assert_exact(relu("N", 3), shapes={"x": (2, 3)})
    assert imported.manifest.tensor("x").shape == (2, 3)
    graph = onnx.load_from_string(imported.model_bytes).graph
    assert [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.input, *graph.output)] == [[2, 3]] * 2


@pytest.mark.parametrize("shape", [(2,), (2, 4), (0, 3), (2, 3, 1), (1 << 25, 3)])
def test_a_given_shape_has_to_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError, match=r"--shape x: the shape does not fit the input; expected \[N, 3\]"):
        relu("N", 3).load(shapes={"x": shape})


def test_a_shape_for_an_input_that_is_not_there() -> None:
    with pytest.raises(RefusedError, match="--shape z: the model has no such input; expected x"):
        relu(1, 3).load(shapes={"z": (1, 3)})


def test_an_input_without_shape_is_open_until_one_is_given() -> None:
    s = relu(1, 3)
    s.inputs[0].type.tensor_type.ClearField("shape")
    graph = build(s.proto())
    (problem,) = resolve(graph, {}).problems
    assert "the input has no shape" in problem.line()
    assert resolve(graph, {"x": (4, 5)}).shapes == {"x": (4, 5)}


def test_all_open_inputs_are_reported_at_once() -> None:
    s = relu("N", 3)
    s.output(s.qdq(s.node("Relu", [s.qdq(s.input("u", ("M", 2)), 0.5)]), 0.5, out="v"), ("M", 2))
    with pytest.raises(RefusedError) as error:
        s.load()
    assert [p.where for p in error.value.problems] == ["graph input 'x'", "graph input 'u'"]


def test_an_input_that_nothing_reads_is_left_out_with_a_note() -> None:
    s = relu(1, 3)
    s.input("unused", (5,))
    imported = assert_exact(s)
    assert imported.manifest.model.inputs == ("x",)
    assert [(n.code, n.where) for n in imported.manifest.notes] == [("INPUT-UNUSED", "unused")]
    assert [v.name for v in onnx.load_from_string(imported.model_bytes).graph.input] == ["x"]


@pytest.mark.parametrize("dims", [("N", 5), (None,)])
def test_open_dimensions_of_an_unused_input_do_not_matter(dims: tuple[Any, ...]) -> None:
    s = relu(1, 3)
    s.input("unused", dims, onnx.TensorProto.INT64)
    assert assert_exact(s).manifest.model.inputs == ("x",)


def test_an_input_that_only_a_dead_node_reads_is_left_out() -> None:
    s = relu(1, 3)
    s.node("Identity", [s.input("unused", (5,), onnx.TensorProto.INT64)], "dead")
    imported = assert_exact(s)
    assert imported.manifest.model.inputs == ("x",)
    assert {n.code for n in imported.manifest.notes} == {"INPUT-UNUSED", "NODES-UNUSED"}


def test_an_input_read_for_its_shape_alone_is_left_out() -> None:
    s = relu(1, 3)
    shape = s.node("Shape", [s.input("like", (3, 1))])
    s.output(s.qdq(s.node("Reshape", ["y", shape]), 0.5, out="z"), (3, 1))
    assert assert_exact(s).manifest.model.inputs == ("x",)


def test_an_initializer_that_is_an_input_too_is_a_constant_with_a_note() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    s.input("target", (2,), onnx.TensorProto.INT64)
    r = s.node("Reshape", [x, s.const([2, 2], np.int64, "target")])
    s.output(s.qdq(r, 0.5, out="y"), (2, 2))
    imported = assert_exact(s)
    assert ("INPUT-CONSTANT", "target") in [(n.code, n.where) for n in imported.manifest.notes]
    assert [v.name for v in onnx.load_from_string(imported.model_bytes).graph.input] == ["x"]


def test_a_shape_input_without_a_default_is_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    r = s.node("Reshape", [x, s.input("target", (2,), onnx.TensorProto.INT64)], name="r")
    s.output(s.qdq(r, 0.5, out="y"), (2, 2))
    with pytest.raises(RefusedError, match=r"node 'r' \(Reshape\): shape 'target' is computed at run time"):
        s.load()
