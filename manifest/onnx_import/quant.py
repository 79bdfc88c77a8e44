"""Scales and zero points: reading them from nodes, exact values, equality."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np
import onnx

from manifest.model import QRANGE, DType, Quantization
from manifest.onnx_import.graph import Array, Graph, Node, refusal

CODE_TYPES: Final[tuple[DType, ...]] = ("int8", "uint8", "int16", "uint16")
STORED_TYPES: Final[tuple[DType, ...]] = (*CODE_TYPES, "int32")
_BY_NAME: Final[Mapping[str, DType]] = {t: t for t in (*STORED_TYPES, "int64", "float32")}
_BY_ELEMENT_TYPE: Final[Mapping[int, DType]] = {
    onnx.TensorProto.UINT8: "uint8",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.UINT16: "uint16",
    onnx.TensorProto.INT16: "int16",
}


def dtype_of(array: Array) -> DType | None:
    """The manifest's name of an array's element type, None where it has none (float16, int4, ...)."""
    return _BY_NAME.get(array.dtype.name)


def declared_type(node: Node) -> DType | None:
    """The code type that `output_dtype` of a QuantizeLinear states (for one without zero point); None without it."""
    return _BY_ELEMENT_TYPE.get(node.integer("output_dtype", 0))


def exponent_of(scale: float) -> int | None:
    """K where scale is exactly 2**k, else None; scale finite and > 0."""
    mantissa, exponent = math.frexp(scale)
    return exponent - 1 if mantissa == 0.5 else None


def quantization(scales: tuple[float, ...], zero_points: tuple[int, ...], axis: int | None) -> Quantization:
    """A quantization with its exponents filled in; one scale means per tensor, whatever the axis."""
    exponents = tuple(exponent_of(s) for s in scales)
    known = tuple(e for e in exponents if e is not None)
    return Quantization(
        scales=scales,
        zero_points=zero_points,
        axis=axis if len(scales) > 1 else None,
        exponents=known if len(known) == len(exponents) else None,
    )


def exact_scales(quant: Quantization) -> tuple[Fraction, ...]:
    """Scales as exact rationals."""
    return tuple(Fraction(s) for s in quant.scales)


def per_tensor(scale: float, zero_point: int = 0) -> Quantization:
    """One scale and one zero point; the scale is rounded to float32."""
    return quantization((float(np.float32(scale)),), (zero_point,), None)


def _constant(graph: Graph, node: Node, position: int, what: str) -> Array | None:
    """The array of a scale or zero point input, None where the input is absent."""
    name = node.input(position)
    if not name:
        return None
    if name not in graph.constants:
        raise refusal(
            node,
            "ONNX-DYNAMIC-QUANTIZATION",
            f"{what} {name!r} is computed at run time",
            expected="a constant",
            remedy="quantize statically, with calibration data",
        )
    return graph.constants[name].array


def _scales(graph: Graph, node: Node, position: int) -> tuple[float, ...]:
    """Scale values of an input; float32, finite, > 0."""
    array = _constant(graph, node, position, "scale")
    if array is None or dtype_of(array) != "float32":
        got = "none" if array is None else array.dtype.name
        raise refusal(node, "ONNX-SCALE-TYPE", "scale has an unsupported type", expected="float32", got=got)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise refusal(node, "ONNX-SCALE-VALUE", "scale", expected="finite and > 0", got=str(array.ravel()[:4].tolist()))
    return tuple(float(v) for v in array.ravel())


def read(
    graph: Graph, node: Node, scale: int, zero_point: int, dtype: DType | None, *, axis: int | None, rank: int
) -> tuple[Quantization, DType]:
    """Quantization given by two inputs of a node.

    Args:
        graph: where the constants are.
        node: the node that has the inputs.
        scale: position of the scale input.
        zero_point: position of the zero point input; absent means 0.
        dtype: code type where no zero point says it; None: uint8.
        axis: channel axis where there are several scales, may be negative.
        rank: rank of the quantised tensor.

    Returns:
        The quantization and the code type (that of the zero point where there is one).

    Raises:
        RefusedError: scale or zero point not constant, of an unsupported type or of mismatching lengths.
    """
    scales = _scales(graph, node, scale)
    zeros = _constant(graph, node, zero_point, "zero point")
    kind = dtype or "uint8"
    points: tuple[int, ...] = (0,) * len(scales)
    if zeros is not None:
        found = dtype_of(zeros)
        if found is None or found not in STORED_TYPES:
            raise refusal(
                node,
                "ONNX-QUANTIZED-TYPE",
                "unsupported quantized type",
                expected=", ".join(STORED_TYPES),
                got=zeros.dtype.name,
                remedy="quantize with 8 or 16 bit types",
            )
        kind = found
        points = tuple(int(v) for v in zeros.ravel())
    if len(points) == 1:
        points = points * len(scales)
    if len(points) != len(scales):
        raise refusal(
            node,
            "ONNX-QUANTIZATION-LENGTH",
            "scale and zero point have different lengths",
            expected=f"{len(scales)} zero points",
            got=str(len(points)),
        )
    where = None if axis is None else axis + rank if axis < 0 else axis
    return quantization(scales, points, where), kind


def check_axis(node: Node, quant: Quantization, shape: tuple[int, ...]) -> None:
    """Refuse scales that do not fit the channel axis."""
    if len(quant.scales) == 1:
        return
    axis = quant.axis
    size = shape[axis] if axis is not None and 0 <= axis < len(shape) else None
    if size != len(quant.scales):
        raise refusal(
            node,
            "ONNX-SCALE-AXIS",
            f"scales do not fit axis {axis} (size {size}) of a tensor of shape {list(shape)}",
            expected=f"{size} scales",
            got=f"{len(quant.scales)} scales",
            remedy="state the channel axis with the attribute `axis`",
        )


def qrange(dtype: str) -> tuple[int, int]:
    """Lowest and highest code of an integer type."""
    return QRANGE[dtype]


def quantize_array(values: Array, quant: Quantization, dtype: DType) -> Array:
    """ONNX QuantizeLinear of float32 values as onnxruntime does it: clip(rint(f32(x / s)) + z).

    Args:
        values: float32, any shape.
        quant: one scale or one per index of `quant.axis`.
        dtype: code type.
    """
    scale, zero = broadcast(quant, values.ndim)
    low, high = qrange(dtype)
    codes = np.rint(np.asarray(values, np.float32) / scale).astype(np.float64) + zero
    return np.clip(np.nan_to_num(codes, nan=low), low, high).astype(dtype)


def dequantize_array(codes: Array, quant: Quantization) -> Array:
    """ONNX DequantizeLinear as onnxruntime does it: f32(f32(q - z) * s)."""
    scale, zero = broadcast(quant, codes.ndim)
    return np.asarray((codes.astype(np.int64) - zero).astype(np.float32) * scale, dtype=np.float32)


def broadcast(quant: Quantization, rank: int) -> tuple[Array, Array]:
    """Scales (float32) and zero points (int64) shaped to broadcast over a tensor of `rank` dimensions."""
    shape = [1] * rank
    if len(quant.scales) > 1 and quant.axis is not None:
        shape[quant.axis] = len(quant.scales)
    scales = np.asarray(quant.scales, np.float32).reshape(shape)
    return scales, np.asarray(quant.zero_points, np.int64).reshape(shape)
