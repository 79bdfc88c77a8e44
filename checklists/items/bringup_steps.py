"""Bring-up items about steps that were executed: one rule each, asked for the host and for a device."""

from collections.abc import Sequence
from typing import Final

from bringup.evidence import BringupEvidence, StepEvidence
from checklists.items.words import listed, quoted
from checklists.model import FigureTable, Finding, Verdict

MIN_INPUTS: Final = 3
MIN_SCHEDULES: Final = 4
"""On the host: round-robin and three seeds."""
MIN_REPEATS: Final = 2
"""On a device: the same run twice."""
HUNG: Final = frozenset({"deadlock", "timeout"})
DONE: Final = "completed"
HOST: Final = ("host",)
DEVICE: Final = ("hardware", "recorded")


def stages_exact(e: BringupEvidence, runs: tuple[str, ...]) -> Finding:
    """Every stage alone, in the generated sources, equals the oracle."""
    if not e.dispatches:
        return no_dispatch(e)
    steps = steps_of(e, runs, "stage")
    missing = tuple(s for s in e.stages_expected if s not in {p for step in steps for p in step.parts})
    return all_exact(e, steps, missing, "stage", "stages are exact alone")


def chain_exact(e: BringupEvidence, runs: tuple[str, ...]) -> Finding:
    """The chain grows by one stage that was exact alone, built from the same sources."""
    if not e.dispatches:
        return no_dispatch(e)
    steps = steps_of(e, runs, "chain")
    missing = tuple(s for s in e.stages_expected if s not in {p for step in steps for p in step.added})
    fault = _disorder(steps, steps_of(e, runs, "stage"))
    if fault:
        figures = _figures(steps, missing)
        return Finding(verdict=Verdict.FAIL, summary=fault[1], figures=figures, subjects=(fault[0],))
    return all_exact(e, steps, missing, "chain", "links of the chain are exact")


def dispatches_exact(e: BringupEvidence, runs: tuple[str, ...]) -> Finding:
    """Every dispatch as a whole equals the oracle on inputs that differ, a real one among them."""
    if not e.dispatches:
        return no_dispatch(e)
    steps = steps_of(e, runs, "dispatch")
    missing = tuple(d for d in e.dispatches if d not in {step.dispatch for step in steps})
    return all_exact(e, steps, missing, "dispatch", "dispatches are exact", least=MIN_INPUTS)


def handoff_exact(e: BringupEvidence, runs: tuple[str, ...]) -> Finding:
    """What one dispatch gave is what the next one gets, as a step of its own after all dispatches."""
    figures: FigureTable = {"handoffs_expected": e.handoffs_expected}
    if e.handoffs_expected <= 0:
        summary = f"{len(e.dispatches)} dispatch on the array and nothing to hand on: 0 hand-offs"
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)
    steps = steps_of(e, runs, "handoff")
    missing = () if steps else ("hand-off",)
    early = [s for s in steps for d in steps_of(e, runs, "dispatch") if d.order > s.order]
    if early:
        summary = f"hand-off {quoted(early[0].name)} ran before every dispatch was exact"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=(early[0].name,))
    return all_exact(e, steps, missing, "hand-off", "hand-offs are exact", least=MIN_INPUTS)


def all_exact(
    e: BringupEvidence,
    steps: Sequence[StepEvidence],
    missing: tuple[str, ...],
    what: str,
    good: str,
    *,
    least: int = 1,
) -> Finding:
    """FAIL for the first step that is wrong, NOT_RUN for gaps, else PASS with the number of elements."""
    figures = _figures(steps, missing)
    wrong = [s for s in steps if s.status not in (DONE, "absent") or s.mismatches]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        summary = f"{what} {quoted(wrong[0].name)}: {wrong[0].text}{more}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=_names(wrong))
    gaps = [(s, gap) for s in steps if (gap := _gap(e, s, least))]
    if gaps:
        step, words = gaps[0]
        more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
        subjects = _names([s for s, _ in gaps])
        summary = f"{what} {quoted(step.name)}: {words}{more}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=subjects)
    if missing or not steps:
        summary = f"not run: {listed(missing)}" if missing else f"no {what} was run"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=missing)
    where = " and ".join(dict.fromkeys(s.runs for s in steps))
    words = f"{len(steps)} {good}: {figures['elements_compared']} elements, 0 mismatches ({_label(where)})"
    return Finding(verdict=Verdict.PASS, summary=words, figures=figures)


def runs_clean(e: BringupEvidence, runs: tuple[str, ...]) -> Finding:
    """No step hangs, crashes or differs between repetitions."""
    if not e.dispatches:
        return no_dispatch(e)
    steps = steps_of(e, runs)
    least = MIN_SCHEDULES if runs == HOST else MIN_REPEATS
    whole = [s for s in steps if s.kind == "dispatch"]
    figures: FigureTable = {"steps": len(steps), "schedules": min((s.schedules for s in whole), default=0)}
    hung = [s for s in steps if s.status in HUNG or s.status == "crash"]
    if hung:
        summary = f"{quoted(hung[0].name)}: {hung[0].text}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=_names(hung))
    if not whole:
        return Finding(verdict=Verdict.NOT_RUN, summary="no dispatch was run as a whole", figures=figures)
    few = [s for s in whole if s.schedules < least]
    if few:
        summary = f"{quoted(few[0].name)}: {few[0].schedules} orders or repetitions, at least {least} expected"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=_names(few))
    words = f"{len(steps)} steps end, {figures['schedules']} orders or repetitions of every dispatch agree"
    return Finding(verdict=Verdict.PASS, summary=words, figures=figures)


def steps_of(e: BringupEvidence, runs: tuple[str, ...], kind: str = "") -> tuple[StepEvidence, ...]:
    """Steps that were executed there, of one kind where it is given."""
    return tuple(s for s in e.steps if s.runs in runs and kind in ("", s.kind))


def no_dispatch(e: BringupEvidence) -> Finding:
    """The finding where nothing runs on the array."""
    figures = {"array_dispatches": len(e.dispatches)}
    return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no dispatch runs on the array: 0", figures=figures)


def _gap(e: BringupEvidence, step: StepEvidence, least: int) -> str:
    """Why a step without a fault shows nothing, "" where it does."""
    if step.status != DONE:
        return step.text or step.status
    if step.elements <= 0 or step.boundaries <= 0:
        return "0 elements were compared"
    if step.canary_sha256 != e.canary_sha256 or not e.canary_sha256:
        return "it was not fed from the canary of the port"
    if step.inferences < least or step.distinct_inputs < least:
        return f"{step.inferences} inferences over {step.distinct_inputs} inputs, at least {least} expected"
    if step.real_inputs < 1:
        return "no real input was run"
    return f"not compared: {listed(step.uncompared)}" if step.uncompared else ""


def _disorder(chain: Sequence[StepEvidence], alone: Sequence[StepEvidence]) -> tuple[str, str] | None:
    """(step, words) where the chain does not grow by exactly one thing that was exact before."""
    before: dict[str, StepEvidence] = {p: s for s in alone if s.status == DONE and not s.mismatches for p in s.parts}
    parts: dict[str, frozenset[str]] = {}
    last = -1
    for step in chain:
        grown = frozenset(step.parts) - parts.get(step.dispatch, frozenset())
        if len(step.added) != 1 or grown != frozenset(step.added):
            return step.name, f"step {quoted(step.name)} adds {listed(sorted(grown)) or 'nothing'}, expected one stage"
        if step.order <= last:
            return step.name, f"step {quoted(step.name)} ran out of order: {step.order} after {last}"
        new = before.get(step.added[0])
        if new is None or new.order >= step.order:
            return step.name, f"stage {quoted(step.added[0])} joined the chain before it was exact alone"
        changed = _changed(step, [before[p] for p in step.parts if p in before])
        if changed:
            return step.name, f"step {quoted(step.name)}: {changed} is not what was exact alone"
        parts[step.dispatch] = frozenset(step.parts)
        last = step.order
    return None


def _changed(step: StepEvidence, alone: Sequence[StepEvidence]) -> str:
    """A kernel whose source is another one than where it was exact alone, "" = none."""
    known = {name: sha for s in alone for name, sha in s.sources}
    return next((quoted(name) for name, sha in step.sources if known.get(name, sha) != sha), "")


def _figures(steps: Sequence[StepEvidence], missing: tuple[str, ...]) -> FigureTable:
    return {
        "steps": len(steps),
        "not_run": missing,
        "boundaries": sum(s.boundaries for s in steps),
        "elements_compared": sum(s.elements for s in steps),
        "mismatches": sum(s.mismatches for s in steps),
        "inferences": min((s.inferences for s in steps), default=0),
        "distinct_inputs": min((s.distinct_inputs for s in steps), default=0),
        "real_inputs": min((s.real_inputs for s in steps), default=0),
        "not_compared": tuple(name for s in steps for name in s.uncompared),
    }


def _names(steps: Sequence[StepEvidence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.name for s in steps))


def _label(where: str) -> str:
    """How what was executed is called."""
    words = {"host": "executed on this host", "hardware": "measured on hardware", "recorded": "recorded on hardware"}
    return words.get(where, where)
