"""Optimization items about placement, boundaries, regimes, traffic and kernels: OP006 to OP012."""

from typing import Final

from checklists.items.optimize_search import no_dispatch
from checklists.items.words import listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict
from optimize.evidence import OptimizeEvidence, PlacementEvidence

BASES: Final = frozenset({"measured", "quoted", "assumed"})


def placement_legal(e: OptimizeEvidence) -> Finding:
    """Every dispatch of the final design is placed legally, checked by code that the placer does not share.

    Cost, bound and gap are stated. FAIL names the dispatch and the rule that is broken, and a placement that a clock
    cut off (not reproducible). NOT_RUN names dispatches that were not checked. NOT_APPLICABLE where no dispatch runs on
    the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    figures: FigureTable = {"placements": len(e.placements)}
    for row in e.placements:
        figures[f"{row.dispatch}: {row.status}"] = _price(row)
    wrong = [r for r in e.placements if not r.legal or not r.reproducible]
    if wrong:
        why = wrong[0].fault or "cut by a clock: not reproducible"
        names = tuple(r.dispatch for r in wrong)
        summary = f"dispatch {quoted(wrong[0].dispatch)}: {why}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=names)
    missing = tuple(d for d in e.dispatches if d not in {r.dispatch for r in e.placements})
    if missing:
        summary = f"not checked: {listed(missing)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=missing)
    proved = len([r for r in e.placements if r.status == "optimal"])
    summary = f"{len(e.placements)} placements legal by the independent check, {proved} proved optimal"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def _price(row: PlacementEvidence) -> str:
    """Cost, bound and gap in words."""
    if row.cost is None or row.bound is None:
        return "cost and bound are not known"
    gap = 0.0 if row.cost <= 0 else (row.cost - row.bound) / row.cost
    return f"cost {row.cost:g}, bound {row.bound:g}, gap {100 * gap:.1f} %"


def boundaries_considered(e: OptimizeEvidence) -> Finding:
    """Every boundary between dispatches was reconsidered for speed: what the trip costs, what else was tried.

    FAIL where an alternative that is better was not taken. NOT_RUN where a boundary was not looked at. NOT_APPLICABLE
    with one dispatch, with the number of boundaries.
    """
    figures: FigureTable = {"boundaries": e.expected_boundaries, "looked_at": len(e.boundaries)}
    if e.expected_boundaries <= 0:
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="one dispatch, 0 boundaries", figures=figures)
    for row in e.boundaries:
        figures[f"{row.tensor}: cycles (predicted)"] = row.cycles
    left = [r for r in e.boundaries if r.better]
    if left:
        summary = f"boundary at {quoted(left[0].tensor)}: {left[0].alternative} is faster and was not taken"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(r.tensor for r in left))
    if len(e.boundaries) < e.expected_boundaries:
        missing = e.expected_boundaries - len(e.boundaries)
        return Finding(verdict=Verdict.NOT_RUN, summary=f"{missing} boundaries were not looked at", figures=figures)
    summary = f"{len(e.boundaries)} boundaries reconsidered, none is better elsewhere (predicted)"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def regimes_apart(e: OptimizeEvidence) -> Finding:
    """Where another resource binds in another regime, each regime has the design that is best in it.

    FAIL names a regime that runs on the design of another one although the search knows a better one for it. NOT_RUN
    with fewer than two regimes. NOT_APPLICABLE where the same resource binds in all of them, with its name, and where
    no dispatch runs on the array.
    """
    if not e.dispatches:
        return no_dispatch(e)
    figures: FigureTable = {r.regime: f"{r.bound}-bound, design {r.placement} (predicted)" for r in e.regimes}
    if len(e.regimes) < 2:
        return not_run("fewer than two regimes were predicted")
    bounds = {r.bound for r in e.regimes}
    if len(bounds) == 1:
        summary = f"every regime is {bounds.pop()}-bound: 1 binding resource (predicted)"
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)
    worse = [r for r in e.regimes if r.better]
    if worse:
        summary = f"{quoted(worse[0].regime)} is {worse[0].bound}-bound; design {worse[0].better} is better for it"
        subjects = tuple(r.regime for r in worse)
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    designs = len({r.placement for r in e.regimes})
    summary = f"{len(bounds)} binding resources, {designs} designs, none better for any regime was found (predicted)"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def bandwidth_labelled(e: OptimizeEvidence) -> Finding:
    """DMA was sized from a bandwidth table that says of itself whether it was measured, quoted or assumed.

    FAIL where it does not say so. NOT_RUN where no table was used. NOT_APPLICABLE where no dispatch runs on the array.
    """
    if not e.dispatches:
        return no_dispatch(e)
    name, basis, sha256 = e.bandwidth
    if not name or not sha256:
        return not_run("no bandwidth table was used")
    figures: FigureTable = {"table": name, "basis": basis, "sha256": sha256}
    if basis not in BASES:
        summary = f"table {quoted(name)} does not say whether it was measured, quoted or assumed: {quoted(basis)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=(name,))
    return Finding(verdict=Verdict.PASS, summary=f"bandwidth of table {quoted(name)}, {basis}", figures=figures)


def conversions_costed(e: OptimizeEvidence) -> Finding:
    """Every conversion that a DMA cannot do is costed as work of a compute tile.

    FAIL names one that costs nothing. NOT_RUN where some were not costed. NOT_APPLICABLE where the model has none, with
    the number 0.
    """
    figures: FigureTable = {"conversions": e.conversions_expected, "costed": len(e.conversions)}
    if e.conversions_expected <= 0:
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no conversion on compute tiles: 0", figures=figures)
    for op, cycles in e.conversions:
        figures[f"{op}: cycles per inference (predicted)"] = cycles
    free = tuple(op for op, cycles in e.conversions if cycles <= 0)
    if free:
        summary = f"conversion that costs nothing: {listed(free)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=free)
    if len(e.conversions) < e.conversions_expected:
        missing = e.conversions_expected - len(e.conversions)
        return Finding(verdict=Verdict.NOT_RUN, summary=f"{missing} conversions were not costed", figures=figures)
    summary = f"{len(e.conversions)} conversions costed on compute tiles (predicted)"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def streaming_decided(e: OptimizeEvidence) -> Finding:
    """For every op with weights, resident or streamed was decided together with its placement, with a reason.

    FAIL names an op without a reason. NOT_RUN where an op has no decision. NOT_APPLICABLE where no op has weights, with
    their number.
    """
    figures: FigureTable = {"ops_with_weights": e.weighted_ops, "decided": len(e.streamed)}
    if e.weighted_ops <= 0:
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no op has weights: 0", figures=figures)
    bare = tuple(op for op, how, why in e.streamed if how not in ("resident", "streamed") or not why)
    if bare:
        summary = f"no decision with a reason for {listed(bare)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=bare)
    if len(e.streamed) < e.weighted_ops:
        missing = e.weighted_ops - len(e.streamed)
        return Finding(verdict=Verdict.NOT_RUN, summary=f"{missing} ops have no decision", figures=figures)
    streamed = len([1 for _, how, _ in e.streamed if how == "streamed"])
    summary = f"weights of {len(e.streamed)} ops decided, {streamed} streamed"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def kernels_screened(e: OptimizeEvidence) -> Finding:
    """Every emitted kernel was screened by static rules; what they find is a candidate and never a speed-up.

    FAIL where a finding is called confirmed and no device measured it. NOT_RUN where no kernel was screened.
    NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    if e.kernels <= 0:
        return not_run("no kernel was screened")
    figures: FigureTable = {
        "kernels": e.kernels,
        "candidates": tuple(
            f"{s.kernel}: {s.rule} ({s.confidence}, hardware unconfirmed): {s.text}" for s in e.screening
        ),
    }
    measured = e.after is not None and e.after.basis == "measured"
    claimed = tuple(s.kernel for s in e.screening if s.confirmed and not measured)
    if claimed:
        summary = f"called confirmed without a measurement: {listed(claimed)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=claimed)
    summary = f"{e.kernels} kernels screened, {len(e.screening)} candidates, hardware unconfirmed"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)
