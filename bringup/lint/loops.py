"""Rules on what is inside loops: division, branches on the index, steps that leave a rest, hints that hint nothing."""

import re
from collections.abc import Iterator
from typing import Final

from bringup.lint.cxx import Loop, Source, closing

CHESS: Final = re.compile(r"\b(AIE_PREPARE_FOR_PIPELINING|chess_prepare_for_pipelining|chess_loop_range|chess_\w+)\b")
UNDONE: Final = re.compile(r"\bAIE_PREPARE_FOR_POSTPIPELINING\b")
REAL: Final = re.compile(
    r"\b(AIE_LOOP_MIN_ITERATION_COUNT|AIE_LOOP_MAX_ITERATION_COUNT|AIE_LOOP_RANGE|AIE_LOOP_UNROLL\w*|AIE_LOOP_FLATTEN"
    r"|PORT_LOOP_\w+|PORT_UNROLL\w*|_Pragma|pragma\s+clang\s+loop)\b"
)
_FOLDED: Final = re.compile(r"\b(static_assert|alignas|if\s+constexpr|sizeof|requires)\s*\(")
_OPERATOR: Final = re.compile(r"(?P<left>[\w:)\]]+)\s*(?P<operator>[/%])=?\s*(?P<right>[\w:(]+)")
_CONSTANT_NAME: Final = re.compile(r"(?:\d\w*|(?:\w+::)+\w+|[A-Z][A-Z0-9_]*)")
_HEADER: Final = re.compile(r"(?:[\w:]+\s+)?(?P<name>\w+)\s*=\s*(?P<first>[^;]*);(?P<test>[^;]*);(?P<step>.*)", re.S)

_CHOICE: Final = re.compile(r"(?P<condition>[^;{}?]*)\?(?P<arms>[^;{}?]*:[^;{}?]*)")
_CALLS: Final = re.compile(r"\b(?!static_cast|u?int\d+_t)[a-z_]\w*\s*\(")
"""Functions; a type in front of a value is none."""

Found = Iterator[tuple[int, str]]
"""(position, text)."""


def runtime_code(code: str) -> str:
    """The code with what the compiler folds blanked: constexpr declarations, assertions, `if constexpr`, templates."""
    blank = list(code)

    def wipe(begin: int, end: int) -> None:
        for position in range(begin, end):
            if blank[position] != "\n":
                blank[position] = " "

    for match in re.finditer(r"^[ \t]*#[^\n]*", code, re.M):
        wipe(match.start(), match.end())
    for match in re.finditer(r"\bconstexpr\b[^;{]*;", code):
        wipe(match.start(), match.end())
    for match in _FOLDED.finditer(code):
        end = closing(code, match.end() - 1)
        wipe(match.end() - 1, end + 1 if end > 0 else match.end())
    for match in re.finditer(r"<[^<>;{}=&|]*>", code):
        wipe(match.start(), match.end())
    return "".join(blank)


def is_constant(operand: str, source: Source) -> bool:
    """Whether an operand is known when the code is compiled: a number, a figure of a struct, a constant of the file."""
    name = operand.strip("()")
    return bool(_CONSTANT_NAME.fullmatch(name)) or name in source.constants


def divisions(source: Source) -> Found:
    """Divisions and remainders that are left for run time."""
    code = runtime_code(source.code)
    for match in _OPERATOR.finditer(code):
        if not (is_constant(match["left"], source) and is_constant(match["right"], source)):
            yield match.start("operator"), f"{match['left']} {match['operator']} {match['right']}"


def power_of_two_divisions(source: Source) -> Found:
    """Signed division or remainder by a power of two: rounds toward zero, so it costs more than the shift or mask."""
    for position, text in divisions(source):
        right = re.split(r"[/%]", text)[-1].strip().rstrip("uUlL")
        value = source.value(right)
        unsigned = text.rstrip().endswith(("u", "U")) or re.search(r"\d[uU]", text) is not None
        if value is not None and value > 0 and value & (value - 1) == 0 and not unsigned:
            yield position, text


def divisions_in_loops(source: Source) -> Found:
    """Any division inside a loop, its header included."""
    spans = [(loop.start, loop.body_start + len(loop.body)) for loop in source.loops()]
    for position, text in divisions(source):
        if any(begin <= position < end for begin, end in spans):
            yield position, text


def index_branches(source: Source) -> Found:
    """Branches on the loop's variable in loops that hold no other loop.

    A choice between two values is a select and no branch; what an element at the index holds is no index.
    """
    for loop in innermost(source):
        name = variable(loop)
        if name is None or _in_constexpr(source.code, loop.start):
            continue
        body = runtime_code(loop.body)
        for match in re.finditer(r"\bif\s*\(", body):
            condition = body[match.end() : closing(body, match.end() - 1)]
            if _mentions(condition, name):
                yield loop.body_start + match.start(), f"if ({' '.join(condition.split())})"
        for match in _CHOICE.finditer(body):
            if _CALLS.search(match["arms"]) and _mentions(re.split(r"[=(,]", match["condition"])[-1], name):
                yield loop.body_start + match.start(), " ".join(match.group().split())


def _mentions(condition: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", re.sub(r"\[[^\[\]]*\]", " ", condition)) is not None


def _in_constexpr(code: str, position: int) -> bool:
    """Whether a position is in a function that the compiler evaluates."""
    for match in re.finditer(r"\bconstexpr\b[^;{}=]*\([^;{}]*\)\s*(?:const\s*)?\{", code):
        end = closing(code, match.end() - 1)
        if match.end() <= position < end:
            return True
    return False


def innermost(source: Source) -> list[Loop]:
    """Loops that hold no other."""
    return [loop for loop in source.loops() if not re.search(r"\b(for|while)\s*\(", loop.body)]


def variable(loop: Loop) -> str | None:
    """The variable of a `for` loop."""
    found = _HEADER.fullmatch(loop.header.strip())
    return found["name"] if found and loop.keyword == "for" else None


def uneven_steps(source: Source) -> Found:
    """Loops in steps of a vector over an extent that is no multiple of it."""
    for loop in source.loops():
        found = _HEADER.fullmatch(loop.header.strip())
        if found is None:
            continue
        step = re.fullmatch(rf"\s*{found['name']}\s*\+=\s*(.+)", found["step"].strip(), re.S)
        test = re.fullmatch(rf"\s*{found['name']}\s*(?:<|!=)\s*(.+)", found["test"].strip(), re.S)
        if step is None or test is None:
            continue
        first, last, width = (source.value(t) for t in (found["first"], test.group(1), step.group(1)))
        if first is not None and last is not None and width is not None and width > 1 and (last - first) % width:
            yield loop.start, f"{last - first} elements in steps of {width} leave {(last - first) % width}"


def idle_hints(source: Source) -> Found:
    """Loops whose hints are read by another compiler than the one in use, or switch pipelining off."""
    for match in UNDONE.finditer(source.code):
        yield match.start(), f"{match.group()} switches the pipelining of the loop off"
    for loop in source.loops():
        before = source.code[: loop.start]
        begin = max(before.rfind(c) for c in ";{}") + 1
        hints = before[begin:]
        chess = CHESS.search(hints) or re.match(r"\s*" + CHESS.pattern, loop.body)
        if chess and "chess_storage" not in chess.group() and not REAL.search(hints):
            yield loop.start, f"{chess.group().strip()} is the only hint and Peano does not read it"
