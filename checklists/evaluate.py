"""Run the items of a checklist over the evidence and judge the gate.

Why an exception of an item is not caught: it is a fault of this tool, and neither FAIL nor NOT_RUN would be true.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from checklists.model import (
    WAIVABLE,
    CheckItem,
    EvidenceT,
    Finding,
    GateReport,
    ItemResult,
    Level,
    Verdict,
    Waiver,
    one_line,
)


def gate_verdict(rows: Iterable[tuple[Level, Verdict]], level: Level) -> Verdict:
    """Judge a gate over its items' (level, verdict).

    At level `host` only host items count. FAIL if any FAIL; else NOT_RUN if any NOT_RUN or BLOCKED; else PASS if
    at least one PASS; else (nothing counted, or all waived or not applicable) NOT_RUN.
    """
    counted = {verdict for item_level, verdict in rows if level == "hardware" or item_level == "host"}
    if Verdict.FAIL in counted:
        return Verdict.FAIL
    if Verdict.PASS in counted and not counted & {Verdict.NOT_RUN, Verdict.BLOCKED}:
        return Verdict.PASS
    return Verdict.NOT_RUN


def evaluate(
    items: Sequence[CheckItem[EvidenceT]],
    evidence: EvidenceT,
    waivers: Sequence[Waiver],
    today: date,
    level: Level = "host",
    *,
    phase: str = "baseline",
    inputs: Mapping[str, str] | None = None,
    upstream: Mapping[str, str] | None = None,
    tool_version: str = "",
) -> GateReport:
    """Judge the evidence of one phase.

    Args:
        items: the checklist; codes are unique.
        evidence: what the phase collected.
        waivers: the person's decisions for any phase; those of other phases are ignored.
        today: the day that expiry is judged by.
        level: `host` leaves hardware items out of the verdict and lists them BLOCKED.
        phase: name of the phase.
        inputs: name -> sha256 of everything read.
        upstream: gate file -> sha256 of the gate above.
        tool_version: version of this package.

    Raises:
        ValueError: two items with one code.
        Exception: whatever an item raises (a fault of the item).
    """
    codes = [item.code for item in items]
    if len(set(codes)) != len(codes):
        msg = f"checklist {phase}: two items with one code among {codes}"
        raise ValueError(msg)
    live = tuple(w for w in waivers if not w.expired(today))
    results: list[ItemResult] = []
    expired: list[Waiver] = []
    for item in items:
        finding = _run(item, evidence, level)
        results.append(_judge(item, finding, live))
        over = [w for w in waivers if w.expired(today) and w.code == item.code]
        expired += [w for w in over if finding.verdict in WAIVABLE]
    used = {id(w) for r in results for w in r.waivers}
    areas = {code[:2] for code in codes}
    return GateReport(
        phase=phase,
        verdict=gate_verdict(((r.level, r.verdict) for r in results), level),
        level=level,
        items=tuple(results),
        inputs=dict(inputs or {}),
        upstream=dict(upstream or {}),
        tool_version=tool_version,
        expired_waivers=tuple(expired),
        unused_waivers=tuple(w for w in live if id(w) not in used and w.code[:2] in areas),
    )


def _run(item: CheckItem[EvidenceT], evidence: EvidenceT, level: Level) -> Finding:
    """Run an item, or block it where it needs hardware and the level is `host`."""
    if item.level == "hardware" and level == "host":
        return Finding(verdict=Verdict.BLOCKED, summary="needs a device; not judged at host level")
    return item.run(evidence)


def _judge(item: CheckItem[EvidenceT], finding: Finding, live: Sequence[Waiver]) -> ItemResult:
    """Apply the decisions that hold today to a finding."""
    applied = _covering(item.code, finding, live)
    return ItemResult(
        code=item.code,
        title=item.title,
        source=item.source,
        basis=item.basis,
        level=item.level,
        found=finding.verdict,
        verdict=Verdict.WAIVED if applied else finding.verdict,
        summary=one_line(finding.summary),
        figures=dict(finding.figures),
        subjects=finding.subjects,
        waivers=applied,
    )


def _covering(code: str, finding: Finding, live: Sequence[Waiver]) -> tuple[Waiver, ...]:
    """The decisions that together cover a finding, or none if any of its subjects stays uncovered."""
    if finding.verdict not in WAIVABLE:
        return ()
    mine = [w for w in live if w.code == code]
    whole = [w for w in mine if w.subject is None]
    if whole:
        return (whole[0],)
    chosen: list[Waiver] = []
    for subject in finding.subjects:
        hit = next((w for w in mine if _names(w, subject, finding)), None)
        if hit is None:
            return ()
        if hit not in chosen:
            chosen.append(hit)
    return tuple(chosen)


def _names(waiver: Waiver, subject: str, finding: Finding) -> bool:
    """Whether a decision is about this subject: by its name, or by its op unless a subject has that name."""
    if waiver.subject == subject:
        return True
    return finding.ops.get(subject) == waiver.subject and waiver.subject not in finding.subjects
