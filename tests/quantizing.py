"""Float models to quantize, and looks into what came out; shared by the tests of the quantizer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.onnx_import.quantize import Quantized

Array = NDArray[Any]
RNG = np.random.default_rng(5)


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.normal(size=shape).astype(np.float32)


IMAGES = {"x": normal(6, 1, 3, 12, 12)}
ROWS = {"x": normal(6, 4, 6)}


def float_model(
    nodes: list[onnx.NodeProto],
    constants: Mapping[str, Any],
    shape: tuple[int | str, ...],
    outputs: Mapping[str, tuple[int, ...]],
    opset: int = 17,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def run(model: bytes, feeds: Mapping[str, Array], outputs: list[str] | None = None) -> list[Array]:
    """Outputs over all feeds at ORT_DISABLE_ALL; inner tensors may be asked for."""
    proto = onnx.ModelProto.FromString(model)
    known = {o.name for o in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in outputs or [] if n not in known)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options)
    count = len(next(iter(feeds.values())))
    rows = [session.run(outputs, {k: v[i] for k, v in feeds.items()}) for i in range(count)]
    return [np.stack(values) for values in zip(*rows, strict=True)]


def graph_of(q: Quantized) -> onnx.GraphProto:
    graph: onnx.GraphProto = onnx.ModelProto.FromString(q.model_bytes).graph
    return graph


def types(q: Quantized) -> list[str]:
    return [n.op_type for n in graph_of(q).node if n.op_type != "DequantizeLinear"]


def constants_of(q: Quantized) -> dict[str, Array]:
    return {t.name: numpy_helper.to_array(t) for t in graph_of(q).initializer}


def scale_of(q: Quantized, output: str) -> float:
    """Scale of the Q or DQ node that writes `output`."""
    node = next(n for n in graph_of(q).node if output in n.output)
    return float(constants_of(q)[node.input[1]])


def sqnr(reference: Array, got: Array) -> float:
    return float(10 * np.log10((reference**2).sum() / ((reference - got) ** 2).sum()))


def conv(source: str, weight: str, target: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, weight], [target], name=f"conv_{target}", **attributes)
