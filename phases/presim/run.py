"""Phase 2 from end to end: plan, simulate, judge, commit, tell."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console

from checklists.model import GateReport
from checklists.report import report_to_json
from manifest.clearance import Clearance
from manifest.device import load_device
from manifest.io import canonical_json
from phases import cli
from phases.clock import RUN, Clock, earlier_runs
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.pipeline import PHASES
from phases.port import Port, write_phase
from phases.presim.collect import collect
from phases.presim.options import ADOPTED, OPTIONS, PresimOptions
from phases.presim.planning import Planner, given, plan_all
from phases.presim.predicting import predict
from phases.presim.records import record_files
from phases.presim.regress import suite_files
from phases.presim.source import Source, source_of
from phases.reports import build_reports
from phases.reports.design import design_tables, time_table
from phases.reports.markdown import append_step_summary, render_markdown
from phases.reports.tables import Table
from phases.runner import judge, survey
from phases.summary import print_outcome
from presim.design import Design
from presim.design_io import DESIGN_FILE, design_from_json, design_to_json

PHASE: Final = "presim"
TRACE: Final = "reports/trace.json"


def run(
    options: PresimOptions,
    port: Port,
    clearance: Clearance,
    console: Console,
    *,
    planner: Planner | None = None,
    in_ci: bool = True,
) -> int:
    """Run phase 2; the caller holds the port (`phases.port.writing`).

    Args:
        options: resolved command line.
        port: open, its baseline gate PASS.
        clearance: of that gate.
        console: where results go; progress goes to stderr.
        planner: makes the designs; None = plans them, or takes the design that phase 4 made the design.
        in_ci: append the gate to `$GITHUB_STEP_SUMMARY` where CI sets it.

    Returns:
        0 where the gate is PASS, else 1.

    Raises:
        RefusedError: the model does not fit the device, or directives ask for what cannot be; nothing is written.
    """
    clock = Clock()
    clock.step("reading the port")
    source = source_of(port)
    device = load_device(port.info.device)
    clock.step("planning and placing")
    planner = planner or (given(design_from_json(port.read(ADOPTED))) if options.adopted else plan_all)
    designs = _ruled(planner(source, device, options.directives, clearance), options)
    again = _ruled(planner(source_of(port), device, options.directives, clearance), options)
    records = record_files(port.read, port.state.files)
    clock.step("predicting times")
    predicted = predict(designs, device, batch=options.batch)
    collected = collect(
        source, designs, again, options, device=device, records=records, predicted=predicted, progress=clock.step
    )
    clock.step("judging and writing")
    written = {
        OPTIONS: options.to_bytes(),
        DESIGN_FILE: design_to_json(designs),
        **suite_files(collected.units),
    }
    report = judge(
        PHASE,
        collected.evidence,
        options.out,
        files={**source.files, **records, **written},
        person=options.person,
        waivers=options.waivers,
        today=options.today,
    )
    files = {**written, f"gates/{PHASE}.json": report_to_json(report)}
    tables = (*design_tables(designs, collected.evidence), time_table(predicted.timings))
    files |= _reports(options, source, report, tables)
    if predicted.trace:
        files[TRACE] = predicted.trace
    files[RUN] = canonical_json({**earlier_runs(port), PHASE: clock.record()})
    write_phase(options.out, PHASE, files, options.person)
    if in_ci:
        append_step_summary(render_markdown(report), os.environ)
    clock.end()
    _tell(console, options, report, designs, predicted.lines)
    return OK if report.passed else GATE_NOT_PASSED


def _ruled(designs: tuple[Design, ...], options: PresimOptions) -> tuple[Design, ...]:
    """Designs that say which learned rules they follow."""
    return tuple(replace(d, rules=(*d.rules, *options.rules)) for d in designs)


def _reports(
    options: PresimOptions, source: Source, report: GateReport, tables: tuple[Table, ...]
) -> Mapping[str, bytes]:
    """Reports over the gates of both phases, with the design in words."""
    above = survey(options.out, options.today).gate(PHASES[0].name).report
    gates = (report,) if above is None else (above, report)
    return build_reports(gates, source.manifest, tables)


def _tell(
    console: Console,
    options: PresimOptions,
    report: GateReport,
    designs: tuple[Design, ...],
    predicted: Sequence[str],
) -> None:
    for design in designs:
        tiles = {w.tile for w in design.workers if w.tile is not None}
        words = f"{len(design.workers)} workers on {len(tiles)} core tiles, {len(design.fifos)} fifos"
        console.print(cli.plain(f"design {design.dispatch}: {words}, {len(design.links)} memory tile links"))
        for note in design.notes:
            console.print(cli.plain(f"note: {design.dispatch}: {note}"))
    for line in predicted:
        console.print(cli.plain(line))
    print_outcome(console, options.out, report, has_data=True)
