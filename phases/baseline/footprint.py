"""What one op keeps in memory while rows stream through it: weights, window rows, program; all predicted.

Units: bytes as they lie in L1 (weights packed in the manifest's layout, channels filled up to whole blocks). A *row* is
what streams: `W x C` of an NCHW tensor, the last axis of any other. Batch elements follow each other, so that they need
no memory of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from manifest.device import Device
from manifest.layout import kernel_pair, packed_shape
from manifest.model import Layout, Manifest, Op, Tensor

ITEM_BYTES: Final[Mapping[str, int]] = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "int64": 8,
    "float32": 4,
    "exact": 4,
}
BIAS_BYTES: Final = 4
CHANNEL_SCALE_BYTES: Final = 8
"""A multiplier and a shift of 32 bits per channel, where they differ between channels."""

CORE_PROGRAM_BYTES: Final = 2048
"""Assumed: start-up, loops and lock handling of a core."""

PROGRAM_BYTES: Final[Mapping[str, int]] = {
    "conv": 5120,
    "conv_1x1": 3072,
    "conv_depthwise": 4096,
    "gemm": 3072,
    "add": 1536,
    "mul": 1024,
    "clamp": 768,
    "max_pool": 1536,
    "average_pool": 2048,
    "global_average_pool": 1024,
    "requantize": 1024,
    "concat": 1024,
    "move": 768,
    "none": 0,
}
"""Assumed bytes of one kernel body by kind: sizes of vectorized kernels of these kinds, not measured on ours."""

KINDS: Final[Mapping[str, str]] = {
    "Conv": "conv",
    "Gemm": "gemm",
    "MatMul": "gemm",
    "Add": "add",
    "Mul": "mul",
    "Relu": "clamp",
    "Clip": "clamp",
    "MaxPool": "max_pool",
    "AveragePool": "average_pool",
    "GlobalAveragePool": "global_average_pool",
    "QuantizeLinear": "requantize",
    "DequantizeLinear": "requantize",
    "Concat": "concat",
    "Flatten": "move",
    "Reshape": "move",
    "Transpose": "move",
    "Reinterpret": "none",
}
"""Kind of kernel body by op type; a Conv is told apart further."""

_OUTPUT_BLOCK: Final[Mapping[str, int]] = {
    "conv_blocks": 0,
    "grouped_conv_blocks": 1,
    "depthwise_blocks": 0,
    "dense_kn_blocks": 1,
    "dense_nk_blocks": 0,
}
"""Which of a weight layout's block sizes is that of the output channels."""

PRODUCTS: Final = ("Conv", "Gemm", "MatMul")
WINDOWED: Final = ("Conv", "MaxPool", "AveragePool")
MOVES: Final = ("Flatten", "Reshape", "Transpose")
"""Of a whole input the output is read in another order: no second copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """How an op reads an activation: output row m needs the first `stride * m + extra` rows, or with `whole` all."""

    tensor: str
    rows: int
    row_bytes: int
    stride: int = 1
    extra: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """One op.

    Attributes:
        name: of the op.
        outputs: tensors that it makes.
        weights_bytes: constants, bias, tables and per-channel scales.
        window_bytes: input rows that it needs at once, and one output row.
        body: identity of its kernel body: ops with equal bodies share program memory on a core; "" = no kernel.
        program_bytes: assumed bytes of that body.
        edges: activations that it reads.
        channels: whole blocks of output channels that a split can share out.
        reduction: length of the reduction that a split can share out.
        product: a Conv, Gemm or MatMul, which has cores of its own.
    """

    name: str
    outputs: tuple[str, ...]
    weights_bytes: int
    window_bytes: int
    body: str
    program_bytes: int
    edges: tuple[Edge, ...]
    channels: int
    reduction: int
    product: bool


class Sizes:
    """Sizes of the tensors of a manifest as they lie in memory."""

    def __init__(self, manifest: Manifest) -> None:
        self.tensors: Mapping[str, Tensor] = manifest.by_name()
        self._layouts: Mapping[str, Layout] = {lay.tensor: lay for lay in manifest.layouts}
        self._bits = {n: op.accumulator.bits for op in manifest.ops if op.accumulator for n in op.outputs}

    def item(self, name: str) -> int:
        """Bytes of an element; an exact tensor has those of its accumulator."""
        dtype = self.tensors[name].dtype
        return self._bits.get(name, 32) // 8 if dtype == "exact" else ITEM_BYTES[dtype]

    def tensor(self, name: str) -> int:
        """Bytes of a whole tensor, unpacked, as the host holds it."""
        return math.prod(self.tensors[name].shape) * self.item(name)

    def packed(self, name: str) -> int:
        """Bytes of a constant in the layout of the manifest."""
        shape, layout = self.tensors[name].shape, self._layouts.get(name)
        packed = shape if layout is None else packed_shape(layout.packed, shape, layout.block)
        return math.prod(packed) * self.item(name)

    def channel_block(self, name: str) -> int:
        """Output channels that stay together in the layout of a weight."""
        layout = self._layouts.get(name)
        return 1 if layout is None or not layout.block else layout.block[_OUTPUT_BLOCK[layout.packed]]

    def rows(self, name: str) -> int:
        """Rows that stream one after the other."""
        shape = self.tensors[name].shape
        return shape[-2] if 2 <= len(shape) <= 4 else 1

    def row(self, name: str) -> int:
        """Bytes of one row, channels filled up to whole blocks."""
        shape, layout = self.tensors[name].shape, self._layouts.get(name)
        if len(shape) == 4:
            block = layout.block[0] if layout is not None and layout.packed == "row_blocks" else 1
            elements = -(-shape[1] // block) * block * shape[3]
        else:
            elements = math.prod(shape) if len(shape) > 4 else math.prod(shape[-1:])
        return elements * self.item(name)


def footprints(manifest: Manifest, device: Device) -> dict[str, Footprint]:
    """Footprint of every op on the array by name; `device` gives the rows that a matrix kernel takes at once."""
    sizes = Sizes(manifest)
    return {op.name: _footprint(op, sizes, device) for op in manifest.ops if op.where == "npu"}


def _footprint(op: Op, sizes: Sizes, device: Device) -> Footprint:
    constants = [n for n in op.inputs if n and sizes.tensors[n].array is not None]
    edges = tuple(_edge(op, n, sizes) for n in op.inputs if n and sizes.tensors[n].array is None)
    body, program = _body(op, sizes)
    weight = sizes.tensors[op.inputs[1]].shape if op.type in PRODUCTS and op.inputs[1] in constants else ()
    out = sizes.tensors[op.outputs[0]].shape
    channels = out[1] if len(out) == 4 else (out[-1] if out else 1)
    block = sizes.channel_block(op.inputs[1]) if weight else 1
    return Footprint(
        name=op.name,
        outputs=op.outputs,
        weights_bytes=_weights(op, constants, sizes),
        window_bytes=_window(op, edges, sizes, device),
        body=body,
        program_bytes=program,
        edges=edges,
        channels=-(-channels // block),
        reduction=max(1, math.prod(weight) // max(1, channels)),
        product=op.type in PRODUCTS,
    )


def _weights(op: Op, constants: list[str], sizes: Sizes) -> int:
    total = 0
    for name in constants:
        bias = op.type in PRODUCTS and len(op.inputs) > 2 and name == op.inputs[2]
        total += math.prod(sizes.tensors[name].shape) * BIAS_BYTES if bias else sizes.packed(name)
    requant = op.requant
    if requant is None:
        return total
    if requant.target == "lut":
        entries = 65536 if sizes.item(op.inputs[0]) == 2 else 256
        total += entries * sizes.item(op.outputs[0])
    if len(requant.multipliers) > 1 and op.type in PRODUCTS:
        total += len(requant.multipliers) * CHANNEL_SCALE_BYTES
    return total


def _window(op: Op, edges: tuple[Edge, ...], sizes: Sizes, device: Device) -> int:
    """Bytes of the input rows needed at once and of one output row."""
    if op.type == "Reinterpret":
        return 0
    together = _rows_together(op, sizes, device)
    need = sum(e.row_bytes * min(e.rows, _rows_needed(op, e, together)) for e in edges)
    if op.type == "GlobalAveragePool":
        return need + math.prod(sizes.tensors[op.outputs[0]].shape[1:]) * (4 + sizes.item(op.outputs[0]))
    if op.type in MOVES and any(e.whole for e in edges):
        return need
    return need + sum(sizes.row(n) * min(together, sizes.rows(n)) for n in op.outputs)


def _rows_needed(op: Op, edge: Edge, together: int) -> int:
    if op.type == "GlobalAveragePool" or _covers_image(op, edge):
        return 1
    if edge.whole:
        return edge.rows
    if op.type in WINDOWED:
        return _extent(op)
    return together


def _rows_together(op: Op, sizes: Sizes, device: Device) -> int:
    """Rows that a matrix kernel takes at once (r of its first block shape); 1 for every other op."""
    if op.type not in ("Gemm", "MatMul"):
        return 1
    shapes = device.mmul.get(kernel_pair(sizes.tensors[op.inputs[0]].dtype, sizes.tensors[op.inputs[1]].dtype))
    return 1 if shapes is None or shapes.value is None else shapes.value[0][0]


def _edge(op: Op, name: str, sizes: Sizes) -> Edge:
    edge = Edge(tensor=name, rows=sizes.rows(name), row_bytes=sizes.row(name))
    if op.type == "GlobalAveragePool" or _covers_image(op, edge) or _needs_whole(op, name, sizes):
        return replace(edge, whole=True)
    if op.type in WINDOWED and len(sizes.tensors[name].shape) == 4:
        stride, top = _ints(op, "strides", 1)[0], _ints(op, "pads", 0)[0]
        return replace(edge, stride=stride, extra=_extent(op) - top - stride)
    return edge


def _covers_image(op: Op, edge: Edge) -> bool:
    """An AveragePool over the whole image only keeps sums, as GlobalAveragePool does."""
    return op.type == "AveragePool" and _extent(op) >= edge.rows > 1


def _needs_whole(op: Op, name: str, sizes: Sizes) -> bool:
    """Whether the last row has to be there at the start.

    So it is for another order of elements, the right side of a product of two activations, and the later inputs of a
    Concat along the rows.
    """
    if op.type == "Transpose" or (op.type in PRODUCTS and name == op.inputs[1]):
        return True
    if op.type in ("Flatten", "Reshape"):
        before, after = (tuple(d for d in sizes.tensors[n].shape if d != 1) for n in (name, op.outputs[0]))
        return before != after
    if op.type == "Concat":
        axis, rank = op.attributes.get("axis", 0), len(sizes.tensors[name].shape)
        along = isinstance(axis, int) and axis % rank in (0, rank - 2) and not (rank == 4 and axis % rank == 1)
        return along and rank >= 2 and name != op.inputs[0]
    return False


def _extent(op: Op) -> int:
    """Rows that the kernel of a Conv or pool spans, dilated."""
    return (_ints(op, "kernel_shape", 1)[0] - 1) * _ints(op, "dilations", 1)[0] + 1


def _ints(op: Op, name: str, default: int) -> tuple[int, ...]:
    value = op.attributes.get(name)
    if isinstance(value, tuple) and value:
        return tuple(int(v) for v in value)
    return (default,)


def _body(op: Op, sizes: Sizes) -> tuple[str, int]:
    """(identity, assumed bytes): kind, types and kernel geometry make a body; sizes and scales are its arguments."""
    kind = KINDS[op.type]
    if op.type == "Conv":
        weight = sizes.tensors[op.inputs[1]].shape
        group = op.attributes.get("group", 1)
        depthwise = isinstance(group, int) and group > 1 and weight[1] == 1
        kind = "conv_depthwise" if depthwise else "conv_1x1" if set(weight[2:]) == {1} else "conv"
    if kind == "none":
        return "", 0
    types = ",".join(sizes.tensors[n].dtype for n in (*op.inputs[:2], op.outputs[0]) if n)
    geometry = [f"{k}={op.attributes[k]}" for k in ("kernel_shape", "strides", "dilations") if k in op.attributes]
    return " ".join([op.type, kind, types, *geometry]), PROGRAM_BYTES[kind]
