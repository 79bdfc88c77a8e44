"""What phase 4 adds to its report: the ranking, the two designs, everything that was tried."""

from optimize.evidence import OptimizeEvidence
from phases.reports.tables import Table

SIMULATED = "predicted by the timing model, never measured"


def optimize_tables(e: OptimizeEvidence) -> tuple[Table, ...]:
    """Ranking, A/B, candidates, screening."""
    ranking = Table(
        title="Where the time goes",
        basis=f"{SIMULATED}: each group as a no-op that moves the same data",
        columns=("rank", "dispatch", "group", "interval saved, cycles", "latency saved, cycles", "share"),
        rows=tuple(
            (
                str(r.rank),
                r.dispatch,
                r.group,
                str(r.interval_cycles),
                str(r.latency_cycles),
                f"{100 * r.share:.0f} %",
            )
            for r in e.ablation
        ),
    )
    arms = Table(
        title="Before and after",
        basis=f"times {SIMULATED}; outputs compared bit for bit",
        columns=("design", "tiles", "interval, cycles", "latency, cycles", "GOPS", "presim", "bring-up", "outputs"),
        rows=tuple(
            (
                a.name,
                str(a.tiles),
                str(a.interval_cycles),
                str(a.latency_cycles),
                "unknown" if a.gops is None else str(a.gops),
                a.presim,
                a.bringup,
                a.output_sha256[:12],
            )
            for a in (e.before, e.after)
            if a is not None
        ),
    )
    tried = Table(
        title="Candidates",
        basis=f"times {SIMULATED}; elements compared with the oracle before a time counts",
        columns=("candidate", "changed", "tiles", "interval", "latency", "elements", "taken", "why not"),
        rows=tuple(
            (
                c.name,
                c.changed,
                str(c.tiles),
                str(c.interval_cycles) if c.elements else "-",
                str(c.latency_cycles) if c.elements else "-",
                str(c.elements),
                "on the front" if c.accepted else "",
                c.reason,
            )
            for c in e.candidates
        ),
    )
    screened = Table(
        title="Static findings on emitted kernels",
        basis="read from the sources; candidates, hardware unconfirmed",
        columns=("kernel", "lever", "confidence", "what"),
        rows=tuple((s.kernel, s.rule, s.confidence, s.text) for s in e.screening),
    )
    return (ranking, arms, tried, screened)
