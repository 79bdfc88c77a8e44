"""Optimization items about what was tried and what came of it: OP001 to OP005 and OP013."""

from itertools import pairwise
from typing import Final

from checklists.items.words import listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict
from optimize.evidence import CandidateEvidence, OptimizeEvidence

EXACT: Final = frozenset({"completes", "completes_leaving"})


def no_dispatch(e: OptimizeEvidence) -> Finding:
    """The finding where nothing runs on the array."""
    figures = {"array_dispatches": len(e.dispatches)}
    return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no dispatch runs on the array: 0", figures=figures)


def ablation_ranked(e: OptimizeEvidence) -> Finding:
    """Every dispatch has a ranking of what its groups of kernels contribute, by replacing each with a no-op.

    The no-op keeps acquires, releases and data movement. FAIL where a ranking is none (ranks repeat or leave gaps, or a
    larger contribution ranks lower). NOT_RUN names dispatches without one. NOT_APPLICABLE where no dispatch runs on the
    array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    figures: FigureTable = {"rows": len(e.ablation)}
    for dispatch in e.dispatches:
        rows = sorted((r for r in e.ablation if r.dispatch == dispatch), key=lambda r: r.rank)
        if not rows:
            return Finding(verdict=Verdict.NOT_RUN, summary=f"no ablation of {quoted(dispatch)}", subjects=(dispatch,))
        falling = all(a.interval_cycles >= b.interval_cycles for a, b in pairwise(rows))
        if [r.rank for r in rows] != list(range(1, len(rows) + 1)) or not falling:
            summary = f"the ablation of {quoted(dispatch)} is no ranking by interval"
            return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=(dispatch,))
        figures[f"{dispatch}: most"] = f"{rows[0].group}: {rows[0].interval_cycles} cycles per inference (simulated)"
    top = max(e.ablation, key=lambda r: r.interval_cycles)
    summary = f"{len(e.ablation)} groups ranked; most: {quoted(top.group)}, {100 * top.share:.0f} % of the interval"
    return Finding(verdict=Verdict.PASS, summary=f"{summary} (simulated)", figures=figures)


def effort_follows(e: OptimizeEvidence) -> Finding:
    """Work on single groups went down the ranking: in every turn the one that contributes most comes first.

    Each turn ranks the best design so far anew. FAIL names a candidate that works on a group before one that
    contributes more, or on a group that has no rank. NOT_RUN where there is no ranking or no candidate. NOT_APPLICABLE
    where no candidate works on a single group, with their number, and where no dispatch runs on the array.
    """
    if not e.dispatches:
        return no_dispatch(e)
    if not e.ablation or not e.candidates:
        return not_run("there is no ranking or no candidate to judge the effort by")
    single = [c for c in e.candidates if c.group]
    figures: FigureTable = {"candidates": len(e.candidates), "on_single_groups": len(single)}
    for candidate in single:
        figures[f"candidates for {candidate.group}"] = len([c for c in single if c.group == candidate.group])
    if not single:
        summary = f"{len(e.candidates)} candidates change the whole design: 0 work on a single group"
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)
    wrong = [c for c in single if c.rank < 1 or c.turn < 1]
    wrong += [b for a, b in pairwise(single) if (a.turn, a.rank) > (b.turn, b.rank)]
    if wrong:
        summary = f"candidate {quoted(wrong[0].name)} works on {quoted(wrong[0].group)} out of the order of the ranking"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(c.name for c in wrong))
    summary = f"{len(single)} of {len(e.candidates)} candidates work on single groups, down the ranking of each turn"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def candidates_exact(e: OptimizeEvidence) -> Finding:
    """Every candidate was held against the oracle before its time counted; one that changes a bit is rejected.

    FAIL names a candidate that was accepted although an element differs, nothing was compared or its simulation did
    not end. NOT_RUN without a candidate. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    if not e.candidates:
        return not_run("no candidate was tried")
    figures: FigureTable = {
        "candidates": len(e.candidates),
        "accepted": len([c for c in e.candidates if c.accepted]),
        "elements_compared": sum(c.elements for c in e.candidates),
        "rejected": tuple(f"{c.name}: {c.reason}" for c in e.candidates if not c.accepted and c.mismatches),
    }
    wrong = [c for c in e.candidates if c.accepted and not _exact(c)]
    if wrong:
        one = wrong[0]
        summary = f"candidate {quoted(one.name)} was accepted: {one.verdict}, {one.mismatches} of {one.elements} differ"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(c.name for c in wrong))
    silent = tuple(c.name for c in e.candidates if not c.accepted and not c.reason)
    if silent:
        summary = f"no reason why it was not taken: {listed(silent)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=silent)
    summary = f"{figures['accepted']} of {len(e.candidates)} candidates accepted, each equal to the oracle"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def winner_proved(e: OptimizeEvidence) -> Finding:
    """The winner passes presim and bring-up gates of its own and is better for the goal; else nothing is adopted.

    FAIL names the gate that is not PASS, or the figure that is not better. NOT_RUN where the design of the port was
    not timed or nothing was tried. NOT_APPLICABLE where nothing better was found, with the number of candidates, and
    where no dispatch runs on the array.
    """
    if not e.dispatches:
        return no_dispatch(e)
    if e.before is None or not e.candidates:
        return not_run("the design of the port was not timed, or nothing was tried")
    figures: FigureTable = {"goal": e.goal, "candidates": len(e.candidates)}
    for arm in (e.before, e.after):
        if arm is not None:
            figures[f"{arm.name}: tiles"] = arm.tiles
            figures[f"{arm.name}: interval_cycles ({arm.basis})"] = arm.interval_cycles
            figures[f"{arm.name}: latency_cycles ({arm.basis})"] = arm.latency_cycles
            figures[f"{arm.name}: gops ({arm.basis})"] = arm.gops
    if e.after is None:
        summary = f"nothing better for {e.goal} among {len(e.candidates)} candidates (simulated)"
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)
    if e.after.presim != "PASS" or not e.after.bringup.startswith("PASS"):
        summary = f"the winner's gates: presim {e.after.presim or 'not run'}, bring-up {e.after.bringup or 'not run'}"
        verdict = Verdict.FAIL if "FAIL" in e.after.presim + e.after.bringup else Verdict.NOT_RUN
        return Finding(verdict=verdict, summary=summary, figures=figures, subjects=("after",))
    keys = {"latency": "latency_cycles", "throughput": "interval_cycles", "tiles": "tiles"}
    key = keys.get(e.goal, "interval_cycles")
    old, new = int(getattr(e.before, key)), int(getattr(e.after, key))
    if new >= old:
        summary = f"the winner is not better for {e.goal}: {key} {new} against {old}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=("after",))
    summary = f"{e.goal}: {key} {new} against {old} ({100 * (old - new) / old:.0f} % less, {e.after.basis})"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def outputs_identical(e: OptimizeEvidence) -> Finding:
    """The winner's outputs on the canary are bit-identical to those of the design before.

    FAIL where their hashes differ; NOT_RUN where one of them is not known. NOT_APPLICABLE where nothing better was
    found, with the number of candidates, and where no dispatch runs on the array.
    """
    if not e.dispatches:
        return no_dispatch(e)
    if e.before is not None and e.after is None and e.candidates:
        figures = {"candidates": len(e.candidates)}
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="the design stays as it is", figures=figures)
    if e.before is None or e.after is None or not e.before.output_sha256 or not e.after.output_sha256:
        return not_run("outputs of the design before or of the winner are not known")
    table: FigureTable = {"before": e.before.output_sha256, "after": e.after.output_sha256}
    if e.before.output_sha256 != e.after.output_sha256:
        return Finding(verdict=Verdict.FAIL, summary="the winner's outputs differ", figures=table, subjects=("after",))
    return Finding(verdict=Verdict.PASS, summary="outputs before and after are bit-identical", figures=table)


def measured_on_device(e: OptimizeEvidence) -> Finding:
    """Both designs were measured on the device, back to back, with an unchanged kernel that reproduces to the cycle.

    BLOCKED where no device measured anything: a simulated gain is a prediction and no speed-up. NOT_APPLICABLE where
    nothing better was found.
    """
    if e.before is not None and e.after is None and e.candidates:
        figures = {"candidates": len(e.candidates)}
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="the design stays as it is", figures=figures)
    arms = [a for a in (e.before, e.after) if a is not None]
    if len(arms) < 2 or any(a.basis != "measured" for a in arms):
        return Finding(verdict=Verdict.BLOCKED, summary="no device measured the two designs", figures={"measured": 0})
    old, new = arms[0].interval_cycles, arms[1].interval_cycles
    verdict = Verdict.PASS if new < old else Verdict.FAIL
    return Finding(verdict=verdict, summary=f"interval {new} against {old} cycles (measured)", subjects=("after",))


def _exact(candidate: CandidateEvidence) -> bool:
    return candidate.verdict in EXACT and candidate.elements > 0 and candidate.mismatches == 0
