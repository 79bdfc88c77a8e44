"""A design file as rules read it: its syntax tree, with the figures that the emitter writes as literals."""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ArrayForm = tuple[str, tuple[int, ...]]
"""(dtype, shape)."""


@dataclass(slots=True)
class Handle:
    """An end of a fifo."""

    fifo: str
    producer: bool
    depth: int | None
    shim: bool
    line: int


@dataclass(slots=True)
class Made:
    """Something that a call makes: variable, call."""

    variable: str
    call: ast.Call


@dataclass(slots=True)
class DesignFile:
    """What a design file says.

    Attributes:
        tree: of the module.
        types: array types by variable.
        calls: (variable, call) of every assignment of a call, in order.
        handles: ends by variable.
        forms: object form by variable of the fifo.
        functions: by name, those inside others too.
    """

    tree: ast.Module
    types: dict[str, ArrayForm] = field(default_factory=dict)
    calls: list[Made] = field(default_factory=list)
    handles: dict[str, Handle] = field(default_factory=dict)
    forms: dict[str, ArrayForm] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def made(self, function: str) -> Iterator[Made]:
        """Assignments of calls of a name."""
        return (m for m in self.calls if call_name(m.call) == function)


def read_design(text: str) -> DesignFile:
    """Read a design file.

    Raises:
        SyntaxError: it is no Python.
    """
    file = DesignFile(ast.parse(text))
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _assignment(file, node)
        elif isinstance(node, ast.FunctionDef):
            file.functions[node.name] = node
    for made in file.calls:
        _fifo(file, made)
    for made in file.calls:
        _handle(file, made)
    return file


def _assignment(file: DesignFile, node: ast.Assign) -> None:
    target = node.targets[0]
    if isinstance(target, ast.Name):
        form = array_form(node.value)
        if form is not None:
            file.types[target.id] = form
        if isinstance(node.value, ast.Call):
            file.calls.append(Made(target.id, node.value))
    elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call):
        names = [e.id for e in target.elts if isinstance(e, ast.Name)]
        file.calls.append(Made(",".join(names), node.value))


def _fifo(file: DesignFile, made: Made) -> None:
    name = call_name(made.call)
    if name in {"ObjectFifo", "forward"}:
        form = form_of(keyword(made.call, "obj_type"), file)
        if form is not None:
            file.forms[made.variable] = form
    elif name in {"split", "join"}:
        types = keyword(made.call, "obj_types")
        if isinstance(types, ast.List):
            for variable, element in zip(made.variable.split(","), types.elts, strict=False):
                form = form_of(element, file)
                if form is not None:
                    file.forms[variable] = form


def _handle(file: DesignFile, made: Made) -> None:
    function = made.call.func
    if not isinstance(function, ast.Attribute) or function.attr not in {"prod", "cons"}:
        return
    if isinstance(function.value, ast.Name):
        depth = literal(keyword(made.call, "depth"))
        file.handles[made.variable] = Handle(
            fifo=function.value.id,
            producer=function.attr == "prod",
            depth=depth if isinstance(depth, int) else None,
            shim=keyword(made.call, "tile") is not None,
            line=made.call.lineno,
        )


def call_name(call: ast.Call) -> str:
    """Last part of the name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def receiver(call: ast.Call) -> str | None:
    """The variable whose method is called."""
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value.id
    return None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """A keyword argument."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def literal(node: ast.expr | None) -> Any:
    """The value of a literal; None = it is none."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def form_of(node: ast.expr | None, file: DesignFile) -> ArrayForm | None:
    """The array type that an expression stands for."""
    if isinstance(node, ast.Name):
        return file.types.get(node.id)
    return array_form(node)


def array_form(node: ast.expr | None) -> ArrayForm | None:
    """(dtype, shape) of `np.ndarray[shape, np.dtype[np.type]]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) != 2:
        return None
    shape, dtype = literal(node.slice.elts[0]), node.slice.elts[1]
    if not isinstance(dtype, ast.Subscript) or not isinstance(shape, tuple):
        return None
    return dtype_name(dtype.slice), tuple(int(n) for n in shape)


def dtype_name(node: ast.expr) -> str:
    """`int8` of `np.int8`."""
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def elements(form: ArrayForm) -> int:
    """Elements of an array type."""
    return math.prod(form[1])


def names_in(node: ast.AST | None) -> list[str]:
    """Variables that an expression uses, in order."""
    return [] if node is None else [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def list_names(node: ast.expr | None) -> list[str]:
    """Names of the elements of a list; other elements as their text."""
    if not isinstance(node, ast.List):
        return []
    return [e.id if isinstance(e, ast.Name) else ast.unparse(e) for e in node.elts]
