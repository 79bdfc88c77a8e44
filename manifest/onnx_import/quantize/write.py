"""The QDQ model: the folded float model with Q/DQ pairs at the planned tensors, int8 weights and int32 biases.

Why not `quantize_static`: with zero point 0 it puts a pair between Conv and Relu, so a kernel would round twice and
lose a bit; it has no power-of-two scales and no constant behind an average. A tensor keeps its name behind the
pair (the DequantizeLinear output), so that it can be compared with the float model's tensor of that name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.onnx_import.graph import Graph, Node
from manifest.onnx_import.quantize.average import Factor
from manifest.onnx_import.quantize.calibrate import weight_exponent
from manifest.onnx_import.quantize.plan import Plan
from manifest.onnx_import.quantize.scheme import CODE_MAX, CODE_MIN, EXPONENT_LIMIT, QuantizeOptions
from manifest.onnx_import.quantize.support import LINEAR

PRODUCER: Final = "aie-port"
MAX_BIAS: Final = 1 << 23
"""Largest bias code: above 2**24 the float32 arithmetic that the model is compared with is no longer exact."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a QDQ model is made from.

    Attributes:
        model: folded float model with inferred shapes.
        graph: view of it.
        plan: where pairs go.
        exponents: of the scale of every planned tensor.
        factors: constant behind an average, by node index.
        options: how weight scales are chosen.
    """

    model: onnx.ModelProto
    graph: Graph
    plan: Plan
    exponents: Mapping[str, int]
    factors: Mapping[int, Factor]
    options: QuantizeOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The QDQ model, and the weights whose scale had to grow so that their bias fits."""

    model: onnx.ModelProto
    coarser: tuple[str, ...]


def write(parts: Parts) -> Written:
    """The QDQ model of the parts; the same parts give the same bytes."""
    return _Writer(parts).run()


class _Writer:
    """Nodes and initializers in graph order."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.constants = parts.graph.constants
        self.planned = frozenset(parts.plan.quantized)
        self.nodes: list[onnx.NodeProto] = []
        self.stored: dict[str, Array] = {}
        self.taken = set(parts.graph.names())
        self.renamed: dict[str, str] = {}
        self.coarser: list[str] = []
        self.products: dict[str, int] = {}
        self.scales: dict[int, str] = {}
        self.zeros: dict[str, str] = {}
        self.dequantized: dict[tuple[str, int, bytes], str] = {}

    def run(self) -> Written:
        for port in self.parts.graph.inputs:
            if port.name in self.planned:
                self.renamed[port.name] = self._fresh(port.name, "dequantized")
                self._pair(port.name, port.name, self.renamed[port.name])
        for node, proto in zip(self.parts.graph.nodes, self.parts.model.graph.node, strict=True):
            self._node(node, proto)
        fixed = [name for name in self.parts.graph.output_names() if name in self.constants]
        self.stored.update({name: self.constants[name].array for name in fixed})
        return Written(model=self._model(), coarser=tuple(self.coarser))

    def _node(self, node: Node, proto: onnx.NodeProto) -> None:
        """One node of the float model and the pair behind it."""
        copy = onnx.NodeProto()
        copy.CopyFrom(proto)
        copy.input[:] = [self.renamed.get(name, name) for name in node.inputs]
        if node.index not in self.parts.plan.host:
            self._quantize_operands(node, copy)
        self.stored.update({name: self.constants[name].array for name in copy.input if name in self.constants})
        raw = {name: self._fresh(name, "float") for name in copy.output if name in self.planned}
        copy.output[:] = [raw.get(name, name) for name in copy.output]
        self.nodes.append(copy)
        for name, source in raw.items():
            factor = self.parts.factors.get(node.index)
            self._pair(name, source if factor is None else self._times(factor, name, source), name)

    def _quantize_operands(self, node: Node, copy: onnx.NodeProto) -> None:
        """Put dequantized codes in the place of float constants that are operands."""
        if node.key in LINEAR:
            self._quantize_weights(node, copy)
        elif node.key in (":Add", ":Mul"):
            product = next((self.products[name] for name in node.inputs if name in self.products), None)
            for position, name in enumerate(node.inputs):
                if name in self.constants:
                    copy.input[position] = self._operand(name, product)

    def _operand(self, name: str, product: int | None) -> str:
        """A constant that is added or multiplied: int8, or a bias where a product's exponent is given."""
        values = self.constants[name].array
        if product is not None:
            return self._bias(name, values, product)
        k = weight_exponent(values, self.parts.options)
        return self._constant(name, _int8(values, k), k)

    def _quantize_weights(self, node: Node, copy: onnx.NodeProto) -> None:
        """Weights and bias of Conv, Gemm or MatMul; Gemm's alpha and beta go into them."""
        if node.inputs[1] not in self.constants:
            return
        weights = self.constants[node.inputs[1]].array
        bias_name = self.parts.plan.biases.get(node.outputs[0], node.input(2))
        bias = self.constants[bias_name].array if bias_name else None
        if node.key == ":Gemm":
            weights = weights * np.float32(node.real("alpha", 1.0))
            if node.input(2) and bias is not None:
                bias = _row(bias * np.float32(node.real("beta", 1.0)), weights.shape[1 - node.integer("transB", 0)])
            kept = [attribute for attribute in copy.attribute if attribute.name not in ("alpha", "beta")]
            del copy.attribute[:]
            copy.attribute.extend(kept)
        source = self.parts.exponents[node.inputs[0]]
        k = self._weight_exponent(node, weights, bias, source)
        copy.input[1] = self._constant(node.inputs[1], _int8(weights, k), k)
        if node.input(2) and bias is not None:
            copy.input[2] = self._bias(bias_name, bias, source + k)
        elif bias is not None:
            self.products[node.outputs[0]] = source + k

    def _bias(self, name: str, values: Array, k: int) -> str:
        """Bias codes at the scale of the products."""
        codes = np.rint(np.ldexp(values.astype(np.float64), -k)).astype(np.int32)
        return self._constant(name, codes, k)

    def _weight_exponent(self, node: Node, weights: Array, bias: Array | None, source: int) -> int:
        """Exponent of the weight scale, grown where the bias would need more than MAX_BIAS."""
        chosen = k = weight_exponent(weights, self.parts.options)
        largest = 0.0 if bias is None else float(np.abs(bias.astype(np.float64)).max(initial=0.0))
        while np.ldexp(largest, -(source + k)) > MAX_BIAS and k < EXPONENT_LIMIT:
            k += 1
        if k != chosen:
            self.coarser.append(node.inputs[1])
        return k

    def _constant(self, name: str, codes: Array, k: int) -> str:
        """Output of a DequantizeLinear over stored codes; the same codes at the same scale are stored once."""
        key = (name, k, codes.tobytes())
        if key not in self.dequantized:
            stored, output = self._fresh(name, "quantized"), self._fresh(name, "dequantized")
            self.stored[stored] = codes
            self._dequantize(stored, k, output, name, codes.dtype.name)
            self.dequantized[key] = output
        return self.dequantized[key]

    def _pair(self, name: str, source: str, target: str) -> None:
        """QuantizeLinear and DequantizeLinear from `source` to `target` with the scale planned for `name`."""
        k, codes = self.parts.exponents[name], self._fresh(name, "quantized")
        inputs = [source, self._scale(k), self._zero("int8")]
        self.nodes.append(helper.make_node("QuantizeLinear", inputs, [codes], name=self._fresh(name, "QuantizeLinear")))
        self._dequantize(codes, k, target, name, "int8")

    def _dequantize(self, codes: str, k: int, target: str, name: str, dtype: str) -> None:
        inputs = [codes, self._scale(k), self._zero(dtype)]
        node_name = self._fresh(name, "DequantizeLinear")
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [target], name=node_name))

    def _times(self, factor: Factor, name: str, source: str) -> str:
        """The average times its constant."""
        output, constant = self._fresh(name, "scaled"), self._fresh(name, "factor")
        self.stored[constant] = np.array(factor.value, np.float32)
        self.nodes.append(helper.make_node("Mul", [source, constant], [output], name=self._fresh(name, "Mul")))
        return output

    def _scale(self, k: int) -> str:
        if k not in self.scales:
            self.scales[k] = self._fresh("scale", f"2_{'m' if k < 0 else 'p'}{abs(k)}")
            self.stored[self.scales[k]] = np.ldexp(np.float32(1), k).astype(np.float32)
        return self.scales[k]

    def _zero(self, dtype: str) -> str:
        if dtype not in self.zeros:
            self.zeros[dtype] = self._fresh("zero", dtype)
            self.stored[self.zeros[dtype]] = np.zeros((), dtype)
        return self.zeros[dtype]

    def _fresh(self, base: str, suffix: str) -> str:
        candidate, count = f"{base}_{suffix}", 1
        while candidate in self.taken:
            count += 1
            candidate = f"{base}_{suffix}_{count}"
        self.taken.add(candidate)
        return candidate

    def _model(self) -> onnx.ModelProto:
        source = self.parts.model
        graph = helper.make_graph(
            self.nodes,
            source.graph.name or "quantized",
            list(source.graph.input),
            list(source.graph.output),
            [numpy_helper.from_array(array, name) for name, array in self.stored.items()],
        )
        model = helper.make_model(graph, producer_name=PRODUCER, ir_version=source.ir_version)
        del model.opset_import[:]
        model.opset_import.extend(source.opset_import)
        return model


def _int8(values: Array, k: int) -> NDArray[np.int8]:
    codes = np.rint(np.ldexp(values.astype(np.float64), -k))
    return np.clip(codes, CODE_MIN, CODE_MAX).astype(np.int8)


def _row(bias: Array, channels: int) -> Array:
    """A Gemm bias that adds one value per output channel as (N,); others, one row per sample, as they are."""
    if bias.size == 1:
        return np.full(channels, bias.reshape(()), bias.dtype)
    return bias.reshape(-1) if bias.size == channels and bias.shape[-1] == channels else bias
