"""Barriers as fifos of tokens.

The lock of a barrier is a fifo of one worker that the host fills where the sequence sets the barrier. A wait leaves the
lock set, so a worker that never takes the value off gets a token for each pass of one inference; one that does
(`release_with_value`) gets one token for each set.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from presim.design import Design, Endpoint, Fifo, Transfer
from presim.iron.errors import WrongValueError
from presim.iron.passes import passes_of
from presim.iron.program import Resolved
from presim.iron.region import Wait

BARRIER: Final = "barrier"
"""Name of the host tensor that stands for the tokens."""

NOTE: Final = "a barrier is a fifo of tokens from the host, which takes a channel that it has not on the hardware"


def with_barriers(design: Design, waits: Mapping[str, Wait], resolved: Resolved) -> Design:
    """The design with a fifo for every wait, filled where the sequence sets that value.

    Args:
        design: whose workers wait on fifos that it does not have.
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
    return replace(design, fifos=(*design.fifos, *fifos), sequence=tuple(sequence), notes=(*design.notes, NOTE))
