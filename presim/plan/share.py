"""A worker's share of an op: which part it computes, and what that takes of its tile."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from presim.blocks import LANES, object_count, object_shape
from presim.kernels.attributes import BufferSpec, Forms, Part, StreamSpec, buffers_of, kernel_of, stream_of
from presim.plan.access import Firing, Geometry, concat_in_step, firings, geometry, largest_window, usual_step
from presim.plan.graph import Node, Value
from presim.plan.limits import size_of

FINISH: Final[Mapping[str, str]] = {
    "gemm_rows": "gemm_finish",
    "global_average_pool": "global_average_pool_finish",
}
"""Kernels of two: the first adds up, the second makes the output."""

CORE_PROGRAM_BYTES: Final = 2048
"""Assumed: start-up, loops and lock handling of a core."""

PROGRAM_BYTES: Final[Mapping[str, int]] = {
    "conv": 5120,
    "gemm": 3072,
    "gemm_rows": 3072,
    "gemm_finish": 1024,
    "matmul": 3072,
    "add": 1536,
    "mul": 1024,
    "relu": 768,
    "clip": 768,
    "max_pool": 1536,
    "average_pool": 2048,
    "global_average_pool": 1024,
    "global_average_pool_finish": 1024,
    "requantize": 1024,
    "lut": 768,
    "copy": 512,
    "concat": 1024,
    "transpose": 768,
    "reshape": 768,
    "flatten": 768,
}
"""Assumed bytes of one kernel body by type: sizes of vectorized kernels of these kinds, not measured on ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One worker's piece of a node.

    Attributes:
        node: what is computed.
        part: which output channels and summands.
        chunk: output channels of an object of streamed weights; 0 = the weights are in its memory.
        beside: (index, count) among the shares of the same output objects: those that differ in `part`, or with
            `outer` in the objects that they make.
        cascade: (index, length) in the cascade that the summands are spread over.
        outer: the shares beside each other make every count-th object.
        tight: objects are not doubled: a window and one output object, where memory does not hold more.
        bundled: all objects of a tensor lie together, in and out; a memory tile puts them there.
        makes: (first channel, count) of the output that it makes; (0, 0) = all.
        sliced: its input objects hold only the channels that it reads; a memory tile or the host cuts them.
        least: objects of every input that it has room for at least; 0 = as many as usual.
        host_streams: over which the host brings its input and takes its output.
    """

    node: Node
    part: Part
    chunk: int = 0
    beside: tuple[int, int] = (0, 1)
    cascade: tuple[int, int] = (0, 1)
    outer: bool = False
    tight: bool = False
    bundled: bool = False
    makes: tuple[int, int] = (0, 0)
    sliced: bool = False
    least: int = 0
    host_streams: int = 1

    @property
    def name(self) -> str:
        """Name of its worker."""
        places = [f"c{self.node.strip[0]}"] if self.node.strip[1] > 1 else []
        places += [f"n{self.beside[0]}"] if self.beside[1] > 1 else []
        places += [f"k{self.cascade[0]}"] if self.cascade[1] > 1 else []
        return self.node.op.name + (f"#{''.join(places)}" if places else "")

    @property
    def cut(self) -> tuple[int, int]:
        """(first, count) of the channels that its input objects hold where they are sliced."""
        return (self.part.in_first, self.part.in_count) if self.cascade[1] > 1 else self.makes

    @property
    def last(self) -> bool:
        """Whether it makes output objects, not summands for the next in a cascade."""
        return self.cascade[0] == self.cascade[1] - 1


def channels_of(value: Value) -> int:
    """Channels of a value: axis 1 at rank 4, else the last axis."""
    return value.form[1] if len(value.form) == 4 else (value.form[-1] if value.form else 1)


def geometry_of(node: Node) -> Geometry:
    """What the firings of a node depend on."""
    return geometry(node.op, node.kind, tuple(v.form for v in node.inputs), node.output.form, node.constant)


def fired_of(share: Share) -> tuple[Firing, ...]:
    """Firings of a share."""
    if share.bundled:
        return (Firing(needs=((0,),) * len(share.node.inputs)),)
    fired = firings(geometry_of(share.node))
    if not share.outer:
        return fired
    index, count = share.beside
    return tuple(f for place, f in enumerate(fired) if place % count == index)


def input_total(share: Share, port: int) -> int:
    """Objects of an input that a share takes."""
    return 1 if share.bundled else object_count(share.node.inputs[port].form)


def together(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Shape of `count` objects of `shape` one behind the other."""
    return (shape[0] * count, *shape[1:])


def input_shape(share: Share, port: int) -> tuple[int, ...]:
    """Shape of the objects that a share takes of an input."""
    form = share.node.inputs[port].form
    if share.sliced:
        return some_channels(object_shape(form), share.cut[1])
    return together(object_shape(form), object_count(form) if share.bundled else 1)


def some_channels(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Shape of an object that holds `count` channels of one of `shape`."""
    blocks = -(-count // LANES)
    return (blocks, *shape[1:]) if len(shape) == 3 else (blocks * LANES,)


def output_total(share: Share) -> int:
    """Objects of the output, as this share makes them."""
    return 1 if share.bundled else object_count(share.node.output.form)


def output_shape(share: Share) -> tuple[int, ...]:
    """Shape of the objects that a share makes."""
    whole = object_shape(share.node.output.form)
    if share.bundled:
        return together(whole, object_count(share.node.output.form))
    return some_channels(whole, share.makes[1]) if share.makes[1] else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Kernels of a share with their buffers.

    Attributes:
        parts: (kernel type, part, buffers) of the kernel, and of the one that finishes.
        stream: streamed weights.
    """

    parts: tuple[tuple[str, Part, tuple[BufferSpec, ...]], ...]
    stream: StreamSpec | None


def kernels_of(share: Share, forms: Forms) -> Kernels:
    """Kernels and buffers of a share, as the kernel files want them."""
    op, part = share.node.op, share.part
    own = kernel_of(op, forms)
    kinds = [k for k in (share.node.kind, FINISH.get(share.node.kind)) if k]
    parts = [(kind, replace(part, kernel="" if kind == own else kind)) for kind in kinds]
    if share.node.kind == "concat" and not concat_in_step(geometry_of(share.node)):
        parts = [("requantize", replace(part, kernel="requantize", operand=i)) for i in range(len(op.inputs))]
    found = []
    for kind, piece in parts:
        specs = buffers_of(op, forms, piece)
        found.append((kind, piece, tuple(s for s in specs if not share.chunk or s.kind != "weights")))
    stream = stream_of(op, forms, found[0][1], share.chunk) if share.chunk else None
    return Kernels(parts=tuple(found), stream=stream)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Memory of a share, bytes.

    Attributes:
        weights: constants: weights, tables, operands.
        fixed: bias, scales, accumulators.
        objects: held of inputs, weights and output.
        largest: bytes of one input object, the largest.
        descriptors: objects of all its fifos.
    """

    weights: int
    fixed: int
    objects: int
    largest: int
    descriptors: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.fixed + self.objects


def input_depth(share: Share, port: int, fired: tuple[Firing, ...]) -> int:
    """Objects of an input that a share keeps room for: its window and the step to the next one."""
    total = input_total(share, port)
    window = largest_window(fired, port, total)
    if share.tight:
        return window
    if window >= total:
        return max(1, total)
    return max(share.least, min(max(2, total), window + usual_step(fired, port, total)))


def output_depth(share: Share) -> int:
    """Objects of the output that a share keeps room for."""
    held = max((f.gives for f in fired_of(share)), default=1)
    return max(held, 1 if share.tight else min(2, output_total(share)))


def need_of(share: Share, forms: Forms) -> Need:
    """Memory of a share; padding of weights to whole blocks counts."""
    kernels = kernels_of(share, forms)
    fired = fired_of(share)
    weights = fixed = 0
    seen: set[str] = set()
    for _, _, specs in kernels.parts:
        for spec in specs:
            if spec.kind in ("weights", "constant", "lut"):
                weights += padded(spec, share)
            elif spec.kind != "acc" or spec.kind not in seen:
                fixed += size_of(spec.shape, spec.dtype)
            seen.add(spec.kind)
    sizes = [size_of(input_shape(share, i), forms.of(v.tensor).dtype) for i, v in enumerate(share.node.inputs)]
    depths = [input_depth(share, port, fired) for port in range(len(sizes))]
    out_depth = output_depth(share) if share.last else 0
    objects = sum(size * depth for size, depth in zip(sizes, depths, strict=True))
    objects += out_depth * size_of(output_shape(share), forms.of(share.node.output.tensor).dtype)
    stream_depth = 0
    if kernels.stream is not None:
        stream_depth = 1 if share.tight else 2
        objects += stream_depth * padded_stream(kernels.stream, share)
    return Need(
        weights=weights,
        fixed=fixed,
        objects=objects,
        largest=max(sizes, default=0),
        descriptors=sum(depths) + out_depth + stream_depth,
    )


def padded(spec: BufferSpec, share: Share) -> int:
    """Bytes of a buffer as a kernel lays it out: weights in whole blocks of channels."""
    return size_of(padded_shape(spec.shape, spec.kind, share), spec.dtype)


def padded_stream(spec: StreamSpec, share: Share) -> int:
    """Bytes of an object of streamed weights as a kernel lays it out."""
    return size_of(padded_shape(spec.shape, "weights", share), spec.dtype)


def padded_shape(shape: tuple[int, ...], kind: str, share: Share) -> tuple[int, ...]:
    """Shape of a buffer with weights in whole blocks."""
    if kind != "weights":
        return shape
    up = [-(-n // LANES) * LANES for n in shape]
    if share.node.kind == "conv":
        depthwise = shape[1] == 1 and share.node.op.attributes.get("group", 1) != 1
        return (up[0], 1 if depthwise else up[1], *shape[2:])
    return (shape[0], up[1], up[2]) if len(shape) == 3 else (up[0], up[1])


def padding_fraction(share: Share, forms: Forms) -> float:
    """Part of the weights that is padding, 0 for none."""
    kernels = kernels_of(share, forms)
    shapes = [s.shape for _, _, specs in kernels.parts for s in specs if s.kind == "weights"]
    shapes += [kernels.stream.shape] if kernels.stream is not None else []
    whole = sum(math.prod(padded_shape(s, "weights", share)) for s in shapes)
    return round(1 - sum(math.prod(s) for s in shapes) / whole, 4) if whole else 0.0


def macs_of(share: Share, forms: Forms) -> int:
    """Multiply-accumulates of one firing."""
    weights = 0
    whole = Share(node=share.node, part=share.part) if share.chunk else share
    for _, _, specs in kernels_of(whole, forms).parts:
        weights += sum(math.prod(s.shape) for s in specs if s.kind == "weights")
    if share.node.kind == "conv":
        return weights * share.node.output.form[3]
    if share.node.kind == "gemm_rows":
        return weights // share.node.inputs[0].form[2]
    if share.node.kind == "matmul":
        left = share.node.op.inputs[0]
        inner = forms.tensors[left].shape[-1]
        return math.prod(share.node.output.form) * inner
    return weights
