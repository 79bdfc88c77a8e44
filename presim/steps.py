"""Reading programs: their steps, the end of a fifo that a step means, the variables of their loops."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from presim.design import Fifo, Loop, Side, Step

_VARIABLE: Final = re.compile(r"@(?P<name>[^*+-]+)(?:\*(?P<factor>-?\d+))?(?P<offset>[+-]\d+)?")


def elements_of(shape: Iterable[int]) -> int:
    """Number of elements of an object."""
    return math.prod(shape)


def steps_of(program: Iterable[Step]) -> Iterator[Step]:
    """Every step of a program, those inside loops once, in program order."""
    for step in program:
        yield step
        if isinstance(step, Loop):
            yield from steps_of(step.body)


def side_of(fifo: Fifo, worker: str, side: Side) -> Side:
    """The end of `fifo` that a step of `worker` means; "" where the step cannot mean any."""
    produces = fifo.producer.kind == "worker" and fifo.producer.actor == worker
    consumes = any(c.kind == "worker" and c.actor == worker for c in fifo.consumers)
    if side == "produce":
        return "produce" if produces else ""
    if side == "consume":
        return "consume" if consumes else ""
    if produces and consumes:
        return ""
    return "produce" if produces else "consume" if consumes else ""


def variable_of(text: str) -> tuple[str, int, int] | None:
    """(loop counter, factor, offset) of a scalar such as `@row*2+1`; None where it is none."""
    found = _VARIABLE.fullmatch(text)
    if found is None:
        return None
    return found["name"], int(found["factor"] or 1), int(found["offset"] or 0)
