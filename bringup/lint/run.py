"""All rules over a generated folder."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bringup.lint import headers, iron, kernels, loops
from bringup.lint.cxx import Source
from bringup.lint.design import DesignFile, read_design
from bringup.lint.model import Folder, LintFinding

KernelRule = Callable[[Source, Mapping[str, Any]], loops.Found]
DesignRule = Callable[[DesignFile], iron.Found]

_EVERYWHERE: Final[Mapping[str, tuple[str, Callable[[Source], loops.Found]]]] = {
    "GL001": ("loop hints are read by Peano", loops.idle_hints),
    "GL009": ("no signed division by a power of two", loops.power_of_two_divisions),
    "GL010": ("no division in loops", loops.divisions_in_loops),
    "GL011": ("no branch on the index in innermost loops", loops.index_branches),
    "GL004": ("vectors divide what a loop walks over", loops.uneven_steps),
}
"""Rules on kernels and headers."""

_SOURCES: Final[Mapping[str, tuple[str, KernelRule]]] = {
    "GL002": ("no chess_storage", kernels.storage),
    "GL003": ("pointer parameters are __restrict", kernels.restricted),
    "GL008": ("no inline assembly", kernels.assembly),
    "GL012": ("no floating-point in integer kernels", kernels.floats),
}
"""Rules on kernels and headers that want the kernel's row."""

_ENTRIES: Final[Mapping[str, tuple[str, KernelRule]]] = {
    "GL006": ("rounding and saturation are set first", kernels.modes),
    "GL007": ("event0 and event1 bracket the entry", kernels.events),
    "GL014": ("one function with C linkage", kernels.linkage),
}
"""Rules on kernels."""

_DESIGNS: Final[Mapping[str, tuple[str, DesignRule]]] = {
    "GL020": ("design files import IRON, numpy and the standard library", iron.imports),
    "GL021": ("names are those of IRON 1.4", iron.names),
    "GL022": ("IRON is called with keywords of 1.4", iron.keywords),
    "GL023": ("no acquire beyond the depth", iron.depths),
    "GL024": ("workers hold nothing at the end", iron.balance),
    "GL025": ("parts of splits and joins tile the object", iron.splits),
    "GL026": ("objects are whole words", iron.words),
    "GL027": ("every end of a fifo has its user", iron.filled),
    "GL028": ("drains are waited for", iron.drained),
    "GL032": ("no task beyond the queue of its channel", iron.queued),
    "GL033": ("stacks are whole vectors", iron.stacks),
}
"""Rules on design files."""

MULTIPLICATION: Final = "GL005"
SIGNATURE: Final = "GL013"
WEIGHTS: Final = "GL029"
HASHES: Final = "GL030"
SYNTAX: Final = "GL031"

RULES: Final[Mapping[str, str]] = dict(
    sorted(
        {
            **{
                code: title
                for table in (_EVERYWHERE, _SOURCES, _ENTRIES, _DESIGNS)
                for code, (title, _) in table.items()
            },
            MULTIPLICATION: "mmul shapes are the device's and divide the weights",
            SIGNATURE: "kernels take what the design declares",
            WEIGHTS: "stored arrays are what the design declares",
            HASHES: "hashes match",
            SYNTAX: "design files are Python",
        }.items()
    )
)
"""Code -> title."""


def lint(files: Mapping[str, bytes]) -> tuple[LintFinding, ...]:
    """Every breach of every rule, by file and line.

    Args:
        files: the generated folder, path -> content.
    """
    folder = Folder(files)
    found = [LintFinding(file=f, line=n, rule=HASHES, text=t) for f, n, t in headers.hashes(folder)]
    found += _kernels(folder)
    found += _designs(folder)
    return tuple(sorted(set(found)))


def _kernels(folder: Folder) -> Iterator[LintFinding]:
    index = folder.index()
    rows = index.get("kernels", {})
    device = str(index.get("device", ""))
    every = [p for row in rows.values() for p in row.get("parameters", ())]
    for name in folder.sources():
        source = Source(folder.text(name))
        symbol = name.rpartition("/")[2].removesuffix(".cc")
        row: Mapping[str, Any] = rows.get(symbol, {}) if name.endswith(".cc") else {"parameters": every}
        for code, (_, rule) in _EVERYWHERE.items():
            yield from _at(name, code, source, rule(source))
        tables = (_SOURCES, _ENTRIES) if name.endswith(".cc") else (_SOURCES,)
        for code, (_, of_row) in ((c, r) for table in tables for c, r in table.items()):
            yield from _at(name, code, source, of_row(source, row))
    yield from _multiplications(folder, rows, device)


def _multiplications(folder: Folder, rows: Mapping[str, Any], device: str) -> Iterator[LintFinding]:
    """Headers by themselves, and with the figures of every kernel that takes them in."""
    sources = {name: Source(folder.text(name)) for name in folder.sources()}
    for name, source in sources.items():
        row = rows.get(name.rpartition("/")[2].removesuffix(".cc"), {}) if name.endswith(".cc") else {}
        yield from _at(name, MULTIPLICATION, source, kernels.multiplications(source, row, device))
        for header in _taken_in(name, sources) if name.endswith(".cc") else ():
            found = kernels.multiplications(sources[header], row, device, source)
            yield from _at(header, MULTIPLICATION, sources[header], found)


def _taken_in(name: str, sources: Mapping[str, Source]) -> list[str]:
    """Headers of the folder that a source includes, those of headers too."""
    found: dict[str, None] = {}
    pending = [name]
    while pending:
        for header in sources[pending.pop()].includes:
            path = f"kernels/{header}"
            if path in sources and path not in found:
                found[path] = None
                pending.append(path)
    return list(found)


def _at(name: str, code: str, source: Source, found: loops.Found) -> Iterator[LintFinding]:
    for position, text in found:
        yield LintFinding(file=name, line=source.line(position), rule=code, text=text)


def _designs(folder: Folder) -> Iterator[LintFinding]:
    sources = {name: Source(folder.text(name)) for name in folder.kernels()}
    for name in folder.designs():
        try:
            file = read_design(folder.text(name))
        except SyntaxError as error:
            yield LintFinding(file=name, line=error.lineno or 0, rule=SYNTAX, text=str(error.msg))
            continue
        for code, (_, rule) in _DESIGNS.items():
            yield from (LintFinding(file=name, line=n, rule=code, text=t) for n, t in rule(file))
        inside = name.rpartition("/")[0]
        for line, text in iron.weights(file, inside, folder.files):
            yield LintFinding(file=name, line=line, rule=WEIGHTS, text=text)
        yield from _signatures(sources, name, file)


def _signatures(sources: Mapping[str, Source], name: str, file: DesignFile) -> Iterator[LintFinding]:
    for line, symbol, declared in iron.kernel_arguments(file):
        path = f"kernels/{symbol}.cc"
        if path not in sources:
            yield LintFinding(file=name, line=line, rule=SIGNATURE, text=f"{path}: there is no such kernel")
            continue
        source = sources[path]
        for position, text in kernels.signature(source, declared, symbol):
            yield LintFinding(file=path, line=source.line(position), rule=SIGNATURE, text=text)
