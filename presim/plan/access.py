"""Which objects of its inputs an op needs for each object that it makes: the firings of a worker, in order.

Why one list for all ops: windows with borders, strides, dilation, batches, whole operands and row counters differ only
in this list. What a program holds, when it gives it back and how deep a fifo has to be follows from it by one rule.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from manifest.model import Op
from presim.blocks import object_count

Shape = tuple[int, ...]
Scalars = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One kernel call of an op.

    Attributes:
        needs: per input the numbers of the objects that the kernel gets, in the order of its arguments.
        scalars: integers of the call.
        gives: objects of the output that it makes.
        kernel: which kernel of the op: 1 = the one that turns what was summed up into the output; of a Concat that
            puts objects one after the other, the operand.
    """

    needs: tuple[tuple[int, ...], ...]
    scalars: Scalars = ()
    gives: int = 1
    kernel: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """What the firings of an op depend on.

    Attributes:
        kind: kernel type (`conv`, `gemm_rows`, ...).
        inputs: forms of its activations.
        output: form of its output.
        constant: form of a constant operand that has several objects, () = there is none.
        extent: rows that a window spans, dilated.
        stride: rows from one window to the next.
        top: rows of the first window above the image.
        axis: along which a Concat joins.
    """

    kind: str
    inputs: tuple[Shape, ...]
    output: Shape
    constant: Shape = ()
    extent: int = 1
    stride: int = 1
    top: int = 0
    axis: int = 0


def geometry(op: Op, kind: str, inputs: tuple[Shape, ...], output: Shape, constant: Shape = ()) -> Geometry:
    """The geometry of an op."""
    plain = Geometry(kind=kind, inputs=inputs, output=output, constant=constant)
    if "kernel_shape" in op.attributes and "strides" in op.attributes:
        extent, stride, top = window_rows(op), integers(op, "strides")[0], integers(op, "pads")[0]
        return replace(plain, extent=extent, stride=stride, top=top)
    if kind == "concat":
        return replace(plain, axis=integer(op, "axis") % len(output))
    return plain


def integers(op: Op, name: str) -> tuple[int, ...]:
    """A tuple attribute of an op."""
    value = op.attributes[name]
    if not isinstance(value, tuple):
        msg = f"{op.name}: expected a tuple for {name}, got {value!r}"
        raise TypeError(msg)
    return tuple(int(v) for v in value)


def integer(op: Op, name: str) -> int:
    """An integer attribute of an op."""
    value = op.attributes[name]
    if not isinstance(value, int):
        msg = f"{op.name}: expected an integer for {name}, got {value!r}"
        raise TypeError(msg)
    return value


@lru_cache(maxsize=512)
def firings(geometry: Geometry) -> tuple[Firing, ...]:
    """All firings of an op in one inference."""
    return _RULES.get(geometry.kind, _elementwise)(geometry)


def window_rows(op: Op) -> int:
    """Rows that the kernel of a Conv or pool spans, dilated."""
    return (integers(op, "kernel_shape")[0] - 1) * integers(op, "dilations")[0] + 1


def _window(g: Geometry) -> tuple[Firing, ...]:
    """Conv and pools: output row y needs the rows of its window that lie inside the image, none left out."""
    height, out_height = g.inputs[0][2], g.output[2]
    result = []
    for image in range(g.output[0]):
        for y in range(out_height):
            first = y * g.stride - g.top
            rows = range(first, first + g.extent)
            inside = tuple(image * height + r for r in rows if 0 <= r < height)
            pads = (("pad_top", sum(r < 0 for r in rows)), ("pad_bottom", sum(r >= height for r in rows)))
            result.append(Firing(needs=(inside,), scalars=pads))
    return tuple(result)


def _rows_to_one(g: Geometry) -> tuple[Firing, ...]:
    """GlobalAveragePool and a dense layer behind a Flatten: every row is added up, then one object comes out."""
    images, height = g.inputs[0][0], g.inputs[0][2]
    result: list[Firing] = []
    for image in range(images):
        rows = [(row, image * height + row) for row in range(height)]
        result += [Firing(needs=((number,),), scalars=(("row", row),), gives=0) for row, number in rows]
        result.append(Firing(needs=((),), kernel=1))
    return tuple(result)


def _places(source: Shape, target: Shape) -> list[int]:
    """Object of an operand for each object of the result, by broadcasting of the axes that count objects.

    As many objects on both sides are the same sequence, also where the forms have other axes.
    """
    if object_count(source) == object_count(target):
        return list(range(object_count(target)))
    outer = _outer(target)
    own = (1,) * (len(outer) - len(_outer(source))) + _outer(source)
    strides = [0 if n == 1 else math.prod(own[i + 1 :]) for i, n in enumerate(own)]
    numbers = [0]
    for size, stride in zip(outer, strides, strict=True):
        numbers = [n + i * stride for n in numbers for i in range(size)]
    return numbers


def _outer(shape: Shape) -> Shape:
    """Axes that count objects."""
    return (shape[0], shape[2]) if len(shape) == 4 else shape[:-1]


def _elementwise(g: Geometry) -> tuple[Firing, ...]:
    """One object out of the objects at its place, and of the constant's where it has several."""
    columns = [_places(shape, g.output) for shape in g.inputs]
    rows = [(("row", n),) for n in _places(g.constant, g.output)] if g.constant else [()] * object_count(g.output)
    return tuple(
        Firing(needs=tuple((n,) for n in numbers), scalars=row) for row, *numbers in zip(rows, *columns, strict=True)
    )


def _whole(g: Geometry) -> tuple[Firing, ...]:
    """Another order of all elements, a product of two activations: all that goes in, then all that comes out."""
    needs = tuple(tuple(range(object_count(shape))) for shape in g.inputs)
    return (Firing(needs=needs, gives=object_count(g.output)),)


def concat_in_step(g: Geometry) -> bool:
    """Whether the objects of all operands of a Concat are put together, not one after the other."""
    rank = len(g.output)
    return g.axis in (1, 3) if rank == 4 else g.axis == rank - 1


def _concat(g: Geometry) -> tuple[Firing, ...]:
    """Along channels, width or the last axis objects meet; along any other axis they follow each other."""
    if concat_in_step(g):
        return _elementwise(g)
    inner = [i for i in ((2,) if len(g.output) == 4 else range(len(g.output) - 1)) if i > g.axis]
    runs = [shape[g.axis] * math.prod(shape[i] for i in inner) for shape in g.inputs]
    result = []
    for block in range(math.prod(_outer(g.output)) // sum(runs)):
        for index, run in enumerate(runs):
            for number in range(block * run, (block + 1) * run):
                needs = tuple((number,) if i == index else () for i in range(len(runs)))
                result.append(Firing(needs=needs, kernel=index))
    return tuple(result)


_RULES: Final[Mapping[str, Callable[[Geometry], tuple[Firing, ...]]]] = {
    "conv": _window,
    "max_pool": _window,
    "average_pool": _window,
    "global_average_pool": _rows_to_one,
    "gemm_rows": _rows_to_one,
    "transpose": _whole,
    "reshape": _whole,
    "flatten": _whole,
    "matmul": _whole,
    "concat": _concat,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Objects of one input held around a firing.

    Attributes:
        first: number of the oldest.
        last: number of the newest; `first` - 1 = none.
        skip: objects behind it that no firing needs and that are taken and given back at once.
        keep: number of the oldest that is still needed afterwards.
    """

    first: int
    last: int
    skip: int
    keep: int


@lru_cache(maxsize=512)
def windows(fired: tuple[Firing, ...], port: int, total: int) -> tuple[Window, ...]:
    """What of input `port` is held at each firing.

    Objects come in order and are given back in order, so a firing holds everything from the oldest that it or a later
    firing needs to the newest that it or an earlier one needed. All `total` objects are taken in the end.
    """
    count = len(fired)
    oldest = [total] * (count + 1)
    for index in range(count - 1, -1, -1):
        oldest[index] = min((oldest[index + 1], *fired[index].needs[port]))
    result = []
    newest = -1
    for index, firing in enumerate(fired):
        newest = max((newest, *firing.needs[port]))
        first = oldest[index]
        last = max(newest, first - 1)
        keep = oldest[index + 1]
        result.append(Window(first=first, last=last, skip=max(0, keep - last - 1), keep=keep))
        newest = max(newest, keep - 1)
    return tuple(result)


def largest_window(fired: tuple[Firing, ...], port: int, total: int) -> int:
    """Most objects of input `port` that are held at once, at least 1."""
    return max((w.last - w.first + 1 for w in windows(fired, port, total)), default=1) or 1


def usual_step(fired: tuple[Firing, ...], port: int, total: int) -> int:
    """Objects of input `port` that are given back after most firings that give back any: the stride of a window."""
    steps = Counter(min(w.keep, w.last + 1) - w.first for w in windows(fired, port, total))
    counts = [(-times, step) for step, times in steps.items() if step > 0]
    return min(counts)[1] if counts else 1
