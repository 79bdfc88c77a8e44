"""From the folded graph to ops and tensors: one walk in graph order, all problems collected."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from manifest.errors import Problem, RefusedError
from manifest.model import DType, Quantization
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.builder import Builder, Value
from manifest.onnx_import.fuse import CLAMPS, LAYOUT, plan
from manifest.onnx_import.graph import DEQUANTIZE, QUANTIZE, Graph, Node, Port, refusal
from manifest.onnx_import.host import HOST_RULES, dequantize, note_host_op
from manifest.onnx_import.host import lower as lower_on_host
from manifest.onnx_import.operands import reinterpreted
from manifest.onnx_import.ops import RULES
from manifest.onnx_import.rules import OpRule

_ALIASES: Final = frozenset({":Identity", ":Dropout", ":Cast"})
_INTEGER_INPUTS: Final[Mapping[str, DType]] = {"int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16"}
_FIRST: Final = ((0, 1, 2),)
_BOTH: Final = ((0, 1, 2), (3, 4, 5))
_QUANTIZED_OPERANDS: Final[Mapping[str, tuple[tuple[int, int, int], ...]]] = {
    ":QLinearConv": _FIRST,
    ":QLinearMatMul": _BOTH,
    "com.microsoft:MatMulIntegerToFloat": ((0, 2, 4), (1, 3, 5)),
    "com.microsoft:QGemm": _FIRST,
    "com.microsoft:QLinearAdd": _BOTH,
    "com.microsoft:QLinearMul": _BOTH,
    "com.microsoft:QLinearAveragePool": _FIRST,
    "com.microsoft:QLinearGlobalAveragePool": _FIRST,
}
_PASSING: Final = LAYOUT | CLAMPS | {":MaxPool"}
_FLOAT_ARITHMETIC: Final = frozenset({":Add", ":Mul", ":Concat"})
_SAME_CODES: Final = LAYOUT | _ALIASES | {":MaxPool", ":Clip", ":Relu", ":Concat"}


def rules(*, host_ops: bool) -> dict[str, OpRule]:
    """The op table in force."""
    return {**HOST_RULES, **RULES} if host_ops else dict(RULES)


def lower(
    graph: Graph, *, host_ops: bool, poisoned: frozenset[str] = frozenset()
) -> tuple[Builder, tuple[Problem, ...]]:
    """Lower a folded graph.

    Args:
        graph: folded, with shapes.
        host_ops: whether float ops of the host list are allowed.
        poisoned: tensors that depend on nodes refused before; what reads them is passed over.

    Returns:
        What was built, and the problems found (then the result is not usable).
    """
    host = host_nodes(graph, host_ops=host_ops)
    b = Builder(graph, plan(graph, host), host_ops=host_ops)
    walk = _Lowering(b, host, poisoned)
    for port in graph.inputs:
        if port.name in poisoned:
            continue
        walk.guard(partial(_input, b, port), {port.name})
    for node in graph.nodes:
        walk.visit(node)
    for port in graph.outputs:
        walk.guard(partial(_output, b, port, walk.poisoned), set())
    return b, tuple(walk.problems)


def host_nodes(graph: Graph, *, host_ops: bool) -> frozenset[int]:
    """Indices of the nodes that work on float32: host ops and what reads their results or a float graph input.

    With `host_ops` a product of two activations is one of them.
    """
    floats = {p.name for p in graph.inputs if p.dtype == "float32"}
    found = set()
    for node in graph.nodes:
        if node.key == QUANTIZE:
            continue
        product = host_ops and node.key == ":Mul" and not any(n in graph.constants for n in node.inputs)
        if product or node.key in HOST_RULES or floats.intersection(node.inputs):
            found.add(node.index)
            floats.update(o for o in node.outputs if o)
    return frozenset(found)


class _Lowering:
    """Walks the nodes; what depends on a refused node is passed over in silence."""

    def __init__(self, b: Builder, host: frozenset[int], poisoned: frozenset[str]) -> None:
        self.b = b
        self.host = host
        self.problems: list[Problem] = []
        self.poisoned = set(poisoned)

    def guard(self, step: Callable[[], None], outputs: set[str]) -> None:
        """Run a step; a refusal is collected and poisons `outputs`."""
        try:
            step()
        except RefusedError as error:
            self.problems.extend(p for p in error.problems if p not in self.problems)
            self.poisoned.update(o for o in outputs if o)

    def visit(self, node: Node) -> None:
        """Lower one node that no chain has taken in."""
        if self.poisoned.intersection(node.inputs):
            self.poisoned.update(o for o in node.outputs if o)
            return
        if node.index in self.b.plan.absorbed:
            return
        chain = self.b.plan.chains.get(node.index)
        outputs = set(node.outputs) if chain is None else {o for n in chain.nodes for o in n.outputs}
        self.guard(partial(self._lower, node), outputs)

    def _lower(self, node: Node) -> None:
        """An integer op, an alias, or an op on float32 where that is allowed."""
        allowed = self.b.host_ops or node.key in LAYOUT
        if node.index not in self.host or node.key in _ALIASES or (node.key in _PASSING and allowed):
            RULES[node.key].lower(node, self.b)
            if node.index in self.host and node.key in CLAMPS | {":MaxPool"}:
                note_host_op(node, self.b)
        elif self.b.host_ops and (node.key in HOST_RULES or node.key in _FLOAT_ARITHMETIC):
            lower_on_host(node, self.b)
        else:
            raise self._not_quantised(node)

    def _not_quantised(self, node: Node) -> RefusedError:
        """The refusal of an op on float values."""
        name = next((n for n in node.inputs if n in self.b.values and self.b.values[n].kind == "float"), "")
        return refusal(
            node,
            "ONNX-NOT-QUANTIZED",
            f"input {name!r} of {node.type} is float and not quantised",
            expected="the output of a DequantizeLinear",
            remedy="put QuantizeLinear and DequantizeLinear in front of it, or quantize the model again",
        )


def _input(b: Builder, port: Port) -> None:
    """A graph input: float32, or codes whose quantization the first reader states."""
    shape = b.graph.shapes[port.name]
    if port.dtype == "float32":
        b.add_tensor(port.name, shape, "float32", onnx_dtype="float32", role="input")
        b.set(port.name, "float", port.name)
        return
    dtype = _INTEGER_INPUTS.get(port.dtype)
    if dtype is None:
        problem = Problem(
            code="ONNX-INPUT-TYPE",
            where=f"graph input {port.name!r}",
            what=f"type {port.dtype} is not supported",
            expected=f"float32, {', '.join(_INTEGER_INPUTS)}",
            remedy="export the model with a float32 or quantised input",
        )
        raise RefusedError((problem,))
    quant = _input_quantization(b.graph, port.name, dtype)
    if quant is None:
        problem = Problem(
            code="ONNX-INPUT-SCALE",
            where=f"graph input {port.name!r}",
            what=f"no reader states the scale of this {dtype} input",
            remedy="put a DequantizeLinear behind it",
        )
        raise RefusedError((problem,))
    b.add_tensor(port.name, shape, dtype, onnx_dtype=dtype, role="input", quant=quant)
    b.set(port.name, "codes", port.name)


def _input_quantization(graph: Graph, name: str, dtype: DType) -> Quantization | None:
    """The quantization that the first reader of integer codes states, through ops that keep codes."""
    consumers = graph.consumers()
    waiting = [name]
    while waiting:
        current = waiting.pop(0)
        for node in consumers.get(current, []):
            if node.key == DEQUANTIZE:
                return _stated(graph, node, 1, 2, dtype)
            for position, scale, zero_point in _operands(node):
                if node.input(position) == current:
                    return _stated(graph, node, scale, zero_point, dtype)
            if node.key in _SAME_CODES:
                waiting.extend(o for o in node.outputs[:1] if o)
    return None


def _operands(node: Node) -> tuple[tuple[int, int, int], ...]:
    """Positions of codes, scale and zero point of a QOperator node's integer operands."""
    if node.key == "com.microsoft:QLinearConcat":
        return tuple((i, i + 1, i + 2) for i in range(2, len(node.inputs), 3))
    return _QUANTIZED_OPERANDS.get(node.key, ())


def _stated(graph: Graph, node: Node, scale: int, zero_point: int, dtype: DType) -> Quantization:
    return quantities.read(graph, node, scale, zero_point, dtype, axis=None, rank=0)[0]


def _output(b: Builder, port: Port, poisoned: set[str]) -> None:
    """Make sure that a graph output exists under its name: dequantised, or copied where it is an alias."""
    name = port.name
    if name in poisoned:
        return
    value = b.values.get(name)
    if value is None:
        problem = Problem(
            code="ONNX-OUTPUT-CONSTANT",
            where=f"graph output {name!r}",
            what="is a constant, nothing computes it" if name in b.graph.constants else "nothing computes it",
            remedy="remove the output",
        )
        raise RefusedError((problem,))
    if value.kind in ("real", "exact"):
        if name not in b.tensors:
            _dequantized_output(b, name, value.tensor)
    elif value.tensor != name:
        _copied_output(b, name, value)
    _check_output_type(b, port)


def _check_output_type(b: Builder, port: Port) -> None:
    """Refuse a graph output that is declared as another type than what is computed."""
    found = b.tensors[port.name].onnx_dtype
    if port.dtype not in (found, "undefined"):
        problem = Problem(
            code="ONNX-OUTPUT-TYPE",
            where=f"graph output {port.name!r}",
            what="declared type and computed type differ",
            expected=found,
            got=port.dtype,
            remedy="export the model again",
        )
        raise RefusedError((problem,))


def _copied_output(b: Builder, name: str, value: Value) -> None:
    """A graph output that is another name of a tensor: the same codes, or a Reshape of floats to their own shape."""
    source = b.tensors[value.tensor]
    producer = b.graph.producers().get(name)
    if value.kind == "codes" and source.quant is not None and producer is not None:
        reinterpreted(b, value.tensor, source.quant, producer, as_name=name, copy=True)
        return
    b.add_tensor(name, source.shape, source.dtype, onnx_dtype=source.onnx_dtype)
    op_name = b.names.fresh(name, "Reshape")
    b.host_op(op_name, "Reshape", (value.tensor,), (name,), nodes=(), attributes={"shape": source.shape})


def _dequantized_output(b: Builder, name: str, source: str) -> None:
    """The float32 tensor of a graph output."""
    producer = b.graph.producers().get(name)
    own = producer is not None and producer.key == DEQUANTIZE
    node = (producer.name,) if producer is not None and own else ()
    dequantize(b, source, name, node, op_name=node[0] if node else "")
