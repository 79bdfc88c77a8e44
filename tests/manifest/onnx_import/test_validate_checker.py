"""Complaints of onnx.checker name the node or tensor that they are about."""

from collections.abc import Callable

import onnx
import pytest

from manifest.errors import Problem, RefusedError
from manifest.onnx_import import import_bytes
from manifest.onnx_import.validate_checker import checker_problems
from tests.qdq_models import Sketch


def model() -> onnx.ModelProto:
    """x -> Q/DQ -> Relu `relu` (writes r) -> Q/DQ -> y."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="xd")
    s.qdq(s.node("Relu", [x], "r", name="relu"), 0.5, out="y")
    s.output("y", (1, 4))
    return s.proto()


def node(made: onnx.ModelProto) -> onnx.NodeProto:
    found: onnx.NodeProto = next(n for n in made.graph.node if n.name == "relu")
    return found


def output_without_shape(made: onnx.ModelProto) -> None:
    made.graph.output[0].type.tensor_type.ClearField("shape")


def output_without_type(made: onnx.ModelProto) -> None:
    made.graph.output[0].ClearField("type")


def input_without_shape(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.ClearField("shape")


def second_output_without_shape(made: onnx.ModelProto) -> None:
    extra = made.graph.output.add()
    extra.name = "r"
    extra.type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def unknown_op(made: onnx.ModelProto) -> None:
    node(made).op_type = "Nope"


def unknown_attribute(made: onnx.ModelProto) -> None:
    node(made).attribute.append(onnx.helper.make_attribute("zzz", 3))


def unknown_attribute_of_an_unnamed_node(made: onnx.ModelProto) -> None:
    unknown_attribute(made)
    node(made).name = ""


def op_without_type(made: onnx.ModelProto) -> None:
    node(made).op_type = ""


def graph_without_name(made: onnx.ModelProto) -> None:
    made.graph.name = ""


CASES: list[tuple[Callable[[onnx.ModelProto], None], str]] = [
    (output_without_shape, "graph output 'y'"),
    (output_without_type, "graph output 'y'"),
    (input_without_shape, "graph input 'x'"),
    (second_output_without_shape, "graph output 'r'"),
    (unknown_op, "node 'relu' (Nope)"),
    (unknown_attribute, "node 'relu' (Relu)"),
    (unknown_attribute_of_an_unnamed_node, "unnamed node (Relu -> 'r')"),
    (op_without_type, "node 'relu' ()"),
    (graph_without_name, "graph ''"),
]


@pytest.mark.parametrize(("breaks", "where"), CASES)
def test_a_complaint_names_its_place(breaks: Callable[[onnx.ModelProto], None], where: str) -> None:
    made = model()
    assert checker_problems(made) == []
    breaks(made)
    with pytest.raises(RefusedError) as refused:
        import_bytes(made.SerializeToString())
    (problem,) = refused.value.problems
    assert (problem.code, problem.where) == ("ONNX-CHECKER", where)
    assert problem.line().startswith(f"[ONNX-CHECKER] {where}: ")
    assert "==>" not in problem.where


def test_a_place_without_a_name_is_shown_as_such() -> None:
    assert Problem(code="A-B", where="", what="bad").line() == "[A-B] '': bad"
    assert Problem(code="A-B", where="x", what="bad").line() == "[A-B] x: bad"
