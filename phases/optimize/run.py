"""Phase 4 from end to end: rank, search, prove, judge, commit, tell."""

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from checklists.model import GateReport
from checklists.report import load_report, report_to_json
from manifest.clearance import Clearance
from manifest.device import load_device
from manifest.io import canonical_json, manifest_from_json
from optimize.evidence import ArmEvidence
from optimize.pareto import Point, plot
from phases import cli
from phases.bringup.run import exit_code
from phases.clock import RUN, Clock, earlier_runs
from phases.optimize.collect import Found, Work, collect
from phases.optimize.names import ABLATION, DESIGN, FRONT, RECORD
from phases.optimize.options import OPTIONS, OptimizeOptions
from phases.optimize.tables import optimize_tables
from phases.pipeline import NAMES
from phases.port import Port, write_phase
from phases.presim.options import Arguments as PresimArguments
from phases.presim.options import resolve as resolve_presim
from phases.presim.source import MANIFEST, Source, source_of
from phases.reports import build_reports
from phases.reports.markdown import append_step_summary, render_markdown
from phases.reports.tables import Table
from phases.runner import judge, survey
from phases.summary import print_outcome
from presim.design_io import DESIGN_FILE, design_from_json, design_to_json
from presim.timing import load_calibration

PHASE: Final = "optimize"


def run(
    options: OptimizeOptions,
    port: Port,
    clearances: tuple[Clearance, Clearance],
    console: Console,
    *,
    in_ci: bool = True,
) -> int:
    """Run phase 4; the caller holds the port (`phases.port.writing`).

    Args:
        options: resolved command line.
        port: open, its gates PASS through bring-up.
        clearances: of the baseline gate, for the planner; and of all gates above.
        console: where results go; progress goes to stderr.
        in_ci: append the gate to `$GITHUB_STEP_SUMMARY` where CI sets it.

    Returns:
        0 where the gate is PASS; 4 where nothing but a device is missing; else 1.

    Raises:
        RefusedError: the device lacks figures that times need, or the bandwidth table is malformed.
        UnavailableError: there is no compiler.
    """
    clock = Clock()
    clock.step("reading the port")
    source = source_of(port)
    design_bytes = port.read(DESIGN_FILE)
    clearances[1].verify(source.files[MANIFEST], design_bytes)
    manifest = manifest_from_json(source.files[MANIFEST])
    directives = resolve_presim(PresimArguments(port=port.root), port, manifest).directives
    with tempfile.TemporaryDirectory(prefix="optimize-") as folder:
        work = Work(
            port=port,
            source=source,
            designs=design_from_json(design_bytes),
            device=load_device(port.info.device),
            directives=directives,
            clearance=clearances[0],
            calibration=load_calibration(),
            level=load_report(port.read("gates/bringup.json")).level,
            scratch=Path(folder),
        )
        found = collect(work, options, clock.step)
    clock.step("judging and writing")
    code, report = _commit(options, port, source, found, design_bytes=design_bytes, clock=clock, in_ci=in_ci)
    clock.end()
    _tell(console, options, found, report)
    return code


def _commit(
    options: OptimizeOptions,
    port: Port,
    source: Source,
    found: Found,
    *,
    design_bytes: bytes,
    clock: Clock,
    in_ci: bool,
) -> tuple[int, GateReport]:
    """Judge and write."""
    written = {OPTIONS: options.to_bytes(), ABLATION: _ablation(found), RECORD: _record(options, found)}
    if found.winner:
        written[DESIGN] = design_to_json(found.winner)
    report = judge(
        PHASE,
        found.evidence,
        options.out,
        files={**source.files, DESIGN_FILE: design_bytes, **written},
        person=options.person,
        waivers=options.waivers,
        today=options.today,
        level=options.level,
    )
    files = {**written, f"gates/{PHASE}.json": report_to_json(report)}
    files |= _reports(options, source, report, optimize_tables(found.evidence))
    files[FRONT] = _front(found)
    files[RUN] = canonical_json({**earlier_runs(port), PHASE: clock.record()})
    write_phase(options.out, PHASE, files, options.person)
    if in_ci:
        append_step_summary(render_markdown(report), os.environ)
    return exit_code(report), report


def _ablation(found: Found) -> bytes:
    return canonical_json({"schema_version": 1, "basis": "simulated", "rows": [asdict(r) for r in found.ablation]})


def _record(options: OptimizeOptions, found: Found) -> bytes:
    """The A/B record: both designs, every candidate, what was rejected and why."""
    e = found.evidence
    return canonical_json(
        {
            "schema_version": 1,
            "goal": options.goal,
            "basis": "simulated",
            "before": _arm(e.before),
            "after": _arm(e.after),
            "candidates": [asdict(c) for c in e.candidates],
        }
    )


def _arm(arm: ArmEvidence | None) -> dict[str, Any] | None:
    return None if arm is None else dataclasses.asdict(arm)


def _front(found: Found) -> bytes:
    """The picture of every candidate that was timed."""
    points = []
    for name, result in found.results.items():
        best = result.best.name if result.best is not None else ""
        front = {c.name for c in result.front}
        points += [
            Point(
                name=f"{name}: {c.name}" if len(found.results) > 1 else c.name,
                tiles=c.tiles,
                interval=c.interval_cycles,
                latency=c.latency_cycles,
                front=c.name in front,
                best=c.name == best,
            )
            for c in result.candidates
            if c.design is not None and c.interval_cycles
        ]
    return plot(points, title="Designs that were tried (simulated)")


def _reports(
    options: OptimizeOptions, source: Source, report: GateReport, tables: tuple[Table, ...]
) -> Mapping[str, bytes]:
    """Reports over the gates of all phases, with what was tried."""
    seen = survey(options.out, options.today)
    above = [seen.gate(name).report for name in NAMES[: NAMES.index(PHASE)]]
    return build_reports((*(r for r in above if r is not None), report), source.manifest, tables)


def _tell(console: Console, options: OptimizeOptions, found: Found, report: GateReport) -> None:
    e = found.evidence
    rows = cli.table("design", "tiles", "interval, cycles", "latency, cycles", "GOPS", "gates", "all figures simulated")
    for arm in (e.before, e.after):
        if arm is not None:
            same = e.before is not None and arm.output_sha256 == e.before.output_sha256
            cells = (arm.name, arm.tiles, arm.interval_cycles, arm.latency_cycles, arm.gops, arm.bringup)
            rows.add_row(
                *(cli.plain("unknown" if c is None else c) for c in cells), "outputs bit-identical" if same else ""
            )
    console.print(rows)
    tried = len([c for c in e.candidates if c.elements])
    console.print(cli.plain(f"{len(e.candidates)} candidates looked at, {tried} planned and held against the oracle"))
    if e.after is None:
        console.print(cli.plain(f"nothing better for {e.goal}; the design stays as it is"))
    print_outcome(console, options.out, report, has_data=True)
