"""An op with its tensors and its part, as the tables of attributes and buffers see it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isinf
from typing import Final, Literal

from manifest.model import QRANGE, Manifest, Op, Requantization, Tensor
from presim.kernels.part import Part
from presim.kernels.units import Form, Forms, integer, moved_axis, promotions, refuse, spread, summands, window_counts

Finish = Literal["exact", "clamp", "round"]

OWN_KERNEL: Final = {
    "Conv": "conv",
    "Gemm": "gemm",
    "MatMul": "gemm",
    "Add": "add",
    "Mul": "mul",
    "Relu": "relu",
    "Clip": "clip",
    "MaxPool": "max_pool",
    "AveragePool": "average_pool",
    "GlobalAveragePool": "global_average_pool",
    "Flatten": "flatten",
    "Reshape": "reshape",
    "Transpose": "transpose",
    "Concat": "concat",
    "QuantizeLinear": "requantize",
    "Reinterpret": "copy",
}
"""Kernel type of an op by its type, where its part names none."""

PRODUCTS: Final = ("Conv", "Gemm", "MatMul")
SUMS: Final = ("Add", "Concat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An op and one part of it."""

    forms: Forms
    op: Op
    part: Part

    @property
    def kernel(self) -> str:
        """Kernel type."""
        return self.part.kernel or own_kernel(self.op, self.forms.tensors)

    @property
    def x(self) -> Tensor:
        """First input."""
        return self.forms.tensors[self.op.inputs[0]]

    @property
    def y(self) -> Tensor:
        """Output."""
        return self.forms.tensors[self.op.outputs[0]]

    @property
    def x_form(self) -> Form:
        """What the integers of the first input mean."""
        return self.forms.of(self.op.inputs[0])

    @property
    def total(self) -> int:
        """Channels of the output (of one operand of a Concat): of axis 1 at rank 4, else of the last axis.

        A product of matrices has those of the last axis at any rank.
        """
        if self.op.type == "MatMul":
            return self.y.shape[-1] if len(self.forms.tensors[self.op.inputs[1]].shape) > 1 else 1
        return channel_count((self.operand if self.alone else self.y).shape)

    @property
    def alone(self) -> bool:
        """Whether one operand of a Concat is requantized by itself."""
        return self.op.type == "Concat" and self.kernel == "requantize"

    @property
    def operand(self) -> Tensor:
        """The input that `Part.operand` names."""
        return self.forms.tensors[self.op.inputs[self.part.operand]]

    @property
    def count(self) -> int:
        """Output channels of this part."""
        count = self.part.out_count or self.total - self.part.out_first
        if self.part.out_first < 0 or count < 1 or self.part.out_first + count > self.total:
            msg = f"{self.op.name}: part {self.part.text()} of {self.total} output channels"
            raise ValueError(msg)
        return count

    @property
    def finish(self) -> Finish:
        """`exact`: the integers leave as they are; `clamp`: codes pass, clamped; `round`: through a requant buffer."""
        if self.y.dtype == "exact":
            return "exact"
        return "clamp" if self.op.requant is None or self.op.requant.target == "identity" else "round"

    @property
    def requant(self) -> Requantization:
        """Requantization of an op that has one."""
        if self.op.requant is None:
            msg = f"{self.op.name}: expected a requantization"
            raise ValueError(msg)
        return self.op.requant

    def channel_axis(self) -> int | None:
        """Axis of the output along which multipliers differ, None where there is one."""
        if self.finish != "round" or (len(self.requant.multipliers) == 1 and len(self.raised()) == 1):
            return None
        rank = len(self.y.shape)
        if self.op.type == "Conv":
            return 1
        if self.op.type in PRODUCTS:
            return rank - 1
        return self.axis_of_input()

    def axis_of_input(self) -> int | None:
        """Channel axis of the first input, where it is in the output."""
        return moved_axis(self.forms, self.op, self.x_form.axis)

    def raised(self) -> tuple[int, ...]:
        """Bits by which the integer that is rounded is finer than the manifest's multipliers presume."""
        if self.op.type in PRODUCTS:
            return promotions(self.op)
        return self.x_form.promotion

    def pairs(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Multipliers and shifts as the kernel applies them: one, one per channel, per input or per count.

        An Add has one shift for all multipliers.
        """
        multipliers, shifts = self.requant.multipliers, self.requant.shifts
        if self.op.type in SUMS:
            return self._pairs_of_inputs(multipliers, shifts)
        raised = self.raised()
        if self.op.type == "AveragePool":
            return self._pairs_of_counts(multipliers, [s + raised[0] for s in shifts])
        size = max(len(multipliers), len(shifts), len(raised))
        many = spread(multipliers, size), spread(shifts, size), spread(raised, size)
        rank = len(self.y.shape)
        split = size > 1 and (self.op.type in PRODUCTS or self.channel_axis() == (1 if rank == 4 else rank - 1))
        wanted = slice(self.part.out_first, self.part.out_first + self.count) if split else slice(None)
        return many[0][wanted], tuple(s + r for s, r in zip(many[1], many[2], strict=True))[wanted]

    def _pairs_of_inputs(
        self, multipliers: Sequence[int], shifts: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        raised = [self.forms.of(n).promotion[0] for n in self.op.inputs]
        most = max(raised)
        if self.op.type == "Add":
            aligned = tuple(m << (most - r) for m, r in zip(multipliers, raised, strict=True))
            return aligned, (shifts[0] + most,)
        size = len(self.op.inputs)
        found, moved = spread(tuple(multipliers), size), spread(tuple(shifts), size)
        raised_shifts = tuple(s + r for s, r in zip(moved, raised, strict=True))
        if self.alone:
            return (found[self.part.operand],), (raised_shifts[self.part.operand],)
        return found, raised_shifts

    def _pairs_of_counts(
        self, multipliers: Sequence[int], shifts: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        counts = self.counts()
        if len(multipliers) > 1:
            return tuple(multipliers), tuple(shifts)
        common = math.lcm(*counts)
        return tuple(multipliers[0] * (common // n) for n in counts), (shifts[0],) * len(counts)

    def counts(self) -> tuple[int, ...]:
        """Numbers of elements of the windows of an average, ascending."""
        return window_counts(self.op, self.x.shape, self.y.shape)

    def factors(self) -> tuple[int, ...]:
        """What the operands of an exact Add or Concat are multiplied by."""
        return summands(self.forms, self.op)[1]

    def accumulator_bits(self) -> int:
        """Width at which sums wrap."""
        if self.finish == "exact":
            return 32 if self.forms.of(self.y.name).dtype == "int32" else 64
        if self.op.accumulator is not None:
            return self.op.accumulator.bits
        common = math.lcm(*self.counts()) if self.op.type in ("AveragePool", "GlobalAveragePool") else 1
        return 32 if self.x_form.bound * common < 1 << 31 else 64

    def accumulator_shifts(self) -> tuple[int, ...]:
        """Left shifts of the accumulator in front of the bias."""
        found = promotions(self.op)
        return found if len(found) == 1 else found[self.part.out_first : self.part.out_first + self.count]

    def bias_shifts(self) -> tuple[int, ...]:
        """Left shifts of the bias, 1 or one per channel of the op."""
        given = self.op.bias.shifts if self.op.bias is not None and self.op.bias.kind == "shifted" else (0,)
        return tuple(max(0, s) for s in given)

    def output_dtype(self) -> str:
        """Storage of the output."""
        return self.forms.of(self.y.name).dtype if self.finish == "exact" else self.y.dtype

    def code_range(self) -> tuple[int, int]:
        """Lowest and highest output code; bounds of a Relu or Clip that stand in its attributes count too."""
        requant = self.op.requant
        low, high = QRANGE[self.y.dtype] if requant is None else (requant.qmin, requant.qmax)
        if self.op.type == "Relu":
            low = max(low, self.code_of(0.0))
        if self.op.type == "Clip" and "minimum" in self.op.attributes:
            low = max(low, self.code_of(number_of(self.op, "minimum")))
            high = min(high, self.code_of(number_of(self.op, "maximum")))
        return max(low, integer(self.op, "qmin", low)), min(high, integer(self.op, "qmax", high))

    def code_of(self, value: float) -> int:
        """The output code of a real bound, the end of the range of codes where it is beyond."""
        low, high = QRANGE[self.y.dtype]
        if isinf(value):
            return high if value > 0 else low
        form = self.forms.of(self.y.name)
        return min(max(round(Fraction(value) / form.units[0]) + form.zero_point, low), high)

    def reduction(self) -> tuple[int, int, int]:
        """(first, count, total) of what this part sums over."""
        weights = self.forms.tensors[self.op.inputs[1]]
        total = weights.shape[1]
        if self.op.type != "Conv":
            total = weights.shape[1 if integer(self.op, "transB") else 0]
        first = self.part.in_first
        count = self.part.in_count or total - first
        if first < 0 or count < 1 or first + count > total:
            msg = f"{self.op.name}: part {self.part.text()} of {total} summands"
            raise ValueError(msg)
        return first, count, total

    def constant_operand(self) -> int:
        """Position of the constant operand of an Add, Mul or MatMul; -1 = none."""
        found = [i for i, n in enumerate(self.op.inputs[:2]) if self.forms.tensors[n].array is not None]
        return found[0] if found else -1

    def aligned(self, tensor: Tensor) -> tuple[int, ...]:
        """Shape of an operand with leading ones up to the rank of the output."""
        return (1,) * (len(self.y.shape) - len(tensor.shape)) + tensor.shape

    def row_source(self) -> Tensor:
        """The rank-4 tensor whose flattened rows a Gemm sums over (`gemm_rows`)."""
        maker = self.forms.makers.get(self.x.name)
        source = None if maker is None else self.forms.tensors[maker.inputs[0]]
        passes = maker is not None and (maker.requant is None or maker.requant.target == "identity")
        if maker is None or source is None or maker.type not in ("Flatten", "Reshape") or not passes:
            raise refuse(self.op, "gemm_rows needs a Flatten of a rank-4 tensor in front", got=self.x.name)
        if len(source.shape) != 4 or source.shape[0] != self.x.shape[0] or len(self.x.shape) != 2:
            raise refuse(self.op, "gemm_rows needs a Flatten of a rank-4 tensor in front", got=str(source.shape))
        return source


def own_kernel(op: Op, tensors: Mapping[str, Tensor]) -> str:
    """Kernel type of a whole op: `gemm` only where vectors times one constant matrix is what it does."""
    if op.requant is not None and op.requant.target == "lut":
        return "lut"
    if op.type not in OWN_KERNEL:
        raise refuse(op, f"no kernel for {op.type}")
    if op.type in ("Gemm", "MatMul"):
        x, w = tensors[op.inputs[0]], tensors[op.inputs[1]]
        plain = w.array is not None and len(w.shape) == 2 and len(x.shape) != 4 and x.array is None
        if not plain or integer(op, "transA"):
            return "matmul"
    return OWN_KERNEL[op.type]


def number_of(op: Op, name: str) -> float:
    """A real attribute."""
    value = op.attributes[name]
    if not isinstance(value, int | float):
        msg = f"{op.name}: expected a number {name}, got {value!r}"
        raise TypeError(msg)
    return float(value)


def channel_count(shape: tuple[int, ...]) -> int:
    """Channels of a tensor: axis 1 at rank 4, else the last axis."""
    return shape[1] if len(shape) == 4 else (shape[-1] if shape else 1)


def scene(op: Op, manifest: Manifest | Forms, part: Part) -> Scene:
    """The scene of a part of an op."""
    return Scene(forms=manifest if isinstance(manifest, Forms) else Forms(manifest), op=op, part=part)
