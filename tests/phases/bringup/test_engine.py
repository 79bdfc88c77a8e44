"""The order of steps, what a failure makes pointless, and how drained tensors are judged; backends are scripted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.model import DeviceIdentity, Job, Outcome, Unavailable
from phases.bringup.engine import Engine, Site, judged
from phases.bringup.tasks import Task
from presim.design import Design, Endpoint, Fifo

Row = Mapping[str, np.ndarray[Any, Any]]
NOTHING = Design(dispatch="d0", device="npu2", workers=(), fifos=())
VALUES = np.arange(4, dtype=np.int8)
DONE = Outcome(status="completed", text="completes", compared={"f": 4}, schedules=4)


def task(kind: Any, name: str, order: int, parts: tuple[str, ...], dispatch: str = "d0", **fields: Any) -> Task:
    made = Task(
        name=name,
        kind=kind,
        dispatch=dispatch,
        order=order,
        design=NOTHING,
        parts=parts,
        added=parts[-1:],
        inputs=({"x": VALUES},),
        expected=({},),
        outputs=({"y": VALUES},),
        carried=(),
    )
    return replace(made, **fields)


TASKS = (
    task("stage", "a", 0, ("a",)),
    task("stage", "b", 1, ("b",)),
    task("chain", "a", 2, ("a",)),
    task("chain", "b", 3, ("a", "b")),
    task("dispatch", "d0", 4, ("a", "b")),
)


class Scripted:
    """Every job completes, unless the script says otherwise."""

    name = "scripted"

    def __init__(self, script: Callable[[Job], Outcome] = lambda _: DONE) -> None:
        self.script = script
        self.jobs: list[str] = []

    def identity(self) -> DeviceIdentity | Unavailable:
        return DeviceIdentity(name="", reported="", runs="host")

    def run(self, job: Job, inputs: Sequence[Row]) -> Outcome:
        self.jobs.append(f"{job.kind} {job.name.rpartition('_')[2]}")
        found = self.script(job)
        return replace(found, outputs=found.outputs or tuple({"y": VALUES} for _ in inputs))


def engine(script: Callable[[Job], Outcome] = lambda _: DONE) -> tuple[Engine, Scripted]:
    backend = Scripted(script)
    site = Site(
        root=Path("nowhere"),
        design_files={t.order: f"{t.order}/design.py" for t in TASKS},
        canary_sha256="c",
        distinct=3,
        real=2,
    )
    return Engine(backend, "host", site, lambda _: None), backend


def failing(kind: str, name: str) -> Callable[[Job], Outcome]:
    def script(job: Job) -> Outcome:
        wrong = job.kind == kind and job.name.endswith(f"_{name}")
        return Outcome(status="crash", text="overrun") if wrong else DONE

    return script


def test_stages_then_chain_then_dispatch() -> None:
    made, backend = engine()
    made.run(TASKS)
    assert backend.jobs == ["stage a", "stage b", "chain a", "chain b", "dispatch d0"]
    assert [s.evidence.order for s in made.steps] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "name", "jobs"),
    [
        ("stage", "a", ["stage a", "stage b"]),
        ("stage", "b", ["stage a", "stage b", "chain a"]),
        ("chain", "a", ["stage a", "stage b", "chain a"]),
        ("chain", "b", ["stage a", "stage b", "chain a", "chain b"]),
    ],
)
def test_what_a_failure_makes_pointless_is_not_run(kind: str, name: str, jobs: list[str]) -> None:
    made, backend = engine(failing(kind, name))
    made.run(TASKS)
    assert backend.jobs == jobs


def test_a_failure_of_one_dispatch_leaves_the_other() -> None:
    other = (task("stage", "c", 5, ("c",), "d1"), task("chain", "c", 6, ("c",), "d1"))
    made, backend = engine(failing("chain", "a"))
    made.site = replace(made.site, design_files={n: "design.py" for n in range(9)})
    made.run((*TASKS, *other))
    assert backend.jobs[-2:] == ["stage c", "chain c"]


def test_a_piece_that_cannot_be_fed_is_not_run() -> None:
    made, backend = engine()
    made.run((task("stage", "a", 0, ("a",), unknown=("f",)),))
    assert backend.jobs == []


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (np.array([0, 1, 2, 4], np.int8), "element [3] is 4, expected 3"),
        (np.array([9, 9, 9, 9], np.int8), "element [0] is 9, expected 0"),
        (np.arange(3, dtype=np.int8), "element [3] is 3, expected 4"),
        (np.arange(5, dtype=np.int8), "element [4] is 5, expected 4"),
    ],
)
def test_a_drained_tensor_that_differs_turns_completed_into_mismatch(got: Any, text: str) -> None:
    found = judged(replace(DONE, outputs=({"y": got},)), ({"y": VALUES},))
    assert found.status == "mismatch"
    assert text in found.text
    assert "inference 0, output 'y'" in found.text


def test_a_missing_tensor_is_a_mismatch_and_an_equal_one_is_counted() -> None:
    assert judged(replace(DONE, outputs=({},)), ({"y": VALUES},)).status == "mismatch"
    found = judged(replace(DONE, outputs=({"y": VALUES.reshape(2, 2)},)), ({"y": VALUES},))
    assert found.status == "completed"
    assert found.compared == {"f": 4, "y": 4}


def test_the_second_inference_counts_too() -> None:
    rows = ({"y": VALUES}, {"y": VALUES + 1})
    assert judged(replace(DONE, outputs=rows), ({"y": VALUES}, {"y": VALUES})).place.inference == 1


def test_evidence_says_what_was_not_compared_and_what_is_uniform() -> None:
    made, _ = engine(lambda _: replace(DONE, outputs=({"y": VALUES * 0},)))
    step = made.one(task("dispatch", "d0", 4, ("a", "b"), carried=("f", "g")))
    assert step.evidence.status == "mismatch"
    assert step.evidence.uniform == ("y",)
    made, _ = engine()
    step = made.one(replace(TASKS[4], carried=("f", "g"), design=NOTHING))
    assert step.evidence.uncompared == ()  # a backend that sees no fifo is asked for outputs alone
    assert step.evidence.elements == 8
    assert step.evidence.canary_sha256 == "c"


@pytest.mark.parametrize(("compared", "missing"), [({}, ()), ({"f": 4}, ("g",)), ({"f": 4, "g": 4}, ())])
def test_fifos_that_a_device_cannot_show_are_not_asked_of_it_whatever_its_outputs_are_called(
    compared: Any, missing: tuple[str, ...]
) -> None:
    fifos = tuple(
        Fifo(
            name=name,
            dtype="int8",
            shape=(4,),
            producer=Endpoint(actor="w"),
            consumers=(Endpoint(actor="host", kind="shim"),),
        )
        for name in ("f", "g", "y")
    )
    made, _ = engine(lambda _: replace(DONE, compared=compared))
    step = made.one(replace(TASKS[4], carried=("f", "g", "y"), design=replace(NOTHING, fifos=fifos)))
    assert step.evidence.status == "completed"
    assert step.evidence.uncompared == missing


def absent(*jobs: str) -> Callable[[Job], Outcome]:
    def script(job: Job) -> Outcome:
        gone = f"{job.kind} {job.name.rpartition('_')[2]}" in jobs
        return Outcome(status="absent", text="no recording of this job") if gone else DONE

    return script


@pytest.mark.parametrize(
    ("gone", "jobs"),
    [
        (("stage a", "stage b"), ["stage a", "stage b", "dispatch d0"]),
        (("stage b",), ["stage a", "stage b", "chain a", "dispatch d0"]),
        (("chain a", "chain b"), ["stage a", "stage b", "chain a", "chain b", "dispatch d0"]),
    ],
)
def test_a_recorded_dispatch_is_judged_where_its_pieces_were_not_recorded(gone: Any, jobs: list[str]) -> None:
    made, backend = engine(absent(*gone))
    made.run(TASKS)
    assert backend.jobs == jobs
    assert ("dispatch", "d0") in made.exact


def test_an_absent_stage_does_not_hide_one_that_is_wrong() -> None:
    def script(job: Job) -> Outcome:
        return absent("stage a")(job) if job.name.endswith("_a") else Outcome(status="crash", text="overrun")

    made, backend = engine(script)
    made.run(TASKS)
    assert backend.jobs == ["stage a", "stage b"]
