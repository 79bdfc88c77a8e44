"""What the child showed, as the outcome of a job."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from numpy.typing import NDArray

from bringup.execute import HostResult
from bringup.model import Job, Outcome, Place, Status

Array = NDArray[Any]

STATUS: Final[Mapping[str, Status]] = {
    "completes": "completed",
    "completes_leaving": "completed",
    "deadlock": "deadlock",
    "starvation": "deadlock",
    "wrong_data": "mismatch",
    "fault": "crash",
    "nondeterministic": "mismatch",
    "inconclusive": "timeout",
    "refused": "mismatch",
    "crash": "crash",
}
"""Status by verdict."""


def outcome_of(result: HostResult, job: Job) -> Outcome:
    """The outcome of a run.

    Args:
        result: of the child.
        job: whose run it was.
    """
    status, text = STATUS[result.verdict], result.text
    if result.crash is not None and result.crash.kind == "timeout":
        status = "timeout"
    if status == "completed":
        status, text = _completed(result, job)
    return Outcome(
        status=status,
        text=text,
        outputs=_shaped(result.outputs, job.outputs),
        place=_place(result, job),
        compared=result.compared,
        cycle=result.cycle,
        schedules=result.schedules,
    )


def _completed(result: HostResult, job: Job) -> tuple[Status, str]:
    """A run that came to its goal is not yet a good one."""
    if result.foreign:
        return "crash", f"the child had {', '.join(result.foreign)} in memory, which it must not have"
    if not result.sound:
        return "mismatch", f"{result.text}; {'; '.join(result.left)}"
    filled = {f.name for f in job.design.fifos if f.producer.kind == "shim"}  # what the host fills is right by itself
    wanted = {n for named in (*job.expected, *job.outputs) for n, values in named.items() if values.size} - filled
    missed = sorted(n for n in wanted if not result.compared.get(n) and not _masked(n, job))
    if missed:
        return "mismatch", f"nothing of {', '.join(map(repr, missed))} was compared: the design does not have it"
    return "completed", result.text


def _masked(name: str, job: Job) -> bool:
    """Whether no element of a fifo is to be compared."""
    arrays = [named[name] for named in (*job.expected, *job.outputs) if name in named]
    return all(hasattr(a, "mask") and bool(a.mask.all()) for a in arrays)


def _shaped(
    outputs: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]
) -> tuple[dict[str, Array], ...]:
    """Outputs in the shape of what is expected, where that has as many elements."""
    made = []
    for i, named in enumerate(outputs):
        shapes = {n: a.shape for n, a in wanted[i].items()} if i < len(wanted) else {}
        made.append(
            {n: a.reshape(shapes[n]) if n in shapes and math.prod(shapes[n]) == a.size else a for n, a in named.items()}
        )
    return tuple(made)


def _place(result: HostResult, job: Job) -> Place:
    if result.crash is not None:
        crash = result.crash
        return Place(worker=crash.worker, kernel=crash.kernel, argument=crash.argument)
    if result.mismatch is not None:
        return _mismatch_place(result.mismatch, job)
    if result.fault is None:
        return Place()
    fault, inner = result.fault, result.place or {}
    element = inner.get("element", -1)
    return Place(
        worker=inner.get("worker", fault["actor"]),
        kernel=inner.get("kernel", ""),
        argument=inner.get("argument", ""),
        fifo=fault["fifo"],
        object_number=fault["number"],
        index=(element,) if element >= 0 else (),
    )


def _mismatch_place(found: Mapping[str, Any], job: Job) -> Place:
    fifo = next((f for f in job.design.fifos if f.name == found["where"].split("@")[0]), None)
    is_object = found["number"] >= 0
    return Place(
        worker=found["producer"] if is_object else "",
        fifo=found["where"] if is_object else found["producer"],
        tensor=fifo.tensor if is_object and fifo is not None else "" if is_object else found["where"],
        inference=found["inference"],
        object_number=found["number"],
        index=tuple(found["index"]),
        expected=found["expected"],
        got=found["got"],
    )
