from typing import Any

import onnx
import pytest

from manifest.onnx_import.validate import validate
from manifest.onnx_import.validate_nodes import arity_problems
from tests.onnx_models import linear_model, model, node, tensor


def lines(*nodes: Any, opset: int = 13, domain: str = "") -> list[str]:
    made = model(nodes, opset=opset, imports={domain: 1} if domain else None)
    return [problem.line() for problem in arity_problems(made)]


@pytest.mark.parametrize(("count", "right"), [(1, False), (2, True), (3, True), (4, False)])
def test_inputs_on_both_sides(count: int, right: bool) -> None:
    found = lines(node("Conv", ["x", "w", "b", "more"][:count], ["y"], "n"))
    assert len(found) == (0 if right else 1)
    assert right or f"expected 2 to 3; got {count}" in found[0]


def test_outputs_on_both_sides() -> None:
    assert lines(node("Relu", ["x"], ["y"])) == []
    assert "wrong outputs; expected 1; got 0" in lines(node("Relu", ["x"], []))[0]
    assert "wrong outputs; expected 1; got 2" in lines(node("Relu", ["x"], ["y", "z"]))[0]
    assert "input X; got an empty name" in lines(node("Relu", [""], ["y"], "n"))[0]
    assert lines(node("Clip", ["x", "", "hi"], ["y"])) == []


@pytest.mark.parametrize("opset", [8, 13, 21])
@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_quantize_of_any_domain_and_opset(opset: int, domain: str) -> None:
    assert lines(node("QuantizeLinear", ["x", "s"], ["q"], domain=domain), opset=opset, domain=domain) == []
    assert len(lines(node("QuantizeLinear", ["x"], ["q"], domain=domain), opset=opset, domain=domain)) == 1
    assert len(lines(node("DequantizeLinear", ["", "s"], ["y"], domain=domain), opset=opset, domain=domain)) == 1


@pytest.mark.parametrize(("count", "right"), [(5, False), (6, True), (9, True), (10, False)])
def test_ops_of_onnxruntime_on_both_sides(count: int, right: bool) -> None:
    made = node("QGemm", [f"i{k}" for k in range(count)], ["y"], "n", domain="com.microsoft")
    found = lines(made, domain="com.microsoft")
    assert len(found) == (0 if right else 1)
    assert right or f"expected 6 to 9; got {count}" in found[0]
    twice = node("QGemm", [f"i{k}" for k in range(6)], ["y", "z"], domain="com.microsoft")
    assert len(lines(twice, domain="com.microsoft")) == 1


def test_unknown_ops_need_an_output_only() -> None:
    assert lines(node("NoSuchOp", [], ["y"], domain="org.example"), domain="org.example") == []
    assert len(lines(node("NoSuchOp", ["x"], [], domain="org.example"), domain="org.example")) == 1
    assert len(lines(node("NoSuchOp", ["x"], [""]))) == 1


def test_every_broken_node_is_named_in_one_run() -> None:
    made = linear_model()
    for index in (0, 2, 3):
        del made.graph.node[index].input[1:]
    text = "\n".join(problem.line() for problem in validate(made))
    assert text.count("ONNX-ARITY") == 3
    assert all(name in text for name in ("'a_Q'", "'w_DQ'", "'mm'"))


def test_variadic_and_optional_ops_are_right() -> None:
    made = model([node("Sum", ["x"] * 5, ["a"]), node("Concat", ["a", "x"], ["y"], axis=0)])
    made.graph.initializer.append(tensor("unused", 1.0))
    assert list(arity_problems(made)) == []
    assert onnx.defs.get_schema("Sum", 13).max_input > 5
