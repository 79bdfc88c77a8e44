"""Reading a node's operands: activations, weights and constants, with refusals that say what is wrong."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from manifest.model import DType, Op, Quantization, Requantization, Tensor
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.accumulate import largest_input
from manifest.onnx_import.builder import Builder, Value
from manifest.onnx_import.graph import Array, Constant, Node, refusal
from manifest.onnx_import.quant import CODE_TYPES, qrange

_UNQUANTIZED = "put QuantizeLinear and DequantizeLinear around it, or quantize the model again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """An integer operand: its tensor and the range of its codes. `quant` is set."""

    tensor: Tensor
    quant: Quantization
    code_range: tuple[int, int]

    @property
    def name(self) -> str:
        """Tensor name."""
        return self.tensor.name

    @property
    def scale(self) -> Fraction:
        """The (first) scale as an exact rational."""
        return Fraction(self.quant.scales[0])

    @property
    def zero_point(self) -> int:
        """The (first) zero point."""
        return self.quant.zero_points[0]

    @property
    def largest(self) -> int:
        """Largest |code - zero point|."""
        return max(largest_input(self.code_range, z) for z in self.quant.zero_points)

    @property
    def reach(self) -> Fraction:
        """Largest |value|."""
        return self.largest * Fraction(max(self.quant.scales))

    @property
    def power_of_two(self) -> bool:
        """Whether every scale is 2**k."""
        return self.quant.exponents is not None


def operand(b: Builder, name: str) -> Operand:
    """The operand of an integer tensor of the manifest."""
    tensor = b.tensors[name]
    if tensor.quant is None:
        msg = f"tensor {name!r} has no quantization"
        raise ValueError(msg)
    return Operand(tensor=tensor, quant=tensor.quant, code_range=b.ranges[name])


def producer_label(b: Builder, name: str) -> str:
    """The op that writes a manifest tensor, for messages."""
    for op in reversed(b.ops):
        if name in op.outputs:
            return f"{op.type} {op.name!r}"
    return f"graph input {name!r}"


def quantised(b: Builder, node: Node, position: int) -> Operand:
    """An activation that a Conv, Gemm, MatMul or average multiplies: it has to be the value of codes."""
    value = b.value(node, position)
    if value.kind == "real":
        return operand(b, value.tensor)
    if value.kind == "codes":
        what = f"input {node.input(position)!r} is integer, {node.type} takes float values"
    else:
        what = f"activation between {producer_label(b, value.tensor)} and {node.label()} is not quantised"
    raise refusal(node, "ONNX-NOT-QUANTIZED", what, got=f"tensor {node.input(position)!r}", remedy=_UNQUANTIZED)


def check_real(b: Builder, node: Node, value: Value) -> None:
    """Refuse codes where a float value is wanted."""
    if value.kind == "codes":
        raise refusal(
            node,
            "ONNX-INTEGER-INPUT",
            f"integer arithmetic of {node.type} between QuantizeLinear and DequantizeLinear is not supported",
            got=f"integer tensor {value.tensor!r}",
            remedy="move the node behind the DequantizeLinear",
        )


def codes(b: Builder, node: Node, position: int, scale: int, zero_point: int) -> Operand:
    """An integer activation of a QOperator node, with the quantization that the node states."""
    value = b.value(node, position)
    if value.kind != "codes":
        raise refusal(
            node, "ONNX-FLOAT-INPUT", f"input {node.input(position)!r} is float", expected="int8 or uint8 codes"
        )
    tensor = b.tensors[value.tensor]
    stated, dtype = quantities.read(b.graph, node, scale, zero_point, tensor.dtype, axis=None, rank=len(tensor.shape))
    check_same_type(node, node.input(position), tensor.dtype, dtype)
    one_scale(node, stated, node.input(position))
    return operand(b, reinterpreted(b, value.tensor, stated, node))


def check_same_type(node: Node, name: str, dtype: DType | None, stated: DType) -> None:
    """Refuse a zero point of another type than its codes."""
    if dtype != stated:
        raise refusal(
            node,
            "ONNX-ZERO-POINT-TYPE",
            f"zero point and codes {name!r} differ in type",
            expected=str(dtype),
            got=stated,
        )


def one_scale(node: Node, quant: Quantization, name: str) -> None:
    """Refuse activations with one scale per channel."""
    if len(quant.scales) > 1:
        raise refusal(
            node,
            "ONNX-ACTIVATION-PER-CHANNEL",
            f"activation {name!r} has one scale per channel",
            expected="one scale",
            got=f"{len(quant.scales)} scales",
            remedy="quantize activations per tensor",
        )


def reinterpreted(
    b: Builder, name: str, quant: Quantization, node: Node, *, as_name: str = "", copy: bool = False
) -> str:
    """The tensor with these codes and that quantization: itself, or (with `copy` always) a Reinterpret's output."""
    tensor = b.tensors[name]
    if tensor.quant == quant and not copy:
        return name
    from_op = as_name or b.names.fresh(name, "as")
    b.add_tensor(
        from_op,
        tensor.shape,
        tensor.dtype,
        onnx_dtype=tensor.onnx_dtype if copy else "float32",
        quant=quant,
        code_range=b.ranges.get(name),
    )
    low, high = qrange(tensor.dtype)
    b.add_op(
        Op(
            name=b.names.fresh(node.name, "Reinterpret"),
            type="Reinterpret",
            inputs=(name,),
            outputs=(from_op,),
            nodes=(node.name,),
            requant=Requantization(reference="identity", target="identity", qmin=low, qmax=high),
        )
    )
    return from_op


def weight_codes(b: Builder, node: Node, position: int) -> Constant:
    """The quantised constant weight of a QDQ node."""
    name = node.input(position)
    constant = b.graph.constants.get(name)
    if constant is None:
        raise refusal(
            node,
            "ONNX-WEIGHT-DYNAMIC",
            f"weight of {node.type} {node.name!r} is computed at run time",
            expected="a constant",
            got=f"tensor {name!r}",
        )
    if constant.quant is None:
        raise refusal(
            node,
            "ONNX-WEIGHT-NOT-QUANTIZED",
            f"weight of {node.type} {node.name!r} is not quantised",
            expected="DequantizeLinear of an integer constant",
            got=f"{constant.array.dtype.name} {name!r}",
            remedy=_UNQUANTIZED,
        )
    return constant


def check_channel_axis(node: Node, quant: Quantization, axis: int | None, what: str) -> None:
    """Refuse weights whose scales do not lie along the output channels."""
    if len(quant.scales) > 1 and quant.axis != axis:
        raise refusal(
            node,
            "ONNX-WEIGHT-AXIS",
            f"{what} has its scales along axis {quant.axis}",
            expected="one scale" if axis is None else f"one scale, or one per output channel (axis {axis})",
            remedy="quantize the weight per tensor or per output channel",
        )


def check_code_type(node: Node, dtype: DType | None, what: str) -> None:
    """Refuse operands that are not 8 or 16 bit codes."""
    if dtype not in CODE_TYPES:
        raise refusal(
            node,
            "ONNX-QUANTIZED-TYPE",
            f"{what} has an unsupported type",
            expected=", ".join(CODE_TYPES),
            got=str(dtype),
        )


def channel_values(node: Node, constant: Constant, count: int, what: str) -> tuple[Array, Quantization | None]:
    """A bias as one value per output channel, zero points taken out.

    Accepts shapes [N], [1, N], [1], [], [C, 1, 1] and the like; one value is repeated.
    """
    array, scheme = constant.array, constant.quant
    wide = [s for s in array.shape if s != 1]
    if wide not in ([], [count]):
        raise refusal(
            node,
            "ONNX-BIAS-SHAPE",
            f"{what} does not add one value per output channel",
            expected=f"{count} values (or one)",
            got=f"shape {list(array.shape)}",
        )
    flat = array.reshape(-1)
    if scheme is not None:
        zero = np.asarray(scheme.zero_points, np.int64)
        if zero.any():
            flat = (flat.astype(np.int64) - zero).astype(np.int32)
        scheme = quantities.quantization(scheme.scales, (0,) * len(scheme.scales), 0)
    if len(flat) == 1 and count != 1:
        flat = np.repeat(flat, count)
    return flat, scheme


def exact_constant(node: Node, constant: Constant, *, whole: bool = False) -> Constant:
    """A constant operand of Add or Mul as integers: float32 values become integers times one power of two.

    Args:
        node: the Add or Mul.
        constant: codes with a scale, or float32 values.
        whole: take the largest common factor as the scale, be it a power of two or not (of one value the value
            itself), so that the integers stay small.

    Raises:
        RefusedError: the values need more than 31 bits beside one another.
    """
    if constant.quant is not None:
        return constant
    if constant.array.dtype != np.float32:
        got = constant.array.dtype.name
        raise refusal(node, "ONNX-CONSTANT-TYPE", f"constant {constant.origin!r}", expected="float32", got=got)
    if not np.isfinite(constant.array).all():
        raise refusal(node, "ONNX-CONSTANT-VALUE", f"constant {constant.origin!r} is not finite")
    values = [Fraction(float(v)) for v in constant.array.ravel()]
    step = math.lcm(*(v.denominator for v in values)) if values else 1
    scaled = [int(v * step) for v in values]
    common = math.gcd(*scaled) if scaled else 1
    factor = common if whole and common else common & -common if common else 1
    scaled = [v // factor for v in scaled]
    if max((abs(v) for v in scaled), default=0) >= 1 << 31:
        raise refusal(
            node,
            "ONNX-CONSTANT-NOT-QUANTIZED",
            f"float constant {constant.origin!r} is not quantised",
            expected="a DequantizeLinear of an integer constant",
            got="values that need more than 31 bits beside one another",
            remedy=_UNQUANTIZED,
        )
    codes_ = np.array(scaled, np.int32).reshape(constant.array.shape)
    scheme = quantities.quantization((float(Fraction(factor, step)),), (0,), None)
    return Constant(array=codes_, quant=scheme, origin=constant.origin, nodes=constant.nodes)
