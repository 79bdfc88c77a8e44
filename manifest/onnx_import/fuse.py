"""Which nodes become one op: producer, constant factor or bias, Relu and Clip, QuantizeLinear.

Why before lowering: whether a Relu is folded into the rounding or works on an exact tensor depends on what follows
it, so the plan is made over the whole graph first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from manifest.model import Activation, AttributeValue
from manifest.onnx_import.graph import QUANTIZE, Constant, Graph, Node, Shape
from manifest.onnx_import.quant import dequantize_array

AVERAGES: Final = frozenset({":AveragePool", ":GlobalAveragePool"})
LINEAR: Final = frozenset({":Conv", ":Gemm", ":MatMul"})
FUSED_LINEAR: Final = frozenset({"com.microsoft:FusedConv", "com.microsoft:FusedGemm"})
CLAMPS: Final = frozenset({":Relu", ":Clip"})
FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
LAYOUT: Final = frozenset({":Reshape", ":Flatten", ":Transpose", ":Squeeze", ":Unsqueeze"})
PRODUCERS: Final = AVERAGES | LINEAR | FUSED_LINEAR | CLAMPS | LAYOUT | {":Add", ":Mul", ":MaxPool", ":Concat"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Real bounds of a clamp; infinite where there is none. Composes from the inside out."""

    low: float = -math.inf
    high: float = math.inf

    def then(self, low: float, high: float) -> "Bounds":
        """The clamp that equals this one followed by min(max(v, low), high)."""
        return Bounds(low=min(max(self.low, low), high), high=min(max(self.high, low), high))

    def attributes(self) -> dict[str, AttributeValue]:
        """Attributes of a Clip op: a bound that is not there is ONNX's default, the end of float32."""
        return {"minimum": max(self.low, -FLOAT32_MAX), "maximum": min(self.high, FLOAT32_MAX)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What one op takes in.

    Attributes:
        nodes: the producer and what is fused into it, in order.
        factor: constant behind an average, float32 value.
        bias: constant added behind Conv, Gemm or MatMul, "" where there is none.
        bounds: Relu and Clip in front of the rounding.
        relu_only: whether the bounds come from Relu alone.
        quantize: the QuantizeLinear at the end, None where the result stays exact.
        output: ONNX tensor that the op writes.
    """

    nodes: tuple[Node, ...]
    factor: float = 1.0
    bias: str = ""
    bounds: Bounds = field(default_factory=Bounds)
    relu_only: bool = True
    quantize: Node | None
    output: str

    def activation(self) -> Activation | None:
        """The fused Relu or Clip for the manifest."""
        low, high = self.bounds.low, self.bounds.high
        if math.isinf(low) and math.isinf(high):
            return None
        return Activation(
            type="Relu" if self.relu_only else "Clip",
            minimum=None if math.isinf(low) else low,
            maximum=None if math.isinf(high) else high,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Chains by index of their first node, and the indices of the nodes that another op takes in."""

    chains: Mapping[int, Chain]
    absorbed: frozenset[int]


def scalar(constant: Constant | None) -> float | None:
    """The float value of a one-element float (or dequantised) constant, else None."""
    if constant is None or constant.array.size != 1:
        return None
    if constant.quant is not None:
        return float(dequantize_array(constant.array, constant.quant).ravel()[0])
    return float(constant.array.ravel()[0]) if constant.array.dtype == np.float32 else None


def clamp_bounds(node: Node, graph: Graph) -> tuple[float, float] | None:
    """Bounds of a Relu or Clip as float32 values; None where they are no constants.

    Clip has attributes before opset 11 and inputs from then on. Bounds that leave no finite value are none.
    """
    if node.key == ":Relu":
        return 0.0, math.inf
    if node.key != ":Clip":
        return None
    bounds = []
    for position, name, default in ((1, "min", -math.inf), (2, "max", math.inf)):
        source = node.input(position)
        if source:
            value = scalar(graph.constants.get(source))
            if value is None or math.isnan(value):
                return None
        else:
            value = node.real(name, default)
        bounds.append(value)
    return None if bounds[0] == math.inf or bounds[1] == -math.inf else (bounds[0], bounds[1])


def _other(node: Node, name: str) -> str:
    """The operand of a two-input node that is not `name`."""
    return node.inputs[1] if node.inputs[0] == name else node.inputs[0]


def _bias_fits(shape: Shape, output: Shape, channel_axis: int) -> bool:
    """Whether a constant of this shape adds one value per channel without enlarging the output."""
    if len(shape) > len(output):
        return False
    padded = (1,) * (len(output) - len(shape)) + tuple(shape)
    wide = [i for i, s in enumerate(padded) if s != 1]
    return wide in ([], [channel_axis]) and all(padded[i] == output[i] for i in wide)


class _Fuser:
    """Follows single consumers; `sole` maps a tensor to its only reader."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        outputs = set(graph.output_names())
        self.sole = {
            name: nodes[0] for name, nodes in graph.consumers().items() if len(nodes) == 1 and name not in outputs
        }

    def chain(self, node: Node) -> Chain:
        """The chain that starts at a producer."""
        nodes = [node]
        output = node.outputs[0]
        factor, bias = 1.0, ""
        following = self.sole.get(output)
        if following is not None and node.key in AVERAGES and following.key == ":Mul":
            value = scalar(self.graph.constants.get(_other(following, output)))
            if value is not None and value > 0 and math.isfinite(value):
                factor = value
                nodes.append(following)
                output = following.outputs[0]
        elif following is not None and self._adds_bias(node, following, output):
            bias = _other(following, output)
            nodes.append(following)
            output = following.outputs[0]
        clamps = self._clamps(output)
        last = clamps[-1].outputs[0] if clamps else output
        end = self.sole.get(last)
        if end is None or end.key != QUANTIZE or end.inputs[0] != last:
            return Chain(nodes=tuple(nodes), factor=factor, bias=bias, quantize=None, output=output)
        bounds = Bounds()
        for clamp in clamps:
            limits = clamp_bounds(clamp, self.graph)
            bounds = bounds if limits is None else bounds.then(*limits)
        return Chain(
            nodes=(*nodes, *clamps, end),
            factor=factor,
            bias=bias,
            bounds=bounds,
            relu_only=all(c.key == ":Relu" for c in clamps),
            quantize=end,
            output=end.outputs[0],
        )

    def _clamps(self, output: str) -> list[Node]:
        """Relu and Clip nodes with constant bounds that follow one another."""
        found: list[Node] = []
        following = self.sole.get(output)
        while following is not None and clamp_bounds(following, self.graph) is not None:
            found.append(following)
            following = self.sole.get(following.outputs[0])
        return found

    def _is_matrix_product(self, node: Node, weight: Constant) -> bool:
        """Whether rows of an activation are multiplied by one matrix: then columns are output channels."""
        return weight.array.ndim == 2 and len(self.graph.shapes.get(node.inputs[0], ())) >= 2

    def _adds_bias(self, node: Node, following: Node, output: str) -> bool:
        """Whether the node behind a Conv, Gemm or MatMul adds one constant per output channel."""
        if node.key not in LINEAR or following.key != ":Add" or node.input(2):
            return False
        weight = self.graph.constants.get(node.input(1))
        if weight is None or (node.key == ":MatMul" and not self._is_matrix_product(node, weight)):
            return False
        constant = self.graph.constants.get(_other(following, output))
        shape = self.graph.shapes.get(output)
        if constant is None or not shape or constant.array.dtype.name == "int64":
            return False
        axis = 1 if node.key == ":Conv" else len(shape) - 1
        return _bias_fits(constant.array.shape, shape, axis)


def plan(graph: Graph, host: frozenset[int]) -> Plan:
    """Chains of a folded graph whose shapes are known.

    Args:
        graph: after folding.
        host: indices of the nodes that run on the host: nothing is fused into them.
    """
    fuser = _Fuser(graph)
    chains: dict[int, Chain] = {}
    absorbed: set[int] = set()
    for node in graph.nodes:
        if node.index in absorbed or node.index in host or node.key not in PRODUCERS:
            continue
        chain = fuser.chain(node)
        chains[node.index] = chain
        absorbed.update(n.index for n in chain.nodes[1:])
    return Plan(chains=chains, absorbed=frozenset(absorbed))
