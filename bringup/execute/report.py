"""What ended a child: the sanitizers' report and the last event, as worker, kernel and argument."""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bringup.execute.abi import ExternalAbi, PointerAbi
from bringup.execute.events import LastEvent

CrashKind = Literal["read_overrun", "write_overrun", "undefined", "memory", "signal", "timeout", "internal"]
MAX_REPORT_BYTES: Final = 1 << 20
REACH_BYTES: Final = 4096
"""How far beside a block an access is still taken to be meant for it."""

_ADDRESS: Final = re.compile(
    r"ERROR: AddressSanitizer: (?:attempting )?(?P<kind>[\w-]+)[^\n]*?(?:address |at )?0x(?P<address>[0-9a-f]+)"
)
_PLAIN: Final = re.compile(r"ERROR: AddressSanitizer: (?P<kind>[^\n]+)")
_ACCESS: Final = re.compile(r"^(?P<what>READ|WRITE) of size (?P<size>\d+)", re.M)
_REGION: Final = re.compile(r"(?P<size>\d+)-byte region \[0x(?P<begin>[0-9a-f]+),0x[0-9a-f]+\)")
_RUNTIME: Final = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? runtime error: (?P<text>[^\n]+)", re.M)
_FRAME: Final = re.compile(r"^ *#\d+ 0x[0-9a-f]+ in (?P<function>.+?) (?P<file>[^\s:]+):(?P<line>\d+)", re.M)
_FOLDER: Final = re.compile(r"^.*/build-[0-9a-f]{16}(?:-fast)?/(?:src/)?")
_OURS: Final = ("trampoline.cc", "trampoline.h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The end of a child that was none of its own.

    Attributes:
        kind: see `CrashKind`.
        text: one line with kernel, argument and source.
        worker: of the design, "" = it was in no kernel.
        kernel: symbol, likewise.
        argument: name of the pointer, "" = not known.
        offset_bytes: of the access from the begin of the argument's block, None = not known.
        source: `file:line`, "" = not known.
        scalars: of the call.
        report: what the sanitizer says, shortened.
    """

    kind: CrashKind
    text: str
    worker: str = ""
    kernel: str = ""
    argument: str = ""
    offset_bytes: int | None = None
    source: str = ""
    scalars: tuple[int, ...] = ()
    report: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """An access outside of a block."""

    number: int
    offset: int


def crash_of(
    status: int,
    stderr: str,
    event: LastEvent,
    *,
    externals: Sequence[ExternalAbi],
    workers: Sequence[str],
    sources: Sequence[str],
    timeout_s: float,
) -> Crash:
    """Explain the end of a child.

    Args:
        status: exit code, or minus the signal.
        stderr: what it wrote there.
        event: what it did last.
        externals: functions of its library.
        workers: of the design, in order.
        sources: files that kernels were compiled from.
        timeout_s: that it had.
    """
    if event.stage != "kernel":
        return _outside(status, stderr, timeout_s)
    external = externals[event.kernel]
    worker = workers[event.worker]
    rows = dict(zip((s.name or f"s{i}" for i, s in enumerate(external.scalars)), event.scalars, strict=False))
    called = f"kernel {external.symbol} of worker {worker}" + (f" ({_words(rows)})" if rows else "")
    kind, what, hit = _what(status, stderr, event, external, timeout_s)
    source = _source(stderr, sources)
    return Crash(
        kind=kind,
        text=f"{called} {what}" + (f" at {source}" if source else ""),
        worker=worker,
        kernel=external.symbol,
        argument="" if hit is None else external.pointer_name(hit.number),
        offset_bytes=None if hit is None else hit.offset,
        source=source,
        scalars=event.scalars,
        report=stderr[:4000],
    )


def _outside(status: int, stderr: str, timeout_s: float) -> Crash:
    if status == -signal.SIGALRM:
        return Crash(kind="timeout", text=f"the simulation took more than {timeout_s:g} s")
    last = [line for line in stderr.strip().splitlines() if line.strip()][-1:] or ["nothing was said"]
    return Crash(
        kind="internal", text=f"the simulation ended with status {status}: {last[0][:300]}", report=stderr[:4000]
    )


def _what(
    status: int, stderr: str, event: LastEvent, external: ExternalAbi, timeout_s: float
) -> tuple[CrashKind, str, _Hit | None]:
    runtime = _RUNTIME.search(stderr)
    if runtime is not None:
        return "undefined", f"has undefined behaviour: {runtime['text']}", None
    address = _ADDRESS.search(stderr)
    if address is not None:
        return _access(stderr, address, event, external)
    plain = _PLAIN.search(stderr)
    if plain is not None:
        return "memory", f"breaks memory: {plain['kind'][:200]}", None
    if status == -signal.SIGALRM:
        return "timeout", f"did not return within {timeout_s:g} s", None
    if status < 0:
        last = stderr.strip().splitlines()[-1:]
        said = f": {last[0][:200]}" if last else ""
        return "signal", f"ended the process with {_signal(status)}{said}", None
    return "internal", f"ended the process with status {status}", None


def _access(
    stderr: str, found: re.Match[str], event: LastEvent, external: ExternalAbi
) -> tuple[CrashKind, str, _Hit | None]:
    address = int(found["address"], 16)
    access = _ACCESS.search(stderr)
    if access is None:
        return "memory", f"breaks memory ({found['kind']})", None
    writes = access["what"] == "WRITE"
    kind: CrashKind = "write_overrun" if writes else "read_overrun"
    verb, size = ("writes" if writes else "reads"), int(access["size"])
    count = f"{size} byte" + ("s" if size != 1 else "")
    region = _REGION.search(stderr) if found["kind"].startswith("heap") else None
    hit = _hit(address, event.blocks, external.pointers, None if region is None else int(region["begin"], 16))
    if hit is None:
        return kind, f"{verb} {count} where it has no memory ({found['kind']})", None
    row = external.pointers[hit.number]
    name = external.pointer_name(hit.number)
    return kind, f"{verb} {count} at offset {hit.offset} of {name}, which has {row.size_bytes} bytes", hit


def _hit(address: int, blocks: Sequence[int], pointers: Sequence[PointerAbi], begin: int | None) -> _Hit | None:
    """The block whose edge the access is nearest to, or the one that the report names."""
    best: tuple[int, _Hit] | None = None
    for number, (block, row) in enumerate(zip(blocks, pointers, strict=False)):
        offset = address - block
        if block == begin:
            return _Hit(number=number, offset=offset)
        distance = -offset if offset < 0 else max(0, offset - row.size_bytes + 1)
        if distance <= REACH_BYTES and (best is None or distance < best[0]):
            best = (distance, _Hit(number=number, offset=offset))
    return None if best is None else best[1]


def _source(stderr: str, sources: Sequence[str]) -> str:
    """The innermost frame in the kernels' own files."""
    runtime = _RUNTIME.search(stderr)
    places = [(_FOLDER.sub("", f["file"]), f["line"]) for f in _FRAME.finditer(stderr)]
    if runtime is not None:
        places.insert(0, (_FOLDER.sub("", runtime["file"]), runtime["line"]))
    known = set(sources)
    for file, line in places:
        if file in known:
            return f"{file}:{line}"
    for file, line in places:
        name = Path(file).name
        if not Path(file).is_absolute() and name not in _OURS and not file.startswith("../"):
            return f"{file}:{line}"
    return ""


def _signal(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _words(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in rows.items())
