"""Fills the evidence of phase 3: emits twice, writes to a fresh folder, runs every step, keeps what each one showed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.emit import EmitInput, StepDesign, emit, step_folder, write
from bringup.emit.memory import memory_rows
from bringup.emit.model import PROFILE
from bringup.evidence import BringupEvidence, LintEvidence, MemoryRow, StepEvidence
from bringup.execute.task import HostTask
from bringup.kernels import KERNELS
from bringup.kernels.custom import Custom, with_custom
from bringup.lint import RULES, lint
from bringup.model import Backend, DeviceIdentity, Unavailable
from checklists.items.bringup_steps import MIN_INPUTS
from manifest.clearance import Clearance
from manifest.device import Device
from manifest.io import sha256_hex
from oracle.run import Oracle
from phases.bringup.canary import distinct_rows, fed_sha256, stored_sha256
from phases.bringup.diagnosis import diagnosed
from phases.bringup.engine import DONE, Engine, Site, Step
from phases.bringup.handoff import Handoff, handoffs
from phases.bringup.options import BringupOptions
from phases.bringup.tasks import Task, tasks_of
from phases.presim.simulation import Bench, bench_of
from phases.presim.source import MANIFEST, Inputs, Source, different_inputs, target_tensors
from phases.presim.stages import Unit, units_of
from phases.presim.twins import twin_results
from presim.design import Design

Array = NDArray[Any]
Progress = Callable[[str], None]
Files = Mapping[str, bytes]

GENERATED: Final = "generated/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Evidence, and what it speaks of.

    Attributes:
        evidence: for the gate.
        files: of the generated folder, by their name in it.
        steps: as they ran, for reports.
        overflows: tiles that the packed buffers do not fit, with the split that would.
    """

    evidence: BringupEvidence
    files: Files
    steps: tuple[Step, ...]
    overflows: tuple[MemoryRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bringup:
    """What a run works on.

    Attributes:
        source: of the port.
        design_bytes: canonical `design.json`.
        designs: the same, read.
        device: of the port.
        clearance: of the gates above.
        root: an empty folder that the generated files are written to and executed in.
        host: backend that executes the sources on this machine.
        target: backend of a device, or None.
        custom: kernels and twins of the person.
    """

    source: Source
    design_bytes: bytes
    designs: tuple[Design, ...]
    device: Device
    clearance: Clearance
    root: Path
    host: Backend
    target: Backend | None
    custom: Custom = field(default_factory=Custom)


def collect(work: Bringup, options: BringupOptions, progress: Progress) -> Collected:
    """Emit, execute, count.

    Raises:
        UpstreamError: the gates do not speak for these bytes.
        RefusedError: something of the design cannot be emitted.
        UnavailableError: there is no compiler.
    """
    scene = _Scene(work, options, progress)
    rows = memory_rows(scene.given)
    over = tuple(r for r in rows if r.have is not None and r.need > r.have)
    if over:
        evidence = replace(scene.evidence((), {}, None), memory=rows)
        return Collected(evidence=evidence, files={}, steps=(), overflows=over)
    progress("emitting the sources")
    modules = with_custom(KERNELS, work.custom)
    files = emit(scene.given, work.clearance, modules=modules)
    again = emit(scene.given, work.clearance, modules=modules) == files
    write(files, work.root)
    steps = scene.run()
    evidence = replace(scene.evidence(steps, files, again), memory=rows)
    return Collected(evidence=evidence, files=files, steps=tuple(scene.steps), overflows=())


class _Scene:
    """Everything that is the same for all backends."""

    def __init__(self, work: Bringup, options: BringupOptions, progress: Progress) -> None:
        self.work = work
        self.options = options
        self.progress = progress
        source = work.source
        self.inputs: Inputs = different_inputs(source, MIN_INPUTS)
        self.oracle = Oracle(source.manifest, source.arrays)
        self.tensors = target_tensors(source, self.inputs.feeds)
        self.benches: dict[str, Bench] = {
            d.dispatch: bench_of(d, source.manifest, source.arrays, self.tensors, self.inputs) for d in work.designs
        }
        self.units: dict[str, tuple[Unit, ...]] = {
            name: units_of(bench.design, source.manifest) for name, bench in self.benches.items()
        }
        self.tasks = tasks_of(self.benches, self.units, work.device)
        self.given = self._given()
        self.steps: list[Step] = []
        self.device = DeviceIdentity(name="", reported="", runs="host")
        self.unavailable = ""

    def _given(self) -> EmitInput:
        """What the emitter gets."""
        golden: dict[str, Array] = {}
        for task in self.tasks:
            if task.kind == "dispatch":
                for index, (entering, leaving) in enumerate(zip(task.inputs, task.outputs, strict=True)):
                    golden |= {f"{task.dispatch}/{index}/{n}": a for n, a in {**entering, **leaving}.items()}
        return EmitInput(
            manifest_bytes=self.work.source.files[MANIFEST],
            design_bytes=self.work.design_bytes,
            manifest=self.work.source.manifest,
            designs=self.work.designs,
            device=self.work.device,
            constants={name: bench.constants for name, bench in self.benches.items()},
            steps=tuple(step for task in self.tasks if (step := step_design(task)) is not None),
            golden=golden,
        )

    def run(self) -> tuple[StepEvidence, ...]:
        """Every step on the host, then on the device where there is one."""
        rows = self._on(self.work.host)
        if self.work.target is not None:
            identity = self.work.target.identity()
            if isinstance(identity, Unavailable):
                self.unavailable = f"{identity.what}: not there ({identity.looked_for})"
            else:
                self.device = identity
                rows += self._on(self.work.target)
        return tuple(replace(row, order=number) for number, row in enumerate(rows))

    def _on(self, backend: Backend) -> list[StepEvidence]:
        identity = backend.identity()
        runs = "host" if isinstance(identity, Unavailable) else identity.runs
        site = Site(
            root=self.work.root,
            design_files={task.order: file_of(task) for task in self.tasks},
            canary_sha256=fed_sha256(self.inputs),
            distinct=distinct_rows(self.inputs),
            real=self.inputs.real,
        )
        engine = Engine(backend, runs, site, self.progress)
        engine.run(self.tasks)
        steps = [diagnosed(step, engine, self.work.source, self.tensors) for step in engine.steps]
        if backend is self.work.host:
            steps = [self.twinned(step) for step in steps]
        whole = {task.dispatch: task for task in self.tasks if task.kind == "dispatch"}
        last = None
        if handoffs(self.work.source.manifest):
            self.progress(f"{backend.name}: hand-off between dispatches")
            last = Handoff(self.work.source.manifest, self.oracle, self.benches, whole, engine).run(self.inputs.feeds)
        self.steps += steps
        rows = [step.evidence for step in steps]
        return rows if last is None else [*rows, last]

    def twinned(self, step: Step) -> Step:
        """A stage with what the person's twins showed in the simulator: one that differs makes the stage differ."""
        task = step.task
        if task.kind != "stage" or not self.work.custom.twins:
            return step
        given = HostTask(
            name=task.name,
            design=task.design,
            arrays=self.benches[task.dispatch].constants,
            inputs=task.inputs,
            fifos=task.expected,
            outputs=task.outputs,
            schedules=0,
        )
        results = twin_results(given, self.work.custom)
        for result in results:
            self.progress(result.line())
        evidence = step.evidence
        wrong = next((r for r in results if not r.exact), None)
        if wrong is not None and evidence.status == DONE:
            evidence = replace(evidence, status="mismatch", mismatches=1, text=wrong.line())
        elif results:
            evidence = replace(evidence, text="; ".join((evidence.text, *(r.line() for r in results))))
        return replace(step, evidence=evidence)

    def evidence(self, steps: Sequence[StepEvidence], files: Files, again: bool | None) -> BringupEvidence:
        """Numbers and hashes of everything but memory."""
        names = tuple(u.name for units in self.units.values() for u in units if u.workers)
        return BringupEvidence(
            device=self.work.device.name,
            backend=self.options.backend,
            manifest_sha256=sha256_hex(self.work.source.files[MANIFEST]),
            design_sha256=sha256_hex(self.work.design_bytes),
            toolchain_profile=PROFILE,
            generated=_hashes(files),
            on_disk=_on_disk(self.work.root) if files else (),
            stages_expected=names,
            dispatches=tuple(d.name for d in self.work.source.manifest.dispatches if d.where == "npu"),
            handoffs_expected=handoffs(self.work.source.manifest),
            canary_sha256=stored_sha256(self.work.source.files, MIN_INPUTS),
            steps=tuple(steps),
            lint=_lint(files) if files else None,
            memory=(),
            emitted_again_equal=again,
            device_reported=self.device.reported,
            device_name=self.device.name,
            unavailable=self.unavailable,
        )


def step_design(task: Task) -> StepDesign | None:
    """The piece of a task that gets a design file of its own; None of a whole dispatch or a piece that cannot run."""
    if task.kind == "dispatch" or task.unknown:
        return None
    return StepDesign(dispatch=task.dispatch, name=task.name, kind=task.kind, order=task.order, design=task.design)


def file_of(task: Task) -> str:
    """Design file of a task in the generated folder."""
    step = step_design(task)
    return f"{task.dispatch}/design.py" if step is None else f"{step_folder(step)}/design.py"


def _hashes(files: Files) -> tuple[tuple[str, str], ...]:
    return tuple((name, sha256_hex(data)) for name, data in sorted(files.items()))


def _on_disk(root: Path) -> tuple[tuple[str, str], ...]:
    """What lies in the folder now: what the steps were executed from."""
    found = [p for p in sorted(root.rglob("*")) if p.is_file()]
    return tuple((p.relative_to(root).as_posix(), sha256_hex(p.read_bytes())) for p in found)


def _lint(files: Files) -> LintEvidence:
    rows = lint(files)
    return LintEvidence(
        rules=tuple(RULES), files=len(files), findings=tuple((f.rule, f"{f.file}:{f.line}", f.text) for f in rows)
    )


def drained(steps: Sequence[Step]) -> Mapping[str, Array]:
    """Host tensors of the last whole run of every dispatch, first inference, for reports."""
    found: dict[str, Array] = {}
    for step in steps:
        if step.task.kind == "dispatch" and step.outcome.outputs:
            found |= {name: np.asarray(array) for name, array in step.outcome.outputs[0].items()}
    return found
