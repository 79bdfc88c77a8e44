"""Budgets of tiles: DMA channels, buffer descriptors, locks, data and program memory, each row need against have.

Counts follow the page ObjectFifoLowering of mlir-aie: a chain has one descriptor per object and segment, times the
repeat count where it sends; a segment has two semaphore locks (first generation: one lock per object).
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from presim.design import Call, Tile, Worker
from presim.evidence import BudgetRow
from presim.pools import Pool, StreamEnd
from presim.static.findings import Checked, StaticFinding, error
from presim.static.host import outstanding
from presim.static.scope import Scope, judged, place
from presim.steps import elements_of, steps_of

CHANNELS: Final = "dma_channels"
DESCRIPTORS: Final = "buffer_descriptors"
HALVES: Final = "descriptor_halves"
LOCKS: Final = "locks"
DATA: Final = "data_memory"
PROGRAM: Final = "program_memory"

ALIGNMENT_BYTES: Final = 32
"""Buffers begin at multiples of the widest access of every generation's compiler."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Descriptors of one DMA channel."""

    fifo: str
    direction: str
    descriptors: int


@dataclass(slots=True)
class Use:
    """What a tile has to hold: channels with their descriptors, locks, and bytes by what they are for."""

    chains: list[Chain] = field(default_factory=list)
    locks: int = 0
    data_bytes: dict[str, int] = field(default_factory=dict)
    program_bytes: int = 0

    def channels(self, direction: str) -> list[str]:
        """Fifos on the channels of a direction."""
        return [chain.fifo for chain in self.chains if chain.direction == direction]


def uses(scope: Scope) -> dict[Tile, Use]:
    """What every tile that something is placed on has to hold."""
    found: dict[Tile, Use] = {}
    for stream in scope.wiring.streams:
        for direction, end, repeat in (
            ("MM2S", stream.source, stream.repeat_count),
            *(("S2MM", target, 1) for target in stream.targets),
        ):
            if end.tile is not None:
                count = _descriptors(scope, end, stream.fifo) * repeat
                found.setdefault(end.tile, Use()).chains.append(Chain(stream.fifo, direction, count))
    for pool in scope.wiring.pools.values():
        if pool.tile is not None:
            use = found.setdefault(pool.tile, Use())
            use.locks += _locks(scope, pool)
            use.data_bytes[f"fifo {pool.name}"] = pool.allocated * _aligned(
                pool.elements * np.dtype(pool.dtype).itemsize
            )
    for worker in scope.design.workers:
        if worker.tile is not None:
            _add_worker(scope, worker, found.setdefault(worker.tile, Use()))
    users = _user_tiles(scope)
    for buffer in scope.design.buffers:
        tile = buffer.tile or users.get(buffer.name)
        if tile is not None:
            bytes_ = elements_of(buffer.shape) * np.dtype(buffer.dtype).itemsize
            found.setdefault(tile, Use()).data_bytes[f"buffer {buffer.name}"] = _aligned(bytes_)
    return dict(sorted(found.items()))


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def _descriptors(scope: Scope, end: StreamEnd, fifo: str) -> int:
    if not end.pool:
        return outstanding(scope.design.sequence).get(fifo, 0)
    return scope.wiring.pools[end.pool].allocated * len(end.segments)


def _locks(scope: Scope, pool: Pool) -> int:
    if scope.device.arch == "aie1":
        return pool.allocated
    return 0 if pool.static else 2 * len(pool.segments)


def _add_worker(scope: Scope, worker: Worker, use: Use) -> None:
    called = {s.kernel for s in steps_of(worker.program) if isinstance(s, Call)}
    use.data_bytes["stack"] = max(use.data_bytes.get("stack", 0), worker.stack_bytes)
    for kernel in scope.design.kernels:
        if kernel.name in called:
            use.program_bytes += kernel.program_bytes
            if kernel.table_bytes:
                use.data_bytes[f"tables of {kernel.name}"] = _aligned(kernel.table_bytes)


def _user_tiles(scope: Scope) -> dict[str, Tile | None]:
    """By buffer the tile of the first worker that uses it."""
    found: dict[str, Tile | None] = {}
    for worker in scope.design.workers:
        for step in steps_of(worker.program):
            if isinstance(step, Call):
                for argument in step.arguments:
                    if argument.kind == "buffer":
                        found.setdefault(argument.name, worker.tile)
    return found


def _rows(scope: Scope) -> Iterator[tuple[str, BudgetRow, str]]:
    """(check, row, device figure) of every budget of every tile."""
    for tile, use in uses(scope).items():
        for what, need, figure, check in _needs(tile, use):
            yield (
                check,
                BudgetRow(
                    dispatch=scope.design.dispatch,
                    place=place(tile),
                    what=what,
                    need=need,
                    have=scope.figure(figure),
                    figure=figure,
                ),
                figure,
            )


def _needs(tile: Tile, use: Use) -> Iterator[tuple[str, int, str, str]]:
    for direction in ("S2MM", "MM2S"):
        fifos = use.channels(direction)
        if fifos:
            yield f"{direction} channels", len(fifos), f"{tile.kind}_{direction.lower()}", CHANNELS
    if use.chains:
        yield "buffer descriptors", sum(c.descriptors for c in use.chains), f"{tile.kind}_bds", DESCRIPTORS
    if use.locks:
        yield "locks", use.locks, f"{tile.kind}_locks", LOCKS
    if tile.kind in {"core", "mem"} and use.data_bytes:
        figure = "l1_bytes" if tile.kind == "core" else "memtile_bytes"
        yield "bytes of data memory", sum(use.data_bytes.values()), figure, DATA
    if use.program_bytes:
        yield "bytes of program memory", use.program_bytes, "program_memory_bytes", PROGRAM


def budget_rows(scope: Scope) -> tuple[BudgetRow, ...]:
    """Every budget of every tile, need against have; `have` None = the catalogue does not know it."""
    return tuple(row for _, row, _ in _rows(scope))


def _judge(scope: Scope, check: str) -> Checked:
    rows = [(row, figure) for name, row, figure in _rows(scope) if name == check]
    return judged(check, [row for row, _ in rows], {row.what: figure for row, figure in rows}, scope)


def _explained(scope: Scope, found: Checked) -> Checked:
    """Name what fills a tile that is over its budget."""
    by_place = {place(tile): use for tile, use in uses(scope).items()}
    named = []
    for finding in found.findings:
        where, what = finding.where.split("), ", 1)
        detail = _detail(by_place[f"{where})"], what)
        text = f"{finding.text}: {detail}" if finding.severity == "error" and detail else finding.text
        named.append(
            StaticFinding(
                rule=finding.rule,
                severity=finding.severity,
                where=finding.where,
                text=text,
                used=finding.used,
                limit=finding.limit,
                figure=finding.figure,
            )
        )
    return Checked(rule=found.rule, looked_at=found.looked_at, findings=tuple(named))


def _detail(use: Use, what: str) -> str:
    if what.endswith("channels"):
        return ", ".join(use.channels(what.split(maxsplit=1)[0]))
    if what.startswith("bytes of data"):
        return ", ".join(f"{name} {count}" for name, count in use.data_bytes.items())
    if what.startswith("buffer"):
        return ", ".join(f"{c.fifo} {c.direction} {c.descriptors}" for c in use.chains)
    return ""


def dma_channels(scope: Scope) -> Checked:
    """No tile needs more DMA channels of a direction than it has; the fifos on them are named."""
    return _explained(scope, _judge(scope, CHANNELS))


def buffer_descriptors(scope: Scope) -> Checked:
    """No tile needs more buffer descriptors than it has."""
    return _explained(scope, _judge(scope, DESCRIPTORS))


def locks(scope: Scope) -> Checked:
    """No tile needs more locks than it has."""
    return _judge(scope, LOCKS)


def data_memory(scope: Scope) -> Checked:
    """Fifos, buffers, tables and stack of a tile fit its data memory."""
    return _explained(scope, _judge(scope, DATA))


def program_memory(scope: Scope) -> Checked:
    """The kernels that a core runs fit its program memory, as far as their sizes are assumed."""
    return _judge(scope, PROGRAM)


def descriptor_halves(scope: Scope) -> Checked:
    """In a memory tile even channels reach one half of the descriptors and odd channels the other."""
    found: list[StaticFinding] = []
    looked_at = 0
    total = scope.figure("mem_bds")
    for tile, use in uses(scope).items():
        if tile.kind != "mem" or not use.chains:
            continue
        looked_at += 1
        if total:
            found += _halves(tile, use, total)
    return Checked(rule=HALVES, looked_at=looked_at, findings=tuple(found))


def _halves(tile: Tile, use: Use, total: int) -> Iterator[StaticFinding]:
    half = total // 2
    alone = [c for c in use.chains if c.descriptors > half]
    for chain in alone:
        text = (
            f"fifo {chain.fifo!r} needs {chain.descriptors} descriptors on one {chain.direction} channel, which reaches"
            f" {half} of {total}"
        )
        yield error(HALVES, place(tile), text, used=chain.descriptors, limit=half)
    if alone:
        return
    best = best_halves(use.chains)
    if best is not None and max(best) > half:
        text = f"no numbering of its channels fits: at best {best[0]} and {best[1]} descriptors in halves of {half}"
        yield error(HALVES, place(tile), text, used=max(best), limit=half)


def best_halves(chains: list[Chain]) -> tuple[int, int] | None:
    """Descriptors on (even, odd) channels in the numbering with the smallest larger half.

    Returns:
        None where a direction has more than six channels, which another check says.
    """
    options = []
    for direction in ("S2MM", "MM2S"):
        counts = [c.descriptors for c in chains if c.direction == direction]
        if len(counts) > 6:
            return None
        sums = set()
        for size in range(max(0, len(counts) - 3), min(3, len(counts)) + 1):
            sums |= {sum(counts[i] for i in chosen) for chosen in itertools.combinations(range(len(counts)), size)}
        options.append({(even, sum(counts) - even) for even in sums})
    return min(((a[0] + b[0], a[1] + b[1]) for a in options[0] for b in options[1]), key=max)
