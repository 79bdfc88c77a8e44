"""QOperator nodes written as DequantizeLinear, float op, QuantizeLinear: the float meaning of such files begins here.

Why: a QOperator file has no float tensors that its rounding could be held against; its scales say what they would be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

from manifest.onnx_import.names import Names
from manifest.onnx_import.validate_facts import Facts, gather, integer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """How a QOperator node is read.

    Attributes:
        op: the float op.
        data: positions of the inputs that are (codes, scale, zero point).
        weight: which of them is a weight whose per-channel scales lie along `axis`, -1 for none.
        axis: channel axis of the weight.
        output: position of the output's scale; its zero point is the next.
        bias: position of the int32 bias, -1 for none.
        attributes: those that the float op takes over.
    """

    op: str
    data: tuple[int, ...]
    output: int
    weight: int = -1
    axis: int = 0
    bias: int = -1
    attributes: tuple[str, ...] = ()


_CONV: Final = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_POOL: Final = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_ROWS: Final[Mapping[str, _Row]] = {
    "QLinearConv": _Row(op="Conv", data=(0, 3), weight=1, output=6, bias=8, attributes=_CONV),
    "QLinearMatMul": _Row(op="MatMul", data=(0, 3), weight=1, axis=-1, output=6),
    "QGemm": _Row(op="Gemm", data=(0, 3), weight=1, output=7, bias=6, attributes=("alpha", "transA", "transB")),
    "QLinearAdd": _Row(op="Add", data=(0, 3), output=6),
    "QLinearMul": _Row(op="Mul", data=(0, 3), output=6),
    "QLinearAveragePool": _Row(op="AveragePool", data=(0,), output=3, attributes=_POOL),
    "QLinearGlobalAveragePool": _Row(op="GlobalAveragePool", data=(0,), output=3),
}


def as_qdq(graph: onnx.GraphProto) -> None:
    """Rewrite the QOperator nodes of a graph in place; others stay. Names of code tensors do not change.

    A node that cannot be rewritten (channels last, a scale that is no constant) stays as it is.
    """
    names = [name for node in graph.node for name in (node.name, *node.input, *node.output)]
    writer = _Writer(gather(graph), Names(names + [tensor.name for tensor in graph.initializer]))
    for node in graph.node:
        writer.visit(node)
    del graph.node[:]
    graph.node.extend(writer.nodes)
    graph.initializer.extend(writer.initializers)


class _Writer:
    def __init__(self, facts: Facts, names: Names) -> None:
        self.facts = facts
        self.names = names
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def visit(self, node: onnx.NodeProto) -> None:
        row = _ROWS.get(node.op_type)
        if node.op_type == "QLinearConcat":
            self._concat(node)
        elif row is None or integer(node, "channels_last", 0) or not self._constant(node, row):
            self.nodes.append(node)
        else:
            self._rewrite(node, row)

    def _constant(self, node: onnx.NodeProto, row: _Row) -> bool:
        scales = [node.input[place + 1] for place in row.data]
        return all(self.facts.array(name) is not None for name in scales)

    def _rewrite(self, node: onnx.NodeProto, row: _Row) -> None:
        inputs = [self._dequantize(node.input[place : place + 3]) for place in row.data]
        if row.weight >= 0:
            axis = integer(node, "transB", 0) ^ 1 if node.op_type == "QGemm" else row.axis
            self.nodes[-1].attribute.append(onnx.helper.make_attribute("axis", axis))
        if 0 <= row.bias < len(node.input) and node.input[row.bias]:
            inputs.append(self._bias(node, row))
        kept = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if a.name in row.attributes}
        if row.op == "Gemm":
            kept["beta"] = kept.get("alpha", 1.0)  # alpha of a QGemm scales its bias too
            inputs += [] if len(inputs) == len(row.data) + 1 else [self._no_bias(node)]
        scale = node.input[row.output] if row.output < len(node.input) else ""
        if not scale:
            self._add(row.op, inputs, node.output[0], kept)
            return
        self._quantize(self._add(row.op, inputs, "", kept), node.input[row.output : row.output + 2], node.output[0])

    def _concat(self, node: onnx.NodeProto) -> None:
        inputs = [self._dequantize(node.input[place : place + 3]) for place in range(2, len(node.input), 3)]
        joined = self._add("Concat", inputs, "", {"axis": integer(node, "axis", 0)})
        self._quantize(joined, node.input[:2], node.output[0])

    def _bias(self, node: onnx.NodeProto, row: _Row) -> str:
        """The int32 bias stands for bias * input scale * weight scale."""
        first, second = (self.facts.array(node.input[place + 1]) for place in row.data)
        if first is None or second is None:
            msg = "scales were checked before"
            raise AssertionError(msg)
        scale = np.asarray(first, np.float32).ravel()[:1] * np.asarray(second, np.float32).ravel()
        name = self.names.fresh(node.input[row.bias], "scale")
        stored = scale if scale.size > 1 else scale.reshape(())
        self.initializers.append(numpy_helper.from_array(stored, name))
        bias = self._dequantize([node.input[row.bias], name])
        self.nodes[-1].attribute.append(onnx.helper.make_attribute("axis", -1))
        return bias

    def _no_bias(self, node: onnx.NodeProto) -> str:
        """A bias of 0: before opset 11 a Gemm has to have one."""
        name = self.names.fresh(node.output[0], "bias")
        self.initializers.append(numpy_helper.from_array(np.zeros(1, np.float32), name))
        return name

    def _dequantize(self, inputs: Sequence[str]) -> str:
        return self._add("DequantizeLinear", [name for name in inputs if name], "", {}, base=inputs[0])

    def _quantize(self, source: str, parameters: Sequence[str], output: str) -> None:
        self._add("QuantizeLinear", [source, *(name for name in parameters if name)], output, {})

    def _add(self, op: str, inputs: list[str], output: str, attributes: Mapping[str, Any], *, base: str = "") -> str:
        name = output or self.names.fresh(base or inputs[0], op.lower())
        made = onnx.helper.make_node(op, inputs, [name], name=self.names.fresh(name, "node"), **attributes)
        self.nodes.append(made)
        return name
