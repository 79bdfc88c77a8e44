"""A person's own kernels: `kernels/<op>/kernel.cc` and `twin.py` in a port stand for what is emitted for that op.

A variant takes the place of the text of one kernel and of nothing else: signature, packed constants, calls and modes
stay those of the emitted kernel, so that the same steps and the same rules judge it.

An op that is computed by several kernels (a `gemm` over rows and its finish, halves on several tiles) has a file for
each of them, `kernels/<op>/<symbol>.cc`; those without one are emitted. A folder is named after its op, everything but
letters, digits, `.`, `-` and `_` as `_`.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from bringup.kernels.model import Array, KernelModule, Row, Source, symbol_of
from bringup.lint.cxx import CParameter
from bringup.lint.cxx import Source as CSource
from manifest.errors import Problem, RefusedError

FOLDER: Final = "kernels/"
KERNEL: Final = "kernel.cc"
TWIN: Final = "twin.py"
RUN: Final = "run"
NOTES: Final = (".md", ".txt")
"""Files beside the code that nobody compiles."""
SHOWN: Final = 12
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_C_TYPES: Final[Mapping[str, str]] = {"float32": "float", "float64": "double", "bfloat16": "bfloat16"}
_VECTORS: Final = re.compile(r"\baie::(?:mmul|vector|load_v|load_unaligned_v|accum)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A file of the person: its path in the port, its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """What the person gave.

    Attributes:
        kernels: by C symbol.
        twins: by op.
        functions: of every twin, kernel of the design -> function of the file.
    """

    kernels: Mapping[str, Code] = field(default_factory=dict)
    twins: Mapping[str, Code] = field(default_factory=dict)
    functions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A kernel that a design calls: its name there, its op and type."""

    name: str
    op: str
    type: str


def folders_of(ops: Sequence[str]) -> dict[str, str]:
    """Folder of every op; a short hash sets those apart that would have the same."""
    plain = {op: _FOREIGN.sub("_", op).strip("_.") or "op" for op in ops}
    count = Counter(plain.values())
    return {
        op: name if count[name] == 1 else f"{name}_{hashlib.sha256(op.encode()).hexdigest()[:8]}"
        for op, name in plain.items()
    }


def custom_of(files: Mapping[str, bytes], called: Sequence[Called]) -> Custom:
    """What stands for which kernel.

    Args:
        files: of the person, path in the port -> content; those outside of `kernels/` do not count.
        called: kernels of all designs.

    Raises:
        RefusedError: a folder without an op, a file that stands for nothing, text that is none; all of them.
    """
    ops: dict[str, list[Called]] = {}
    for kernel in called:
        if kernel.op:
            ops.setdefault(kernel.op, []).append(kernel)
    return _Given(ops).read({n: d for n, d in sorted(files.items()) if n.startswith(FOLDER)})


class _Given:
    """Sorts files by what they stand for."""

    def __init__(self, ops: Mapping[str, Sequence[Called]]) -> None:
        self.ops = ops
        self.by_folder = {folder: op for op, folder in folders_of(list(ops)).items()}
        self.problems: list[Problem] = []
        self.kernels: dict[str, Code] = {}
        self.twins: dict[str, Code] = {}
        self.functions: dict[str, Mapping[str, str]] = {}

    def read(self, files: Mapping[str, bytes]) -> Custom:
        for path, data in files.items():
            parts = PurePosixPath(path).parts[1:]
            if path.endswith(NOTES) or "__pycache__" in parts:
                continue
            op = self.by_folder.get(parts[0])
            if op is None and len(parts) > 1:
                shown = list(self.by_folder)[:SHOWN]
                self.add("CUSTOM-OP", path, f"no op of the design has the folder {parts[0]!r}", ", ".join(shown))
            elif op is None or len(parts) != 2:
                self.add("CUSTOM-FILE", path, "stands for nothing", f"{FOLDER}<op>/{KERNEL} or {TWIN}")
            else:
                self.file(path, parts[1], op, data)
        if self.problems:
            raise RefusedError(tuple(dict.fromkeys(self.problems)))
        return Custom(kernels=self.kernels, twins=self.twins, functions=self.functions)

    def file(self, path: str, name: str, op: str, data: bytes) -> None:
        """A file in the folder of an op."""
        rows = self.ops[op]
        symbols = {f"{symbol_of(row.name)}.cc": symbol_of(row.name) for row in rows}
        allowed = {**symbols, **({KERNEL: next(iter(symbols.values()))} if len(rows) == 1 else {})}
        if name not in allowed and name != TWIN:
            what = f"op {op!r} has {len(rows)} kernels" if name == KERNEL else "stands for nothing"
            self.add("CUSTOM-FILE", path, what, ", ".join((*allowed, TWIN)))
            return
        try:
            code = Code(path=path, text=data.decode("utf-8").replace("\r\n", "\n"))
        except UnicodeDecodeError:
            self.add("CUSTOM-FILE", path, "no text", "UTF-8")
            return
        if name == TWIN:
            self.twin(code, op)
        elif allowed[name] in self.kernels:
            self.add("CUSTOM-FILE", path, f"a second file for {allowed[name]}", "one of them")
        else:
            self.kernels[allowed[name]] = code

    def twin(self, code: Code, op: str) -> None:
        """Functions of a twin by kernel: `run` of an op with one kernel, else those named after the type."""
        rows = self.ops[op]
        wanted = {row.name: RUN if len(rows) == 1 else row.type for row in rows}
        try:
            names = set(_top_level(ast.parse(code.text)))
        except (SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None) or 0
            self.add("CUSTOM-TWIN", f"{code.path}:{line}", "no Python", got=str(getattr(error, "msg", error)))
            return
        found = {kernel: name for kernel, name in wanted.items() if name in names}
        if not found:
            expected = " or ".join(f"{name}(context, *arrays)" for name in dict.fromkeys(wanted.values()))
            self.add("CUSTOM-TWIN", code.path, f"no function for op {op!r}", expected)
            return
        self.twins[op] = code
        self.functions[op] = found

    def add(self, code: str, where: str, what: str, expected: str = "", got: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(code=code, where=where, what=what, expected=expected, got=got))


def _top_level(tree: ast.Module) -> Iterator[str]:
    """Names that a module binds."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from (a.asname or a.name for a in node.names)


def signature(source: Source) -> str:
    """The declaration of a kernel, as its code has to begin."""
    parameters = [
        f"{'' if p.writes else 'const '}{_C_TYPES.get(p.dtype, f'{p.dtype}_t')} *__restrict {p.name}"
        for p in source.parameters
    ]
    return declaration(source.symbol, [*parameters, *(f"int32_t {name}" for name in source.scalars)])


def declaration(symbol: str, parameters: Sequence[str]) -> str:
    """A function with C linkage."""
    return f'extern "C" void {symbol}({", ".join(parameters)})'


def with_custom(modules: Mapping[str, KernelModule], custom: Custom) -> Mapping[str, KernelModule]:
    """Emitters of kernels with the person's text where there is one."""
    if not custom.kernels:
        return modules
    return {kind: _Variant(module, custom.kernels) for kind, module in modules.items()}


@dataclass(frozen=True, slots=True)
class _Variant:
    """An emitter whose text may be the person's."""

    inner: KernelModule
    codes: Mapping[str, Code]

    def source(self, row: Row) -> Source:
        """As emitted, or the person's in the emitted one's place.

        Raises:
            RefusedError: the person's code has no such function, or one with other parameters.
        """
        made = self.inner.source(row)
        code = self.codes.get(made.symbol)
        if code is None:
            return made
        problem = _problem(code, made)
        if problem is not None:
            raise RefusedError((problem,))
        vectorized = _VECTORS.search(code.text) is not None
        return replace(made, text=code.text, vectorized=vectorized, notes=(f"{code.path} of the port",))

    def pack(self, row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
        """As emitted."""
        return self.inner.pack(row, constants)


def _problem(code: Code, made: Source) -> Problem | None:
    """What keeps a text from being called like the emitted kernel; a type not known here is the compiler's to judge."""
    text = CSource(code.text)
    entries = {entry.name: entry for entry in text.entries()}
    wanted = signature(made)
    if made.symbol not in entries:
        got = ", ".join(entries) or "none"
        what = f'no function {made.symbol} with extern "C" and a body'
        return Problem(code="CUSTOM-SYMBOL", where=code.path, what=what, expected=wanted, got=got)
    entry = entries[made.symbol]
    line = text.line(entry.start)
    given = entry.parameters
    count = len(made.parameters) + len(made.scalars)
    if len(given) != count:
        what = f"{len(given)} parameters"
        return Problem(code="CUSTOM-SIGNATURE", where=f"{code.path}:{line}", what=what, expected=wanted)
    names = [(p.name, p.dtype, True, p.writes) for p in made.parameters]
    names += [(name, "int32", False, False) for name in made.scalars]
    for number, (have, (name, dtype, pointer, writes)) in enumerate(zip(given, names, strict=True)):
        if not _fits(have, text, dtype, pointer=pointer, writes=writes):
            what, got = f"parameter {number} ({name})", _words(have)
            return Problem(code="CUSTOM-SIGNATURE", where=f"{code.path}:{line}", what=what, expected=wanted, got=got)
    return None


def _fits(have: CParameter, text: CSource, dtype: str, *, pointer: bool, writes: bool) -> bool:
    if have.pointer != pointer or (pointer and writes and have.const):
        return False
    name = text.types.get(have.type, have.type).removeprefix("std::")
    known = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
    plain = "int32" if name == "int" else name.removesuffix("_t")
    c_type = _C_TYPES.get(dtype, dtype)
    if plain not in {*known, *_C_TYPES.values(), "void", "char"}:
        return True
    return plain == c_type


def _words(have: CParameter) -> str:
    return f"{'const ' if have.const else ''}{have.type}{' *' if have.pointer else ''} {have.name}".strip()
