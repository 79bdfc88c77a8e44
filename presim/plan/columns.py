"""Images too wide for a core: the dispatch runs in strips of columns beside each other, each with its halo.

The host cuts the strips: its transfers may overlap, so that every strip brings the columns that its windows reach over
its edge, and every op computes exactly what the next one needs. That takes ops that work column by column in a chain;
where paths part, two readers would need different columns of one object.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from presim.blocks import object_count, object_shape
from presim.kernels.attributes import Forms
from presim.plan.access import integers
from presim.plan.graph import WINDOWED, Graph, Node, Value
from presim.static.transfers import WORD_BYTES, WRAP_LIMIT, pattern_faults, split_size

LOCAL: Final = (*WINDOWED, "add", "mul", "relu", "clip", "requantize", "lut", "copy")
"""Kernels whose columns depend on columns near them alone."""

MOST_STRIPS: Final = 16
MOST_DIMS: Final = 4
"""Dimensions of a task of the host: three of a descriptor, and its iterations."""

Range = tuple[int, int]


def in_strips(graph: Graph, count: int, forms: Forms) -> Graph | None:
    """The graph in `count` strips; None where it does not work by columns or has too few of them."""
    if not _works_by_columns(graph, forms):
        return None
    nodes: list[Node] = []
    inputs: list[Value] = []
    outputs: list[tuple[str, Value]] = []
    for index in range(count):
        strip = _strip(graph, index, count)
        if strip is None:
            return None
        nodes += strip.nodes
        inputs += strip.inputs
        outputs += strip.outputs
    return Graph(nodes=tuple(nodes), inputs=tuple(inputs), outputs=tuple(outputs), views=graph.views)


def host_moves(graph: Graph, forms: Forms) -> bool:
    """Whether the host's descriptors can code the strips of a graph."""
    ends = (*graph.inputs, *(value for _, value in graph.outputs))
    return all(host_pattern(value, item_bytes(value, forms)) for value in ends)


def item_bytes(value: Value, forms: Forms) -> int:
    """Bytes of an element of a value."""
    return int(np.dtype(forms.of(value.tensor).dtype).itemsize)


def host_pattern(value: Value, itemsize: int) -> tuple[tuple[int, int], ...]:
    """(size, stride) outer to inner of the task that moves a strip, in elements of the rows of the whole image.

    A run of columns that is longer than a descriptor codes becomes two dimensions. () = no descriptor codes it.

    Args:
        value: a strip.
        itemsize: bytes of an element.
    """
    blocks, columns, lanes = object_shape(value.form)
    row, run = value.width * lanes, columns * lanes
    outer = ((object_count(value.form), blocks * row), (blocks, row))
    words = run * itemsize // WORD_BYTES
    a, b = split_size(words, WRAP_LIMIT["shim"])
    inner = b * WORD_BYTES // itemsize
    short = tuple(dim for dim in outer if dim[0] > 1)
    for dims in ((*outer, (run, 1)), (*short, (a, inner), (inner, 1))):
        if len(dims) <= MOST_DIMS and not pattern_faults(dims, itemsize, "shim"):
            return dims
    return ()


def _works_by_columns(graph: Graph, forms: Forms) -> bool:
    readers = [v for n in graph.nodes for v in n.inputs] + [v for _, v in graph.outputs]
    values = {*readers, *graph.inputs, *(n.output for n in graph.nodes)}
    whole = all(len(v.form) == 4 and v.form == forms.tensors[v.tensor].shape for v in values)
    return len(readers) == len(set(readers)) and whole and all(_is_local(node, forms) for node in graph.nodes)


def _is_local(node: Node, forms: Forms) -> bool:
    if node.kind not in LOCAL:
        return False
    constants = [forms.tensors[n] for n in node.op.inputs[:2] if n and forms.tensors[n].array is not None]
    narrow = node.kind == "conv" or all(not t.shape or t.shape[-1] == 1 for t in constants)
    same = node.kind in WINDOWED or all(v.form[3] == node.output.form[3] for v in node.inputs)
    return narrow and same and (node.op.requant is None or not _by_width(node, forms))


def _by_width(node: Node, forms: Forms) -> bool:
    """Whether multipliers differ along the columns."""
    return any(forms.of(v.tensor).axis == 3 for v in (*node.inputs, node.output))


def _strip(graph: Graph, index: int, count: int) -> Graph | None:
    """One strip, from its output columns back to what the host brings."""
    ranges: dict[Value, Range] = {}
    for _, value in graph.outputs:
        width = value.form[3]
        if width < count:
            return None
        ranges[value] = (width * index // count, width * (index + 1) // count)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        first, end, pads = _reach(node, ranges[node.output])
        if end <= first:
            return None
        ranges.update({value: (first, end) for value in node.inputs})
        nodes.append(replace(node, output=_cut(node.output, ranges), pads=pads, strip=(index, count)))
    made = tuple(replace(n, inputs=tuple(_cut(v, ranges) for v in n.inputs)) for n in reversed(nodes))
    inputs = tuple(_cut(value, ranges) for value in graph.inputs)
    outputs = tuple((name, _cut(value, ranges)) for name, value in graph.outputs)
    return Graph(nodes=made, inputs=inputs, outputs=outputs, views=())


def _reach(node: Node, columns: Range) -> tuple[int, int, Range | None]:
    """Input columns of a range of output columns, and how far its windows reach out of the image at either side."""
    if node.kind not in WINDOWED:
        return *columns, None
    stride, dilation, taps = (integers(node.op, n)[1] for n in ("strides", "dilations", "kernel_shape"))
    left, width = integers(node.op, "pads")[1], node.inputs[0].form[3]
    first = columns[0] * stride - left
    end = (columns[1] - 1) * stride - left + (taps - 1) * dilation + 1
    return max(0, first), min(width, end), (max(0, -first), max(0, end - width))


def _cut(value: Value, ranges: dict[Value, Range]) -> Value:
    first, end = ranges[value]
    return Value(tensor=value.tensor, form=(*value.form[:3], end - first), first_column=first, width=value.form[3])
