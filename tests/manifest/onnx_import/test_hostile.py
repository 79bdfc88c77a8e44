"""Valid models with parts swapped, removed or set to absurd values: an import or a refusal, nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.errors import RefusedError
from manifest.onnx_import import Imported, import_bytes
from tests.onnx_models import linear_model, model, node, qdq_pair, tensor, value

T = onnx.TensorProto
ABSURD = (-(2**63), -1, 0, 1, 2, 7, 10**6, 2**40, 2**63 - 1)


def conv_model() -> onnx.ModelProto:
    """Q/DQ -> Conv with bias and Relu -> Q/DQ -> MaxPool -> Flatten -> Gemm -> Q/DQ."""
    nodes = [
        *qdq_pair("x", "a"),
        node("DequantizeLinear", ["w", "ws"], ["wd"], "wdq", axis=0),
        node("DequantizeLinear", ["b", "bs"], ["bd"], "bdq", axis=0),
        node("Conv", ["a", "wd", "bd"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
        node("Relu", ["c"], ["r"], "relu"),
        *qdq_pair("r", "d"),
        node("MaxPool", ["d"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], ["f"], "flat", axis=1),
        node("DequantizeLinear", ["gw", "s"], ["gwd"], "gdq"),
        node("Gemm", ["f", "gwd"], ["g"], "gemm", transB=1),
        *qdq_pair("g", "y"),
    ]
    initializers = [
        tensor("s", 0.25),
        tensor("z", 128, np.uint8),
        tensor("w", np.ones((2, 1, 3, 3)), np.int8),
        tensor("ws", [0.5, 0.25]),
        tensor("b", [3, -3], np.int32),
        tensor("bs", [0.125, 0.0625]),
        tensor("gw", np.ones((3, 8)), np.int8),
    ]
    return model(nodes, initializers, inputs=[value("x", (1, 1, 4, 4))], outputs=[value("y", (1, 3))])


SEEDS: tuple[Callable[[], onnx.ModelProto], ...] = (linear_model, conv_model)


def pick(data: st.DataObject, items: Any) -> Any:
    """One of `items`, or None where there is none."""
    return items[data.draw(st.integers(0, len(items) - 1))] if len(items) else None


def rewire(graph: onnx.GraphProto, data: st.DataObject) -> None:
    names = sorted({name for item in graph.node for name in (*item.input, *item.output)} | {""})
    item = pick(data, graph.node)
    side = data.draw(st.sampled_from(["input", "output", "more", "less"]))
    if side == "more":
        item.input.append(pick(data, names))
    elif side == "less" and item.input:
        del item.input[-1]
    elif side == "input" and item.input:
        item.input[data.draw(st.integers(0, len(item.input) - 1))] = pick(data, names)
    elif side == "output" and item.output:
        item.output[0] = pick(data, names)


def change_node(graph: onnx.GraphProto, data: st.DataObject) -> None:
    item = pick(data, graph.node)
    if data.draw(st.booleans()):
        item.op_type = pick(data, graph.node).op_type
    elif len(graph.node) > 1:
        graph.node.remove(item)


def change_attribute(graph: onnx.GraphProto, data: st.DataObject) -> None:
    attribute = pick(data, [a for item in graph.node for a in item.attribute])
    if attribute is None:
        return
    number = data.draw(st.sampled_from(ABSURD))
    if attribute.ints:
        attribute.ints[data.draw(st.integers(0, len(attribute.ints) - 1))] = number
    else:
        attribute.i = number


def change_constant(graph: onnx.GraphProto, data: st.DataObject) -> None:
    item = pick(data, graph.initializer)
    kind = data.draw(st.sampled_from(["dims", "byte", "type", "shape"]))
    if kind == "dims" and item.dims:
        item.dims[data.draw(st.integers(0, len(item.dims) - 1))] = data.draw(st.sampled_from(ABSURD))
    elif kind == "byte" and item.raw_data:
        raw = bytearray(item.raw_data)
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        item.raw_data = bytes(raw)
    elif kind == "type":
        item.data_type = data.draw(
            st.sampled_from([T.FLOAT, T.UINT8, T.INT8, T.INT16, T.INT32, T.INT64, T.FLOAT16, 0, 99])
        )
    elif kind == "shape":
        count = int(np.prod(item.dims))
        item.dims[:] = data.draw(st.sampled_from([(count,), (1, count), (count, 1), (1, 1, count)]))


def change_input(graph: onnx.GraphProto, data: st.DataObject) -> None:
    if not graph.input:
        return
    kind = graph.input[0].type.tensor_type
    what = data.draw(st.sampled_from(["type", "dim", "more", "less"]))
    if what == "type":
        kind.elem_type = data.draw(st.sampled_from([T.UINT8, T.INT8, T.INT64, T.STRING, T.FLOAT16, T.BOOL, 0]))
    elif what == "dim" and kind.shape.dim:
        dim = kind.shape.dim[data.draw(st.integers(0, len(kind.shape.dim) - 1))]
        dim.dim_value = data.draw(st.sampled_from(ABSURD))
    elif what == "more":
        kind.shape.dim.add(dim_value=2)
    elif kind.shape.dim:
        kind.shape.dim.pop()


CHANGES = (rewire, change_node, change_attribute, change_constant, change_input)


@settings(max_examples=settings().max_examples * 5)
@given(st.sampled_from(SEEDS), st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3), st.data())
def test_changed_model_is_imported_or_refused(
    seed: Callable[[], onnx.ModelProto],
    changes: list[Callable[[onnx.GraphProto, st.DataObject], None]],
    data: st.DataObject,
) -> None:
    made = seed()
    for change in changes:
        change(made.graph, data)
    try:
        result: Any = import_bytes(made.SerializeToString())
    except RefusedError as error:
        result = [problem.line() for problem in error.problems]
    assert isinstance(result, Imported) or (result and all(line.isprintable() for line in result))


@pytest.mark.parametrize("seed", SEEDS)
def test_unchanged_models_are_imported(seed: Callable[[], onnx.ModelProto]) -> None:
    assert import_bytes(seed().SerializeToString()).manifest.ops


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 3], "pads": [2**30, 2**30, 2**30, 2**30]},
        {"kernel_shape": [3, 3], "pads": [2**62, 1, 1, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "dilations": [2**40, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [0, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": 0},
        {"kernel_shape": [2**40, 3], "pads": [1, 1, 1, 1]},
    ],
)
def test_absurd_convolution_is_refused_without_allocating(attributes: dict[str, Any]) -> None:
    made = conv_model()
    conv = next(item for item in made.graph.node if item.op_type == "Conv")
    conv.CopyFrom(node("Conv", conv.input, conv.output, "conv", **attributes))
    with pytest.raises(RefusedError, match="conv"):
        import_bytes(made.SerializeToString())


def test_problems_of_values_and_of_lowering_come_together() -> None:
    made = conv_model()
    made.graph.node[5].op_type = "Elu"
    next(item for item in made.graph.initializer if item.name == "ws").CopyFrom(tensor("ws", [0.5, 0.0]))
    with pytest.raises(RefusedError) as caught:
        import_bytes(made.SerializeToString())
    text = str(caught.value)
    assert "ONNX-SCALE-ZERO" in text
    assert "Elu" in text
