"""One-op cases as ONNX models: QOperator nodes, or the op between DequantizeLinear and QuantizeLinear."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.model import QRANGE, Op, Quantization
from oracle.strategies import Case

Array = NDArray[Any]
TYPES = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (*QRANGE, "float32")}
CONTRIB = "com.microsoft"


class Model:
    """Collects nodes and initializers of the ONNX model of a case with one op."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tensors = case.manifest.by_name()
        (self.op,) = case.manifest.ops
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def const(self, name: str, value: Any, dtype: Any) -> str:
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def quant(self, name: str) -> Quantization:
        quant = self.tensors[name].quant
        assert quant is not None
        return quant

    def code(self, name: str) -> str:
        """The integer tensor itself, as an initializer where it is constant."""
        key = self.tensors[name].array
        if key is not None and all(i.name != name for i in self.initializers):
            self.initializers.append(numpy_helper.from_array(self.case.arrays[key], name))
        return name

    def scale_point(self, name: str) -> list[str]:
        """Names of scale and zero point."""
        quant, dtype = self.quant(name), self.tensors[name].dtype
        one = len(quant.scales) == 1
        scale, point = quant.scales[0] if one else quant.scales, quant.zero_points[0] if one else quant.zero_points
        return [self.const(f"{name}.s", scale, np.float32), self.const(f"{name}.z", point, dtype)]

    def coded(self, name: str) -> list[str]:
        return [self.code(name), *self.scale_point(name)]

    def dequantized(self, name: str) -> str:
        """The float value of a quantised tensor, or a float constant."""
        quant = self.tensors[name].quant
        if quant is None:
            return self.code(name)
        axis: dict[str, Any] = {} if quant.axis is None or len(quant.scales) == 1 else {"axis": quant.axis}
        return self.node("DequantizeLinear", self.coded(name), f"{name}.f", **axis)

    def session(self) -> onnxruntime.InferenceSession:
        inputs = [self.value(n) for n in self.case.manifest.model.inputs]
        outputs = [self.value(n) for n in self.case.manifest.model.outputs]
        graph = helper.make_graph(self.nodes, "case", inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 10
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def value(self, name: str) -> onnx.ValueInfoProto:
        tensor = self.tensors[name]
        return helper.make_tensor_value_info(name, TYPES[tensor.dtype], tensor.shape)


def attributes(op: Op, *dropped: str) -> dict[str, Any]:
    found = {k: list(v) if isinstance(v, tuple) else v for k, v in op.attributes.items()}
    return {k: v for k, v in found.items() if k not in dropped}


def qoperator(case: Case) -> Model:
    """The op as QLinearConv, QGemm, QLinearMatMul, QLinearAdd or a QLinear pool."""
    model = Model(case)
    op = model.op
    x, y = op.inputs[0], op.outputs[0]
    bias = [model.code(op.inputs[2])] if len(op.inputs) > 2 and op.inputs[2] else []
    inputs = model.coded(x)
    if op.type in ("Conv", "Gemm", "MatMul"):
        inputs += model.coded(op.inputs[1])
    if op.type == "Conv":
        model.node("QLinearConv", [*inputs, *model.scale_point(y), *bias], y, **attributes(op))
    elif op.type == "Gemm":
        model.node("QGemm", [*inputs, *(bias or [""]), *model.scale_point(y)], y, CONTRIB, **attributes(op, "beta"))
    elif op.type == "MatMul":
        model.node("QLinearMatMul", [*inputs, *model.scale_point(y)], y)
    elif op.type in ("Add", "Mul"):
        model.node(f"QLinear{op.type}", [*inputs, *model.coded(op.inputs[1]), *model.scale_point(y)], y, CONTRIB)
    elif op.type == "Concat":
        parts = [n for name in op.inputs[1:] for n in model.coded(name)]
        model.node("QLinearConcat", [*model.scale_point(y), *inputs, *parts], y, CONTRIB, **attributes(op))
    else:
        kept = attributes(op, "factor", "dilations")
        model.node(f"QLinear{op.type}", [*inputs, *model.scale_point(y)], y, CONTRIB, **kept)
    return model


def qdq(case: Case) -> Model:
    """The op in float32 between DequantizeLinear and QuantizeLinear."""
    model = Model(case)
    op, y = model.op, model.op.outputs[0]
    names = [model.dequantized(n) for n in op.inputs if n]
    result = model.node(op.type, names, "float", **attributes(op, "factor"))
    if op.attributes.get("factor", 1.0) != 1.0:
        result = model.node("Mul", [result, model.const("factor", op.attributes["factor"], np.float32)], "scaled")
    model.node("QuantizeLinear", [result, *model.scale_point(y)], y)
    return model


def run(model: Model) -> Array:
    """Codes of all feeds, clamped to what a fused Relu or Clip leaves (rounding is monotone)."""
    session = model.session()
    case, requant = model.case, model.op.requant
    assert requant is not None
    feeds = len(next(iter(case.inputs.values())))
    runs = [session.run(None, {k: v[i] for k, v in case.inputs.items()})[0] for i in range(feeds)]
    codes: Array = np.stack(runs)
    return np.asarray(np.clip(codes, requant.qmin, requant.qmax))
