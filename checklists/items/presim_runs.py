"""Presim items about what was simulated: PS001 to PS005."""

from collections.abc import Sequence
from typing import Final

from checklists.items.words import counted, listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict
from presim.evidence import PresimEvidence, RunEvidence

ENDED: Final = frozenset({"completes", "completes_leaving"})
HUNG: Final = frozenset({"deadlock", "starvation", "nondeterministic"})
MIN_INPUTS: Final = 3
MIN_SCHEDULES: Final = 4
"""Round-robin and three seeds."""


def stages_exact_alone(e: PresimEvidence) -> Finding:
    """Every stage, cut out and fed at its own inputs, gives the oracle's tensors bit for bit.

    FAIL names the stage with the first element that differs, or the hang; NOT_RUN names every stage that was not
    simulated, ended inconclusive, or was compared over 0 elements. NOT_APPLICABLE where no dispatch runs on the
    array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    names = [run.name for run in e.stages]
    missing = tuple(s for s in e.stages_expected if s not in names)
    return _all_sound(e.stages, missing, "stages are exact alone", "stage")


def chain_grows_by_one(e: PresimEvidence) -> Finding:
    """The chain grows by exactly one stage per step, in order, each step exact, every stage exact alone before.

    FAIL names the stage that was added last where a step is wrong, a stage that joined before it ran alone, and steps
    that add no stage or one twice. NOT_RUN names stages that never joined. NOT_APPLICABLE where no dispatch runs on
    the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    missing = tuple(s for s in e.stages_expected if s not in {run.added for run in e.chain})
    disorder = _disorder(e)
    figures = _figures(e.chain, missing)
    if disorder:
        return Finding(verdict=Verdict.FAIL, summary=disorder[1], figures=figures, subjects=(disorder[0],))
    return _all_sound(e.chain, missing, "links of the chain are exact", "chain after adding", key="added")


def full_design_exact(e: PresimEvidence) -> Finding:
    """Every dispatch equals the oracle's target tensors on every fifo that carries a tensor, on 3 different inputs.

    The inputs run back to back without a reset, at least one of them real, and each dispatch is fed with what the ones
    before it gave. FAIL names fifo, object, element, expected and got. NOT_RUN where a dispatch was not simulated or
    did not end, where fewer than 3 inferences or inputs that differ were run, none of them real, or a fifo was not
    compared. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    missing = tuple(d for d in e.dispatches if d not in {run.dispatch for run in e.full})
    figures = _figures(e.full, missing)
    figures |= {
        "inferences": min((r.inferences for r in e.full), default=0),
        "distinct_inputs": min((r.distinct_inputs for r in e.full), default=0),
        "real_inputs": min((r.real_inputs for r in e.full), default=0),
    }
    wrong = [r for r in e.full if r.verdict == "wrong_data" or r.mismatches]
    if wrong:
        return _named(Verdict.FAIL, wrong, [r.text for r in wrong], figures, "dispatch")
    gaps = [(run, gap) for run in e.full if (gap := _gap(run))]
    if gaps:
        return _named(Verdict.NOT_RUN, [r for r, _ in gaps], [g for _, g in gaps], figures, "dispatch")
    if missing:
        return _missing(missing, figures, "dispatch")
    words = f"{figures['elements_compared']} elements on {figures['boundaries']} fifos equal the oracle (simulated)"
    return Finding(verdict=Verdict.PASS, summary=words, figures=figures)


def no_hang(e: PresimEvidence) -> Finding:
    """Every dispatch reaches its awaited drains under round-robin and 3 seeded schedules, and they all agree.

    FAIL on deadlock (the cycle, and the smallest change that was verified to lift it), starvation, and schedules that
    disagree. NOT_RUN where the step bound was met (inconclusive), fewer than 4 schedules were tried, or a dispatch was
    not simulated. A worker that ends blocked in an acquire is no hang. NOT_APPLICABLE where no dispatch runs on the
    array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    missing = tuple(d for d in e.dispatches if d not in {run.dispatch for run in e.full})
    figures: FigureTable = {
        "dispatches": len(e.full),
        "schedules": min((r.schedules for r in e.full), default=0),
        "fifos_with_known_margin": len(e.margins),
        "fifos_at_least_depth": len([f for f, depth, least in e.margins if depth == least]),
    }
    hung = [r for r in e.full if r.verdict in HUNG]
    if hung:
        return _named(Verdict.FAIL, hung, [r.text for r in hung], figures, "dispatch")
    open_runs = [r for r in e.full if r.verdict == "inconclusive"]
    if open_runs:
        return _named(Verdict.NOT_RUN, open_runs, [r.text for r in open_runs], figures, "dispatch")
    few = [r for r in e.full if r.schedules < MIN_SCHEDULES]
    if few:
        words = [f"{r.schedules} schedules tried, at least {MIN_SCHEDULES} expected" for r in few]
        return _named(Verdict.NOT_RUN, few, words, figures, "dispatch")
    if missing:
        return _missing(missing, figures, "dispatch")
    runs = counted(len(e.full), "dispatch", "dispatches")
    summary = f"no hang in {runs} under {figures['schedules']} schedules each (simulated)"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def accesses_and_leftovers(e: PresimEvidence) -> Finding:
    """Workers touch only objects that they hold and that were written, and nothing that is left grows.

    FAIL on use after release, a release of more than is held, a read of memory that nobody wrote, a cascade that does
    not match; and where tokens, held objects or open tasks change with every inference, which means that a body takes
    more than it gives. What stays the same (prefetched objects, a kept window) is listed and fine. NOT_RUN where a
    dispatch was not simulated to its end. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    ended = [r for r in e.full if r.verdict in ENDED]
    left = [(r, row) for r in ended for row in r.left]
    figures: FigureTable = {
        "dispatches": len(e.full),
        "left": len(left),
        "left_growing": len([1 for _, row in left if not row[2]]),
        "left_fine": tuple(f"{fifo} at {where}: {why}" for _, (fifo, where, fine, why) in left if fine),
    }
    broken = [r for r in e.full if r.verdict == "fault"]
    if broken:
        return _named(Verdict.FAIL, broken, [r.text for r in broken], figures, "dispatch")
    growing = [(r, row) for r, row in left if not row[2]]
    if growing:
        words = [f"fifo {quoted(row[0])} at {quoted(row[1])}: {row[3]}" for _, row in growing]
        return _named(Verdict.FAIL, [r for r, _ in growing], words, figures, "dispatch")
    missing = tuple(d for d in e.dispatches if d not in {run.dispatch for run in ended})
    if missing:
        return _missing(missing, figures, "dispatch")
    runs, rest = counted(len(ended), "dispatch", "dispatches"), counted(len(left), "leftover")
    summary = f"every access of {runs} holds, {rest} without growth (simulated)"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def no_dispatch(e: PresimEvidence) -> Finding:
    """The finding where nothing runs on the array."""
    figures = {"array_dispatches": len(e.dispatches)}
    return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no dispatch runs on the array: 0", figures=figures)


def _fault(run: RunEvidence) -> str:
    """What is wrong with a run, "" where nothing is."""
    if run.verdict == "inconclusive":
        return ""
    if run.verdict not in ENDED or run.mismatches:
        return run.text
    growing = [row for row in run.left if not row[2]]
    return f"fifo {quoted(growing[0][0])} at {quoted(growing[0][1])}: {growing[0][3]}" if growing else ""


def _unjudged(run: RunEvidence) -> str:
    """Why a run without a fault shows nothing, "" where it does."""
    if run.verdict == "inconclusive":
        return run.text
    if run.elements <= 0 or run.boundaries <= 0:
        return "0 elements were compared"
    return f"not compared: {listed(run.uncompared)}" if run.uncompared else ""


def _gap(run: RunEvidence) -> str:
    """Why a full run does not show what it has to, "" where it does."""
    if run.verdict not in ENDED:
        return f"did not reach its end ({run.verdict})"
    if run.inferences < MIN_INPUTS or run.distinct_inputs < MIN_INPUTS:
        got = f"{run.inferences} inferences over {run.distinct_inputs} inputs"
        return f"{got}, at least {MIN_INPUTS} different inputs expected"
    return "no real input was run" if run.real_inputs < 1 else _unjudged(run)


def _all_sound(
    runs: Sequence[RunEvidence], missing: tuple[str, ...], good: str, what: str, key: str = "name"
) -> Finding:
    """FAIL for the first unsound run, NOT_RUN for gaps, else PASS."""
    figures = _figures(runs, missing)
    wrong = [r for r in runs if _fault(r)]
    if wrong:
        return _named(Verdict.FAIL, wrong, [_fault(r) for r in wrong], figures, what, key=key)
    gaps = [r for r in runs if _unjudged(r)]
    if gaps:
        return _named(Verdict.NOT_RUN, gaps, [_unjudged(r) for r in gaps], figures, what, key=key)
    if missing:
        return _missing(missing, figures, "stage")
    if not runs:
        return not_run("no stage was simulated")
    words = f"{len(runs)} {good}: {figures['elements_compared']} elements, 0 mismatches (simulated)"
    return Finding(verdict=Verdict.PASS, summary=words, figures=figures)


def _disorder(e: PresimEvidence) -> tuple[str, str] | None:
    """(stage, words) where the chain did not grow by one stage that ran alone before."""
    alone = {run.name: run.order for run in e.stages}
    seen: set[str] = set()
    last = -1
    for run in e.chain:
        subject = run.added or run.name
        if not run.added or run.added in seen or run.added not in e.stages_expected:
            return subject, f"step {quoted(run.name)} does not add exactly one new stage: {quoted(run.added)}"
        if run.order <= last:
            return subject, f"stage {quoted(run.added)} was added out of order: {run.order} after {last}"
        if run.added not in alone or alone[run.added] >= run.order:
            return subject, f"stage {quoted(run.added)} joined the chain before it ran alone"
        seen.add(run.added)
        last = run.order
    return None


def _figures(runs: Sequence[RunEvidence], missing: tuple[str, ...]) -> FigureTable:
    return {
        "runs": len(runs),
        "not_simulated": missing,
        "boundaries": sum(r.boundaries for r in runs),
        "elements_compared": sum(r.elements for r in runs),
        "mismatches": sum(r.mismatches for r in runs),
        "not_compared": tuple(name for r in runs for name in r.uncompared),
    }


def _named(
    verdict: Verdict,
    runs: Sequence[RunEvidence],
    words: Sequence[str],
    figures: FigureTable,
    what: str,
    *,
    key: str = "name",
) -> Finding:
    """A finding about the first run, with how many more there are."""
    names = [str(getattr(r, key)) for r in runs]
    more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
    summary = f"{what} {quoted(names[0])}: {words[0]}{more}"
    return Finding(verdict=verdict, summary=summary, figures=figures, subjects=tuple(dict.fromkeys(names)))


def _missing(missing: tuple[str, ...], figures: FigureTable, what: str) -> Finding:
    summary = f"not simulated to its end: {what} {listed(missing)}"
    return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=missing)
