"""What has to flow through every fifo of a design: the objects of the oracle's tensors.

Why worked out here and not taken from a run: a stage alone is fed with these, and every fifo of the whole is compared
with them, so that a wrong split, order or slice shows at the first fifo that carries it.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import Manifest
from presim.blocks import to_objects
from presim.design import Design, Fifo, Link, Slice

Array = NDArray[Any]


def carries_activation(fifo: Fifo, manifest: Manifest) -> bool:
    """Whether blocks of an activation flow through a fifo, and no constants."""
    tensor = manifest.by_name().get(fifo.tensor)
    return tensor is not None and tensor.array is None


def streams(design: Design, manifest: Manifest, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """What producers write in one inference.

    Args:
        design: placed or not.
        manifest: that it was planned from.
        tensors: target values of every activation of the dispatch, (*shape), exact ones as integers.

    Returns:
        (objects, *fifo shape) in the fifo's dtype, by fifo; without those that cannot be derived and constants.
    """
    reader = _Reader(design, manifest, tensors)
    found = {}
    for fifo in design.fifos:
        flat = reader.stream(fifo.name)
        size = math.prod(fifo.shape)
        if flat is not None and flat.size % size == 0:
            found[fifo.name] = flat.reshape(-1, *fifo.shape).astype(fifo.dtype)
    return found


def held(fifo: Fifo, stream: Array) -> Array | None:
    """What the consumers of a fifo hold of a stream, (objects, elements); None where its DMAs reorder elements."""
    if fifo.producer.dims or any(c.dims for c in fifo.consumers):
        return None
    objects = np.repeat(stream.reshape(len(stream), -1), fifo.repeat_count, axis=0)
    return objects.reshape(-1, math.prod(fifo.consumer_shape or fifo.shape))


class _Reader:
    """Follows fifos to where their tensor is whole."""

    def __init__(self, design: Design, manifest: Manifest, tensors: Mapping[str, Array]) -> None:
        self.fifos = {f.name: f for f in design.fifos}
        self.manifest = manifest
        self.tensors = tensors
        self.into: dict[str, Link] = {n: link for link in design.links for n in link.sources}
        self.out_of: dict[str, Link] = {n: link for link in design.links for n in link.targets}
        self.known: dict[str, Array | None] = {}

    def stream(self, name: str) -> Array | None:
        """All elements of one inference in their order, one-dimensional; None where they are not known."""
        if name not in self.known:
            self.known[name] = None  # a circle of links knows nothing
            fifo = self.fifos[name]
            own = self.own(fifo) if carries_activation(fifo, self.manifest) else None
            self.known[name] = own if own is not None else self.by_link(fifo)
        return self.known[name]

    def own(self, fifo: Fifo) -> Array | None:
        """By the fifo's own tensor, form and slices."""
        values = self.tensors.get(fifo.tensor)
        if values is None or (fifo.form and math.prod(fifo.form) != values.size):
            return None
        whole = values.reshape(fifo.form) if fifo.form else values
        objects = to_objects(_cut(whole, fifo.slices))
        for part in fifo.slices:
            if part.axis == "objects":
                objects = objects[part.first :: part.step][: part.count]
        if math.prod(objects.shape[1:]) > math.prod(fifo.shape) or objects.size % math.prod(fifo.shape):
            return None  # a piece of an object: the link says which
        return objects.reshape(-1)

    def by_link(self, fifo: Fifo) -> Array | None:
        """By the fifos that it is linked with."""
        link = self.out_of.get(fifo.name)
        if link is not None and link.kind in ("forward", "split"):
            source = self.fifos[link.sources[0]]
            stream = self.stream(source.name)
            if stream is None or link.kind == "forward":
                return stream
            offset = link.offsets[link.targets.index(fifo.name)]
            return _segment(stream, math.prod(source.consumer_shape or source.shape), offset, math.prod(fifo.shape))
        link = self.into.get(fifo.name)
        if link is None or link.kind != "join" or fifo.repeat_count > 1:
            return None
        target = self.fifos[link.targets[0]]
        stream = self.stream(target.name)
        if stream is None:
            return None
        offset = link.offsets[link.sources.index(fifo.name)]
        return _segment(stream, math.prod(target.shape), offset, math.prod(fifo.consumer_shape or fifo.shape))


def _cut(values: Array, slices: tuple[Slice, ...]) -> Array:
    """Channels and columns of a tensor."""
    rank = values.ndim
    for part in slices:
        if part.axis != "objects":
            axis = rank - 1 if part.axis == "columns" or rank != 4 else 1
            index = [slice(None)] * rank
            index[axis] = slice(part.first, part.first + (part.count - 1) * part.step + 1, part.step)
            values = values[tuple(index)]
    return values


def _segment(stream: Array, size: int, offset: int, elements: int) -> Array | None:
    """A part of every object of a stream."""
    if stream.size % size or offset + elements > size:
        return None
    return np.ascontiguousarray(stream.reshape(-1, size)[:, offset : offset + elements]).reshape(-1)
