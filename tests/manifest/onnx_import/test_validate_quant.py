from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest

from manifest.errors import Problem
from manifest.onnx_import.load import load_bytes
from manifest.onnx_import.validate import validate
from tests.onnx_models import linear_model, model, node, qdq_pair, tensor, value

T = onnx.TensorProto


def problems(made: onnx.ModelProto) -> list[Problem]:
    return validate(load_bytes(made.SerializeToString()))


def codes(made: onnx.ModelProto) -> list[str]:
    return [problem.code for problem in problems(made)]


def the(made: onnx.ModelProto, code: str) -> str:
    found = problems(made)
    assert [problem.code for problem in found] == [code], [p.line() for p in found]
    return found[0].line()


def pair(
    scale: Any = 0.5, zero_point: Any = 0, code_type: Any = np.uint8, *, opset: int = 13, **kw: Any
) -> onnx.ModelProto:
    """x -> Q -> DQ -> y with initializers `s` and `z`."""
    imports = {kw["domain"]: 1} if "domain" in kw else None
    initializers = [tensor("s", scale), tensor("z", zero_point, code_type)]
    return model(qdq_pair("x", "y", **kw), initializers, opset=opset, imports=imports)


# --- values of scales


@pytest.mark.parametrize(
    ("bad", "code", "shown"),
    [
        (0.0, "ONNX-SCALE-ZERO", "got 0.0"),
        (-0.0, "ONNX-SCALE-ZERO", "got -0.0"),
        (-0.25, "ONNX-SCALE-NEGATIVE", "got -0.25"),
        (float("nan"), "ONNX-SCALE-NAN", "got nan"),
        (float("inf"), "ONNX-SCALE-INFINITE", "got inf"),
        (float("-inf"), "ONNX-SCALE-NEGATIVE", "got -inf"),
        (1e-40, "ONNX-SCALE-DENORMAL", "got 1e-40"),
    ],
)
def test_impossible_scale_names_tensor_channel_and_value(bad: float, code: str, shown: str) -> None:
    line = the(linear_model(weight_scale=[0.5, bad, 0.5], weight_axis=1), code)
    assert "'ws'" in line
    assert "'w'" in line
    assert "channel 1 of 3" in line
    assert shown in line
    whole = the(linear_model(weight_scale=bad), code)
    assert "channel " not in whole.split("remedy")[0]


def test_denormal_limit_on_both_sides() -> None:
    smallest = np.float32(2.0**-126)
    assert codes(linear_model(weight_scale=smallest)) == []
    assert codes(linear_model(weight_scale=np.nextafter(smallest, np.float32(0)))) == ["ONNX-SCALE-DENORMAL"]
    assert codes(linear_model(weight_scale=np.finfo(np.float32).max)) == []


def test_several_bad_channels_are_counted() -> None:
    line = the(linear_model(weight_scale=[0.0, 0.0, 0.0], weight_axis=1), "ONNX-SCALE-ZERO")
    assert "channel 0 of 3 (and at 2 more channels)" in line


def test_scale_shared_by_q_and_dq_is_one_problem() -> None:
    assert codes(pair(scale=0.0)) == ["ONNX-SCALE-ZERO"]


@pytest.mark.parametrize("form", ["value", "value_float", "identity"])
def test_scale_in_a_constant_node_is_looked_at_too(form: str) -> None:
    if form == "value_float":
        first = node("Constant", [], ["s"], value_float=0.0)
    else:
        first = node("Constant", [], ["s0" if form == "identity" else "s"], value=tensor("", 0.0))
    extra = [node("Identity", ["s0"], ["s"])] if form == "identity" else []
    made = model([first, *extra, *qdq_pair("x", "y", zero_point="")])
    assert "'s'" in the(made, "ONNX-SCALE-ZERO")


def test_dynamic_scale_and_zero_point_are_refused() -> None:
    made = model(
        [node("ReduceMax", ["x"], ["s"], keepdims=0), *qdq_pair("x", "y")],
        [tensor("z", 0, np.uint8)],
        opset=13,
    )
    lines = [p.line() for p in problems(made)]
    assert len(lines) == 2
    assert all("ONNX-DYNAMIC-QUANTIZATION" in line and "scale 's'" in line for line in lines)
    given = model(qdq_pair("x", "y"), [tensor("s", 0.5)], inputs=[value("x"), value("z", (), T.UINT8)])
    assert codes(given) == ["ONNX-DYNAMIC-QUANTIZATION"] * 2
    assert "zero point 'z'" in problems(given)[0].line()


def test_scale_types() -> None:
    made = pair()
    made.graph.initializer[0].CopyFrom(tensor("s", 0.5, np.float64))
    assert codes(made) == ["ONNX-SCALE-TYPE"] * 2
    assert "float64" in problems(made)[0].line()


# --- axis


def test_default_axis_is_1_and_never_guessed() -> None:
    assert codes(linear_model(weight_scale=[1, 1, 1])) == []
    line = the(linear_model(weight_scale=[1, 1, 1, 1]), "ONNX-SCALE-AXIS")
    assert "DequantizeLinear" in line
    assert "axis 1 (the default)" in line
    assert "[4, 3]" in line
    assert "expected 3 scales; got 4 scales" in line
    assert codes(linear_model(weight_scale=[1, 1, 1, 1], weight_axis=0)) == []


@pytest.mark.parametrize(("axis", "right"), [(-3, False), (-2, True), (1, False), (0, True), (2, False)])
def test_axis_range(axis: int, right: bool) -> None:
    assert codes(linear_model(weight_scale=[1] * 4, weight_axis=axis)) == ([] if right else ["ONNX-SCALE-AXIS"])


def test_axis_of_a_per_tensor_scale_means_nothing() -> None:
    assert codes(linear_model(weight_scale=1.0, weight_axis=7)) == []
    assert codes(linear_model(weight_scale=[1.0], weight_axis=7)) == []


def test_axis_of_an_activation_with_known_shape() -> None:
    right = pair(scale=[0.5] * 4, zero_point=[0] * 4, axis=1)
    assert codes(right) == []
    assert "axis 0" in problems(pair(scale=[0.5] * 4, zero_point=[0] * 4, axis=0))[0].line()


@pytest.mark.parametrize("shape", [(2, 2), (1, 1), (0,)])
def test_scale_that_is_neither_number_nor_vector(shape: tuple[int, ...]) -> None:
    assert "ONNX-SCALE-SHAPE" in codes(linear_model(weight_scale=np.ones(shape)))


# --- zero points


def test_zero_point_length() -> None:
    assert codes(pair(scale=0.5, zero_point=[3])) == []
    assert codes(pair(scale=[0.5], zero_point=3)) == []
    assert codes(pair(scale=0.5, zero_point=[3] * 4)) == ["ONNX-QUANTIZATION-LENGTH"] * 2
    assert codes(pair(scale=[0.5] * 4, zero_point=3)) == ["ONNX-QUANTIZATION-LENGTH"] * 2


def test_zero_point_type_has_to_be_that_of_the_codes() -> None:
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "other"], ["y"], "dq")]
    made = model(nodes, [tensor("s", 0.5), tensor("z", 0, np.uint8), tensor("other", 0, np.int8)])
    line = the(made, "ONNX-ZERO-POINT-TYPE")
    assert "'dq'" in line
    assert "expected uint8; got int8" in line


def test_output_dtype_against_zero_point() -> None:
    made = pair(code_type=np.int8, opset=21)
    made.graph.node[0].attribute.add(name="output_dtype", type=onnx.AttributeProto.INT, i=T.INT8)
    assert codes(made) == []
    made.graph.node[0].attribute[0].i = T.UINT8
    assert "output_dtype" in the(made, "ONNX-ZERO-POINT-TYPE")


# --- types


@pytest.mark.parametrize("kind", [np.int16, np.uint16])
@pytest.mark.parametrize(("opset", "right"), [(13, False), (20, False), (21, True)])
def test_16_bit_codes_need_opset_21(kind: Any, opset: int, right: bool) -> None:
    found = problems(pair(code_type=kind, opset=opset))
    if right:
        assert found == []
        return
    assert {p.code for p in found} == {"ONNX-OPSET-INT16"}
    line = found[0].line()
    assert all(word in line for word in (f"opset {opset}", "int16", "opset 21", "com.microsoft"))


def test_16_bit_codes_of_com_microsoft_are_fine_in_any_opset() -> None:
    assert codes(pair(code_type=np.int16, opset=8, domain="com.microsoft")) == []


def test_int32_codes_are_for_dequantize_only() -> None:
    bias = [node("DequantizeLinear", ["b", "s"], ["bf"]), node("Add", ["x", "bf"], ["y"])]
    assert codes(model(bias, [tensor("b", [1, 2, 3, 4], np.int32), tensor("s", 0.5)])) == []
    found = problems(pair(code_type=np.int32))
    assert found[0].code == "ONNX-QUANTIZED-TYPE"
    assert "int32" in found[0].line()


@pytest.mark.parametrize(("kind", "name"), [(T.INT4, "int4"), (T.UINT4, "uint4"), (T.FLOAT8E4M3FN, "float8e4m3fn")])
@pytest.mark.parametrize("block", [0, 2])
def test_narrow_types_are_refused_by_name_with_their_block_size(kind: int, name: str, block: int) -> None:
    weights = onnx.helper.make_tensor("w", kind, [4, 3], [1] * 12)
    nodes = [
        node("DequantizeLinear", ["w", "ws"], ["wd"], "w_DQ", axis=0, **({"block_size": block} if block else {})),
        node("MatMul", ["x", "wd"], ["y"]),
    ]
    scale = tensor("ws", np.ones((2, 3)) if block else 1.0)
    found = problems(model(nodes, [weights, scale], outputs=[value("y", (1, 3))], opset=21))
    text = "\n".join(p.line() for p in found)
    assert [p.code for p in found] == ["ONNX-QUANTIZED-TYPE"] + (["ONNX-BLOCK-SIZE"] if block else [])
    assert name in text
    assert ("block_size 2" in text) == bool(block)


def test_block_size_alone_is_refused() -> None:
    made = linear_model(opset=21, weight_scale=np.ones((2, 3)), weight_axis=0)
    made.graph.node[2].attribute.add(name="block_size", type=onnx.AttributeProto.INT, i=2)
    line = the(made, "ONNX-BLOCK-SIZE")
    assert "block_size 2" in line
    assert "'w_DQ'" in line
    made.graph.node[2].attribute[-1].i = 0
    assert codes(made) == ["ONNX-SCALE-SHAPE"]


def test_the_same_fault_in_many_nodes_is_one_line() -> None:
    nodes: list[Any] = []
    names = ["x", *(f"t{i}" for i in range(5)), "y"]
    for source, target in pairwise(names):
        nodes += qdq_pair(source, target)
    made = model(nodes, [tensor("s", 0.5), tensor("z", 0, np.int16)])
    found = problems(made)
    assert [p.code for p in found] == ["ONNX-OPSET-INT16", "ONNX-OPSET-INT16"]
    assert (
        "'t0_Q' (QuantizeLinear), node 't1_Q' (QuantizeLinear), node 't2_Q' (QuantizeLinear) and 3 more"
        in found[0].line()
    )


def test_quantize_without_scale() -> None:
    made = model(
        [node("QuantizeLinear", ["x"], ["q"], "n"), node("DequantizeLinear", ["q", "s"], ["y"])], [tensor("s", 1.0)]
    )
    line = the(made, "ONNX-ARITY")
    assert "'n'" in line
    assert "expected 2 to 3; got 1" in line


# --- QOperator


def qlinear_conv(weight_scale: Any, weight_zero: Any = 0, x_scale: Any = 0.5, y_scale: Any = 0.5) -> onnx.ModelProto:
    names = ["q", "xs", "z", "w", "ws", "wz", "ys", "z"]
    nodes = [
        node("QuantizeLinear", ["x", "one", "z"], ["q"]),
        node("QLinearConv", names, ["qy"], "conv"),
        node("DequantizeLinear", ["qy", "one", "z"], ["y"]),
    ]
    weights = np.ones((3, 2, 1, 1), np.int8)
    initializers = [
        tensor("one", 1.0),
        tensor("xs", x_scale),
        tensor("z", 0, np.uint8),
        tensor("w", weights, np.int8),
        tensor("ws", weight_scale),
        tensor("wz", weight_zero, np.int8),
        tensor("ys", y_scale),
    ]
    return model(nodes, initializers, inputs=[value("x", (1, 2, 4, 4))], outputs=[value("y", (1, 3, 4, 4))])


def test_qlinear_conv_scales() -> None:
    assert codes(qlinear_conv(0.5)) == []
    assert codes(qlinear_conv([0.5, 1, 2], [0, 0, 0])) == []
    assert codes(qlinear_conv([0.5, 1, 2], 0)) == []
    assert "channel 2 of 3" in the(qlinear_conv([0.5, 1, 0]), "ONNX-SCALE-ZERO")
    assert "expected 3 scales; got 2 scales" in the(qlinear_conv([0.5, 1]), "ONNX-SCALE-AXIS")
    assert "'conv'" in the(qlinear_conv(0.5, x_scale=[0.5, 0.5]), "ONNX-SCALE-SHAPE")
    assert "'qy'" in the(qlinear_conv(0.5, y_scale=0.0), "ONNX-SCALE-ZERO")
    assert codes(qlinear_conv([0.5, 1, 2], [0, 0])) == ["ONNX-QUANTIZATION-LENGTH"]


def test_qlinear_conv_types() -> None:
    made = qlinear_conv(0.5)
    zero = next(t for t in made.graph.initializer if t.name == "wz")
    zero.CopyFrom(tensor("wz", 0, np.uint8))
    line = the(made, "ONNX-ZERO-POINT-TYPE")
    assert "'w'" in line
    assert "expected int8; got uint8" in line
    zero.CopyFrom(tensor("wz", 0, np.int16))
    line = the(made, "ONNX-QUANTIZED-TYPE")
    assert "int16" in line
    assert "QLinearConv" in line


@pytest.mark.parametrize(("transposed", "count", "right"), [(0, 3, True), (0, 4, False), (1, 4, True), (1, 3, False)])
def test_qgemm_scales_follow_trans_b(transposed: int, count: int, right: bool) -> None:
    names = ["q", "s", "z", "w", "ws", "wz", "", "s", "z"]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QGemm", names, ["qy"], "gemm", domain="com.microsoft", transB=transposed),
        node("DequantizeLinear", ["qy", "s", "z"], ["y"]),
    ]
    initializers = [
        tensor("s", 1.0),
        tensor("z", 0, np.uint8),
        tensor("w", np.ones((4, 3)), np.int8),
        tensor("ws", [1.0] * count),
        tensor("wz", [0] * count, np.int8),
    ]
    made = model(nodes, initializers, imports={"com.microsoft": 1})
    assert codes(made) == ([] if right else ["ONNX-SCALE-AXIS"])


@pytest.mark.parametrize(("tail", "right"), [([], True), (["s"], False), (["s", "z"], True), (["", "z"], False)])
def test_qgemm_output_has_scale_and_zero_point_or_neither(tail: list[str], right: bool) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QGemm", ["q", "s", "z", "w", "s", "z", "", *tail], ["y"], "gemm", domain="com.microsoft"),
    ]
    initializers = [tensor("s", 1.0), tensor("z", 0, np.uint8), tensor("w", np.ones((4, 4)), np.uint8)]
    outputs = [value("y", (1, 4), T.UINT8 if "z" in tail else T.FLOAT)]
    made = model(nodes, initializers, outputs=outputs, imports={"com.microsoft": 1})
    assert codes(made) == ([] if right else ["ONNX-QUANT-INPUTS"])


def test_qlinear_concat_scales_of_every_input() -> None:
    names = ["ys", "z", "q", "s0", "z", "q", "s1", "z"]
    nodes = [
        node("QuantizeLinear", ["x", "one", "z"], ["q"]),
        node("QLinearConcat", names, ["qy"], "cat", domain="com.microsoft", axis=1),
        node("DequantizeLinear", ["qy", "one", "z"], ["y"]),
    ]
    scales = {"one": 1.0, "ys": 0.5, "s0": 0.25, "s1": 0.0}
    initializers = [tensor("z", 0, np.uint8), *(tensor(name, scale) for name, scale in scales.items())]
    made = model(nodes, initializers, outputs=[value("y", (1, 8))], imports={"com.microsoft": 1})
    assert "'s1'" in the(made, "ONNX-SCALE-ZERO")
