"""From the folded graph to ops and tensors: one walk in graph order, all problems collected."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from manifest.errors import Problem, RefusedError
from manifest.model import AttributeValue, DType, Quantization
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fuse import LAYOUT, plan
from manifest.onnx_import.graph import DEQUANTIZE, QUANTIZE, Graph, Node, Port, Shape, refusal
from manifest.onnx_import.host import HOST_RULES, dequantize
from manifest.onnx_import.host import lower as lower_on_host
from manifest.onnx_import.ops import RULES
from manifest.onnx_import.rules import OpRule
from manifest.onnx_import.shapes import permutation

_ALIASES: Final = frozenset({":Identity", ":Dropout", ":Cast"})
_INTEGER_INPUTS: Final[Mapping[str, DType]] = {"int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16"}
_QUANTIZED_OPERANDS: Final[Mapping[str, tuple[int, ...]]] = {
    ":QLinearConv": (0,),
    ":QLinearMatMul": (0, 3),
    "com.microsoft:QGemm": (0,),
    "com.microsoft:QLinearAdd": (0, 3),
    "com.microsoft:QLinearMul": (0, 3),
    "com.microsoft:QLinearAveragePool": (0,),
    "com.microsoft:QLinearGlobalAveragePool": (0,),
}
_SAME_CODES: Final = LAYOUT | _ALIASES | {":MaxPool", ":Clip", ":Relu", ":Concat"}


def rules(*, host_ops: bool) -> dict[str, OpRule]:
    """The op table in force."""
    return {**HOST_RULES, **RULES} if host_ops else dict(RULES)


def lower(graph: Graph, *, host_ops: bool) -> tuple[Builder, tuple[Problem, ...]]:
    """Lower a folded graph.

    Args:
        graph: folded, with shapes.
        host_ops: whether float ops of the host list are allowed.

    Returns:
        What was built, and the problems found (then the result is not usable).
    """
    floats = _floats(graph)
    b = Builder(graph, plan(graph, floats), host_ops=host_ops)
    walk = _Lowering(b, floats)
    for port in graph.inputs:
        walk.guard(partial(_input, b, port), {port.name})
    for node in graph.nodes:
        walk.visit(node)
    for port in graph.outputs:
        walk.guard(partial(_output, b, port, walk.poisoned), set())
    return b, tuple(walk.problems)


def _floats(graph: Graph) -> frozenset[str]:
    """Tensors that hold float32 at run time: float inputs and what is computed from them in float."""
    found = {p.name for p in graph.inputs if p.dtype == "float32"}
    for node in graph.nodes:
        if node.key == QUANTIZE:
            continue
        if found.intersection(node.inputs) or node.key in HOST_RULES:
            found.update(node.outputs)
    return frozenset(found)


class _Lowering:
    """Walks the nodes; what depends on a refused node is passed over in silence."""

    def __init__(self, b: Builder, floats: frozenset[str]) -> None:
        self.b = b
        self.floats = floats
        self.problems: list[Problem] = []
        self.poisoned: set[str] = set()

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
        rule = RULES.get(node.key)
        if rule is not None and not (self.floats.intersection(node.inputs) and node.key != QUANTIZE):
            rule.lower(node, self.b)
        elif node.key in _ALIASES:
            RULES[node.key].lower(node, self.b)
        elif node.key in LAYOUT:
            _float_layout(node, self.b)
        elif self.b.host_ops and (node.key in HOST_RULES or node.key in RULES):
            lower_on_host(node, self.b)
        else:
            name = next(n for n in node.inputs if n in self.floats)
            raise refusal(
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
                return _stated(graph, node, 1, dtype)
            for position in _operands(node):
                if node.input(position) == current:
                    return _stated(graph, node, position + 1, dtype)
            if node.key in _SAME_CODES:
                waiting.extend(o for o in node.outputs[:1] if o)
    return None


def _operands(node: Node) -> tuple[int, ...]:
    """Positions of the integer operands of a QOperator node; scale and zero point follow each."""
    if node.key == "com.microsoft:QLinearConcat":
        return tuple(range(2, len(node.inputs), 3))
    return _QUANTIZED_OPERANDS.get(node.key, ())


def _stated(graph: Graph, node: Node, scale: int, dtype: DType) -> Quantization:
    return quantities.read(graph, node, scale, scale + 1, dtype, axis=None, rank=0)[0]


def _float_layout(node: Node, b: Builder) -> None:
    """A layout op on float32 values: exact data movement, done by the host."""
    source = b.value(node, 0)
    target: Shape = b.shape(node.outputs[0])
    kind = node.type if node.key in (":Flatten", ":Transpose") else "Reshape"
    attributes: dict[str, AttributeValue] = {"shape": target}
    if node.key == ":Transpose":
        attributes = {"perm": permutation(node, len(target))}
    elif node.key == ":Flatten":
        rank = len(b.tensors[source.tensor].shape)
        axis = node.integer("axis", 1)
        attributes = {"axis": axis + rank if axis < 0 else axis}
    name = node.outputs[0]
    b.add_tensor(name, target, b.tensors[source.tensor].dtype, onnx_dtype="float32")
    b.set(name, "float", name)
    b.host_op(node.name, kind, (source.tensor,), (name,), nodes=(node.name,), attributes=attributes)


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
        return
    if value.tensor == name:
        return
    source = b.tensors[value.tensor]
    b.add_tensor(name, source.shape, source.dtype, onnx_dtype=source.onnx_dtype, quant=source.quant)
    b.host_op(b.names.fresh(name, "Identity"), "Identity", (value.tensor,), (name,), nodes=())


def _dequantized_output(b: Builder, name: str, source: str) -> None:
    """The float32 tensor of a graph output."""
    producer = b.graph.producers().get(name)
    own = producer is not None and producer.key == DEQUANTIZE
    node = (producer.name,) if producer is not None and own else ()
    dequantize(b, source, name, node, op_name=node[0] if node else "")
