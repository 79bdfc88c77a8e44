"""All levers over a generated folder, in the order in which the guide pulls them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bringup.lint.cxx import Source
from bringup.lint.model import Folder
from optimize.evidence import ScreenEvidence
from optimize.screening import loops, operands
from optimize.screening.arrays import arrays_of
from optimize.screening.model import UNCONFIRMED, Candidate, Hits, View
from optimize.screening.reach import reached


@dataclass(frozen=True, slots=True)
class Lever:
    """One rule: what it says, what kind of change it asks for, who finds it."""

    title: str
    lever_class: str
    find: Callable[[View], Hits]


RULES: Final[Mapping[str, Lever]] = {
    "KS01": Lever("loop hints that the compiler reads", "pipelining", loops.hints),
    "KS02": Lever("shapes known when it is compiled", "specialisation", loops.shapes),
    "KS03": Lever("no signed division by a power of two", "arithmetic", loops.divisions),
    "KS04": Lever("no branch in the inner loop", "control flow", loops.branches),
    "KS05": Lever("vectorized epilogue in the right rounding mode", "epilogue", loops.epilogues),
    "KS06": Lever("operands packed in mmul order", "operand layout", operands.packing),
    "KS07": Lever("explicit wide copies", "memory access", loops.copies),
    "KS08": Lever("the widest mmul of the device", "instruction", operands.wider),
    "KS09": Lever("layout moved to the DMA", "data movement", operands.movement),
    "KS10": Lever("no scalar kernel on the hot path", "vectorization", operands.scalar),
    "KS11": Lever("32-bit accumulators where they are proved", "accumulator", operands.accumulators),
    "KS12": Lever("a shift instead of a multiplier", "requantisation", operands.multipliers),
}
"""In the order of the levers: cheap and certain first."""


def screen(files: Mapping[str, bytes]) -> tuple[Candidate, ...]:
    """Candidates of every kernel, by lever, then kernel, file and line.

    Args:
        files: the generated folder, path -> content, with `generated.json`.
    """
    found: dict[Candidate, None] = {}
    views = list(views_of(files))
    for code, lever in RULES.items():
        rows = [candidate for view in views for candidate in _candidates(view, code, lever)]
        found |= dict.fromkeys(sorted(rows, key=lambda c: (c.kernel, c.file, c.line, c.text)))
    return tuple(found)


def screen_evidence(files: Mapping[str, bytes]) -> tuple[ScreenEvidence, ...]:
    """The same as evidence of the gate: nothing of it is confirmed."""
    return tuple(
        ScreenEvidence(kernel=c.kernel, rule=c.rule, confidence=c.confidence, text=_placed(c), confirmed=False)
        for c in screen(files)
    )


def _placed(candidate: Candidate) -> str:
    where = f"{candidate.file}:{candidate.line}" if candidate.line else candidate.file
    return f"{where}: {candidate.text}"


def _candidates(view: View, code: str, lever: Lever) -> Iterator[Candidate]:
    for hit in lever.find(view):
        line = 0 if hit.position < 0 else view.sources[hit.file].line(hit.position)
        yield Candidate(
            kernel=view.symbol,
            file=hit.file,
            line=line,
            rule=code,
            lever_class=lever.lever_class,
            confidence=hit.confidence,
            text=f"{hit.text}; {UNCONFIRMED}",
        )


def views_of(files: Mapping[str, bytes]) -> Iterator[View]:
    """Kernels of a folder as the rules look at them."""
    folder = Folder(files)
    index = folder.index()
    rows: Mapping[str, Mapping[str, Any]] = index.get("kernels", {})
    arrays = arrays_of(files, rows)
    texts = {name: folder.text(name) for name in folder.sources()}
    includes = {name: Source(text).includes for name, text in texts.items()}
    for symbol, row in sorted(rows.items()):
        file = f"kernels/{symbol}.cc"
        if file in texts:
            yield View(
                symbol=symbol,
                file=file,
                row=row,
                device=str(index.get("device", "")),
                sources=reached(file, texts, _headers(file, includes)),
                arrays={name: tuple(found) for name, found in arrays.get(symbol, {}).items()},
            )


def _headers(file: str, includes: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Headers of the folder that a source takes in, transitively."""
    found: dict[str, None] = {}
    pending = [file]
    while pending:
        for header in includes[pending.pop()]:
            path = f"kernels/{header}"
            if path in includes and path not in found:
                found[path] = None
                pending.append(path)
    return list(found)
