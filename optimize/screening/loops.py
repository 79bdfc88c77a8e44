"""Levers on loops: hints, shapes known to the compiler, division, branches, scalar epilogues, copies."""

import re
from typing import Final

from bringup.lint.cxx import Loop, Source, closing
from bringup.lint.loops import REAL, power_of_two_divisions, runtime_code, variable
from optimize.screening.model import Hit, Hits, View

_VECTOR: Final = re.compile(r"\baie::|\.mac\(|\.mul\(|\.template\s+to_vector|\bmac\(")
_BOUNDED: Final = re.compile(r"[^;]*;[^;]*(?:<|<=|!=)\s*(?P<bound>[^;&|]+);")
_STEP: Final = re.compile(r"=\s*(?P<first>[^;]+);\s*(?P<name>\w+)\s*<\s*(?P<last>[^;]+);\s*(?:\+\+\w+|\w+\+\+)")
_ROUND: Final = re.compile(r"(?:1\s*<<|>>)[^;]*>>|>>\s*(?:shift|requant|[a-z_]\w*(?:\[[^\]]*\])?)")
_STORE: Final = re.compile(r"\w+\s*\[[^\]]*\]\s*=(?!=)")
_CONSTEXPR: Final = re.compile(r"\bconstexpr\b[^;{}]*;")
_WORDS: Final = frozenset(["sizeof", "int32_t", "unsigned"])
_COPY: Final = re.compile(
    r"\s*\{?\s*(?P<to>\w+)\s*\[[^\]]*\]\s*=\s*(?P<from>\w+\s*\[[^\]]*\]|-?\d+|\w+\(0\))\s*;\s*\}?\s*"
)


def hints(view: View) -> Hits:
    """Innermost loops with vector work and no hint that Peano reads."""
    for name, source, loop in view.inner():
        before = source.code[: loop.start]
        begin = max(before.rfind(c) for c in ";{}") + 1
        if REAL.search(before[begin:]) or _constant_function(source, loop) or _short(loop, source):
            continue
        if _VECTOR.search(loop.body):
            yield Hit(
                file=name,
                position=loop.start,
                confidence="medium",
                text="an innermost loop with vector work has no hint of its least number of passes",
            )


def shapes(view: View) -> Hits:
    """Loops whose number of passes only run time knows."""
    for name, source in view.sources.items():
        for loop in source.loops():
            found = _BOUNDED.match(loop.header + ";") if loop.keyword == "for" else None
            if found is None or _constant_function(source, loop):
                continue
            bound = found["bound"].strip()
            words = [w for w in re.findall(r"(?:\w+(?:::|\.|->))*[A-Za-z_]\w*", bound) if not _known(w, source)]
            if words:
                text = f"the number of passes depends on {words[0]}, which is no compile-time figure"
                yield Hit(file=name, position=loop.start, confidence="medium", text=text)


def divisions(view: View) -> Hits:
    """Signed divisions by powers of two: a shift or a mask does it where the sign allows."""
    for name, source in view.sources.items():
        for position, text in power_of_two_divisions(source):
            yield Hit(
                file=name, position=position, confidence="high", text=f"signed division by a power of two: {text}"
            )


def branches(view: View) -> Hits:
    """Branches that are left for run time in innermost loops."""
    for name, source, loop in view.inner():
        if _constant_function(source, loop):
            continue
        body = runtime_code(loop.body)
        for match in re.finditer(r"\bif\s*\(", body):
            test = body[match.end() : closing(body, match.end() - 1)]
            index = variable(loop)
            on_index = index is not None and re.search(rf"\b{index}\b", test) is not None
            yield Hit(
                file=name,
                position=loop.body_start + match.start(),
                confidence="high" if on_index else "medium",
                text=f"a branch in an innermost loop: if ({' '.join(test.split())}); peel the loop or select",
            )


def epilogues(view: View) -> Hits:
    """Rounding and storing element by element in plain code."""
    wanted = view.row.get("rounding", "") or "the mode of the tile"
    for name, _, loop in view.inner():
        if _STORE.search(loop.body) and _ROUND.search(loop.body) and not _VECTOR.search(loop.body):
            text = f"rounds and stores one element at a time; to_vector(shift) in mode {wanted} does a vector"
            yield Hit(file=name, position=loop.start, confidence="medium", text=text)


def copies(view: View) -> Hits:
    """Copies and fills of one element at a time."""
    for name, source, loop in view.inner():
        found = _COPY.fullmatch(loop.body)
        if found is None or _constant_function(source, loop):
            continue
        what = "copies" if "[" in found["from"] else "fills"
        text = f"{what} {found['to']} one element at a time; an explicit vector load and store is wider"
        yield Hit(file=name, position=loop.start, confidence="medium", text=text)


def _short(loop: Loop, source: Source) -> bool:
    """Whether a loop is known to have one pass at most."""
    found = _STEP.search(loop.header)
    if found is None:
        return False
    first, last = source.value(found["first"]), source.value(found["last"])
    return first is not None and last is not None and last - first <= 1


def _known(word: str, source: Source) -> bool:
    """Whether a name is a compile-time figure: capitals, a member of a type, a constant of a file."""
    last = re.split(r"::|\.|->", word)[-1]
    if last.isupper() or "::" in word or last in source.constants or last in _WORDS:
        return True
    return any(re.search(rf"\b{last}\s*=(?!=)", text) for text in _CONSTEXPR.findall(source.code))


def _constant_function(source: Source, loop: Loop) -> bool:
    """Whether the compiler evaluates the function around a loop."""
    for match in re.finditer(r"\bconstexpr\b[^;{}=]*\([^;{}]*\)\s*(?:const\s*)?\{", source.code[: loop.start]):
        end = closing(source.code, match.end() - 1)
        if end < 0 or loop.start < end:
            return True
    return False
