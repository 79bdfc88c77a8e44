"""What is brought up, in order: every stage alone, the chain grown by one stage each time, every dispatch as a whole.

Why the same pieces as in phase 2: a stage that is exact in the simulator and not in the generated sources has one
suspect, the code that was emitted for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from numpy.typing import NDArray

from bringup.model import JobKind
from manifest.device import Device
from phases.bringup.shims import with_shims
from phases.presim.flow import carries_activation, held
from phases.presim.simulation import Bench, expected_of, host_ends, host_form
from phases.presim.stages import Piece, Unit, cut
from presim.design import Design

Array = NDArray[Any]
Row = Mapping[str, Array]

STAGE_INPUTS: Final = 3
CHAIN_INPUTS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One job before it is emitted.

    Attributes:
        name: of the stage, of the chain's last stage, or of the dispatch.
        kind: stage, chain or dispatch.
        dispatch: of which.
        order: 0, 1, 2, ... over all dispatches.
        design: what is emitted.
        parts: stages in it.
        added: what of them is new against the step before of its kind.
        inputs: host tensors of each inference.
        expected: objects of fifos of each inference.
        outputs: host tensors that are drained, of each inference.
        carried: fifos that carry an activation and that the host does not fill: all have to be compared.
        unknown: fifos at the cut whose objects are not known, so that it cannot be run.
    """

    name: str
    kind: JobKind
    dispatch: str
    order: int
    design: Design
    parts: tuple[str, ...]
    added: tuple[str, ...]
    inputs: tuple[Row, ...]
    expected: tuple[Row, ...]
    outputs: tuple[Row, ...]
    carried: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def tasks_of(benches: Mapping[str, Bench], units: Mapping[str, Sequence[Unit]], device: Device) -> tuple[Task, ...]:
    """All tasks of a port.

    Args:
        benches: by dispatch, in their order, over inputs that differ.
        units: stages of each dispatch, in the order in which data reaches them.
        device: for the shim tiles of pieces.
    """
    numbers = count()
    found: list[Task] = []
    for name, bench in benches.items():
        found += [_stage(bench, unit, next(numbers), device) for unit in units[name] if unit.workers]
    for name, bench in benches.items():
        found += _chain(bench, units[name], numbers, device)
    found += [_whole(bench, units[name], next(numbers)) for name, bench in benches.items()]
    return tuple(found)


def _stage(bench: Bench, unit: Unit, order: int, device: Device) -> Task:
    piece = _piece(bench, unit.workers, device)
    return _piece_task(bench, piece, kind="stage", order=order, parts=(unit.name,), inferences=STAGE_INPUTS)


def _chain(bench: Bench, units: Sequence[Unit], numbers: Iterator[int], device: Device) -> list[Task]:
    workers: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    found = []
    for unit in units:
        if unit.workers:
            workers |= unit.workers
            parts = (*parts, unit.name)
            piece = _piece(bench, workers, device)
            task = _piece_task(bench, piece, kind="chain", order=next(numbers), parts=parts, inferences=CHAIN_INPUTS)
            found.append(task)
    return found


def _piece(bench: Bench, workers: frozenset[str], device: Device) -> Piece:
    """A piece with a shim tile at every end where it was cut."""
    piece = cut(bench.design, workers, bench.manifest, bench.counts)
    return replace(piece, design=with_shims(piece.design, device))


def _piece_task(
    bench: Bench, piece: Piece, *, kind: JobKind, order: int, parts: tuple[str, ...], inferences: int
) -> Task:
    rows = bench.streams[:inferences]
    drained = {t.tensor for t in piece.design.sequence if t.direction == "drain"}
    return Task(
        name=parts[-1],
        kind=kind,
        dispatch=bench.design.dispatch,
        order=order,
        design=piece.design,
        parts=parts,
        added=parts[-1:],
        inputs=tuple({n: row[n].reshape(-1) for n in piece.fed} for row in rows),
        expected=tuple(expected_of(piece.design, row) for row in rows),
        outputs=tuple({n: _held_flat(bench, piece.design, n, row) for n in drained if n in row} for row in rows),
        carried=_carried(bench, piece.design),
        unknown=piece.unknown,
    )


def _whole(bench: Bench, units: Sequence[Unit], order: int) -> Task:
    design = bench.design
    parts = tuple(u.name for u in units)
    return Task(
        name=design.dispatch,
        kind="dispatch",
        dispatch=design.dispatch,
        order=order,
        design=design,
        parts=parts,
        added=(design.dispatch,),
        inputs=tuple(host_row(design, row, "fill") for row in bench.tensors),
        expected=tuple(expected_of(design, row) for row in bench.streams),
        outputs=tuple(host_row(design, row, "drain") for row in bench.tensors),
        carried=_carried(bench, design),
    )


def host_row(design: Design, row: Row, direction: str) -> dict[str, Array]:
    """Host tensors of a dispatch that enter (`fill`) or leave (`drain`), one-dimensional, from (*shape) ones."""
    ends = host_ends(design, direction)
    return {name: host_form(row[name], fifo) for name, fifo in ends.items() if name in row}


def _held_flat(bench: Bench, design: Design, name: str, row: Row) -> Array:
    """What the host gets of a fifo at the cut."""
    fifo = next(f for f in design.fifos if f.name == name)
    objects = held(fifo, row[name])
    return row[name].reshape(-1) if objects is None else objects.reshape(-1)


def _carried(bench: Bench, design: Design) -> tuple[str, ...]:
    return tuple(f.name for f in design.fifos if carries_activation(f, bench.manifest) and f.producer.kind != "shim")
