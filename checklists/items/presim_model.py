"""Presim items about mechanisms, decompositions, predicted regimes and the standing suite: PS010 to PS013."""

from checklists.items.presim_runs import no_dispatch
from checklists.items.words import listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict, number
from presim.evidence import EquivalenceEvidence, PresimEvidence, RegimeEvidence


def mechanisms_probed(e: PresimEvidence) -> Finding:
    """Every mechanism of the design that the tool's own tests do not hold has a probe of its own that passed.

    A mechanism is a way in which parts work together: broadcast, split, join, window, cascade, streamed weights and so
    on. FAIL names a probe that found something else than it expected; NOT_RUN a novel mechanism without a probe, or
    that no mechanism was listed. NOT_APPLICABLE where all are known, with the number of novel ones, 0.
    """
    if not e.dispatches:
        return no_dispatch(e)
    novel = [m for m in e.mechanisms if not m.known]
    figures: FigureTable = {
        "mechanisms": tuple(f"{m.name}: {m.uses}" for m in e.mechanisms),
        "novel": len(novel),
        "probed": len([m for m in novel if m.probe_verdict]),
    }
    failed = tuple(m.name for m in novel if m.probe_verdict and not m.probe_passed)
    if failed:
        words = next(m.probe_verdict for m in novel if m.name == failed[0])
        summary = f"the probe of mechanism {quoted(failed[0])} did not find what it expected: {words}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=failed)
    bare = tuple(m.name for m in novel if not m.probe_verdict)
    if bare:
        summary = f"novel mechanism without a probe: {listed(bare)}; run `python -m phases probe FILE --port PORT`"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=bare)
    if not e.mechanisms:
        return not_run("no mechanism was listed")
    if not novel:
        summary = f"all {len(e.mechanisms)} mechanisms are known: 0 novel"
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)
    return Finding(verdict=Verdict.PASS, summary=f"{len(novel)} novel mechanisms probed (simulated)", figures=figures)


def decompositions_equivalent(e: PresimEvidence) -> Finding:
    """A decomposition that changes the mathematics is held numerically against the whole, before any dataflow.

    FAIL where an equivalence on record has a mismatch, or its largest difference is above the allowed one. NOT_RUN
    where a decomposition of the design has no equivalence of its own name on record (one of another name shows nothing
    about it), or one was compared over 0 elements. NOT_APPLICABLE where the design decomposes nothing and none is on
    record, with their number, 0.
    """
    figures: FigureTable = {
        "decompositions": len(e.decompositions),
        "decomposed_by": e.decompositions,
        "equivalences": len(e.equivalences),
    }
    for row in e.equivalences:
        figures[f"{row.name}: elements"] = row.elements
        figures[f"{row.name}: mismatches"] = row.mismatches
        figures[f"{row.name}: largest_difference"] = number(row.largest_difference)
        figures[f"{row.name}: allowed"] = number(row.allowed)
    wrong = [row for row in e.equivalences if _differs(row)]
    if wrong:
        row = wrong[0]
        summary = (
            f"{quoted(row.name)}: {row.mismatches} of {row.elements} elements differ, largest difference "
            f"{row.largest_difference:g}, allowed {row.allowed:g}"
        )
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(r.name for r in wrong))
    empty = tuple(row.name for row in e.equivalences if row.elements <= 0)
    if empty:
        summary = f"compared over 0 elements: {listed(empty)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=empty)
    held = {row.decomposition for row in e.equivalences}
    bare = tuple(name for name in e.decompositions if name not in held)
    if bare:
        summary = f"no equivalence on record of {listed(bare)}; run `python -m phases equivalence FILE --port PORT`"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=bare)
    if not e.equivalences:
        summary = "nothing is decomposed: 0 decompositions"
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)
    return Finding(
        verdict=Verdict.PASS,
        summary=f"{len(e.equivalences)} equivalences hold: {listed(tuple(sorted(held)))}",
        figures=figures,
    )


def _differs(row: EquivalenceEvidence) -> bool:
    """Whether an equivalence is broken; a difference that is no number breaks it."""
    return row.mismatches > 0 or not row.largest_difference <= row.allowed


def regimes_predicted(e: PresimEvidence) -> Finding:
    """Batch 1 and batch N each have a predicted latency and interval, and what bounds them.

    The bound is the largest of compute, on-chip and DRAM cycles of one inference, and N times those take no longer than
    the first latency and N - 1 intervals: FAIL where a regime contradicts itself. NOT_RUN where one of the two regimes
    is absent or rests on no calibration, or where a device figure is not known: it is named and can be waived by that
    name. NOT_APPLICABLE where no dispatch runs on the array, with their number. Predicted, never measured.
    """
    if not e.dispatches:
        return no_dispatch(e)
    figures: FigureTable = {"regimes": len(e.regimes), "unknown_device_figures": e.regimes_unknown}
    for row in e.regimes:
        figures[f"{row.name}: batch"] = row.batch
        figures[f"{row.name}: bound"] = row.bound
        for name in ("latency_cycles", "interval_cycles", "compute_cycles", "on_chip_cycles", "dram_cycles"):
            figures[f"{row.name}: {name} (predicted)"] = getattr(row, name)
    faults = [(row, fault) for row in e.regimes if (fault := _contradiction(row))]
    if faults:
        row, fault = faults[0]
        subjects = tuple(r.name for r, _ in faults)
        summary = f"regime {quoted(row.name)}: {fault}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    if e.regimes_unknown:
        summary = f"device figure not known for {e.device}: {listed(e.regimes_unknown)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=e.regimes_unknown)
    batches = {row.batch for row in e.regimes}
    if 1 not in batches or len(batches) < 2:
        return Finding(
            verdict=Verdict.NOT_RUN, summary="expected a regime of batch 1 and one of batch N", figures=figures
        )
    bare = tuple(row.name for row in e.regimes if not row.calibration_sha256)
    if bare:
        summary = f"no calibration behind regime {listed(bare)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=bare)
    words = ", ".join(f"{row.name} is {row.bound.replace('_', '-')}-bound" for row in e.regimes)
    return Finding(verdict=Verdict.PASS, summary=f"{words} (predicted)", figures=figures)


def _contradiction(row: RegimeEvidence) -> str:
    """What of a regime cannot be, "" where it can."""
    parts = {"compute": row.compute_cycles, "on_chip": row.on_chip_cycles, "dram": row.dram_cycles}
    largest = max(parts.values())
    if parts[row.bound] < largest:
        return f"called {row.bound}-bound at {parts[row.bound]} cycles, but another part takes {largest}"
    span = row.latency_cycles + (row.batch - 1) * row.interval_cycles
    if (largest - 1) * row.batch >= span:  # the parts are rounded up to whole cycles
        return f"{row.batch} inferences take {span} cycles, but {largest} of each bound them"
    return ""


def regression_suite_green(e: PresimEvidence) -> Finding:
    """The port holds a standing suite with one test per stage, and all of them pass on the files as written.

    FAIL where a test fails, or a stage has none. NOT_RUN where the suite was not run. NOT_APPLICABLE where no dispatch
    runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    if e.regression is None:
        return not_run("the regression suite was not run")
    r = e.regression
    figures: FigureTable = {
        "stages_expected": len(e.stages_expected),
        "stages": r.stages,
        "tests": r.tests,
        "failed": r.failed,
    }
    if r.failed:
        summary = f"{r.failed} of {r.tests} tests fail" + (f": stage {listed(r.names)}" if r.names else "")
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=r.names)
    if r.stages < len(e.stages_expected):
        summary = f"{r.stages} stages have a test, {len(e.stages_expected)} expected"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    if r.tests < r.stages or not r.tests:
        return Finding(verdict=Verdict.NOT_RUN, summary=f"{r.tests} of {r.stages} tests were run", figures=figures)
    return Finding(verdict=Verdict.PASS, summary=f"{r.tests} tests of {r.stages} stages pass", figures=figures)
