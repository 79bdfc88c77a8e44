"""Constant folding on integers and floats, and shapes of everything else, in one walk over the sorted graph.

Why both at once: a Reshape target may be computed from a Shape, so shapes need constants and constants need shapes.
A quantised constant (codes with scale and zero point) stays one: layout ops move its codes and its channel axis.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from manifest.errors import Problem, RefusedError
from manifest.model import Quantization
from manifest.onnx_import import quant as quantities
from manifest.onnx_import import shapes as sizes
from manifest.onnx_import.graph import (
    DEQUANTIZE,
    QUANTIZE,
    Array,
    Constant,
    Graph,
    Node,
    Shape,
    live,
    refusal,
)
from manifest.onnx_import.ops.cast import cast_array
from manifest.onnx_import.ops.constant import value_of
from manifest.onnx_import.rules import Facts, OpRule
from manifest.opset import OPSET, UNKNOWN, YES, op_key

MAX_FOLDED_ELEMENTS: Final = 1 << 28
"""Largest activation."""

MAX_CONSTANT_ELEMENTS: Final = 1 << 26
"""Largest constant that folding may make out of smaller ones."""

_Folder = Callable[[Node, list[Constant | None], Graph], Constant | None]


def _codes_or_values(node: Node, source: Constant, array: Array, axis: int | None) -> Constant:
    """A moved constant with its channel axis at `axis`."""
    quant = source.quant
    if quant is not None and quant.axis is not None:
        quant = replace(quant, axis=axis)
    return Constant(array=array, quant=quant, origin=node.outputs[0], nodes=(*source.nodes, node.name))


def _moved_axis(quant: Quantization | None, source: Shape, target: Shape) -> int | None:
    """Channel axis behind a reshape; -1 where it is lost."""
    if quant is None or quant.axis is None:
        return None
    before = math.prod(source[: quant.axis])
    for axis, size in enumerate(target):
        if size == source[quant.axis] and math.prod(target[:axis]) == before:
            return axis
    return -1


def _reshaped(node: Node, source: Constant, target: Shape) -> Constant | None:
    axis = _moved_axis(source.quant, source.array.shape, target)
    if axis == -1:
        return _dequantised(node, source, source.array.reshape(target))
    return _codes_or_values(node, source, source.array.reshape(target), axis)


def _dequantised(node: Node, source: Constant, _: Array) -> Constant | None:
    raise refusal(
        node,
        "ONNX-CONSTANT-AXIS",
        f"reshaping {source.origin!r} mixes its channels, which have scales of their own",
        remedy="quantize the reshaped weight instead",
    )


def _transpose(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    source = _first(sources)
    perm = sizes.permutation(node, source.array.ndim)
    axis = None
    if source.quant is not None and source.quant.axis is not None:
        axis = perm.index(source.quant.axis)
    return _codes_or_values(node, source, source.array.transpose(perm), axis)


def _first(sources: list[Constant | None]) -> Constant:
    source = sources[0]
    if source is None:
        msg = "first input is absent"
        raise TypeError(msg)
    return source


def _values(constant: Constant | None) -> Array | None:
    """Float or integer values; a quantised constant is dequantised as onnxruntime does."""
    if constant is None or constant.quant is None:
        return None if constant is None else constant.array
    return quantities.dequantize_array(constant.array, constant.quant)


def _plain(node: Node, array: Array, sources: list[Constant | None]) -> Constant:
    nodes = tuple(name for s in sources if s is not None for name in s.nodes)
    return Constant(array=np.asarray(array), origin=node.outputs[0], nodes=(*nodes, node.name))


def _constant(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    return value_of(node)


def _identity(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    return sources[0]


def _cast(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    values = _values(sources[0])
    return None if values is None else _plain(node, cast_array(node, values), sources)


def _quantize(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    values = _values(sources[0])
    if values is None or values.dtype != np.float32:
        raise refusal(node, "ONNX-QUANTIZE-INPUT", "constant input", expected="float32")
    declared = quantities.declared_type(node)
    quant, dtype = quantities.read(graph, node, 1, 2, declared, axis=node.integer("axis", 1), rank=values.ndim)
    quantities.check_axis(node, quant, values.shape)
    codes = quantities.quantize_array(values, quant, dtype)
    return _plain(node, codes, sources[:1])


def _dequantize(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    source = _first(sources)
    dtype = quantities.dtype_of(source.array)
    if source.quant is not None or dtype not in quantities.STORED_TYPES:
        raise refusal(
            node,
            "ONNX-QUANTIZED-TYPE",
            "unsupported type of codes",
            expected=", ".join(quantities.STORED_TYPES),
            got=source.array.dtype.name,
            remedy="quantize with 8 or 16 bit types",
        )
    rank = source.array.ndim
    quant, kind = quantities.read(graph, node, 1, 2, dtype, axis=node.integer("axis", 1), rank=rank)
    quantities.check_axis(node, quant, source.array.shape)
    if kind != dtype:
        raise refusal(
            node, "ONNX-ZERO-POINT-TYPE", "zero point and codes differ in type", expected=str(dtype), got=kind
        )
    return Constant(array=source.array, quant=quant, origin=source.origin, nodes=(*source.nodes, node.name))


def _clip(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    values = _values(sources[0])
    if values is None:
        return None
    bounds = [_values(s) for s in (*sources[1:], None, None)[:2]]
    if "min" in node.attributes or "max" in node.attributes:
        bounds = [np.float32(node.real("min", -math.inf)), np.float32(node.real("max", math.inf))]  # type: ignore[list-item]
    low, high = bounds
    result = values if low is None else np.maximum(values, low)
    result = result if high is None else np.minimum(result, high)
    return _plain(node, result.astype(values.dtype), sources[:1])


def _gather(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    values, indices = _values(sources[0]), _values(sources[1])
    if values is None or indices is None:
        return None
    axis = sizes.normalize_axis(node, node.integer("axis", 0), values.ndim)
    _check_elements(node, values.size // max(values.shape[axis], 1) * indices.size)
    if indices.size and not (-values.shape[axis] <= indices.min() and indices.max() < values.shape[axis]):
        raise refusal(node, "ONNX-GATHER", "index out of range", got=str(indices.ravel()[:4].tolist()))
    return _plain(node, np.take(values, indices, axis=axis), sources)


def _concat(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    arrays = [a for a in map(_values, sources) if a is not None]
    _check_elements(node, sum(a.size for a in arrays))
    axis = sizes.normalize_axis(node, node.integer("axis", 1), arrays[0].ndim)
    return _plain(node, np.concatenate(arrays, axis=axis), sources)


def _check_elements(node: Node, count: int) -> None:
    """Refuse constants that grow without bound."""
    if count > MAX_CONSTANT_ELEMENTS:
        raise refusal(
            node, "ONNX-SIZE", "folded constant", expected=f"at most {MAX_CONSTANT_ELEMENTS} elements", got=str(count)
        )


def _slice(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
    values = _values(sources[0])
    starts, ends, axes, steps = ([*map(_values, sources[1:]), None, None, None, None])[:4]
    if values is None or starts is None or ends is None:
        raise refusal(node, "ONNX-SLICE", "only the form with inputs is folded")
    where = range(len(starts)) if axes is None else [int(a) for a in axes]
    by = [1] * len(starts) if steps is None else [int(s) for s in steps]
    index: list[Any] = [slice(None)] * values.ndim
    for axis, start, end, step in zip(where, starts, ends, by, strict=True):
        stop = None if step < 0 and int(end) < -values.shape[axis] else int(end)
        index[sizes.normalize_axis(node, axis, values.ndim)] = slice(int(start), stop, step)
    return _plain(node, values[tuple(index)], sources)


def _binary(function: Callable[[Array, Array], Array]) -> _Folder:
    def fold(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
        left, right = (_values(s) for s in sources)
        if left is None or right is None:
            return None
        _check_elements(node, math.prod(sizes.broadcast(node, [left.shape, right.shape])))
        with np.errstate(all="ignore"):
            return _plain(node, np.asarray(function(left, right)).astype(left.dtype), sources)

    return fold


def _divide(left: Array, right: Array) -> Array:
    """Division as ONNX means it: towards zero for integers."""
    if left.dtype.kind in "iu":
        quotient = np.abs(left) // np.maximum(np.abs(right), 1)
        return np.asarray(np.sign(left) * np.sign(right) * quotient)
    return np.asarray(left / right)


def _unary(function: Callable[[Array], Array]) -> _Folder:
    def fold(node: Node, sources: list[Constant | None], graph: Graph) -> Constant | None:
        values = _values(sources[0])
        return None if values is None else _plain(node, function(values), sources)

    return fold


_FOLDERS: Final[Mapping[str, _Folder]] = {
    ":Constant": _constant,
    ":Identity": _identity,
    ":Dropout": _identity,
    ":Cast": _cast,
    ":Transpose": _transpose,
    QUANTIZE: _quantize,
    DEQUANTIZE: _dequantize,
    ":Clip": _clip,
    ":Relu": _unary(lambda v: np.maximum(v, v.dtype.type(0))),
    ":Neg": _unary(lambda v: -v),
    ":Sqrt": _unary(np.sqrt),
    ":Gather": _gather,
    ":Concat": _concat,
    ":Slice": _slice,
    ":Add": _binary(lambda a, b: a + b),
    ":Sub": _binary(lambda a, b: a - b),
    ":Mul": _binary(lambda a, b: a * b),
    ":Div": _binary(_divide),
}
_SHAPE_MATH: Final = frozenset({":Shape", ":ConstantOfShape", ":Range"})
_RESHAPES: Final = frozenset({":Reshape", ":Flatten", ":Squeeze", ":Unsqueeze"})


def unsupported(node: Node, host_ops: bool) -> RefusedError:
    """The refusal of an op that the importer has no rule for, with the table's reason and remedy."""
    key = op_key(node.domain, node.type)
    row = OPSET.get(key)
    reason, remedy = UNKNOWN if row is None or row.importer == YES else (row.importer, row.remedy)
    if row is not None and row.host and host_ops:
        reason = "it cannot run on the host with these inputs"
    return refusal(node, "ONNX-OP-UNSUPPORTED", f"{node.type} is not supported: {reason}", remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Result of the walk.

    Attributes:
        graph: without nodes that compute constants or that no output needs; shapes of all other activations.
        problems: what was refused.
        poisoned: tensors that depend on it, of which nothing is known.
    """

    graph: Graph
    problems: tuple[Problem, ...]
    poisoned: frozenset[str]


class _Folding:
    """State of the walk: constants and shapes found so far, nodes kept, problems, tensors that problems poison."""

    def __init__(
        self, graph: Graph, shapes: Mapping[str, Shape], rules: Mapping[str, OpRule], *, host_ops: bool
    ) -> None:
        self.graph = graph
        self.rules = rules
        self.host_ops = host_ops
        self.constants = dict(graph.constants)
        self.shapes: dict[str, Shape] = dict(shapes)
        self.kept: list[Node] = []
        self.problems: list[Problem] = []
        self.poisoned = {p.name for p in graph.inputs if p.name not in shapes}

    def facts(self) -> Facts:
        """What is known now."""
        return Facts(shapes=self.shapes, constants=self.constants, opset=self.graph.opset)

    def visit(self, node: Node) -> None:
        """Fold one node or find its output shapes."""
        if self.poisoned.intersection(node.inputs):
            self.poisoned.update(o for o in node.outputs if o)
            if node.key not in self.rules and node.key not in _FOLDERS and node.key not in _SHAPE_MATH:
                self.problems.extend(unsupported(node, self.host_ops).problems)
            return
        try:
            if not self._fold(node):
                self._infer(node)
        except RefusedError as error:
            self.problems.extend(error.problems)
            self.poisoned.update(o for o in node.outputs if o)

    def _fold(self, node: Node) -> bool:
        """Whether the node became a constant."""
        if node.key == ":Shape" and node.input(0) in self.shapes:
            return self._keep_constant(node, self._shape_of(node))
        if not all(name in self.constants for name in node.inputs if name) or len(node.outputs) < 1:
            return False
        sources = [self.constants[name] if name else None for name in node.inputs]
        current = replace(self.graph, constants=self.constants)
        if node.key in _RESHAPES and sources:
            (target,) = self.rules[node.key].shape(node, self.facts())
            return self._keep_constant(node, _reshaped(node, _first(sources), target))
        if node.key == ":Shape":
            return self._keep_constant(node, _plain(node, np.array(_first(sources).array.shape, np.int64), []))
        folder = _FOLDERS.get(node.key)
        if folder is None:
            return False
        try:
            return self._keep_constant(node, folder(node, sources, current))
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            text = f"{node.type} of constants cannot be computed: {error}"
            raise refusal(node, "ONNX-CONSTANT", text) from error

    def _shape_of(self, node: Node) -> Constant:
        dims = self.shapes[node.input(0)]
        rank = len(dims)
        start, end = node.integer("start", 0), node.integer("end", rank)
        return _plain(node, np.array(dims[slice(start, end)], np.int64), [])

    def _keep_constant(self, node: Node, constant: Constant | None) -> bool:
        if constant is None:
            return False
        self.constants[node.outputs[0]] = constant
        return True

    def _infer(self, node: Node) -> None:
        """Find the shapes of a node that stays."""
        rule = self.rules.get(node.key)
        if rule is None:
            raise unsupported(node, self.host_ops)
        found = rule.shape(node, self.facts())
        if len(found) != len(node.outputs):
            raise refusal(node, "ONNX-ARITY", "number of outputs", expected=str(len(found)), got=str(len(node.outputs)))
        for name, shape in zip(node.outputs, found, strict=True):
            if name:
                self.shapes[name] = shape
                self._check_size(node, shape)
        self.kept.append(node)

    def _check_size(self, node: Node, shape: Shape) -> None:
        if math.prod(shape) > MAX_FOLDED_ELEMENTS:
            raise refusal(
                node,
                "ONNX-SIZE",
                "output is too large",
                expected=f"at most {MAX_FOLDED_ELEMENTS} elements",
                got=str(shape),
            )


def fold(graph: Graph, shapes: Mapping[str, Shape], rules: Mapping[str, OpRule], *, host_ops: bool) -> Folded:
    """The graph without nodes that compute constants, with shapes of all activations.

    Args:
        graph: sorted.
        shapes: fixed shapes of the graph inputs; one without is taken as open and what follows it is not looked at.
        rules: op table; nodes of other kinds are refused by name.
        host_ops: whether the person allowed host ops (for the remedy).

    """
    walk = _Folding(graph, shapes, rules, host_ops=host_ops)
    for node in graph.nodes:
        walk.visit(node)
    kept = replace(graph, nodes=tuple(walk.kept), constants=walk.constants, shapes=walk.shapes)
    return Folded(graph=live(kept), problems=tuple(walk.problems), poisoned=frozenset(walk.poisoned))
