"""Whether an emitted design, lowered, is the planned one: both in one form, which is compared and hashed.

Not part of the form: names of tile DMAs, the order of consumers (each sees every object), how a depth is written (the
pools that come of it are), the form of packed constants, the rows that stand in for a window's rows outside of the
image, what only reports need.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from manifest.device import DEVICES, load_device
from manifest.io import canonical_json, sha256_hex
from presim.design import Acquire, Call, Design, Endpoint, Fifo, Loop, Release, Step, Transfer
from presim.pools import wire
from presim.simulate.host import host_program, tap_order
from presim.static.structure import structure
from presim.steps import elements_of, side_of, variable_of

Form = dict[str, Any]
MAX_SHOWN: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How two designs are brought to the same names.

    Attributes:
        symbol: of a row of `Design.kernels`.
        scalars: names of a symbol's scalars in C order.
        buffers: that the emitted design has; the code may do without some of the planned ones.
        constants: fifos whose objects are packed.
    """

    symbol: Callable[[str], str]
    scalars: Mapping[str, Sequence[str]]
    buffers: frozenset[str]
    constants: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first thing that differs: where in the form, planned and lowered."""

    where: tuple[str, ...]
    planned: str
    lowered: str

    def line(self) -> str:
        """In words."""
        return f"{' > '.join(self.where)}: planned {self.planned}, the emitted design has {self.lowered}"


def form_of(design: Design, naming: Naming) -> Form:
    """The comparable form of a design; one that makes no sense has neither pools nor patterns, and says so."""
    problems = structure(design)
    return {
        "device": design.device,
        "worker": {w.name: _worker(design, w.name, naming) for w in design.workers},
        "fifo": {f.name: _fifo(f, naming) for f in design.fifos},
        "link": sorted(
            [k.kind, list(k.sources), list(k.targets), list(k.offsets) if k.kind != "forward" else [], _tile(k.tile)]
            for k in design.links
        ),
        "buffer": {b.name: b.array is not None for b in design.buffers if b.name in naming.buffers},
        "cascade": sorted([c.source, c.target] for c in design.cascades),
        "pool": {} if problems else _pools(design),
        "sequence": [] if problems else _sequence(design),
        "structure": f"{problems[0].where}: {problems[0].text}" if problems else "sound",
    }


def sha256_of(form: Form) -> str:
    """Hash of a form."""
    return sha256_hex(canonical_json(form))


def constants_of(design: Design, inputs: frozenset[str]) -> frozenset[str]:
    """Fifos that carry constants: held by a memory tile, filled from what is no input, or linked to such."""
    found = {f.name for f in design.fifos if f.init_array is not None}
    found |= {t.fifo for t in design.sequence if t.direction == "fill" and t.tensor not in inputs}
    while True:
        more = {n for link in design.links if set(link.sources) <= found for n in link.targets} - found
        if not more:
            return frozenset(found)
        found |= more


def difference(planned: Any, lowered: Any, where: tuple[str, ...] = ()) -> Difference | None:
    """The first difference of two forms, None where they are equal."""
    if planned == lowered:
        return None
    if isinstance(planned, dict) and isinstance(lowered, dict):
        if "structure" in lowered and lowered["structure"] != planned.get("structure"):
            # What makes no sense has no pools, which says nothing: the rest first, then why.
            planned = {k: v for k, v in planned.items() if k not in {"pool", "sequence"}}
            lowered = {k: v for k, v in lowered.items() if k not in {"pool", "sequence"}}
        for key in (*planned, *(k for k in lowered if k not in planned)):
            if key not in planned or key not in lowered:
                there, absent = ("present", "none") if key in planned else ("none", "one more")
                return Difference(where=(*where, key), planned=there, lowered=absent)
            found = difference(planned[key], lowered[key], (*where, key))
            if found is not None:
                return found
    if isinstance(planned, list) and isinstance(lowered, list) and len(planned) == len(lowered):
        for i, (a, b) in enumerate(zip(planned, lowered, strict=True)):
            found = difference(a, b, (*where, str(i)))
            if found is not None:
                return found
    return Difference(where=where, planned=_short(planned), lowered=_short(lowered))


def _short(value: Any) -> str:
    text = f"{len(value)} entries, {value}" if isinstance(value, list | dict) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


def _worker(design: Design, name: str, naming: Naming) -> Form:
    worker = next(w for w in design.workers if w.name == name)
    fifos = {f.name: f for f in design.fifos}
    return {
        "tile": _tile(worker.tile),
        "while_true": worker.while_true,
        "stack_bytes": worker.stack_bytes,
        "program": list(_steps(worker.program, name, fifos, naming, ())),
    }


def _steps(
    program: Sequence[Step], worker: str, fifos: Mapping[str, Fifo], naming: Naming, counters: tuple[str, ...]
) -> Iterator[Any]:
    for step in program:
        if isinstance(step, Loop):
            inner = (*counters, step.counter)
            yield ["loop", step.times, list(_steps(step.body, worker, fifos, naming, inner))]
        elif isinstance(step, Acquire | Release):
            kind = "acquire" if isinstance(step, Acquire) else "release"
            yield [kind, step.fifo, step.count, _side(fifos, worker, step.fifo, step.side)]
        else:
            yield _call(step, worker, fifos, naming, counters)


def _side(fifos: Mapping[str, Fifo], worker: str, fifo: str, side: Any) -> str:
    return side_of(fifos[fifo], worker, side) if fifo in fifos else str(side)


def _call(call: Call, worker: str, fifos: Mapping[str, Fifo], naming: Naming, counters: tuple[str, ...]) -> list[Any]:
    symbol = naming.symbol(call.kernel)
    objects = sorted(
        {(a.name, a.index, _side(fifos, worker, a.name, a.side)) for a in call.arguments if a.kind == "fifo"}
    )
    buffers = sorted({a.name for a in call.arguments if a.kind == "buffer" and a.name in naming.buffers})
    given = dict(call.scalars)
    names = naming.scalars.get(symbol, tuple(given))
    if given and not set(given) & set(names):  # lowered: s0, s1, ... in C order
        names = tuple(given)
    scalars = [_scalar(given.get(name, 0), counters) for name in names]
    return ["call", symbol, [list(o) for o in objects], buffers, scalars]


def _scalar(value: int | str, counters: tuple[str, ...]) -> list[int]:
    """[offset, factor, loop] of a scalar; loops counted from the outermost, -1 = none."""
    if isinstance(value, int):
        return [value, 0, -1]
    found = variable_of(value)
    if found is None or found[0] not in counters:
        return [0, 0, -2]
    name, factor, offset = found
    return [offset, factor, len(counters) - 1 - counters[::-1].index(name)]


def _fifo(fifo: Fifo, naming: Naming) -> Form:
    made: Form = {
        "producer": _end(fifo.producer),
        "consumers": sorted(_end(c) for c in fifo.consumers),
        "via_dma": fifo.via_dma,
        "repeat_count": fifo.repeat_count,
        "iter_count": fifo.iter_count,
        "starts_with": fifo.init_array is not None or fifo.init_objects > 0,
    }
    if fifo.name not in naming.constants:
        made["dtype"] = fifo.dtype
        made["shape"] = list(fifo.shape)
        made["consumer_shape"] = list(fifo.consumer_shape)
    return made


def _end(end: Endpoint) -> list[Any]:
    actor = end.actor if end.kind == "worker" else ""
    return [end.kind, actor, _tile(end.tile), [list(d) for d in end.dims]]


def _tile(tile: Any) -> list[Any]:
    return [] if tile is None else [tile.column, tile.row]


def _pools(design: Design) -> Form:
    """Depth, place and start of the pools of every fifo; their names carry names of DMAs."""
    arch = load_device(design.device).arch if design.device in DEVICES else "aie2"
    found: dict[str, list[Any]] = {}
    for pool in wire(design, arch).pools.values():
        row = [pool.kind, pool.tile_kind, _tile(pool.tile), pool.depth, pool.static, len(pool.segments)]
        found.setdefault(pool.fifo, []).append(row)
    return {name: sorted(rows) for name, rows in found.items()}


def _sequence(design: Design) -> list[Any]:
    """What is started and awaited, in order; access patterns by the elements that they touch."""
    fifos = {f.name: f for f in design.fifos}
    program = host_program(design.sequence)
    tasks = [_transfer(t, fifos) for t in design.sequence]
    return [["start", *tasks[i[0]]] if starts else ["await", *(tasks[k][:3] for k in i)] for starts, i in program]


def _transfer(transfer: Transfer, fifos: Mapping[str, Fifo]) -> list[Any]:
    fifo = fifos[transfer.fifo]
    shape = fifo.shape if transfer.direction == "fill" else fifo.consumer_shape or fifo.shape
    order = tap_order(transfer, elements_of(shape))
    digest = hashlib.sha256(order.tobytes()).hexdigest()[:16]
    return [transfer.direction, transfer.fifo, transfer.tensor, transfer.objects, int(order[0]), digest]
