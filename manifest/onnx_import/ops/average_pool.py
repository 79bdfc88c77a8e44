"""AveragePool and com.microsoft QLinearAveragePool, 2-D."""

import math
from dataclasses import replace

from manifest.model import AttributeValue
from manifest.onnx_import.average import Average, lower_average, lower_qlinear_average
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Node, Shape
from manifest.onnx_import.linear import stated_output
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import Window, window


def _window(node: Node, x: Shape) -> Window:
    return window(node, x, node.integers("kernel_shape"), ceil_mode=bool(node.integer("ceil_mode", 0)))


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """NCHW output."""
    x = facts.shape(node, 0)
    return ((*x[:2], *_window(node, x).output),)


def _elements(size: int, found: Window, axis: int, *, padded: bool) -> set[int]:
    """Numbers of elements that windows cover along one axis, pads included where they count."""
    low, high = (-found.pads[axis], size + found.pads[axis + 2]) if padded else (0, size)
    counts = set()
    for index in range(found.output[axis]):
        start = index * found.strides[axis] - found.pads[axis]
        positions = (start + k * found.dilations[axis] for k in range(found.kernel[axis]))
        counts.add(sum(low <= p < high for p in positions))
    return counts


def counts(node: Node, x: Shape) -> tuple[int, ...]:
    """Distinct divisors of the windows, ascending; a window that ceil mode hangs over the end counts less."""
    found = _window(node, x)
    padded = bool(node.integer("count_include_pad", 0))
    rows, columns = (_elements(x[2 + axis], found, axis, padded=padded) for axis in (0, 1))
    return tuple(sorted({r * c for r in rows for c in columns}))


def _average(node: Node, b: Builder) -> Average:
    x = b.shape(node.inputs[0])
    found = _window(node, x)
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": found.kernel,
        "strides": found.strides,
        "pads": found.pads,
        "dilations": found.dilations,
        "ceil_mode": node.integer("ceil_mode", 0),
        "count_include_pad": node.integer("count_include_pad", 0),
    }
    return Average(node=node, type="AveragePool", counts=counts(node, x), attributes=attributes)


def lower(node: Node, b: Builder) -> None:
    """The mean over each window, times a fused constant."""
    lower_average(b, _average(node, b))


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearAveragePool; over the whole image without pads it is QLinearGlobalAveragePool, as in onnxruntime."""
    item = _average(node, b)
    x = b.shape(node.inputs[0])
    found = _window(node, x)
    if found.kernel == x[2:] and not any(found.pads):
        item = Average(node=node, type="GlobalAveragePool", counts=item.counts, attributes={})
    elif node.integer("count_include_pad", 0):
        # its kernel divides by the whole window, also where ceil mode lets it hang over the end
        item = replace(item, counts=(math.prod(found.kernel),))
    lower_qlinear_average(b, item, stated_output(b, node, 3, 4))
