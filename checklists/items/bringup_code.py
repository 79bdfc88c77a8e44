"""Bring-up items about the generated sources themselves: BU001 to BU004 and BU011 to BU013."""

from bringup.evidence import BringupEvidence
from checklists.items.bringup_steps import HOST, no_dispatch, steps_of
from checklists.items.words import listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict


def emitted_is_simulated(e: BringupEvidence) -> Finding:
    """Every emitted `design.py`, run under the stand-in and lowered, is the design that phase 2 simulated.

    Fifos, depths, tiles, links, programs, cascades and the runtime sequence are compared as values. FAIL names the
    job; NOT_RUN where a job was not lowered. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    steps = [s for s in steps_of(e, HOST) if s.kind != "handoff"]
    figures: FigureTable = {"designs": len(steps)}
    other = [s for s in steps if s.lowered_sha256 and s.planned_sha256 and s.lowered_sha256 != s.planned_sha256]
    if other:
        summary = f"emitted design of {quoted(other[0].name)} is not the planned one: {other[0].text}"
        subjects = tuple(s.name for s in other)
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    unknown = tuple(s.name for s in steps if not s.lowered_sha256 or not s.planned_sha256)
    whole = {s.dispatch for s in steps if s.kind == "dispatch"}
    missing = (*unknown, *(d for d in e.dispatches if d not in whole))
    if missing:
        summary = f"not lowered: {listed(missing)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=missing)
    summary = f"{len(steps)} emitted designs lower to what was planned"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def sources_clean(e: BringupEvidence) -> Finding:
    """Every static rule that needs no compiler holds for every generated source.

    FAIL names rule, file and line. NOT_RUN where no rule was applied or no file looked at.
    """
    if e.lint is None or not e.lint.rules or e.lint.files <= 0:
        return not_run("no static rule was applied to the generated sources")
    figures: FigureTable = {
        "rules": len(e.lint.rules),
        "files": e.lint.files,
        "findings": tuple(f"{rule}: {where}: {text}" for rule, where, text in e.lint.findings),
    }
    if e.lint.findings:
        rule, where, text = e.lint.findings[0]
        more = f" and {len(e.lint.findings) - 1} more" if len(e.lint.findings) > 1 else ""
        subjects = tuple(dict.fromkeys(where for _, where, _ in e.lint.findings))
        summary = f"{where}: {rule}: {text}{more}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    summary = f"{len(e.lint.rules)} rules find nothing in {e.lint.files} files"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def artifacts_linked(e: BringupEvidence) -> Finding:
    """What was executed was built from exactly the files that were emitted, and emission is reproducible.

    FAIL names the file whose bytes on disk, or in a step, are not the emitted ones (a stale artifact), and where a
    second emission differs. NOT_RUN where nothing was emitted, nothing executed, or emission was not repeated.
    """
    emitted, disk = dict(e.generated), dict(e.on_disk)
    figures: FigureTable = {"files": len(emitted), "steps": len(e.steps)}
    wrong = tuple(n for n in sorted({*emitted, *disk}) if emitted.get(n) != disk.get(n))
    used = {(name, sha) for s in e.steps for name, sha in s.sources}
    stale = tuple(sorted({name for name, sha in used if emitted.get(name) != sha}))
    if wrong or stale:
        names = tuple(dict.fromkeys((*wrong, *stale)))
        summary = f"not the emitted file was executed: {listed(names)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=names)
    if e.emitted_again_equal is False:
        return Finding(verdict=Verdict.FAIL, summary="a second emission gave other bytes", figures=figures)
    if not emitted or not e.steps or e.emitted_again_equal is None:
        return not_run("nothing was emitted twice and executed")
    unlinked = tuple(s.name for s in e.steps if not s.sources and s.kind != "handoff" and s.status != "absent")
    if unlinked:
        summary = f"no sources on record for {listed(unlinked)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=unlinked)
    summary = f"{len(e.steps)} steps were built from the {len(emitted)} emitted files, emitted twice alike"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def overflows_split(e: BringupEvidence) -> Finding:
    """With the packed buffers of the emitted kernels every core tile holds what it needs; overflows are tile splits.

    FAIL one byte above, naming the tile. NOT_RUN where a dispatch has no row, or L1 of the device is not known.
    NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    figures: FigureTable = {
        "tiles": len(e.memory),
        "splits": tuple(dict.fromkeys(row.split for row in e.memory if row.split)),
        "fullest_need_bytes": max((row.need for row in e.memory), default=0),
    }
    over = [row for row in e.memory if row.have is not None and row.need > row.have]
    if over:
        row = over[0]
        summary = f"dispatch {quoted(row.dispatch)}: {row.place}: need {row.need} bytes, have {row.have}"
        return Finding(
            verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(row.place for row in over)
        )
    missing = tuple(d for d in e.dispatches if d not in {row.dispatch for row in e.memory})
    unknown = any(row.have is None for row in e.memory)
    if missing or unknown:
        words = f"no row of dispatch {listed(missing)}" if missing else f"L1 bytes of {e.device} are not known"
        return Finding(verdict=Verdict.NOT_RUN, summary=words, figures=figures, subjects=missing)
    row = max(e.memory, key=lambda r: r.need)
    summary = f"{len(e.memory)} tiles hold their packed buffers; the fullest: {row.place}: {row.need} of {row.have}"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def rules_recorded(e: BringupEvidence) -> Finding:
    """Every split, hang and overflow of this bring-up is on record as a design rule.

    FAIL names an event without a rule. NOT_APPLICABLE where nothing happened that asks for one, with the number 0.
    """
    figures: FigureTable = {"events": len(e.rules), "recorded": len([r for r in e.rules if r.recorded])}
    if not e.rules:
        return Finding(
            verdict=Verdict.NOT_APPLICABLE, summary="nothing happened that asks for a rule: 0 events", figures=figures
        )
    lost = tuple(r.event for r in e.rules if not r.recorded)
    if lost:
        summary = f"no design rule is recorded for {listed(lost)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=lost)
    summary = f"{len(e.rules)} design rules are recorded in design-rules.json"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def outputs_alive(e: BringupEvidence) -> Finding:
    """No output holds one value everywhere (zeros, poison) where the oracle's does not.

    A wrong device name and memory that nobody wrote show like this. FAIL names step and tensor. NOT_RUN where no
    dispatch was compared. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    whole = [s for s in e.steps if s.kind == "dispatch" and s.elements]
    dead = [(s, name) for s in e.steps for name in s.uniform]
    figures: FigureTable = {"dispatches": len(whole), "uniform": tuple(name for _, name in dead)}
    if dead:
        step, name = dead[0]
        summary = (
            f"{quoted(step.name)}: output {quoted(name)} holds one value everywhere: wrong device or never written"
        )
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=tuple(name for _, name in dead))
    if {s.dispatch for s in whole} != set(e.dispatches):
        return Finding(verdict=Verdict.NOT_RUN, summary="not every dispatch was compared", figures=figures)
    summary = f"outputs of {len(whole)} runs of dispatches are alive"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)
