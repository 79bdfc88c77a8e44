"""Baseline item about the single-dispatch budget: BL004."""

from checklists.items.words import listed, not_run, placed, quoted
from checklists.model import FigureTable, Finding, Verdict
from oracle.evidence import BaselineEvidence, BudgetEvidence, DispatchBudget


def dispatches_fit(e: BaselineEvidence) -> Finding:
    """Every dispatch on the array fits its budget, or an op that exceeds it alone is named with its split.

    Need against have: bytes (weights, window rows, skip buffers) against 0.8 x (L1 - stack) x cores + 0.8 x memtile;
    cores; program memory per core; shim channels. FAIL one unit above, naming dispatch, need and have. Bytes and
    cores may exceed only through an op that exceeds alone and that phase 2 can split: it PASSes with that split
    in the words. A device figure that is not known is NOT_RUN, named, and can be waived by that name. Host
    dispatches have no budget. Program bytes come from a table marked assumed.
    """
    b = e.budget
    array = [d for d in b.dispatches if d.where == "npu"]
    if not b.dispatches:
        return not_run("the manifest has no dispatch")
    figures = _figures(b, array)
    if not array:
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="every dispatch runs on the host", figures=figures)
    faults = {d.name: fault for d in array if (fault := _exceeds(d))}
    unknown = (*b.unknown, *(name for d in array for name in _unknown(d) if not b.unknown))
    missing = f"device figure not known for {b.device}: {listed(unknown)}" if unknown else ""
    if faults:
        words = "; ".join(f"dispatch {quoted(name)}: {what}" for name, what in faults.items())
        summary = f"{words}; cut it at a layer boundary with --cut TENSOR" + (f"; {missing}" if missing else "")
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=(*faults, *unknown))
    if unknown:
        return Finding(verdict=Verdict.NOT_RUN, summary=missing, figures=figures, subjects=unknown)
    fits = "every one on the array fits" if len(array) > 1 else "the one on the array fits"
    parts = [f"{placed(b.dispatches)}: {fits} {b.device}"]
    if b.cuts:
        parts.append(f"cut at {listed(b.cuts)}")
    parts += [
        f"op {quoted(op)} exceeds alone, phase 2 must split it: {split}" for d in array for op, split in d.oversized_ops
    ]
    return Finding(verdict=Verdict.PASS, summary="; ".join(parts), figures=figures)


def _figures(b: BudgetEvidence, array: list[DispatchBudget]) -> FigureTable:
    """The figures of every dispatch."""
    figures: FigureTable = {
        "device": b.device,
        "dispatches": len(b.dispatches),
        "cuts": b.cuts,
        "unknown_device_figures": b.unknown,
    }
    for d in array:
        figures |= {
            f"{d.name}: need_bytes (predicted)": d.need_bytes,
            f"{d.name}: have_bytes (quoted)": d.have_bytes,
            f"{d.name}: weights_bytes": d.weights_bytes,
            f"{d.name}: window_bytes": d.window_bytes,
            f"{d.name}: skip_bytes": d.skip_bytes,
            f"{d.name}: cores_needed (predicted)": d.cores_needed,
            f"{d.name}: cores_have (quoted)": d.cores_have,
            f"{d.name}: kernel_bodies": d.kernel_bodies,
            f"{d.name}: bodies_per_core": d.bodies_per_core,
            f"{d.name}: program_bytes ({'assumed' if d.program_assumed else 'predicted'})": d.program_bytes,
            f"{d.name}: program_have_bytes (quoted)": d.program_have_bytes,
            f"{d.name}: shim_channels_need": d.shim_channels_need,
            f"{d.name}: shim_channels_have (quoted)": d.shim_channels_have,
        }
    return figures


def _exceeds(d: DispatchBudget) -> str:
    """What of a dispatch exceeds its budget and no named split mends, or ""."""
    splittable = bool(d.oversized_ops) and all(split.strip() for _, split in d.oversized_ops)
    rows = (
        ("bytes", d.need_bytes, d.have_bytes, splittable),
        ("cores", d.cores_needed, d.cores_have, splittable),
        ("program bytes per core", d.program_bytes, d.program_have_bytes, False),
        ("shim channels", d.shim_channels_need, d.shim_channels_have, False),
    )
    faults = [
        f"{what}: need {need}, have {have}"
        for what, need, have, mended in rows
        if have is not None and need > have and not mended
    ]
    faults += [f"op {quoted(op)} exceeds alone and has no split" for op, split in d.oversized_ops if not split.strip()]
    return ", ".join(faults)


def _unknown(d: DispatchBudget) -> tuple[str, ...]:
    """Budgets of an array dispatch whose device figure is absent."""
    rows = {
        "have_bytes": d.have_bytes,
        "cores_have": d.cores_have,
        "program_have_bytes": d.program_have_bytes,
        "shim_channels_have": d.shim_channels_have,
    }
    return tuple(f"{d.name}: {name}" for name, have in rows.items() if have is None)
