"""Evidence of phase 3: frozen numbers and hashes, filled by `phases.bringup.collect`, judged by the bring-up items.

A step says where it was executed: `host` (the emitted sources, compiled for this machine, inside the simulated
dataflow), `hardware` (measured on a device by this run) or `recorded` (measured elsewhere, judged here). None or an
empty tuple means "not run".
"""

from dataclasses import dataclass
from typing import Literal

StepKind = Literal["stage", "chain", "dispatch", "handoff"]
Runs = Literal["host", "hardware", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvidence:
    """One step of bring-up.

    Attributes:
        name: of the job.
        kind: stage alone, chain so far, whole dispatch, or the hand-off between dispatches.
        runs: where it was executed.
        dispatch: of which dispatch; "" for the hand-off.
        order: 0, 1, 2, ... in which it was run.
        parts: stages (of a hand-off: dispatches) in it.
        added: what of them is new against the step before of its kind.
        sources: (generated file, sha256) that it was built from.
        status: of the backend.
        text: the status in one line, with the place and the likely cause.
        inferences: that reached their goal.
        distinct_inputs: inputs that differ from each other.
        real_inputs: those of them that are the person's data.
        canary_sha256: of the inputs that it was fed from.
        schedules: orders of execution, or repetitions on a device, that agree.
        boundaries: fifos and host tensors that were compared.
        elements: elements compared with the oracle.
        mismatches: 0, or 1 and more where the first wrong element stopped the comparison.
        uncompared: fifos and tensors that carry activations and were not compared.
        uniform: outputs that hold one value everywhere where the oracle's do not.
        driver_status: word for word, "" where there is no driver.
        planned_sha256: of the planned design in the form that both are compared in.
        lowered_sha256: of the emitted design, lowered, in that form; "" where nothing was lowered.
    """

    name: str
    kind: StepKind
    runs: Runs
    dispatch: str
    order: int
    parts: tuple[str, ...]
    added: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    status: str
    text: str
    inferences: int
    distinct_inputs: int
    real_inputs: int
    canary_sha256: str
    schedules: int
    boundaries: int
    elements: int
    mismatches: int
    uncompared: tuple[str, ...] = ()
    uniform: tuple[str, ...] = ()
    driver_status: str = ""
    planned_sha256: str = ""
    lowered_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintEvidence:
    """Static rules of the generated sources.

    Attributes:
        rules: that were applied.
        files: that were looked at.
        findings: (rule, file and line, text).
    """

    rules: tuple[str, ...]
    files: int
    findings: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """Data memory of one core tile with the packed buffers of the emitted kernels: need against have, in bytes.

    `have` None = the catalogue does not know; `split` says how what does not fit is spread.
    """

    dispatch: str
    place: str
    need: int
    have: int | None
    split: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEvidence:
    """A design rule: what went wrong or had to be split, and the record of it in `design-rules.json`."""

    event: str
    recorded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BringupEvidence:
    """Everything the bring-up gate judges.

    Attributes:
        device: of the port.
        backend: host, xrt or replay.
        device_reported: what the driver or the recording says of the device, word for word; "" = nobody asked.
        device_name: catalogue name that this stands for, "" = none.
        unavailable: what a device run needs and is absent, in words; "" = nothing.
        manifest_sha256: of the canonical manifest.
        design_sha256: of the canonical designs.
        toolchain_profile: that the sources are for.
        generated: (file, sha256) of the generated folder as emitted.
        on_disk: (file, sha256) of the same files as they were executed.
        emitted_again_equal: a second emission gave the same bytes; None = not tried.
        stages_expected: stages with work on the array.
        dispatches: those on the array, in order.
        handoffs_expected: hand-offs between dispatches, host segments counted; 0 = one dispatch does all.
        canary_sha256: of the canary inputs of the port.
        steps: in the order in which they were run.
        lint: static rules of the sources.
        memory: data memory with packed buffers.
        rules: events that ask for a design rule.
        stack: (worker, declared bytes, measured bytes) where a device measured it.
    """

    device: str
    backend: str
    manifest_sha256: str
    design_sha256: str
    toolchain_profile: str
    generated: tuple[tuple[str, str], ...]
    on_disk: tuple[tuple[str, str], ...]
    stages_expected: tuple[str, ...]
    dispatches: tuple[str, ...]
    handoffs_expected: int
    canary_sha256: str
    steps: tuple[StepEvidence, ...]
    lint: LintEvidence | None
    memory: tuple[MemoryRow, ...]
    rules: tuple[RuleEvidence, ...] = ()
    emitted_again_equal: bool | None = None
    device_reported: str = ""
    device_name: str = ""
    unavailable: str = ""
    stack: tuple[tuple[str, int, int], ...] = ()
