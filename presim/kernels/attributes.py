"""Attributes of every kernel type, worked out from the manifest; the planner copies them into `Kernel.attributes`.

The authoritative list of each type is the docstring of its file. All of them share the figures of the output:
`finish` (`round`: through a requant buffer, `clamp`: codes pass, clamped, `exact`: integers leave as they are, no
requant buffer), `out_dtype`, `out_channels` (of this part), `y_zero_point`, `qmin`, `qmax`, `zero_point_inside`.

Arguments of every kernel: objects read (rows of a window top to bottom; operands in the op's order, without
constants), then `cascade_in` where the attribute says 1, then the buffers in the order of `buffers_of`, then the
objects written (or `cascade_out`).
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Final

import numpy as np

from manifest.model import Manifest, Op, Quantization
from presim.design import AttributeValue
from presim.kernels.buffers import buffers_of, stream_of
from presim.kernels.part import BufferSpec, Part, StreamSpec
from presim.kernels.scene import Scene, channel_count, number_of, own_kernel, scene
from presim.kernels.units import Form, Forms, form_of, integer, integers, refuse

__all__ = [
    "BufferSpec",
    "Form",
    "Forms",
    "Part",
    "StreamSpec",
    "attributes_of",
    "buffers_of",
    "form_of",
    "kernel_of",
    "stream_of",
]

Pairs = dict[str, AttributeValue]
FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1


def kernel_of(op: Op, manifest: Manifest | Forms) -> str:
    """Kernel type of an op as a whole.

    Raises:
        RefusedError: no kernel computes it.
    """
    return own_kernel(op, (manifest if isinstance(manifest, Forms) else Forms(manifest)).tensors)


def attributes_of(
    op: Op, manifest: Manifest | Forms, part: Part | None = None
) -> tuple[tuple[str, AttributeValue], ...]:
    """All attributes of the kernel of a part of an op, sorted by name.

    Args:
        op: an op of the manifest, on the array.
        manifest: the manifest, or its `Forms` where many ops are asked for.
        part: which piece and which kernel; None = all of it by its own kernel.

    Raises:
        RefusedError: no kernel computes it.
        ValueError: the part is not inside the op.
    """
    s = scene(op, manifest, part or Part())
    if s.kernel not in _RULES:
        msg = f"{op.name}: expected a kernel type of {', '.join(_RULES)}, got {s.kernel!r}"
        raise ValueError(msg)
    return tuple(sorted(_RULES[s.kernel](s).items()))


def _zero_points(quant: Quantization | None, s: Scene, *, sliced: bool) -> tuple[int, ...]:
    """Zero points of a weight: one where they are all the same, else one per output channel of the part."""
    points = quant.zero_points if quant is not None else (0,)
    if len(set(points)) == 1:
        return points[:1]
    return points[s.part.out_first : s.part.out_first + s.count] if sliced else points


def _output(s: Scene) -> Pairs:
    low, high = (INT64_MIN, INT64_MAX) if s.finish == "exact" else s.code_range()
    return {
        "finish": s.finish,
        "out_dtype": s.output_dtype(),
        "out_channels": s.count,
        "y_zero_point": 0 if s.finish == "exact" else s.forms.of(s.y.name).zero_point,
        "qmin": low,
        "qmax": high,
        "zero_point_inside": int(s.op.requant is not None and s.op.requant.zero_point_inside),
    }


def _along(s: Scene) -> str:
    """Where multipliers vary inside an object: `channel`, `width`, or "" = they do not."""
    axis = s.channel_axis()
    if axis is None:
        return ""
    rank = len(s.y.shape)
    if axis == (1 if rank == 4 else rank - 1):
        return "channel"
    if rank == 4 and axis == 3:
        return "width"
    raise refuse(s.op, f"one multiplier per place of axis {axis} of a rank-{rank} tensor")


def _accumulate(s: Scene) -> Pairs:
    return {
        "acc_bits": s.accumulator_bits(),
        "acc_shift": s.accumulator_shifts(),
        "has_bias": int(s.op.bias is not None),
    }


def _cascade(s: Scene) -> Pairs:
    first, count, total = s.reduction()
    out = first + count < total
    return {
        "in_first": first,
        "in_count": count,
        "x_first": s.part.x_first,
        "cascade_in": int(first > 0),
        "cascade_out": int(out),
        "has_bias": int(s.op.bias is not None and not out),
    }


def _rows(s: Scene) -> Pairs:
    pads = integers(s.op.attributes["pads"])
    return {
        "kernel": integers(s.op.attributes["kernel_shape"]),
        "strides": integers(s.op.attributes["strides"]),
        "dilations": integers(s.op.attributes["dilations"]),
        "pads_lr": (pads[1], pads[3]),
    }


def _conv(s: Scene) -> Pairs:
    weights = s.forms.tensors[s.op.inputs[1]]
    group = integer(s.op, "group", 1)
    return {
        **_output(s),
        **_accumulate(s),
        **_rows(s),
        **_cascade(s),
        "group": group,
        "group_outputs": weights.shape[0] // group,
        "out_first": s.part.out_first,
        "x_zero_point": s.x_form.zero_point,
        "w_zero_points": _zero_points(weights.quant, s, sliced=True),
    }


def _gemm(s: Scene) -> Pairs:
    weights = s.forms.tensors[s.op.inputs[1]]
    return {
        **_output(s),
        **_accumulate(s),
        **_cascade(s),
        "x_zero_point": s.x_form.zero_point,
        "w_zero_points": _zero_points(weights.quant, s, sliced=True),
    }


def _gemm_rows(s: Scene) -> Pairs:
    weights = s.forms.tensors[s.op.inputs[1]]
    return {
        "acc_bits": s.accumulator_bits(),
        "in_channels": s.row_source().shape[1],
        "out_channels": s.count,
        "x_zero_point": s.x_form.zero_point,
        "w_zero_points": _zero_points(weights.quant, s, sliced=True),
    }


def _gemm_finish(s: Scene) -> Pairs:
    return {**_output(s), **_accumulate(s)}


def _matmul(s: Scene) -> Pairs:
    a, b = (s.forms.tensors[n] for n in s.op.inputs[:2])
    return {
        **_output(s),
        **_accumulate(s),
        "a_shape": a.shape,
        "b_shape": b.shape,
        "y_shape": s.y.shape,
        "transpose_a": integer(s.op, "transA"),
        "transpose_b": integer(s.op, "transB"),
        "constant": s.constant_operand(),
        "a_zero_points": _zero_points(a.quant, s, sliced=False),
        "b_zero_points": _zero_points(b.quant, s, sliced=False),
    }


def _max_pool(s: Scene) -> Pairs:
    return {**_output(s), **_rows(s), "x_zero_point": s.x_form.zero_point, "along": _along(s)}


def _average_pool(s: Scene) -> Pairs:
    return {
        **_output(s),
        **_rows(s),
        "acc_bits": s.accumulator_bits(),
        "counts": s.counts(),
        "count_include_pad": integer(s.op, "count_include_pad"),
        "in_width": s.x.shape[3],
        "pads": integers(s.op.attributes["pads"]),
        "x_zero_point": s.x_form.zero_point,
    }


def _global_sum(s: Scene) -> Pairs:
    return {"acc_bits": s.accumulator_bits(), "out_channels": s.count, "x_zero_point": s.x_form.zero_point}


def _global_finish(s: Scene) -> Pairs:
    return {**_output(s), "along": _along(s)}


def _unary(s: Scene) -> Pairs:
    minimum, maximum = _bounds(s)
    x = s.forms.of(s.op.inputs[s.part.operand])
    if s.op.type == "Concat" and s.finish == "exact" and len(set(s.factors())) > 1:
        what = "operands of different scales follow each other without rounding"
        raise refuse(s.op, what, remedy="put QuantizeLinear and DequantizeLinear behind the Concat")
    return {
        **_output(s),
        "along": _along(s) if s.op.type != "Concat" else "",
        "x_zero_point": x.zero_point,
        "minimum": minimum,
        "maximum": maximum,
    }


def _bounds(s: Scene) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Integer bounds of a Relu or Clip whose result is not rounded; () = none."""
    if s.finish != "exact" or s.op.type not in ("Relu", "Clip"):
        return (), ()
    low = 0.0 if s.op.type == "Relu" else number_of(s.op, "minimum")
    high = float("inf") if s.op.type == "Relu" else number_of(s.op, "maximum")
    return _bound(s, low, harmless=-1), _bound(s, high, harmless=1)


def _bound(s: Scene, value: float, *, harmless: int) -> tuple[int, ...]:
    """A bound in units of the result, () where it bounds nothing.

    So do ONNX's defaults, the ends of float32, and whatever lies beyond 64 bits on its own side.

    Args:
        s: of the op.
        value: the real bound.
        harmless: its own side, 1 above and -1 below.
    """
    if not abs(value) < FLOAT32_MAX:
        return ()
    form = s.forms.of(s.y.name)
    steps = [Fraction(value) / unit for unit in form.units]
    if all(step * harmless > INT64_MAX for step in steps):
        return ()
    if any(floor(v) != ceil(v) or abs(v) > INT64_MAX for v in steps):
        raise refuse(
            s.op,
            "a bound is no whole multiple of the accumulator's unit within 64 bits",
            got=str(value),
            remedy="put QuantizeLinear behind the Clip",
        )
    whole = tuple(int(v) for v in steps)
    return whole if len(whole) == 1 else whole[s.part.out_first : s.part.out_first + s.count]


def _lut(s: Scene) -> Pairs:
    low = -(1 << (8 * _bytes(s.x.dtype) - 1)) if s.x.dtype.startswith("int") else 0
    return {**_output(s), "lowest": low}


def _bytes(dtype: str) -> int:
    return int(dtype.removeprefix("u").removeprefix("int")) // 8


def _copy(s: Scene) -> Pairs:
    return {"out_channels": s.count}


def _add(s: Scene) -> Pairs:
    a, b = (s.forms.of(n) for n in s.op.inputs[:2])
    _same_rank(s)
    shapes = [s.aligned(s.forms.tensors[n]) for n in s.op.inputs[:2]]
    return {
        **_output(s),
        "a_zero_point": a.zero_point,
        "b_zero_point": b.zero_point,
        "a_channels": channel_count(shapes[0]),
        "b_channels": channel_count(shapes[1]),
        "constant": s.constant_operand(),
        "factors": s.factors() if s.finish == "exact" else (),
    }


def _same_rank(s: Scene) -> None:
    """Refuse a row and a vector side by side."""
    shapes = [s.forms.tensors[n].shape for n in s.op.inputs[:2] if s.forms.tensors[n].array is None]
    if any((len(shape) == 4) != (len(s.y.shape) == 4) for shape in shapes):
        remedy = "put an Unsqueeze in front of the one of lower rank in the model"
        raise refuse(s.op, "activations of different ranks", got=str(shapes), remedy=remedy)


def _mul(s: Scene) -> Pairs:
    _same_rank(s)
    constant = s.constant_operand()
    if constant < 0:
        raise refuse(s.op, "a product of two activations")
    x, c = s.op.inputs[1 - constant], s.op.inputs[constant]
    return {
        **_output(s),
        "x_zero_point": s.forms.of(x).zero_point,
        "c_zero_point": s.forms.of(c).zero_point,
        "x_channels": channel_count(s.forms.tensors[x].shape),
        "c_channels": min(s.count, channel_count(s.aligned(s.forms.tensors[c]))),
        "along": "",
    }


def _concat(s: Scene) -> Pairs:
    axis, rank = integer(s.op, "axis"), len(s.y.shape)
    if axis not in ((1, 3) if rank == 4 else (rank - 1,)):
        raise refuse(s.op, f"Concat along axis {axis} is an order of objects, not a kernel")
    tensors = [s.forms.tensors[n] for n in s.op.inputs]
    return {
        **_output(s),
        "along": "width" if rank == 4 and axis == 3 else "channel",
        "channels": tuple(channel_count(t.shape) for t in tensors),
        "constants": tuple(int(t.array is not None) for t in tensors),
        "zero_points": tuple(s.forms.of(n).zero_point for n in s.op.inputs),
        "factors": s.factors() if s.finish == "exact" else (),
    }


def _relayout(s: Scene) -> Pairs:
    perm = integers(s.op.attributes["perm"]) if s.op.type == "Transpose" else ()
    axis = s.channel_axis()
    return {
        **_output(s),
        "x_shape": s.x.shape,
        "y_shape": s.y.shape,
        "perm": perm,
        "axis": -1 if axis is None else axis,
        "x_zero_point": s.x_form.zero_point,
    }


_RULES: Final[Mapping[str, Callable[[Scene], Pairs]]] = {
    "conv": _conv,
    "gemm": _gemm,
    "gemm_rows": _gemm_rows,
    "gemm_finish": _gemm_finish,
    "matmul": _matmul,
    "add": _add,
    "mul": _mul,
    "relu": _unary,
    "clip": _unary,
    "requantize": _unary,
    "lut": _lut,
    "copy": _copy,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _global_sum,
    "global_average_pool_finish": _global_finish,
    "concat": _concat,
    "transpose": _relayout,
    "reshape": _relayout,
    "flatten": _relayout,
}
"""Attributes by kernel type."""
