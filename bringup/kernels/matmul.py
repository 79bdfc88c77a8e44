"""`matmul`: a product of whole operands of any rank, bundled or not, 16 columns of the result at a time (`matmul.h`).

A constant operand is packed with its last two axes in the order of the product, everything else stays. Operands and
result are told to the code as strides of objects and elements, so ranks, transpositions and broadcasts are one code.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from bringup.kernels.elementwise import by_role, c_type, number, numbers, refuse
from bringup.kernels.finish import (
    LANE_HEADERS,
    LANES,
    Body,
    Figure,
    argument,
    emitted,
    lane_parameters,
    member,
    output_figures,
    pack_lanes,
    packed,
    parameters_of,
    pointers_to,
    splits,
)
from bringup.kernels.model import Array, Parameter, Row, Source
from presim.blocks import blocks_of, object_count, object_shape

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """An operand or the result.

    Attributes:
        name: of its struct.
        parameters: its objects, or the one that holds all of them.
        shape: as stored.
        axes: positions in `shape` of (row, column); -1 = there is none, it counts as one place.
        whole: all elements in C order in one object, as constants are.
    """

    name: str
    parameters: tuple[Parameter, ...]
    shape: Shape
    axes: tuple[int, int]
    whole: bool = False

    @property
    def batch(self) -> Shape:
        """Extents of the other axes."""
        return tuple(n for i, n in enumerate(self.shape) if i not in self.axes)

    def extent(self, which: int) -> int:
        """Rows (0) or columns (1)."""
        return self.shape[self.axes[which]] if self.axes[which] >= 0 else 1

    def place(self, batch: Shape, row: int, column: int) -> tuple[int, int]:
        """(object, element) of an element; of objects that are one, the element counts through."""
        rest, own = iter(batch), dict(zip(self.axes, (row, column), strict=True))
        index = tuple(own[axis] if axis in own else next(rest) for axis in range(len(self.shape)))
        if self.whole:
            return 0, _ravel(index, self.shape)
        at = _place(index, self.shape)
        bundled = len(self.parameters) == 1 and object_count(self.shape) > 1
        return (0, at[0] * math.prod(object_shape(self.shape)) + at[1]) if bundled else at

    def stride(self, which: int) -> tuple[int, int]:
        """(objects, elements) from a row (0) or column (1) to the next."""
        if self.extent(which) == 1:
            return 0, 0
        first, zero = (0,) * len(self.batch), self.place((0,) * len(self.batch), 0, 0)
        there = self.place(first, 1 - which, which)
        return there[0] - zero[0], there[1] - zero[1]

    def struct(self, batches: Shape) -> str:
        """Text of its struct, for batches that it is broadcast along."""
        places = [self.place(index, 0, 0) for index in _broadcast(self.batch, batches)]
        rows, columns = self.stride(0), self.stride(1)
        figures: dict[str, Figure] = {
            "object": tuple(p[0] for p in places),
            "element": tuple(p[1] for p in places),
            "ROW_OBJECT": rows[0],
            "ROW_ELEMENT": rows[1],
            "COLUMN_OBJECT": columns[0],
            "COLUMN_ELEMENT": columns[1],
        }
        lines = [f"    {member(name, value)}" for name, value in figures.items()]
        return "\n".join([f"struct {self.name} {{", *lines, "};", ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product (row, k) x (k, column): what lies along the lanes is the last axis of the result."""

    a: Side
    b: Side
    y: Side
    a_points: Shape
    b_points: Shape


def source(row: Row) -> Source:
    """The kernel's code.

    Raises:
        RefusedError: operands of more than 16 bits, or zero points that vary along what is summed over where the code
            has one for each column.
    """
    p = product_of(row)
    channels, batches = p.y.extent(1), p.y.batch
    dtypes = [side.parameters[0].dtype for side in (p.a, p.b)]
    if any(np.dtype(d).itemsize > 2 for d in dtypes):
        raise refuse(row, "operands of more than 16 bits", got=", ".join(dtypes))
    beside = len(p.y.shape) != 4
    cleared = len(p.y.shape) == 4 and p.y.shape[1] % LANES != 0
    figures = {
        **output_figures(row),
        "CHANNELS": channels,
        "A": c_type(dtypes[0]),
        "B": c_type(dtypes[1]),
        "ROWS": p.y.extent(0),
        "INNER": p.a.extent(1),
        "BATCHES": math.prod(batches),
        "A_SPLITS": any(splits(dtypes[0], z) for z in p.a_points),
        "B_SPLITS": any(splits(dtypes[1], z) for z in p.b_points),
        "A_ZEROS": p.a_points,
        "B_ZEROS": p.b_points,
        "B_PADDED": channels,
        "Y_PADDED": blocks_of(channels) * LANES if beside else 0,
        "Y_CLEARED": math.prod(p.y.parameters[0].shape) if cleared else 0,
        "Y_POINTERS": len(p.y.parameters),
    }
    changed = lane_parameters(row, channels=channels)
    changed |= {q.name: packed(q, _constant_shape(row, q.shape)) for q in by_role(row, "constant")}
    return emitted(
        row,
        Body(
            header="matmul.h",
            headers=LANE_HEADERS,
            structs=[side.struct(batches) for side in (p.a, p.b, p.y)],
            figures={**figures, "AtA": "PlaceA", "AtB": "PlaceB", "AtY": "PlaceY"},
            call=[
                pointers_to(p.a.parameters, "all_a"),
                pointers_to(p.b.parameters, "all_b"),
                pointers_to(p.y.parameters, "all_y", writes=True),
                f"port::Matmul<K>::run(all_a, all_b, {argument(row, 'bias')}, {argument(row, 'requant')}, all_y);",
            ],
            parameters=parameters_of(row, changed),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Constants as the code reads them.

    Raises:
        RefusedError: a multiplier or a shift that no code is written for.
    """
    y = numbers(row, "y_shape")
    made = pack_lanes(row, constants, channels=y[-1] if y else 1)
    for p in by_role(row, "constant"):
        array = constants[p.name]
        made[p.name] = np.ascontiguousarray(array.swapaxes(-1, -2) if _is_transposed(row) else array)
    return made


def _is_transposed(row: Row) -> bool:
    """Whether the constant operand is stored with its last two axes the other way round."""
    name = "ab"[number(row, "constant")]
    return bool(number(row, f"transpose_{name}"))


def _constant_shape(row: Row, shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if _is_transposed(row) else shape


def product_of(row: Row) -> Product:
    """Operands and result by rows and columns.

    Why operands may change places: a vector on the right gives a result whose last axis is the rows of the left one,
    and the lanes are along the last axis.
    """
    sides = _operands(row)
    points = [numbers(row, f"{name}_zero_points") for name in "ab"]
    y = numbers(row, "y_shape")
    if len(numbers(row, "b_shape")) == 1:
        left, right = sides[1], sides[0]
        if len(points[0]) > 1:
            raise refuse(row, "zero points along what is summed over, one for each place")
        a = _side("PlaceA", left, (-1, left.axes[0]))
        b = _side("PlaceB", right, (right.axes[1], right.axes[0]))
        axes = (-1, len(y) - 1) if y else (-1, -1)
        return Product(a=a, b=b, y=_result(row, axes), a_points=points[1], b_points=points[0])
    rank = len(y)
    axes = (rank - 2, rank - 1) if sides[0].axes[0] >= 0 else (-1, rank - 1)
    return Product(
        a=_side("PlaceA", sides[0], sides[0].axes),
        b=_side("PlaceB", sides[1], sides[1].axes),
        y=_result(row, axes),
        a_points=points[0],
        b_points=points[1],
    )


def _side(name: str, side: Side, axes: tuple[int, int]) -> Side:
    return Side(name=name, parameters=side.parameters, shape=side.shape, axes=axes, whole=side.whole)


def _result(row: Row, axes: tuple[int, int]) -> Side:
    outs = by_role(row, "object_out")
    return Side(name="PlaceY", parameters=outs, shape=numbers(row, "y_shape"), axes=axes)


def _operands(row: Row) -> tuple[Side, Side]:
    """Both operands with the axes of their rows and columns as in the product."""
    objects, sides = list(by_role(row, "object_in")), []
    for position, name in enumerate("ab"):
        shape = numbers(row, f"{name}_shape")
        rank = len(shape)
        if position == number(row, "constant"):
            taken, shape, turned = by_role(row, "constant"), _constant_shape(row, shape), False
        else:
            count = 1 if row.attributes.get("bundled") == 1 else object_count(shape)
            taken, objects = tuple(objects[:count]), objects[count:]
            turned = bool(number(row, f"transpose_{name}"))
        if rank == 1:
            axes = (-1, 0) if position == 0 else (0, -1)
        else:
            axes = (rank - 1, rank - 2) if turned else (rank - 2, rank - 1)
        whole = position == number(row, "constant")
        sides.append(Side(name=name, parameters=taken, shape=shape, axes=axes, whole=whole))
    return sides[0], sides[1]


def _ravel(index: Shape, shape: Shape) -> int:
    at = 0
    for i, n in zip(index, shape, strict=True):
        at = at * n + i
    return at


def _place(index: Shape, shape: Shape) -> tuple[int, int]:
    """(object, element) by `presim.blocks`."""
    if len(shape) == 4:
        n, c, h, w = index
        return n * shape[2] + h, ((c // LANES) * shape[3] + w) * LANES + c % LANES
    return (_ravel(index[:-1], shape[:-1]), index[-1]) if shape else (0, 0)


def _broadcast(own: Shape, batches: Shape) -> Iterator[Shape]:
    """The index into `own` for each batch of the result."""
    skipped = len(batches) - len(own)
    for index in product(*(range(n) for n in batches)):
        yield tuple(i if n > 1 else 0 for i, n in zip(index[skipped:], own, strict=True))
