"""The digits model through the whole way: emitted, lowered, compiled with sanitizers, run, equal to the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bringup.backends import BackendOptions, HostBackend
from bringup.emit import StepDesign, emit
from bringup.emit.emit import step_folder
from bringup.emit.folder import write
from bringup.model import Job
from manifest.device import load_device
from phases.bringup.tasks import Task, tasks_of
from phases.presim.stages import units_of
from tests.bringup.emit.conftest import planned_port, ready

__all__ = ["planned_port"]


@dataclass
class Brought:
    """The generated folder with its tasks and the backend that runs them."""

    root: Path
    tasks: tuple[Task, ...]
    files: dict[int, str]
    backend: HostBackend

    def job(self, task: Task) -> Job:
        return Job(
            name=f"{task.order}",
            kind=task.kind,
            dispatch=task.dispatch,
            design=task.design,
            root=self.root,
            design_file=self.files[task.order],
            expected=task.expected,
            outputs=task.outputs,
        )


@pytest.fixture(scope="module")
def brought(planned_port: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brought]:
    made = ready(planned_port)
    benches = {b.design.dispatch: b for b in made.benches}
    units = {n: units_of(b.design, b.manifest) for n, b in benches.items()}
    tasks = tasks_of(benches, units, load_device("npu2"))
    steps = {
        t.order: StepDesign(dispatch=t.dispatch, name=t.name, kind=t.kind, order=t.order, design=t.design)
        for t in tasks
        if t.kind in {"stage", "chain"}
    }
    root = tmp_path_factory.mktemp("digits") / "generated"
    write(emit(replace(made.given, steps=tuple(steps.values())), made.clearance), root)
    files = {t.order: f"{step_folder(steps[t.order]) if t.order in steps else t.dispatch}/design.py" for t in tasks}
    backend = HostBackend("npu2", BackendOptions(work=tmp_path_factory.mktemp("work"), schedules=1))
    yield Brought(root, tasks, files, backend)
    backend.close()


def test_first_stage_last_chain_and_dispatch_are_exact(brought: Brought) -> None:
    chosen = [brought.tasks[0], [t for t in brought.tasks if t.kind == "chain"][-1], brought.tasks[-1]]
    assert [t.kind for t in chosen] == ["stage", "chain", "dispatch"]
    for task in chosen:
        outcome = brought.backend.run(brought.job(task), task.inputs)
        assert outcome.status == "completed", outcome.text
        assert outcome.artifacts["planned design"] == outcome.artifacts["lowered design"]
        assert set(task.carried) <= set(outcome.compared)
        assert len(outcome.outputs) == len(task.inputs)


def test_another_input_of_the_oracle_is_a_mismatch(brought: Brought) -> None:
    task = brought.tasks[-1]
    outcome = brought.backend.run(brought.job(task), task.inputs[::-1])
    assert outcome.status == "mismatch"
    assert outcome.place.fifo
    assert outcome.place.expected != outcome.place.got
