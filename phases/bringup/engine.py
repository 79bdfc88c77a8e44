"""Runs tasks on a backend, one new thing at a time, and keeps what each step showed.

Rules: every stage alone first; a stage joins the chain only after it was exact alone; a dispatch runs as a whole only
after its chain; the hand-off is a step of its own after every dispatch. What a failure makes pointless is not run,
and nobody calls it passed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.evidence import Runs, StepEvidence
from bringup.model import Backend, Job, Outcome, Place
from phases.bringup.tasks import Task

Array = NDArray[Any]
Row = Mapping[str, Array]
Progress = Callable[[str], None]
DONE: Final = "completed"
ABSENT: Final = "absent"
"""No recording of a job: it says nothing about the dispatch that it is a piece of, whose recording is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step as it ran: evidence for the gate, the rest for the diagnosis."""

    task: Task
    outcome: Outcome
    evidence: StepEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where jobs are and what they are fed from.

    Attributes:
        root: folder of the generated files.
        design_files: of each task, by its order.
        canary_sha256: of the inputs.
        distinct: inputs that differ from each other.
        real: those of them in front that are the person's data.
    """

    root: Path
    design_files: Mapping[int, str]
    canary_sha256: str
    distinct: int
    real: int


class Engine:
    """Runs the tasks of a port on one backend."""

    def __init__(self, backend: Backend, runs: Runs, site: Site, progress: Progress) -> None:
        self.backend = backend
        self.runs = runs
        self.site = site
        self.progress = progress
        self.steps: list[Step] = []
        self.exact: set[tuple[str, str]] = set()
        self.absent: set[str] = set()
        self.broken: set[str] = set()

    def run(self, tasks: Sequence[Task]) -> None:
        """Every task whose parts were exact before."""
        for task in tasks:
            if self.may_run(task):
                self.progress(f"{self.backend.name}: {task.kind} {task.name}")
                step = self.one(task)
                if step.evidence.status == DONE and not step.evidence.mismatches:
                    self.exact.add((task.kind, task.name))
                elif step.evidence.status == ABSENT:
                    self.absent |= {task.name} if task.kind == "stage" else set()
                elif task.kind == "chain":
                    self.broken.add(task.dispatch)

    def may_run(self, task: Task) -> bool:
        """Whether everything but the new thing was exact before."""
        if task.unknown or task.dispatch in self.broken:
            return False
        if task.kind == "stage":
            return True
        gone = self.absent if task.kind == "dispatch" else set()
        return all(("stage", part) in self.exact or part in gone for part in task.parts)

    def one(self, task: Task, inputs: Sequence[Row] | None = None) -> Step:
        """Run one task and compare what it drains with the oracle."""
        job = self.job(task)
        given = task.inputs if inputs is None else inputs
        raw = self.backend.run(job, given)
        outcome = judged(raw, task.outputs)
        sees = any(fifo.name in raw.compared for fifo in task.design.fifos)
        step = Step(task=task, outcome=outcome, evidence=self.evidence(job, task, outcome, sees=sees))
        self.steps.append(step)
        return step

    def job(self, task: Task) -> Job:
        """The job of a task."""
        return Job(
            name=f"{task.dispatch}/{task.order:02d}_{task.kind}_{task.name}",
            kind=task.kind,
            dispatch=task.dispatch,
            design=task.design,
            root=self.site.root,
            design_file=self.site.design_files[task.order],
            expected=task.expected,
            outputs=task.outputs,
        )

    def evidence(self, job: Job, task: Task, outcome: Outcome, *, sees: bool) -> StepEvidence:
        """A step in numbers; a backend that sees into fifos has to have compared every one, else the outputs count."""
        count = len(outcome.outputs)
        compared = {n: k for n, k in outcome.compared.items() if k}
        wanted = task.carried if sees else tuple(dict.fromkeys(n for row in task.outputs for n in row))
        place = outcome.place
        return StepEvidence(
            name=job.name,
            kind=task.kind,
            runs=self.runs,
            dispatch=task.dispatch,
            order=len(self.steps),
            parts=task.parts,
            added=task.added,
            sources=tuple(sorted(outcome.sources.items())),
            status=outcome.status,
            text=outcome.text,
            inferences=count,
            distinct_inputs=min(self.site.distinct, len(task.inputs)),
            real_inputs=min(self.site.real, len(task.inputs)),
            canary_sha256=self.site.canary_sha256,
            schedules=outcome.schedules,
            boundaries=len(compared),
            elements=sum(compared.values()),
            mismatches=int(outcome.status == "mismatch" and place.expected is not None),
            uncompared=tuple(n for n in wanted if n not in compared) if outcome.status == DONE else (),
            uniform=uniform(outcome.outputs, task.outputs),
            driver_status=outcome.driver_status,
            planned_sha256=outcome.artifacts.get("planned design", ""),
            lowered_sha256=outcome.artifacts.get("lowered design", ""),
        )


def judged(outcome: Outcome, wanted: Sequence[Row]) -> Outcome:
    """An outcome with its drained tensors compared, every element, integers exactly.

    The first element that differs turns `completed` into `mismatch`; a tensor that is missing or of another size too.
    """
    if outcome.status != DONE:
        return outcome
    compared = dict(outcome.compared)
    for index, (got, want) in enumerate(zip(outcome.outputs, wanted, strict=False)):
        for name, values in want.items():
            key = name
            place = _difference(values, got.get(name), name, index)
            if place is not None:
                text = (
                    f"inference {index}, output {name!r}: element {list(place.index)} is {place.got}, "
                    f"expected {place.expected}"
                )
                return replace(outcome, status="mismatch", text=text, place=place, compared=compared)
            if key not in outcome.compared:
                compared[key] = compared.get(key, 0) + values.size
    return replace(outcome, compared=compared)


def _difference(want: Array, got: Array | None, name: str, inference: int) -> Place | None:
    """The first element that differs, None where all are equal."""
    have = np.empty(0, want.dtype) if got is None else np.asarray(got).reshape(-1)
    flat = want.reshape(-1)
    if have.size != flat.size:
        return Place(
            tensor=name, inference=inference, index=(min(have.size, flat.size),), expected=flat.size, got=have.size
        )
    wrong = np.flatnonzero(have != flat)
    if not wrong.size:
        return None
    first = int(wrong[0])
    return Place(
        tensor=name,
        inference=inference,
        index=tuple(int(i) for i in np.unravel_index(first, want.shape)),
        expected=flat[first].item(),
        got=have[first].item(),
    )


def uniform(got: Sequence[Row], want: Sequence[Row]) -> tuple[str, ...]:
    """Outputs that hold one value everywhere where the oracle's do not."""
    found = []
    for have, expected in zip(got, want, strict=False):
        for name, values in expected.items():
            given = have.get(name)
            if given is not None and given.size > 1 and np.ptp(given) == 0 and np.ptp(values) != 0:
                found.append(name)
    return tuple(dict.fromkeys(found))
