"""What the integers of every tensor on the array mean.

Why: the manifest keeps an unrounded accumulator as a tensor of dtype `exact` and does not write down its unit; the
multipliers of the op that rounds it presume one. It follows from scales, Gemm's alpha, the fused factor of an average
and the number of averaged elements, and from the promotion of an accumulator whose bias is finer than its products.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeVar

from manifest.errors import Problem, RefusedError
from manifest.model import QRANGE, Manifest, Op, Tensor

T = TypeVar("T")


def refuse(op: Op, what: str, *, expected: str = "", got: str = "", remedy: str = "") -> RefusedError:
    """An op that no kernel computes.

    The remedy is to run the op on the host between two dispatches, or to change the model.
    """
    problem = Problem(
        code="PRESIM-KERNEL",
        where=f"{op.type} {op.name!r}",
        what=what,
        expected=expected,
        got=got,
        remedy=remedy or "cut the model there and run the op on the host (--host-ops, --cut)",
    )
    return RefusedError((problem,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Integers on the array: value = (integer - zero_point) * unit.

    Attributes:
        units: exact value of one, 1 or one per channel.
        axis: channel axis where there are several.
        promotion: bits by which the unit is finer than the one that the manifest's multipliers are for, 1 or as
            many as there are units.
        zero_point: of codes; 0 for accumulators.
        bound: largest |integer - zero point|.
        dtype: storage, numpy's name.
    """

    units: tuple[Fraction, ...]
    axis: int | None = None
    promotion: tuple[int, ...] = (0,)
    zero_point: int = 0
    bound: int
    dtype: str


def accumulator_dtype(op: Op, bound: int) -> str:
    """int32 or int64 for integers up to `bound`; refuses what no accumulator holds."""
    if bound >= 1 << 63:
        raise refuse(op, "exact result needs more than a 64-bit accumulator", got=f"a bound of {bound}")
    return "int32" if bound < 1 << 31 else "int64"


def common_unit(units: list[Fraction]) -> Fraction:
    """The largest unit of which all are whole multiples."""
    denominator = math.lcm(*(u.denominator for u in units))
    return Fraction(math.gcd(*(u.numerator * (denominator // u.denominator) for u in units)), denominator)


def spread(values: tuple[T, ...], size: int) -> tuple[T, ...]:
    """One value for each of `size`."""
    return values * size if len(values) == 1 else values


def integers(value: object) -> tuple[int, ...]:
    """A tuple attribute of an op."""
    if not isinstance(value, tuple):
        msg = f"expected a tuple of integers, got {value!r}"
        raise TypeError(msg)
    return tuple(int(v) for v in value)


def integer(op: Op, name: str, default: int = 0) -> int:
    """An integer attribute of an op."""
    value = op.attributes.get(name, default)
    if not isinstance(value, int):
        msg = f"{op.name}: expected an integer {name}, got {value!r}"
        raise TypeError(msg)
    return value


def real(op: Op, name: str, default: float) -> Fraction:
    """A float attribute as an exact rational."""
    value = op.attributes.get(name, default)
    if not isinstance(value, int | float):
        msg = f"{op.name}: expected a number {name}, got {value!r}"
        raise TypeError(msg)
    return Fraction(value)


def promotions(op: Op) -> tuple[int, ...]:
    """Left shifts of the accumulator before the bias, 1 or one per channel."""
    if op.bias is None or op.bias.kind != "shifted":
        return (0,)
    return tuple(max(0, -s) for s in op.bias.shifts)


def window_counts(op: Op, shape: tuple[int, ...], output: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of elements that the windows of an average are divided by, distinct, ascending.

    QLinearAveragePool divides by the size of the kernel wherever pads count, as onnxruntime does.
    """
    if op.type == "GlobalAveragePool":
        return (math.prod(shape[2:]),)
    kernel, strides, pads, dilations = (
        integers(op.attributes[n]) for n in ("kernel_shape", "strides", "pads", "dilations")
    )
    padded = bool(integer(op, "count_include_pad"))
    if padded and op.origin == "qoperator":
        return (math.prod(kernel),)
    sides: list[set[int]] = []
    for axis in (0, 1):
        low, high = (-pads[axis], shape[2 + axis] + pads[2 + axis]) if padded else (0, shape[2 + axis])
        starts = (o * strides[axis] - pads[axis] for o in range(output[2 + axis]))
        sides.append({sum(low <= s + k * dilations[axis] < high for k in range(kernel[axis])) for s in starts})
    return tuple(sorted({r * c for r in sides[0] for c in sides[1]}))


class Forms:
    """Forms of the tensors of one manifest, worked out on demand."""

    def __init__(self, manifest: Manifest) -> None:
        self.tensors: Mapping[str, Tensor] = manifest.by_name()
        self.ops: Mapping[str, Op] = {op.name: op for op in manifest.ops}
        self.makers: Mapping[str, Op] = {name: op for op in manifest.ops for name in op.outputs}
        self._found: dict[str, Form] = {}

    def of(self, name: str) -> Form:
        """Form of a tensor that lives on the array."""
        if name not in self._found:
            tensor = self.tensors[name]
            self._found[name] = self._exact(name) if tensor.dtype == "exact" else _codes(tensor)
        return self._found[name]

    def _exact(self, name: str) -> Form:
        op = self.makers[name]
        if op.type not in _RULES:
            raise refuse(op, f"result {name!r} is not rounded")
        return _RULES[op.type](self, op)


def _codes(tensor: Tensor) -> Form:
    low, high = QRANGE.get(tensor.dtype, (-(1 << 62), 1 << 62))
    quant = tensor.quant
    if quant is None or len(set(quant.zero_points)) > 1:
        msg = f"tensor {tensor.name!r}: expected codes with one zero point"
        raise ValueError(msg)
    zero = quant.zero_points[0]
    return Form(
        units=tuple(Fraction(s) for s in quant.scales),
        axis=quant.axis,
        zero_point=zero,
        bound=max(abs(low - zero), abs(high - zero)),
        dtype=tensor.dtype,
    )


def _product(forms: Forms, op: Op) -> Form:
    left, right = forms.tensors[op.inputs[0]], forms.tensors[op.inputs[1]]
    if left.quant is None or right.quant is None:
        raise refuse(op, "operands without scale")
    alpha = real(op, "alpha", 1.0) if op.type == "Gemm" else Fraction(1)
    lefts, rights = ([Fraction(s) for s in q.scales] for q in (left.quant, right.quant))
    products = [alpha * a * b for a in lefts for b in rights]
    raised = promotions(op)
    size = max(len(products), len(raised))
    units = [u / (1 << r) for u, r in zip(spread(tuple(products), size), spread(raised, size), strict=True)]
    rank = len(forms.tensors[op.outputs[0]].shape)
    bound = op.accumulator.bound if op.accumulator is not None else 1 << 31
    return Form(
        units=tuple(units),
        axis=None if size == 1 else (1 if op.type == "Conv" else rank - 1),
        promotion=raised,
        bound=bound,
        dtype=accumulator_dtype(op, bound),
    )


def summands(forms: Forms, op: Op) -> tuple[Form, tuple[int, ...]]:
    """Form of an exact Add or Concat, and what each operand is multiplied by to get there."""
    given = [forms.of(n) for n in op.inputs]
    if any(len(f.units) > 1 for f in given):
        raise refuse(op, "operands with one scale per channel are added without rounding")
    promotion = max(f.promotion[0] for f in given)
    unit = common_unit([f.units[0] * (1 << f.promotion[0]) for f in given]) / (1 << promotion)
    factors = tuple(int(f.units[0] / unit) for f in given)
    sizes = [k * f.bound for k, f in zip(factors, given, strict=True)]
    bound = sum(sizes) if op.type == "Add" else max(sizes)
    form = Form(units=(unit,), promotion=(promotion,), bound=bound, dtype=accumulator_dtype(op, bound))
    return form, factors


def _sum(forms: Forms, op: Op) -> Form:
    return summands(forms, op)[0]


def _average(forms: Forms, op: Op) -> Form:
    x = forms.of(op.inputs[0])
    if len(x.units) > 1 and op.type == "AveragePool":
        raise refuse(op, "an average of accumulators with one unit per channel")
    shape, output = forms.tensors[op.inputs[0]].shape, forms.tensors[op.outputs[0]].shape
    common = math.lcm(*window_counts(op, shape, output))
    factor = real(op, "factor", 1.0) / common
    bound = x.bound * common
    return replace(
        x,
        units=tuple(u * factor for u in x.units),
        zero_point=0,
        bound=bound,
        dtype=accumulator_dtype(op, bound),
    )


def _factor(forms: Forms, op: Op) -> Form:
    x, constant = product_operands(forms, op)
    left, right = forms.of(x), forms.of(constant)
    bound = left.bound * right.bound
    units = tuple(u * right.units[0] for u in left.units)
    return replace(left, units=units, zero_point=0, bound=bound, dtype=accumulator_dtype(op, bound))


def product_operands(forms: Forms, op: Op) -> tuple[str, str]:
    """(activation, constant) of a Mul."""
    first, second = op.inputs[:2]
    return (second, first) if forms.tensors[first].array is not None else (first, second)


def _passed(forms: Forms, op: Op) -> Form:
    x = forms.of(op.inputs[0])
    if x.zero_point or x.dtype not in ("int32", "int64"):
        x = replace(x, zero_point=0, dtype=accumulator_dtype(op, x.bound))
    return replace(x, axis=moved_axis(forms, op, x.axis) if len(x.units) > 1 else None)


def moved_axis(forms: Forms, op: Op, axis: int | None) -> int | None:
    """Where the channel axis of the input is in the output."""
    if axis is None:
        return None
    if op.type == "Transpose":
        return integers(op.attributes["perm"]).index(axis)
    if op.type not in ("Reshape", "Flatten"):
        return axis
    source, target = forms.tensors[op.inputs[0]].shape, forms.tensors[op.outputs[0]].shape
    before = math.prod(source[:axis])
    for place, size in enumerate(target):
        if size == source[axis] and math.prod(target[:place]) == before:
            return place
    raise refuse(op, "the channel axis of an accumulator with one scale per channel is lost")


_RULES: Final[Mapping[str, Callable[[Forms, Op], Form]]] = {
    "Conv": _product,
    "Gemm": _product,
    "MatMul": _product,
    "Add": _sum,
    "Concat": _sum,
    "Mul": _factor,
    "AveragePool": _average,
    "GlobalAveragePool": _average,
    "MaxPool": _passed,
    "Relu": _passed,
    "Clip": _passed,
    "Reshape": _passed,
    "Flatten": _passed,
    "Transpose": _passed,
}


def form_of(manifest: Manifest, tensor: str) -> Form:
    """What the integers of a tensor on the array mean; of one tensor (use `Forms` for many)."""
    return Forms(manifest).of(tensor)
