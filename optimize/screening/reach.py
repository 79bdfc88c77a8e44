"""Which parts of the headers a kernel reaches, with its figures put in: the rest is blanked, positions stay.

Why: a header has templates for many kernels and branches for many figures. What a kernel does not reach is no finding
about it. Where a condition cannot be evaluated both branches count.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bringup.lint.cxx import Source, closing, statement

_CONSTEXPR: Final = re.compile(r"\bif\s+constexpr\s*\(")
_ELSE: Final = re.compile(r"\s*else\b")
_TYPE: Final = re.compile(r"\b(?:struct|class|enum(?:\s+class)?)\s+(\w+)")
_FUNCTION: Final = re.compile(r"(\w+)\s*\(")
_TEMPLATE: Final = re.compile(r"template\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>")
_NAMESPACE: Final = re.compile(r"\bnamespace\b[\w:\s]*$")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_NAMES: Final[Mapping[str, bool]] = {"true": True, "false": False}
MAX_CONDITION: Final = 300


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or type at the level of a namespace."""

    name: str
    start: int
    end: int


def reached(kernel: str, texts: Mapping[str, str], headers: list[str]) -> dict[str, Source]:
    """Sources of a kernel, blanked down to what it reaches.

    Args:
        kernel: path of its source.
        texts: of all files by path.
        headers: paths that it includes, transitively.
    """
    own = Source(texts[kernel])
    sources = {kernel: own, **{name: Source(texts[name]) for name in headers}}
    for source in sources.values():
        source.constants = {**source.constants, **own.constants}
        source.types = {**source.types, **own.types}
        source.code = without_dead(source.code, source)
    found = {name: list(definitions(source.code)) for name, source in sources.items()}
    named: dict[str, list[tuple[str, Definition]]] = {}
    for name in headers:
        for part in found[name]:
            named.setdefault(part.name, []).append((name, part))
    kept: set[tuple[str, Definition]] = set()
    pending = [own.code]
    while pending:
        for word in set(_WORD.findall(pending.pop())) & named.keys():
            for name, part in named.pop(word):
                kept.add((name, part))
                pending.append(sources[name].code[part.start : part.end])
    for name in headers:
        source = sources[name]
        for part in found[name]:
            if (name, part) not in kept:
                source.code = blank(source.code, part.start, part.end)
    return sources


def blank(code: str, begin: int, end: int) -> str:
    """The code with a part replaced by spaces; lines stay."""
    return code[:begin] + re.sub(r"[^\n]", " ", code[begin:end]) + code[end:]


def without_dead(code: str, source: Source) -> str:
    """The code without branches of `if constexpr` that the figures rule out."""
    position = 0
    while (match := _CONSTEXPR.search(code, position)) is not None:
        position = match.end()
        close = closing(code, match.end() - 1)
        if close < 0:
            break
        holds = condition(code[match.end() : close], source)
        first = _end(code, close + 1)
        follows = _ELSE.match(code, first)
        if holds is False:
            code = blank(code, close + 1, first)
        elif holds is True and follows is not None:
            code = blank(code, follows.end(), _chain(code, follows.end()))
    return code


def _end(code: str, start: int) -> int:
    """Behind the statement at `start`."""
    begin, end = statement(code, start)
    return end + 1 if code[begin - 1 : begin] == "{" else end


def _chain(code: str, start: int) -> int:
    """Behind everything that an `else` at `start` introduces, further `else` included."""
    end = _end(code, start)
    nested = re.match(r"\s*if\s*(?:constexpr\s*)?\(", code[start:])
    if nested is not None:
        close = closing(code, start + nested.end() - 1)
        end = _end(code, close + 1) if close > 0 else end
        follows = _ELSE.match(code, end)
        if follows is not None:
            return _chain(code, follows.end())
    return end


def condition(text: str, source: Source) -> bool | None:
    """A condition over known figures; None = not known."""
    if len(text) > MAX_CONDITION:
        return None
    plain = re.sub(r"(?:\w+::)+(?=\w)", "", text)
    plain = re.sub(r"!(?!=)", " not ", plain.replace("&&", " and ").replace("||", " or "))
    try:
        tree = ast.parse(plain.strip(), mode="eval")
        return bool(_value(tree.body, source))
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, source: Source) -> Any:
    """The value of a condition; ValueError where it is not known."""
    if isinstance(node, ast.BoolOp):
        values = (_value(v, source) for v in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, source)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _value(node.left, source), _value(node.comparators[0], source)
        tests = {ast.Eq: left == right, ast.NotEq: left != right, ast.Lt: left < right, ast.LtE: left <= right}
        return {**tests, ast.Gt: left > right, ast.GtE: left >= right}[type(node.ops[0])]
    text = ast.unparse(node)
    value = _NAMES.get(source.constants.get(text, text))
    found = source.value(text) if value is None else value
    if found is None:
        msg = f"not known: {text}"
        raise ValueError(msg)
    return found


def definitions(code: str) -> Iterator[Definition]:
    """Functions and types at the level of namespaces."""
    position, begin = 0, 0
    while position < len(code):
        character = code[position]
        if character == "#":
            line = code.find("\n", position)
            position = len(code) if line < 0 else line
            begin = position
        elif character in ";}":
            begin = position + 1
        elif character == "{":
            head = code[begin:position]
            end = closing(code, position)
            if _NAMESPACE.search(head.strip()) is None and end > 0:
                name = _name(head)
                if name:
                    yield Definition(name, begin, end + 1)
                position = end
            begin = position + 1
        position += 1


def _name(head: str) -> str:
    plain = _TEMPLATE.sub(" ", head)
    found = _TYPE.search(plain) or _FUNCTION.search(plain)
    return found.group(1) if found else ""
