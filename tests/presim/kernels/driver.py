"""Runs single ops of a manifest through the kernels, object by object, as a worker's program would."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import Manifest, Op
from presim.blocks import from_objects, object_count, object_shape, to_objects
from presim.design import AttributeValue
from presim.kernels import KERNELS
from presim.kernels.attributes import Forms, Part, attributes_of, buffers_of, kernel_of, stream_of
from presim.kernels.buffers import constant_of

Array = NDArray[Any]
WINDOWED = ("conv", "max_pool", "average_pool")
WHOLE = ("matmul", "transpose", "reshape", "flatten")


@dataclass(kw_only=True)
class Tile:
    """A context: attributes and scalars of a call, modes of the tile."""

    attributes: Mapping[str, AttributeValue]
    scalars: Mapping[str, int] = field(default_factory=dict)
    rounding: str = "conv_even"
    saturation: str = "saturate"


class Cascade:
    """What a kernel puts on the cascade."""

    def __init__(self) -> None:
        self.block: Array | None = None

    def put(self, block: Array) -> None:
        assert self.block is None
        self.block = np.array(block)


@dataclass(kw_only=True)
class Bench:
    """A manifest, its arrays and the mode of the tile; `changes` replaces attributes (mutants)."""

    manifest: Manifest
    arrays: Mapping[str, Array]
    rounding: str = "conv_even"
    saturation: str = "saturate"
    changes: Mapping[str, AttributeValue] = field(default_factory=dict)
    edits: Mapping[str, Any] = field(default_factory=dict)
    """Function on the contents of a kind of buffer (mutants)."""

    def __post_init__(self) -> None:
        self.forms = Forms(self.manifest)

    def tile(self, op: Op, part: Part, scalars: Mapping[str, int]) -> Tile:
        attributes = {**dict(attributes_of(op, self.forms, part)), **self.changes}
        return Tile(attributes=attributes, scalars=scalars, rounding=self.rounding, saturation=self.saturation)

    def buffers(self, op: Op, part: Part, skip: Sequence[str] = ()) -> list[Array]:
        found = []
        for spec in buffers_of(op, self.forms, part):
            if spec.kind in skip:
                continue
            if spec.array is None:
                value = np.full(spec.shape, 85, spec.dtype)
            else:
                value = constant_of(spec.array, self.forms, self.arrays)
                value = self.edits.get(spec.kind, lambda v: v)(value)
            assert value.shape == spec.shape
            assert value.dtype.name == spec.dtype
            found.append(value)
        return found

    def call(self, op: Op, part: Part, scalars: Mapping[str, int], *arguments: Any) -> None:
        KERNELS[part.kernel or kernel_of(op, self.forms)](self.tile(op, part, scalars), *arguments)

    def empty(self, op: Op, shape: tuple[int, ...]) -> Array:
        """Objects of the output, poisoned."""
        dtype = self.forms.of(op.outputs[0]).dtype
        return np.full((object_count(shape), *object_shape(shape)), 85, dtype)

    def run(self, op: Op, values: Mapping[str, Array], part: Part | None = None) -> Array:
        """Output of a part of an op, (*shape) with the part's channels."""
        part = part or Part()
        kind = part.kernel or kernel_of(op, self.forms)
        if kind in WINDOWED:
            return self.image(op, values, part)
        if kind in WHOLE:
            return self.whole(op, values, part)
        if kind == "global_average_pool":
            return self.pooled(op, values, part)
        if kind == "gemm_rows":
            return self.flattened(op, values, part)
        return self.each(op, values, part)

    def shape(self, op: Op, part: Part) -> tuple[int, ...]:
        """Shape of what a part gives."""
        return part_of(self.manifest.tensor(op.outputs[0]).shape, part)

    def image(self, op: Op, values: Mapping[str, Array], part: Part) -> Array:
        x = values[op.inputs[0]]
        x = x if op.type == "Conv" else cut(x, part)
        shape = self.shape(op, part)
        out = self.empty(op, shape)
        buffers = self.buffers(op, part)
        for at, rows, scalars in held_rows(op, to_objects(x), x.shape, shape):
            self.call(op, part, scalars, *rows, *buffers, out[at])
        return checked(out, shape)

    def whole(self, op: Op, values: Mapping[str, Array], part: Part) -> Array:
        operands = [to_objects(values[n]) for n in op.inputs[:2] if n and n in values]
        shape = self.shape(op, part)
        out = self.empty(op, shape)
        if self.changes.get("bundled"):
            self.call(op, part, {}, *operands, *self.buffers(op, part), out)
        else:
            self.call(op, part, {}, *(o for objects in operands for o in objects), *self.buffers(op, part), *out)
        return checked(out, shape)

    def pooled(self, op: Op, values: Mapping[str, Array], part: Part) -> Array:
        x = cut(values[op.inputs[0]], part)
        shape = self.shape(op, part)
        out = self.empty(op, shape)
        last = replace(part, kernel="global_average_pool_finish")
        acc, *buffers = self.buffers(op, last)
        for number, row in enumerate(to_objects(x)):
            image, at = divmod(number, x.shape[2])
            self.call(op, part, {"row": at}, row, acc)
            if at == x.shape[2] - 1:
                self.call(op, last, {}, acc, *buffers, out[image])
        return checked(out, shape)

    def flattened(self, op: Op, values: Mapping[str, Array], part: Part) -> Array:
        source = values[self.forms.makers[op.inputs[0]].inputs[0]]
        shape = self.shape(op, part)
        out = self.empty(op, shape)
        last = replace(part, kernel="gemm_finish")
        weights, acc = self.buffers(op, part)
        _, *buffers = self.buffers(op, last)
        for number, row in enumerate(to_objects(source)):
            image, at = divmod(number, source.shape[2])
            self.call(op, part, {"row": at}, row, weights, acc)
            if at == source.shape[2] - 1:
                self.call(op, last, {}, acc, *buffers, out[image])
        return checked(out, shape)

    def each(self, op: Op, values: Mapping[str, Array], part: Part) -> Array:
        """Kernels that take one object of every activation."""
        names = [n for n in op.inputs if n and n in values]
        names = [op.inputs[part.operand]] if part.kernel == "requantize" and op.type == "Concat" else names
        shape = self.shape(op, part)
        if part.kernel == "requantize" and op.type == "Concat":
            shape = values[names[0]].shape
        keeps = op.type not in ("Gemm", "MatMul", "Concat")
        arrays = [spread(cut(values[n], part), shape) if keeps else values[n] for n in names]
        inputs = [to_objects(array) for array in arrays]
        out = self.empty(op, shape)
        buffers = self.buffers(op, part)
        for at in range(len(out)):
            self.call(op, part, {"row": at}, *(x[at] for x in inputs), *buffers, out[at])
        return checked(out, shape)

    def cascade(self, op: Op, values: Mapping[str, Array], parts: Sequence[Part]) -> Array:
        """A reduction split over several cores."""
        x = values[op.inputs[0]]
        shape = self.shape(op, parts[-1])
        out = self.empty(op, shape)
        steps = held_rows(op, to_objects(x), x.shape, shape) if op.type == "Conv" else one_by_one(to_objects(x))
        for at, rows, scalars in steps:
            block: list[Array] = []
            for part in parts[:-1]:
                port = Cascade()
                self.call(op, part, scalars, *narrowed(rows, part), *block, *self.buffers(op, part), port)
                assert port.block is not None
                block = [port.block]
            last = parts[-1]
            self.call(op, last, scalars, *narrowed(rows, last), *block, *self.buffers(op, last), out[at])
        return checked(out, shape)

    def streamed(self, op: Op, values: Mapping[str, Array], part: Part, chunk: int) -> Array:
        """Weights that come in pieces."""
        x = values[op.inputs[0]]
        shape = self.shape(op, part)
        out = self.empty(op, shape)
        stream = stream_of(op, self.forms, part, chunk)
        pieces = constant_of(stream.array, self.forms, self.arrays)
        pieces = pieces if stream.count > 1 else pieces[np.newaxis]
        assert pieces.shape == (stream.count, *stream.shape)
        buffers = self.buffers(op, part, skip=("weights",))
        steps = held_rows(op, to_objects(x), x.shape, shape) if op.type == "Conv" else one_by_one(to_objects(x))
        for at, rows, scalars in steps:
            for number, piece in enumerate(pieces):
                offset = {"out_offset": number * stream.chunk}
                self.call(op, part, {**scalars, **offset}, *rows, piece, *buffers, out[at])
        return checked(out, shape)


def part_of(shape: tuple[int, ...], part: Part) -> tuple[int, ...]:
    """Shape of the channels of a part."""
    if not shape:
        return shape
    axis = 1 if len(shape) == 4 else len(shape) - 1
    count = part.out_count or shape[axis] - part.out_first
    return (*shape[:axis], count, *shape[axis + 1 :])


def cut(array: Array, part: Part) -> Array:
    """The channels of a part; an array of one channel is broadcast."""
    axis = 1 if array.ndim == 4 else array.ndim - 1
    if array.ndim == 0 or array.shape[axis] == 1:
        return array
    stop = part.out_first + part.out_count if part.out_count else array.shape[axis]
    return np.take(array, np.arange(part.out_first, stop), axis)


def spread(array: Array, shape: tuple[int, ...]) -> Array:
    """An operand with as many objects as the output; channels and W stay as they are."""
    extents = [1] * (len(shape) - array.ndim) + list(array.shape)
    counted = (0, 2) if len(shape) == 4 else range(len(shape) - 1)
    target = [shape[i] if i in counted else n for i, n in enumerate(extents)]
    return np.broadcast_to(array.reshape(extents), target)


def narrowed(objects: Sequence[Array], part: Part) -> list[Array]:
    """Input objects that begin at the part's first channel where it says so."""
    if part.x_first == 0:
        return list(objects)
    stop = part.x_first + -(-part.in_count // 8) * 8
    if objects[0].ndim == 3:
        return [row[part.x_first // 8 : stop // 8] for row in objects]
    return [x[part.x_first : stop] for x in objects]


def held_rows(
    op: Op, objects: Array, x_shape: tuple[int, ...], y_shape: tuple[int, ...]
) -> Iterator[tuple[int, list[Array], dict[str, int]]]:
    """(output object, rows of its window inside the image, pads) of a Conv or pool."""
    attributes: Any = op.attributes
    extent = (attributes["kernel_shape"][0] - 1) * attributes["dilations"][0] + 1
    height = x_shape[2]
    for image in range(x_shape[0]):
        for y in range(y_shape[2]):
            first = y * attributes["strides"][0] - attributes["pads"][0]
            inside = [r for r in range(first, first + extent) if 0 <= r < height]
            pads = {"pad_top": max(0, -first), "pad_bottom": max(0, first + extent - height)}
            assert len(inside) == max(0, extent - sum(pads.values()))
            yield image * y_shape[2] + y, [objects[image * height + r] for r in inside], pads


def one_by_one(objects: Array) -> Iterator[tuple[int, list[Array], dict[str, int]]]:
    """(output object, its input, no scalars)."""
    for at, x in enumerate(objects):
        yield at, [x], {}


def checked(objects: Array, shape: tuple[int, ...]) -> Array:
    """The array of output objects; the padding has to be 0."""
    array = from_objects(objects, shape)
    np.testing.assert_array_equal(to_objects(array), objects, err_msg="padding")
    return array
