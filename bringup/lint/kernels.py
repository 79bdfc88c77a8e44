"""Rules on kernel sources: entry, modes, events, pointers, types, multiplications."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from bringup.lint.cxx import Entry, Source, closing
from bringup.lint.loops import Found
from manifest.device import DEVICES, load_device

_MODES: Final = (("rounding", "set_rounding"), ("saturation", "set_saturation"))
_POINTER_PARAMETERS: Final = re.compile(
    r"(?<![*\w:])(?!const\s*\*)(?!(?:const\s+)?void\b)(?:const\s+)?(?:typename\s+)?[\w:]+(?:<[^<>()]*>)?\s*"
    r"\*\s*(?P<restrict>__restrict\b\s*)?\w+\s*(?=[,)])"
)
"""Typed pointers to data; tables of pointers and bytes without a type are no operands."""
_MMUL: Final = re.compile(r"\bmmul<\s*([^<>]+?)\s*>")
_FLOATING: Final = re.compile(r"\b(float|double|bfloat16|accfloat)\b|(?<![\w.])\d+\.\d*f?\b")
_ASSEMBLY: Final = re.compile(r"\b(__asm__|__asm|asm)\b\s*(volatile\b\s*)?\(")
_TYPES: Final[Mapping[str, str]] = {
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
}


def numpy_type(c_type: str) -> str | None:
    """Numpy's name of an integer type of C; None = another type."""
    return _TYPES.get(c_type.strip().removeprefix("std::").removesuffix("_t"))


def modes(source: Source, row: Mapping[str, Any]) -> Found:
    """Rounding and saturation are set before anything else, where the kernel has modes of its own."""
    for entry in source.entries():
        statements = statements_of(entry)
        if statements and statements[0][1].startswith("event0"):
            statements = statements[1:]
        wanted = [call for key, call in _MODES if row.get(key, "conv_even")]
        head = [text for _, text in statements[: len(wanted)]]
        for call in wanted:
            if not any(call in text for text in head):
                anywhere = call in entry.body
                what = "is not the first thing that it does" if anywhere else "is missing"
                yield entry.start, f"{entry.name}: {call} {what}; modes are sticky and shared by the kernels of a tile"


def events(source: Source, _: Mapping[str, Any]) -> Found:
    """event0 is the first and event1 the last statement of an entry, and nothing leaves before."""
    for entry in source.entries():
        statements = statements_of(entry)
        if not statements or not re.fullmatch(r"(::)?event0\(\)", statements[0][1]):
            yield entry.start, f"{entry.name}: event0() is not its first statement"
        if not statements or not re.fullmatch(r"(::)?event1\(\)", statements[-1][1]):
            yield entry.start, f"{entry.name}: event1() is not its last statement"
        found = re.search(r"\breturn\b", without_lambdas(entry.body))
        if found:
            yield entry.body_start + found.start(), f"{entry.name}: it returns before event1()"


def without_lambdas(body: str) -> str:
    """A body with those of its lambdas blanked: what they return is no return of the function."""
    for match in re.finditer(r"\]\s*(?:<[^{};]*>)?\s*(?:\([^{};]*\))?\s*(?:->\s*[\w:]+\s*)?\{", body):
        end = closing(body, match.end() - 1)
        if end > 0:
            body = body[: match.end()] + " " * (end - match.end()) + body[end:]
    return body


def statements_of(entry: Entry) -> list[tuple[int, str]]:
    """(position, text) of the statements of an entry's body on its own level; a block counts with its head."""
    found: list[tuple[int, str]] = []
    depth, begin = 0, 0
    for position, character in enumerate(entry.body):
        depth += character in "({["
        depth -= character in ")}]"
        ends = character == ";" or (character == "}" and entry.body[position + 1 :].lstrip()[:1] not in {",", ")", ";"})
        if depth == 0 and ends:
            text = " ".join(entry.body[begin:position].split())
            if text:
                found.append((entry.body_start + begin, text))
            begin = position + 1
    return found


def linkage(source: Source, _: Mapping[str, Any]) -> Found:
    """A kernel is one function with C linkage."""
    count = len(list(source.entries()))
    if count != 1:
        yield 0, f'{count} functions with extern "C", expected 1'


def restricted(source: Source, _: Mapping[str, Any]) -> Found:
    """Pointers to data that a function takes are __restrict."""
    for match in _POINTER_PARAMETERS.finditer(runtime_parameters(source.code)):
        if match["restrict"] is None:
            yield match.start(), f"{' '.join(match.group().split())}: a pointer without __restrict"


def runtime_parameters(code: str) -> str:
    """The code with everything blanked but parameter lists of functions that have a body."""
    kept = [" " if c != "\n" else c for c in code]
    for match in re.finditer(r"\)\s*(?:const\s*)?(?:->\s*[\w:<>&*\s]+)?\{", code):
        opening = _opening(code, match.start())
        before = code[:opening].rstrip()
        if (
            opening >= 0
            and re.search(r"[\w>]$", before)
            and not re.search(r"\b(if|for|while|switch|constexpr)$", before)
        ):
            kept[opening : match.start() + 1] = code[opening : match.start() + 1]
    return "".join(kept)


def _opening(code: str, closing: int) -> int:
    depth = 0
    for position in range(closing, -1, -1):
        depth += code[position] == ")"
        depth -= code[position] == "("
        if depth == 0:
            return position
    return -1


def assembly(source: Source, _: Mapping[str, Any]) -> Found:
    """No inline assembly: the compiler cannot schedule around it, and no host can run it."""
    for match in _ASSEMBLY.finditer(source.code):
        yield match.start(), "inline assembly"


def storage(source: Source, _: Mapping[str, Any]) -> Found:
    """No chess_storage: Peano ignores it."""
    for match in re.finditer(r"\bchess_storage\b", source.code):
        yield match.start(), "chess_storage, which Peano ignores"


def floats(source: Source, row: Mapping[str, Any]) -> Found:
    """No floating-point in a kernel whose parameters are integers: it is emulated by library calls."""
    dtypes = {p["dtype"] for p in row.get("parameters", ())}
    if dtypes and any(d.startswith(("float", "bfloat")) for d in dtypes):
        return
    for match in _FLOATING.finditer(source.code):
        yield match.start(), f"{match.group()} in an integer kernel"


def multiplications(source: Source, row: Mapping[str, Any], device: str, kernel: Source | None = None) -> Found:
    """Shapes of mmul are those of the device, and packed weights are whole blocks of them.

    Args:
        source: a kernel, or a header that it takes in.
        row: of the kernel.
        device: of the folder.
        kernel: whose figures a header is read with; None = none but its own.
    """
    figures = kernel.constants if kernel is not None else {}
    types = kernel.types if kernel is not None else {}
    shapes = catalogue(device)
    for match in _MMUL.finditer(source.code):
        arguments = [a.strip() for a in match.group(1).split(",")]
        sizes = [source.value(a, figures) for a in arguments[:3]]
        if len(arguments) < 3 or any(s is None for s in sizes):
            continue
        shape = tuple(s for s in sizes if s is not None)
        pair = tuple(numpy_type(types.get(a.rpartition("::")[2], a)) for a in arguments[3:5])
        known = shapes.get(pair) if len(pair) == 2 and None not in pair else None
        where = f" (figures of {row['row']!r})" if kernel is not None and "row" in row else ""
        if known is not None and shape not in known:
            yield match.start(), f"mmul {shape} of {pair[0]} and {pair[1]}: {device} has {sorted(known)}{where}"
        for parameter in row.get("parameters", ()):
            count = math.prod(parameter["shape"])
            if parameter["role"] == "weights" and count % (shape[1] * shape[2]):
                text = f"{count} weights are no whole number of {shape[1]}x{shape[2]} blocks of mmul{where}"
                yield match.start(), text


def catalogue(device: str) -> Mapping[tuple[str | None, ...], set[tuple[int, ...]]]:
    """Shapes of multiplications by the dtypes of both sides."""
    if device not in DEVICES:
        return {}
    found: dict[tuple[str | None, ...], set[tuple[int, ...]]] = {}
    for pair, shapes in load_device(device).mmul.items():
        a, b = pair.split("x")
        for left in (a, f"u{a}"):
            for right in (b, f"u{b}"):
                found.setdefault((left, right), set()).update(tuple(s) for s in shapes.value or ())
    return found


def signature(source: Source, declared: tuple[tuple[str, bool], ...], symbol: str) -> Found:
    """The parameters of an entry are those that the design declares.

    Args:
        source: of the kernel.
        declared: (dtype, is an array) of every argument in the design.
        symbol: of the kernel.
    """
    for entry in source.entries():
        if entry.name != symbol:
            yield entry.start, f"the function is {entry.name}, the design calls {symbol}"
            continue
        given = tuple((numpy_type(p.type), p.pointer) for p in entry.parameters)
        if len(given) != len(declared):
            yield entry.start, f"{symbol} takes {len(given)} parameters, the design declares {len(declared)}"
            continue
        for number, (have, want) in enumerate(zip(given, declared, strict=True)):
            if have != want:
                words = f"{_words(have)}, the design declares {_words(want)}"
                yield entry.start, f"{symbol}, parameter {number}: {words}"


def _words(form: tuple[str | None, bool]) -> str:
    return f"{'pointer to ' if form[1] else ''}{form[0] or 'another type'}"
