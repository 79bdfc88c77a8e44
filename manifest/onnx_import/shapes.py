"""Shape arithmetic: windows of Conv and pools as onnxruntime sizes them, broadcasting, Reshape targets, axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manifest.onnx_import.graph import Node, Shape, refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A 2-D sliding window with every default filled in; pads: begins, then ends."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    output: tuple[int, int]


def normalize_axis(node: Node, axis: int, rank: int, *, last: int | None = None) -> int:
    """A non-negative axis below `rank` (or up to `last`); refuses others by name."""
    top = rank - 1 if last is None else last
    fixed = axis + rank if axis < 0 else axis
    if not 0 <= fixed <= top:
        raise refusal(node, "ONNX-AXIS", "axis out of range", expected=f"{-rank} to {top}", got=str(axis))
    return fixed


def _pair(node: Node, name: str, values: Sequence[int] | None, default: int, lowest: int) -> tuple[int, int]:
    """Two values of a spatial attribute."""
    if not values:
        return default, default
    if len(values) != 2 or min(values) < lowest:
        raise refusal(
            node, "ONNX-ATTRIBUTE", f"attribute {name}", expected=f"2 values >= {lowest}", got=str(list(values))
        )
    return int(values[0]), int(values[1])


def _auto_pads(mode: str, size: int, span: int, stride: int) -> tuple[int, int]:
    """Begin and end pad of one dimension for SAME_UPPER, SAME_LOWER and VALID."""
    if mode == "VALID":
        return 0, 0
    total = max((math.ceil(size / stride) - 1) * stride + span - size, 0)
    small = total // 2
    return (small, total - small) if mode == "SAME_UPPER" else (total - small, small)


def _explicit_pads(node: Node) -> tuple[int, int, int, int]:
    """The pads attribute; negative pads are refused by name."""
    pads = node.integers("pads") or (0, 0, 0, 0)
    if len(pads) != 4:
        raise refusal(node, "ONNX-ATTRIBUTE", "attribute pads", expected="4 values", got=str(list(pads)))
    if min(pads) < 0:
        raise refusal(
            node,
            "ONNX-PADS-NEGATIVE",
            "negative pads crop the input and are not supported",
            expected="pads >= 0",
            got=str(list(pads)),
            remedy="crop with a Slice in front of the node instead",
        )
    return pads[0], pads[1], pads[2], pads[3]


def _extent(size: int, pads: tuple[int, int], span: int, stride: int, *, ceil_mode: bool) -> int:
    """Output size of one dimension; in ceil mode the last window has to start inside the image or its begin pad."""
    begin, end = pads
    room = size + begin + end - span
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + begin else count


def window(node: Node, shape: Shape, kernel: Sequence[int] | None, *, ceil_mode: bool = False) -> Window:
    """The window of a Conv or pool over an NCHW tensor.

    Args:
        node: gives strides, pads, dilations and auto_pad.
        shape: of the input, rank 4.
        kernel: kernel_shape.
        ceil_mode: pools only.

    Raises:
        RefusedError: not 2-D, malformed attributes, negative pads, no output.
    """
    if len(shape) != 4:
        raise refusal(
            node,
            "ONNX-SPATIAL-RANK",
            f"{len(shape) - 2}-D {node.type} is not supported",
            expected="2-D (a tensor of rank 4)",
            got=f"shape {list(shape)}",
            remedy="reshape to rank 4 with a spatial size of 1",
        )
    sizes = shape[2:]
    fixed = _pair(node, "kernel_shape", kernel, 1, 1)
    strides = _pair(node, "strides", node.integers("strides"), 1, 1)
    dilations = _pair(node, "dilations", node.integers("dilations"), 1, 1)
    spans = [(k - 1) * d + 1 for k, d in zip(fixed, dilations, strict=True)]
    mode = node.text("auto_pad", "NOTSET")
    if mode not in ("", "NOTSET"):
        rows, columns = (_auto_pads(mode, sizes[i], spans[i], strides[i]) for i in (0, 1))
        pads = (rows[0], columns[0], rows[1], columns[1])
    else:
        pads = _explicit_pads(node)
    output = tuple(_extent(sizes[i], (pads[i], pads[i + 2]), spans[i], strides[i], ceil_mode=ceil_mode) for i in (0, 1))
    if min(output) < 1:
        raise refusal(node, "ONNX-SHAPE", "the window is larger than its input", got=f"output size {list(output)}")
    return Window(kernel=fixed, strides=strides, pads=pads, dilations=dilations, output=(output[0], output[1]))


def broadcast(node: Node, shapes: Sequence[Shape]) -> Shape:
    """Shape of the broadcast of several shapes."""
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {s for s in sizes if s != 1}
        if len(wide) > 1:
            raise refusal(node, "ONNX-SHAPE", "shapes do not broadcast", got=", ".join(str(list(s)) for s in shapes))
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def matmul(node: Node, left: Shape, right: Shape) -> Shape:
    """Shape of numpy.matmul."""
    if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
        raise refusal(node, "ONNX-SHAPE", "MatMul shapes do not fit", got=f"{list(left)} and {list(right)}")
    batch = broadcast(node, [left[:-2], right[:-2]]) if len(left) > 2 or len(right) > 2 else ()
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    return (*batch, *rows, *columns)


def reshape(node: Node, shape: Shape, target: Sequence[int], *, allow_zero: bool) -> Shape:
    """The resolved target of a Reshape: 0 copies (unless `allow_zero`), one -1 is inferred."""
    result = [shape[i] if v == 0 and not allow_zero and i < len(shape) else int(v) for i, v in enumerate(target)]
    total = math.prod(shape)
    if result.count(-1) == 1:
        rest = math.prod(v for v in result if v != -1)
        result[result.index(-1)] = total // rest if rest else -1
    if min(result, default=1) < 0 or math.prod(result) != total:
        raise refusal(
            node, "ONNX-SHAPE", "Reshape target does not fit", got=f"{list(shape)} to {[int(v) for v in target]}"
        )
    return tuple(result)


def squeeze(node: Node, shape: Shape, axes: Sequence[int] | None) -> Shape:
    """Shape without the given axes of size 1 (all of size 1 where none are given)."""
    if axes is None:
        return tuple(s for s in shape if s != 1)
    drop = {normalize_axis(node, int(a), len(shape)) for a in axes}
    if any(shape[a] != 1 for a in drop):
        raise refusal(
            node, "ONNX-SHAPE", "squeezed axes have to be of size 1", got=f"{list(shape)}, axes {sorted(drop)}"
        )
    return tuple(s for i, s in enumerate(shape) if i not in drop)


def unsqueeze(node: Node, shape: Shape, axes: Sequence[int]) -> Shape:
    """Shape with new axes of size 1 at the given positions of the result."""
    rank = len(shape) + len(axes)
    new = {normalize_axis(node, int(a), rank) for a in axes}
    if len(new) != len(axes):
        raise refusal(node, "ONNX-AXIS", "repeated axes", got=str([int(a) for a in axes]))
    rest = iter(shape)
    return tuple(1 if i in new else next(rest) for i in range(rank))


def permutation(node: Node, rank: int) -> tuple[int, ...]:
    """The perm attribute of a Transpose, reversed axes by default."""
    perm = node.integers("perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise refusal(node, "ONNX-ATTRIBUTE", "attribute perm", expected=f"a permutation of {rank} axes", got=str(perm))
    return perm
