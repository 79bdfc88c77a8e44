"""The ops of a dispatch as nodes, with the form in which every tensor flows between them.

A Flatten, a Reshape or a Reinterpret changes no integer: where its reader can take the objects of its input, it costs
nothing and its output is a *view*. Only where the objects themselves have to change, a node moves them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from manifest.errors import Problem, RefusedError
from manifest.model import Dispatch, Manifest, Op, Tensor
from presim.blocks import LANES, object_count
from presim.kernels.attributes import Forms, kernel_of
from presim.plan.access import Shape, concat_in_step, geometry, integer, integers

VIEWS: Final = ("Flatten", "Reshape", "Reinterpret", "Transpose")
WINDOWED: Final = ("conv", "max_pool", "average_pool")
WHOLE: Final = ("transpose", "reshape", "flatten", "matmul")
"""Kernels that hold whole operands."""

WITH_CONSTANTS: Final = ("add", "mul", "concat")
"""Kernels that take objects of a constant operand."""

PRODUCTS: Final = ("conv", "gemm", "gemm_rows", "matmul")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor in the form in which it flows.

    Attributes:
        tensor: manifest tensor that is made.
        form: shape by which it is cut into objects; its elements in C order are those of the tensor.
        first_column: of a strip of an image.
        width: columns of the image that this is a strip of, 0 = this is all of it.
    """

    tensor: str
    form: Shape
    first_column: int = 0
    width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An op that computes.

    Attributes:
        op: of the manifest.
        kind: kernel type.
        inputs: its activations, each once.
        operands: for every activation among the op's inputs, which of `inputs` it is.
        output: what it makes.
        constant: form of a constant operand that has several objects, () = there is none.
        pads: columns left and right of this strip that lie outside the image, None = as the op says.
        strip: (index, count) of the strips of columns that the op is computed in.
    """

    op: Op
    kind: str
    inputs: tuple[Value, ...]
    operands: tuple[int, ...]
    output: Value
    constant: Shape = ()
    pads: tuple[int, int] | None = None
    strip: tuple[int, int] = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One dispatch.

    Attributes:
        nodes: in a topological order.
        inputs: values that the host brings.
        outputs: values that the host takes, by the dispatch's output tensor.
        views: (tensor, tensor that carries it).
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[tuple[str, Value], ...]
    views: tuple[tuple[str, str], ...]


def graph_of(manifest: Manifest, dispatch: Dispatch, vectors: frozenset[str] = frozenset()) -> Graph:
    """The graph of a dispatch on the array.

    Args:
        manifest: of the model.
        dispatch: whose ops are meant.
        vectors: dense ops that take whole vectors even behind a Flatten.

    Raises:
        RefusedError: it runs on the host, or an op of it has no kernel; all problems.
    """
    if dispatch.where != "npu":
        problem = Problem(
            code="PLAN-HOST",
            where=f"dispatch {dispatch.name!r}",
            what="it runs on the host",
            expected="a dispatch on the array",
            remedy="plan a dispatch with where = npu",
        )
        raise RefusedError((problem,))
    found = _Reader(manifest, dispatch, vectors).read()
    if several := _in_several_forms(found.inputs):
        return _Reader(manifest, dispatch, vectors, several).read()
    return found


def _in_several_forms(inputs: tuple[Value, ...]) -> frozenset[str]:
    """Tensors that would come in different sequences of objects, while the host holds each once."""
    first: dict[str, Value] = {}
    return frozenset(v.tensor for v in inputs if not same_objects(first.setdefault(v.tensor, v).form, v.form))


class _Reader:
    """Reads the ops of a dispatch in order; tensors in `fixed` enter in their own shape and no other form."""

    def __init__(
        self, manifest: Manifest, dispatch: Dispatch, vectors: frozenset[str], fixed: frozenset[str] = frozenset()
    ) -> None:
        self.vectors = vectors
        self.fixed = fixed
        self.dispatch = dispatch
        self.tensors: Mapping[str, Tensor] = manifest.by_name()
        self.forms = Forms(manifest)
        self.ops = {op.name: op for op in manifest.ops}
        self.nodes: list[Node] = []
        self.values: dict[str, Value] = {}
        self.inputs: dict[Value, None] = {}
        self.makers: dict[str, Op] = {}
        self.moved: dict[str, Value] = {}

    def read(self) -> Graph:
        problems: list[Problem] = []
        for name in self.dispatch.inputs:
            self.values[name] = Value(tensor=name, form=self.tensors[name].shape)
        for name in self.dispatch.ops:
            try:
                self.add(self.ops[name])
            except RefusedError as error:
                problems += error.problems
                self.skip(self.ops[name])
        if problems:
            raise RefusedError(tuple(problems))
        outputs = tuple((name, self.values[name]) for name in self.dispatch.outputs)
        for _, value in outputs:
            if value.tensor in self.dispatch.inputs:
                self.inputs[value] = None
        views = tuple((name, v.tensor) for name, v in self.values.items() if name != v.tensor)
        return Graph(nodes=tuple(self.nodes), inputs=tuple(self.inputs), outputs=outputs, views=views)

    def skip(self, op: Op) -> None:
        """Go on behind a refused op as if it were there, to find the other problems."""
        for name in op.outputs:
            self.values[name] = Value(tensor=name, form=self.tensors[name].shape)

    def add(self, op: Op) -> None:
        output = op.outputs[0]
        if self.is_view(op):
            self.values[output] = self.values[op.inputs[0]]
            self.makers[output] = op
            return
        kind = kernel_of(op, self.forms)
        kind, given = self.inputs_of(op, kind, [n for n in op.inputs if n and self.tensors[n].array is None])
        inputs = tuple(dict.fromkeys(given))
        form = self.tensors[output].shape
        for value in inputs:
            if value.tensor in self.dispatch.inputs:
                self.inputs[value] = None
        operands = tuple(inputs.index(value) for value in given)
        if kind == "concat":
            self.follow(op, inputs, form)
        node = Node(
            op=op,
            kind=kind,
            inputs=inputs,
            operands=operands,
            output=Value(tensor=output, form=form),
            constant=self.constant_of(op, len(form)) if kind in WITH_CONSTANTS else (),
        )
        self.nodes.append(node)
        self.values[output] = node.output

    def follow(self, op: Op, inputs: tuple[Value, ...], form: Shape) -> None:
        """Operands of a Concat whose objects follow each other have to come in fifos, each in one of its own.

        Raises:
            RefusedError: one comes twice, or is a constant.
        """
        if len(inputs) == len(op.inputs) or concat_in_step(geometry(op, "concat", tuple(v.form for v in inputs), form)):
            return
        constants = [n for n in op.inputs if self.tensors[n].array is not None]
        twice = [n for i, n in enumerate(op.inputs) if n in op.inputs[:i]]
        if constants:
            what, remedy = f"constant {constants[0]!r} is joined", "make the constant an input of the model"
        else:
            what = f"{(twice or op.inputs)[0]!r} is joined with itself"
            remedy = "put QuantizeLinear and DequantizeLinear in front of the repeat"
        problem = Problem(
            code="PLAN-CONCAT",
            where=f"op {op.name!r} (Concat)",
            what=f"{what} along axis {integer(op, 'axis')}, where objects of one operand follow those of another",
            expected="activations, each once; constants and repeats only along channels, width or the last axis",
            remedy=remedy,
        )
        raise RefusedError((problem,))

    def constant_of(self, op: Op, rank: int) -> Shape:
        """Form of a constant operand with several objects, leading axes of one place filled in."""
        shapes = [self.tensors[n].shape for n in op.inputs if n and self.tensors[n].array is not None]
        forms = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        return next((form for form in forms if object_count(form) > 1), ())

    def is_view(self, op: Op) -> bool:
        """Whether an op changes neither integers nor their order."""
        passes = op.requant is None or op.requant.target == "identity"
        return op.type in VIEWS and passes and self.full_range(op) and self.keeps_order(op)

    def keeps_order(self, op: Op) -> bool:
        """Whether a Transpose only moves axes of one place."""
        if op.type != "Transpose":
            return True
        shape = self.tensors[op.inputs[0]].shape
        moved = [axis for axis in integers(op, "perm") if shape[axis] > 1]
        return moved == sorted(moved)

    def full_range(self, op: Op) -> bool:
        """Whether no fused activation clamps codes on the way."""
        requant, tensor = op.requant, self.tensors[op.outputs[0]]
        if requant is None:
            return True
        before = self.tensors[op.inputs[0]]
        return tensor.dtype == before.dtype and (requant.qmin, requant.qmax) == _range(tensor.dtype)

    def inputs_of(self, op: Op, kind: str, names: list[str]) -> tuple[str, tuple[Value, ...]]:
        """Kernel type and inputs, in forms that it takes."""
        if kind == "gemm" and op.name not in self.vectors and self.takes_rows(op, names[0]):
            return "gemm_rows", (self.values[names[0]],)
        by_axes = kind == "concat" or len({object_count(self.tensors[n].shape) for n in names}) > 1
        return kind, tuple(self.natural(n, by_axes=by_axes) for n in names)

    def takes_rows(self, op: Op, name: str) -> bool:
        """Whether a dense layer gets the rows of an image that a Flatten stands in front of."""
        maker = self.makers.get(name)
        form = self.values[name].form
        if maker is None or len(form) != 4 or len(self.tensors[name].shape) != 2:
            return False
        source = self.tensors[maker.inputs[0]].shape
        return maker.type in ("Flatten", "Reshape") and source == form and form[0] == self.tensors[name].shape[0]

    def natural(self, name: str, *, by_axes: bool = False) -> Value:
        """The tensor in objects of its own shape; moved there by a node where it does not flow so.

        Args:
            name: of the tensor.
            by_axes: the op tells objects apart by the axes of the shape, so that the same sequence is not enough.
        """
        value, shape = self.values[name], self.tensors[name].shape
        if value.form == shape or (not by_axes and same_objects(value.form, shape)):
            return value
        if value.tensor in self.dispatch.inputs and value.tensor not in self.fixed:
            return Value(tensor=value.tensor, form=shape)
        if name not in self.moved:
            op = self.makers[name]
            source = self.natural(op.inputs[0])
            kind = kernel_of(op, self.forms)
            node = Node(op=op, kind=kind, inputs=(source,), operands=(0,), output=Value(tensor=name, form=shape))
            self.nodes.append(node)
            self.moved[name] = node.output
        return self.moved[name]


def same_objects(one: Shape, other: Shape) -> bool:
    """Whether two forms of the same elements are the same sequence of objects."""
    if one == other:
        return True
    return len(one) != 4 and len(other) != 4 and bool(one) and bool(other) and one[-1] == other[-1]


def _range(dtype: str) -> tuple[int, int]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def joins_in_memory(node: Node) -> bool:
    """Whether a Concat only puts channel blocks side by side, which a memory tile does on the way."""
    identity = node.op.requant is None or node.op.requant.target == "identity"
    return identity and meets_in_blocks(node)


def meets_in_blocks(node: Node) -> bool:
    """Whether the operands of a Concat are whole channel blocks of every object of its output."""
    rank = len(node.output.form)
    axis = 1 if rank == 4 else rank - 1
    if node.kind != "concat" or integer(node.op, "axis") % rank != axis:
        return False
    blocks = all(v.form[axis] % LANES == 0 for v in node.inputs[:-1])
    return blocks and node.operands == tuple(range(len(node.op.inputs)))
