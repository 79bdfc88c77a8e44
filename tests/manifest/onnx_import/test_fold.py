from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from manifest.errors import RefusedError
from manifest.onnx_import.fold import fold
from manifest.onnx_import.graph import Graph, build
from manifest.onnx_import.instrument import quantized_outputs
from manifest.onnx_import.lower import rules
from tests.qdq_models import Sketch, array_of, assert_exact, op_of, types


def folded(s: Sketch) -> Graph:
    """The graph after folding."""
    return fold(build(s.proto()), {}, rules(host_ops=False), host_ops=False).graph


def closed(s: Sketch, product: str, shape: tuple[int, ...]) -> Sketch:
    """Quantize a tensor and make it the output."""
    s.output(s.qdq(product, 1.0, out="y"), shape)
    return s


def test_a_transposed_weight_takes_its_channel_axis_along() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 3)), 0.5)
    scales = [0.25, 0.5, 1.0, 2.0]
    w = s.node("Transpose", [s.weight(np.arange(12).reshape(4, 3), scales, name="w", axis=0)], "wt", perm=[1, 0])
    imported = assert_exact(closed(s, s.node("MatMul", [x, w], name="mm"), (2, 4)))
    weight = imported.manifest.tensor("wt")
    assert weight.shape == (3, 4)
    assert weight.dtype == "int8"
    assert weight.quant is not None
    assert (weight.quant.axis, weight.quant.scales) == (1, tuple(scales))
    assert array_of(imported, "wt").tolist() == np.arange(12).reshape(4, 3).T.tolist()
    assert op_of(imported.manifest, "MatMul").inputs == (f"{x}.q", "wt", "")


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "shape", "axis"),
    [
        ("Reshape", [[4, 3]], {}, (4, 3), 0),
        ("Flatten", [], {"axis": 1}, (4, 3), 0),
        ("Squeeze", [[0]], {}, (4, 3, 1), 0),
        ("Unsqueeze", [[0]], {}, (1, 1, 4, 3, 1), 2),
    ],
)
def test_a_reshaped_weight_keeps_its_channels(
    op_type: str, inputs: list[Any], attributes: dict[str, Any], shape: tuple[int, ...], axis: int
) -> None:
    source = (4, 3) if op_type == "Flatten" else (1, 4, 3, 1)
    s = Sketch()
    w = s.weight(np.arange(12).reshape(source), [0.25, 0.5, 1.0, 2.0], name="w", axis=source.index(4))
    s.output(s.node(op_type, [w, *(s.const(i, np.int64) for i in inputs)], "folded", **attributes), shape)
    constant = folded(s).constants["folded"]
    assert constant.array.shape == shape
    assert constant.quant is not None
    assert constant.quant.axis == axis


def test_a_reshape_that_mixes_channels_of_own_scales_is_refused() -> None:
    s = Sketch()
    w = s.weight(np.arange(12).reshape(4, 3), [0.25, 0.5, 1.0, 2.0], name="w", axis=0)
    w = s.node("Reshape", [w, s.const([2, 6], np.int64)], name="rw")
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    with pytest.raises(RefusedError, match=r"node 'rw' \(Reshape\): reshaping 'w' mixes its channels"):
        closed(s, s.node("MatMul", [x, w]), (1, 6)).load()


def test_a_reshape_of_one_scale_may_mix_what_it_likes() -> None:
    s = Sketch()
    w = s.node("Reshape", [s.weight(np.arange(12).reshape(4, 3), 0.5, name="w"), s.const([2, 6], np.int64)], "r")
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    assert array_of(assert_exact(closed(s, s.node("MatMul", [x, w]), (1, 6))), "r").shape == (2, 6)


def test_clip_and_quantize_of_constants_stay_integers() -> None:
    s = Sketch()
    codes = s.node(
        "Clip", [s.const([[-128, 5], [7, 127]], np.int8, "w"), s.const(-127, np.int8), s.const(100, np.int8)], "cl"
    )
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    m = s.node("MatMul", [x, s.dq(codes, 0.5)])
    imported = assert_exact(closed(s, m, (1, 2)))
    assert array_of(imported, "cl").tolist() == [[-127, 5], [7, 100]]
    assert array_of(imported, "cl").dtype == np.int8


def test_a_float_weight_behind_quantize_and_dequantize_becomes_codes() -> None:
    s = Sketch()
    w = s.qdq(s.const([[0.25, -0.75], [1.3, 9.0]], np.float32, "w"), 0.5, out="wd")
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    imported = assert_exact(closed(s, s.node("MatMul", [x, w]), (1, 2)))
    assert array_of(imported, "wd.q").tolist() == [[0, -2], [3, 18]]


def test_one_initializer_with_two_quantizations_gives_two_tensors() -> None:
    s = Sketch()
    s.const(np.eye(4) * 3, np.int8, "shared")
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    first = s.qdq(s.node("MatMul", [x, s.dq("shared", 0.5, out="w1")]), 0.5)
    imported = assert_exact(closed(s, s.node("MatMul", [first, s.dq("shared", 0.25, out="w2")]), (1, 4)))
    quants = {n: imported.manifest.tensor(n).quant for n in ("shared", "w2")}
    assert {n: q.scales for n, q in quants.items() if q} == {"shared": (0.5,), "w2": (0.25,)}
    assert array_of(imported, "shared").tolist() == array_of(imported, "w2").tolist()


@pytest.mark.parametrize(
    "given",
    [
        {"value": numpy_helper.from_array(np.array([2, 2], np.int64))},
        {"value_ints": [2, 2]},
    ],
)
def test_constant_nodes_of_every_kind_of_value(given: dict[str, Any]) -> None:
    s = Sketch()
    s.nodes.append(helper.make_node("Constant", [], ["target"], **given))
    r = s.node("Reshape", [s.qdq(s.input("x", (1, 4)), 0.5), "target"])
    assert op_of(assert_exact(closed(s, r, (2, 2))).manifest, "Reshape").attributes == {"shape": (2, 2)}


def test_float_constants_from_attributes() -> None:
    s = Sketch()
    s.nodes.append(helper.make_node("Constant", [], ["half"], value_float=0.5))
    m = s.node("Mul", [s.qdq(s.input("x", (1, 4)), 0.5), "half"])
    assert types(assert_exact(closed(s, m, (1, 4))).manifest)[1] == "Mul"


def test_a_string_constant_is_refused() -> None:
    s = Sketch()
    s.nodes.append(helper.make_node("Constant", [], ["text"], name="k", value_string="a"))
    m = s.node("Mul", [s.qdq(s.input("x", (1, 4)), 0.5), "text"])
    with pytest.raises(RefusedError, match=r"ONNX-"):
        closed(s, m, (1, 4)).load()


def test_shapes_computed_by_the_graph_are_folded() -> None:
    """Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as PyTorch writes `x.view(x.size(0), -1)`."""
    s = Sketch()
    x = s.qdq(s.input("x", (2, 3, 2, 2)), 0.5)
    size = s.node("Gather", [s.node("Shape", [x]), s.const(0, np.int64)], axis=0)
    first = s.node("Unsqueeze", [size, s.const([0], np.int64)])
    target = s.node("Concat", [first, s.const([-1], np.int64)], axis=0)
    manifest = assert_exact(closed(s, s.node("Reshape", [x, target]), (2, 12))).manifest
    assert types(manifest) == ["QuantizeLinear", "Reshape", "DequantizeLinear"]
    assert op_of(manifest, "Reshape").attributes == {"shape": (2, 12)}


@pytest.mark.parametrize(
    ("op_type", "left", "right", "expected"),
    [
        ("Add", [7, 7], [1, 2], [8, 9]),
        ("Sub", [7, 7], [1, 9], [6, -2]),
        ("Mul", [3, -2], [2, 2], [6, -4]),
        ("Div", [7, -7], [2, 2], [3, -3]),
    ],
)
def test_integer_arithmetic_on_constants(op_type: str, left: list[int], right: list[int], expected: list[int]) -> None:
    s = Sketch()
    s.node(op_type, [s.const(left, np.int64), s.const(right, np.int64)], "out")
    s.output("out", (2,), 7)
    graph = folded(s)
    assert graph.constants["out"].array.tolist() == expected
    assert graph.nodes == ()


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "expected"),
    [
        ([1], [3], [0], None, [1, 2]),
        ([0], [10], None, None, [0, 1, 2, 3, 4]),
        ([4], [-10], [0], [-2], [4, 2, 0]),
        ([-2], [2**31], [-1], [1], [3, 4]),
    ],
)
def test_slices_of_constants(
    starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None, expected: list[int]
) -> None:
    s = Sketch()
    given = [s.const(v, np.int64) if v is not None else "" for v in (starts, ends, axes, steps)]
    while given[-1] == "":
        given.pop()
    s.node("Slice", [s.const(np.arange(5), np.int64), *given], "out")
    s.output("out", (len(expected),), 7)
    graph = folded(s)
    assert graph.constants["out"].array.tolist() == expected


def test_nodes_that_no_output_needs_are_dropped() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    s.node("Relu", [x], "dead")
    closed(s, s.node("Relu", [x]), (1, 4))
    s.node("QuantizeLinear", ["dead", s.const(1.0)], "dead_q", name="dead_node")
    s.node("LRN", ["dead"], name="beyond_the_tool", size=3)
    imported = assert_exact(s)
    assert types(imported.manifest) == ["QuantizeLinear", "Relu", "DequantizeLinear"]
    assert "dead_q" not in quantized_outputs(imported.model_bytes)
    (note,) = [n for n in imported.manifest.notes if n.code == "NODES-UNUSED"]
    assert note.text.startswith("3 nodes reach no graph output")


def test_every_unsupported_op_is_named_even_behind_another() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 4, 4)), 0.5)
    a = s.node("DepthToSpace", [x], name="first", blocksize=1)
    b = s.node("LRN", [s.qdq(a, 0.5)], name="second", size=3)
    closed(s, b, (1, 2, 4, 4))
    with pytest.raises(RefusedError) as error:
        s.load()
    lines = [p.line() for p in error.value.problems]
    assert len(lines) == 2
    assert "node 'first' (DepthToSpace): DepthToSpace is not supported: " in lines[0]
    assert "node 'second' (LRN): LRN is not supported: no such op is known to the importer" in lines[1]
    assert all("remedy: " in line for line in lines)


def test_unsupported_ops_and_unquantised_weights_are_reported_together() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    a = s.node("LRN", [x], name="bad", size=3)
    m = s.node("MatMul", [x, s.const(np.eye(4), np.float32, "wf")], name="mm")
    s.output(s.qdq(a, 0.5, out="y"), (1, 4))
    s.output(s.qdq(m, 0.5, out="z"), (1, 4))
    with pytest.raises(RefusedError) as error:
        s.load()
    assert [p.code for p in error.value.problems] == ["ONNX-OP-UNSUPPORTED", "ONNX-WEIGHT-NOT-QUANTIZED"]
    assert "weight of MatMul 'mm' is not quantised" in str(error.value)


def test_a_tensor_of_absurd_size_is_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1 << 14, 1)), 0.5)
    big = s.node("Add", [x, s.weight(np.ones((1, 1 << 15)), 0.5)], name="wide")
    closed(s, big, (1 << 14, 1 << 15))
    with pytest.raises(RefusedError, match=r"node 'wide' \(Add\): output is too large"):
        s.load()
