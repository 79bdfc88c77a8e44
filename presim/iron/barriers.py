"""Barriers as fifos of tokens.

The lock of a barrier is a fifo of one worker that the host fills where the sequence sets the barrier. A wait leaves the
lock set, so a worker that never takes the value off gets a token for each pass of one inference; one that does
(`release_with_value`) gets one token for each set.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from presim.design import Call, Design, Endpoint, Fifo, Loop, Step, Transfer
from presim.iron.errors import WrongValueError
from presim.iron.passes import passes_of
from presim.iron.program import Resolved
from presim.iron.region import Wait

BARRIER: Final = "barrier"
"""Name of the host tensor that stands for the tokens."""

NOTE: Final = "a barrier is a fifo of tokens from the host, which takes a channel that it has not on the hardware"


def without(design: Design, waits: Mapping[str, Wait]) -> Design:
    """The design without waits for barriers, as it is placed: on the hardware they take no channel."""
    workers = tuple(replace(w, program=_plain(w.program, waits)) for w in design.workers) if waits else design.workers
    return replace(design, workers=workers)


def _plain(program: tuple[Step, ...], waits: Mapping[str, Wait]) -> tuple[Step, ...]:
    found: list[Step] = []
    for step in program:
        if isinstance(step, Loop):
            found.append(replace(step, body=_plain(step.body, waits)))
        elif isinstance(step, Call) or step.fifo not in waits:
            found.append(step)
    return tuple(found)


def with_barriers(design: Design, full: Design, waits: Mapping[str, Wait], resolved: Resolved) -> Design:
    """The design with a fifo for every wait, filled where the sequence sets that value.

    Args:
        design: placed, without waits.
        full: its workers with waits.
        waits: by the name of the fifo.
        resolved: the program.

    Raises:
        WrongValueError: a worker waits for a barrier that it was not given.
    """
    if not waits:
        return design
    passes = passes_of(design)
    tiles = {w.name: w.tile for w in design.workers}
    fifos = []
    starts: list[tuple[int, Transfer]] = []
    for name, wait in waits.items():
        owner = next(t.worker for t in resolved.workers if t.name == wait.worker)
        if all(b.name != wait.barrier for b in owner.barriers):
            msg = f"worker {wait.worker!r} waits for a barrier that is not among its fn_args"
            raise WrongValueError(msg)
        count = 1 if wait.kept else passes.get(wait.worker, 1)
        fifos.append(
            Fifo(
                name=name,
                shape=(1,),
                dtype="int32",
                producer=Endpoint(actor=f"shim:{name}", kind="shim"),
                consumers=(Endpoint(actor=wait.worker, tile=tiles[wait.worker]),),
                depth=count,
            )
        )
        strides = {"sizes": (count,), "strides": (0,)} if count > 1 else {}
        fill = Transfer(fifo=name, direction="fill", tensor=BARRIER, objects=count, **strides)  # type: ignore[arg-type]
        starts += [(n, fill) for b, v, n in resolved.session.sets if b.name == wait.barrier and v == wait.value]
    sequence = list(design.sequence)
    for before, fill in sorted(starts, key=lambda s: -s[0]):
        sequence.insert(before, fill)
    workers = tuple(replace(w, program=f.program) for w, f in zip(design.workers, full.workers, strict=True))
    return replace(
        design,
        workers=workers,
        fifos=(*design.fifos, *fifos),
        sequence=tuple(sequence),
        notes=(*design.notes, NOTE),
    )
