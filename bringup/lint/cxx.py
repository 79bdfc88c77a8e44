"""Just enough of C++ to find functions, loops and expressions in kernel sources.

Why no real parser: the rules look for a handful of shapes in sources of one style, and have to run where no compiler
is. Comments and literals are blanked in place, so that every position is that of the file.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_BLANKED: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
_LOOP: Final = re.compile(r"\b(for|while)\s*\(")
_ENTRY: Final = re.compile(r'extern\s+"C"\s+(?:\{\s*)?(?P<type>[\w:\s]+?)\s+(?P<name>\w+)\s*\(')
_CONSTANT: Final = re.compile(r"\bconstexpr\s+[\w:<>]+\s+(\w+)\s*=\s*([^;,]+)")
_ALIAS: Final = re.compile(r"\busing\s+(\w+)\s*=\s*([\w:]+)\s*;")
_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.M)
_DEFINE: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", re.M)
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_ARITHMETIC: Final = re.compile(r"[\d+\-*/%() <>]+")
_OPEN: Final = {"(": ")", "{": "}", "[": "]"}
MAX_DEPTH: Final = 8


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its header between the parentheses, its body, where it begins."""

    keyword: str
    header: str
    body: str
    start: int
    body_start: int


@dataclass(frozen=True, slots=True)
class CParameter:
    """A parameter of a function."""

    type: str
    name: str
    pointer: bool
    const: bool
    restrict: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A function with C linkage."""

    name: str
    parameters: tuple[CParameter, ...]
    body: str
    start: int
    body_start: int


class Source:
    """A source with comments and literals blanked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.code = blanked(text)
        self.constants = _constants(self.code)
        self.types = dict(_ALIAS.findall(self.code))
        self.includes = tuple(_INCLUDE.findall(text))

    def line(self, position: int) -> int:
        """Line of a position, from 1."""
        return self.text.count("\n", 0, position) + 1

    def loops(self) -> list[Loop]:
        """All loops, outer ones before those inside."""
        found = []
        for match in _LOOP.finditer(self.code):
            close = closing(self.code, match.end() - 1)
            if close < 0:
                continue
            begin, end = statement(self.code, close + 1)
            found.append(
                Loop(match.group(1), self.code[match.end() : close], self.code[begin:end], match.start(), begin)
            )
        return found

    def entries(self) -> Iterator[Entry]:
        """Functions with C linkage that have a body."""
        # the linkage is a literal, so it is searched for in the text and taken where the code is no comment
        for match in _ENTRY.finditer(self.text):
            if self.code[match.start() : match.start() + 6] != "extern":
                continue
            close = closing(self.code, match.end() - 1)
            brace = self.code.find("{", close)
            if close < 0 or brace < 0 or self.code[close + 1 : brace].strip():
                continue
            end = closing(self.code, brace)
            parameters = tuple(parameter(p) for p in split_list(self.code[match.end() : close]) if p.strip())
            yield Entry(match["name"], parameters, self.code[brace + 1 : end], match.start(), brace + 1)

    def value(self, expression: str, figures: Mapping[str, str] | None = None) -> int | None:
        """The value of a constant expression of integers and known names; None = not known.

        Args:
            expression: names of a struct count by their last part.
            figures: expressions by name beside those of this file.
        """
        known = {**(figures or {}), **self.constants}
        text = re.sub(r"(?:\w+::)+(?=\w)", "", expression.strip())
        for _ in range(MAX_DEPTH):
            names = set(re.findall(r"[A-Za-z_]\w*", text))
            if not names:
                break
            if not names <= known.keys():
                return None
            text = re.sub(r"[A-Za-z_]\w*", lambda m: f"({known[m.group()]})", text)
        return evaluate(text)


def blanked(text: str) -> str:
    """The text with comments and literals replaced by spaces of the same length."""

    def blank(match: re.Match[str]) -> str:
        return "".join(c if c == "\n" else " " for c in match.group())

    return _BLANKED.sub(blank, text)


def closing(code: str, opening: int) -> int:
    """Position of the bracket that closes the one at `opening`; -1 = there is none."""
    left = code[opening]
    right = _OPEN[left]
    depth = 0
    for position in range(opening, len(code)):
        if code[position] == left:
            depth += 1
        elif code[position] == right:
            depth -= 1
            if depth == 0:
                return position
    return -1


def statement(code: str, start: int) -> tuple[int, int]:
    """(begin, end) of the statement at `start`: a block without its braces, or up to its semicolon."""
    while start < len(code) and code[start].isspace():
        start += 1
    if start < len(code) and code[start] == "{":
        end = closing(code, start)
        return start + 1, len(code) if end < 0 else end
    position = start
    while position < len(code) and code[position] != ";":
        if code[position] in _OPEN:
            end = closing(code, position)
            if end < 0:
                break
            if code[position] == "{":
                return start, end + 1
            position = end
        position += 1
    return start, min(position + 1, len(code))


def split_list(text: str) -> list[str]:
    """Parts between commas that are inside no brackets."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += character in "(<[{"
        depth -= character in ")>]}"
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def parameter(text: str) -> CParameter:
    """A parameter from its declaration."""
    text = re.sub(r"\[\[.*?\]\]", " ", text)
    pointer = "*" in text
    restrict = bool(re.search(r"\b(__restrict(?:__)?|restrict)\b", text))
    words = re.findall(r"[A-Za-z_][\w:]*", re.sub(r"\b(__restrict(?:__)?|restrict)\b", " ", text))
    const = "const" in words
    words = [w for w in words if w not in {"const", "volatile", "struct"}]
    name = words[-1] if len(words) > 1 else ""
    return CParameter(" ".join(words[:-1] if name else words), name, pointer, const, restrict)


def evaluate(text: str) -> int | None:
    """An expression of integers with + - * / % and shifts, as C++ does it; None = it is none."""
    if not _ARITHMETIC.fullmatch(text) or len(text) > 500:
        return None
    tokens = re.findall(r"\d+|<<|>>|[-+*/%()]", text)
    try:
        value, rest = _shift(tokens)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return value if not rest else None


def _shift(tokens: list[str]) -> tuple[int, list[str]]:
    value, rest = _sum(tokens)
    while rest and rest[0] in {"<<", ">>"}:
        right, after = _sum(rest[1:])
        if not 0 <= right < 64:
            msg = "shift out of range"
            raise ValueError(msg)
        value = value << right if rest[0] == "<<" else value >> right
        rest = after
    return value, rest


def _sum(tokens: list[str]) -> tuple[int, list[str]]:
    value, rest = _product(tokens)
    while rest and rest[0] in {"+", "-"}:
        right, after = _product(rest[1:])
        value = value + right if rest[0] == "+" else value - right
        rest = after
    return value, rest


def _product(tokens: list[str]) -> tuple[int, list[str]]:
    value, rest = _unary(tokens)
    while rest and rest[0] in {"*", "/", "%"}:
        right, after = _unary(rest[1:])
        quotient = 0 if rest[0] == "*" else abs(value) // abs(right) * (1 if (value < 0) == (right < 0) else -1)
        value = value * right if rest[0] == "*" else quotient if rest[0] == "/" else value - quotient * right
        rest = after
    return value, rest


def _unary(tokens: list[str]) -> tuple[int, list[str]]:
    if tokens[0] in {"-", "+"}:
        value, rest = _unary(tokens[1:])
        return (-value if tokens[0] == "-" else value), rest
    if tokens[0] == "(":
        value, rest = _shift(tokens[1:])
        if rest[0] != ")":
            msg = "unbalanced"
            raise ValueError(msg)
        return value, rest[1:]
    return int(tokens[0]), tokens[1:]


def _constants(code: str) -> dict[str, str]:
    """Expressions of constants by name; those with several values are left out."""
    found: dict[str, set[str]] = {}
    for pattern in (_CONSTANT, _DEFINE):
        for match in pattern.finditer(code):
            found.setdefault(match.group(1), set()).add(match.group(2).strip())
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}
