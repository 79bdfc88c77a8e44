"""Bring-up items at hardware level: measured by this run or recorded on a device elsewhere, never simulated."""

from bringup.evidence import BringupEvidence
from checklists.items.bringup_steps import (
    DEVICE,
    MIN_REPEATS,
    chain_exact,
    dispatches_exact,
    handoff_exact,
    no_dispatch,
    runs_clean,
    stages_exact,
    steps_of,
)
from checklists.items.words import listed, quoted
from checklists.model import FigureTable, Finding, Verdict

COMPLETED = "ERT_CMD_STATE_COMPLETED"


def blocked(e: BringupEvidence) -> Finding | None:
    """BLOCKED where no device ran anything; None where one did."""
    if steps_of(e, DEVICE):
        return None
    why = e.unavailable or f"backend {e.backend} runs no device: --backend xrt on a machine with the NPU, or replay"
    return Finding(verdict=Verdict.BLOCKED, summary=why, figures={"device_steps": 0})


def device_matches(e: BringupEvidence) -> Finding:
    """The device that ran is the one that the port is for: its name is known and stands for the same device.

    A binary of another device runs and gives zeros without an error. FAIL names both; BLOCKED without a device.
    """
    nothing = blocked(e)
    if nothing is not None:
        return nothing
    figures: FigureTable = {"target": e.device, "reported": e.device_reported, "device": e.device_name}
    if e.device_name != e.device:
        summary = f"the port is for {quoted(e.device)}, the device reports {quoted(e.device_reported)}"
        if e.device_name:
            summary += f" ({e.device_name}); a port for it: python -m phases.baseline MODEL --device {e.device_name}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=(e.device_name,))
    return Finding(verdict=Verdict.PASS, summary=f"{e.device}: {e.device_reported}", figures=figures)


def device_stages(e: BringupEvidence) -> Finding:
    """Every stage alone is exact on the device, as `BU005` asks on the host. BLOCKED without a device."""
    return blocked(e) or stages_exact(e, DEVICE)


def device_chain(e: BringupEvidence) -> Finding:
    """The chain grows by one stage per step on the device, as `BU006` asks on the host. BLOCKED without a device."""
    return blocked(e) or chain_exact(e, DEVICE)


def device_dispatches(e: BringupEvidence) -> Finding:
    """Every dispatch is exact on the device on 3 different inputs of the canary. BLOCKED without a device."""
    return blocked(e) or dispatches_exact(e, DEVICE)


def device_handoff(e: BringupEvidence) -> Finding:
    """The hand-off between dispatches is exact on the device, a step of its own. BLOCKED without a device."""
    return blocked(e) or handoff_exact(e, DEVICE)


def device_runs(e: BringupEvidence) -> Finding:
    """The driver says COMPLETED for every run, and a repetition gives the same bytes.

    FAIL names the step with the driver's own word, a timeout (the wait that the simulator knows is printed beside
    it), or outputs that differ between repetitions. BLOCKED without a device.
    """
    nothing = blocked(e)
    if nothing is not None:
        return nothing
    odd = [s for s in steps_of(e, DEVICE) if s.kind != "handoff" and s.driver_status not in ("", COMPLETED)]
    if odd:
        summary = f"{quoted(odd[0].name)}: the driver says {quoted(odd[0].driver_status)}, expected {COMPLETED}"
        return Finding(verdict=Verdict.FAIL, summary=summary, subjects=tuple(s.name for s in odd))
    once = [s for s in steps_of(e, DEVICE) if s.status == "mismatch" and s.driver_status and s.schedules < MIN_REPEATS]
    if once:
        subjects = tuple(s.name for s in once)
        return Finding(verdict=Verdict.FAIL, summary=f"{quoted(once[0].name)}: {once[0].text}", subjects=subjects)
    silent = [s.name for s in steps_of(e, DEVICE) if s.kind != "handoff" and not s.driver_status]
    if silent:
        return Finding(verdict=Verdict.NOT_RUN, summary=f"no driver status on record: {listed(silent)}")
    return runs_clean(e, DEVICE)


def device_stack(e: BringupEvidence) -> Finding:
    """Every worker declares at least the stack that was measured; too little overwrites buffers without an error.

    FAIL names worker, declared and measured bytes. NOT_RUN where a device ran and no stack was measured: the linker
    map of the kernels gives it. BLOCKED without a device.
    """
    nothing = no_dispatch(e) if not e.dispatches else blocked(e)
    if nothing is not None:
        return nothing
    figures: FigureTable = {"workers": len(e.stack)}
    small = [(worker, declared, used) for worker, declared, used in e.stack if used > declared]
    if small:
        worker, declared, used = small[0]
        summary = f"worker {quoted(worker)} declares {declared} bytes of stack, {used} were measured"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(w for w, _, _ in small))
    if not e.stack:
        return Finding(verdict=Verdict.NOT_RUN, summary="no stack was measured", figures=figures)
    return Finding(verdict=Verdict.PASS, summary=f"the stack of {len(e.stack)} workers is enough", figures=figures)
