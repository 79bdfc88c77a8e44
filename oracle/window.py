"""Geometry of convolution and pooling windows, one spatial axis at a time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manifest.model import Op
from oracle.value import refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One spatial axis: input size, window, output size.

    Attributes:
        size: elements of the input.
        kernel: taps.
        stride: elements between windows.
        dilation: elements between taps.
        begin: padding in front.
        end: padding behind.
        out: windows.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    out: int

    def valid(self, tap: int, start: int = 0, stop: int | None = None) -> tuple[slice, slice]:
        """Windows (from `start` to `stop`, counted from `start`) whose `tap` lies on data, and where that is.

        Returns:
            (slice of windows, slice of the input), of equal length, empty where the tap only meets padding.
        """
        stop = self.out if stop is None else stop
        shift = tap * self.dilation - self.begin
        first = max(start, -(shift // self.stride))
        last = min(stop - 1, (self.size - 1 - shift) // self.stride)
        if last < first:
            return slice(0, 0), slice(0, 0)
        low = first * self.stride + shift
        return slice(first - start, last + 1 - start), slice(low, low + (last - first) * self.stride + 1, self.stride)

    def counts(self, *, include_pad: bool) -> list[int]:
        """Elements that an average divides by, per window; padding counts only inside begin..size+end."""
        result = []
        for window in range(self.out):
            low = window * self.stride - self.begin
            places = range(low, low + self.kernel * self.dilation, self.dilation)
            inside = (p < self.size + self.end if include_pad else 0 <= p < self.size for p in places)
            result.append(sum(inside))
        return result


def axes_of(op: Op, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[Axis, ...]:
    """The spatial axes of a Conv, MaxPool or AveragePool; one-dimensional ones get a leading axis of size 1."""
    rank = len(sizes)
    if rank not in (1, 2) or len(kernel) != rank:
        raise refuse(op, f"has {rank} spatial axes", expected="1 or 2")
    strides = _ints(op, "strides", (1,) * rank)
    dilations = _ints(op, "dilations", (1,) * rank)
    pads = _ints(op, "pads", (0,) * (2 * rank))
    ceil_mode = bool(op.attributes.get("ceil_mode", 0))
    padding = [(pads[i], pads[rank + i]) for i in range(rank)]
    columns = zip(sizes, kernel, strides, dilations, padding, strict=True)
    axes = [_axis(n, k, s, d, pad, ceil_mode=ceil_mode) for n, k, s, d, pad in columns]
    if rank == 1:
        axes.insert(0, Axis(size=1, kernel=1, stride=1, dilation=1, begin=0, end=0, out=1))
    return tuple(axes)


def _axis(size: int, kernel: int, stride: int, dilation: int, pad: tuple[int, int], *, ceil_mode: bool) -> Axis:
    begin, end = pad
    room = size + begin + end - (dilation * (kernel - 1) + 1)
    out = (math.ceil(room / stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (out - 1) * stride >= size + begin:
        out -= 1
    return Axis(size=size, kernel=kernel, stride=stride, dilation=dilation, begin=begin, end=end, out=out)


def _ints(op: Op, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = op.attributes.get(name, default)
    if not isinstance(value, tuple):
        raise refuse(op, f"attribute {name!r} is not a list of integers")
    return tuple(int(v) for v in value)
