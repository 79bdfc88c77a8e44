"""Phase 3 from end to end: emit, execute, judge, commit, tell."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from bringup.backends import BACKENDS
from bringup.backends.host.backend import HostBackend
from bringup.kernels.custom import custom_of
from bringup.model import Backend
from checklists.model import GateReport, Verdict
from checklists.report import report_to_json
from manifest.clearance import Clearance
from manifest.device import load_device
from manifest.io import canonical_json
from phases import cli
from phases.bringup.collect import GENERATED, Bringup, Collected, collect
from phases.bringup.options import OPTIONS, BringupOptions
from phases.bringup.tables import step_tables
from phases.clock import RUN, Clock, earlier_runs
from phases.design_rules import RULES_FILE, rule_evidence, rules_file
from phases.exit_codes import GATE_NOT_PASSED, OK, UNAVAILABLE
from phases.pipeline import NAMES
from phases.port import Port, write_phase
from phases.presim.source import Source, source_of
from phases.presim.twins import WORDS as TWIN_WORDS
from phases.presim.twins import called_by
from phases.reports import build_reports
from phases.reports.markdown import append_step_summary, render_markdown
from phases.reports.tables import Table
from phases.runner import judge, survey
from phases.summary import print_outcome
from presim.design_io import DESIGN_FILE, design_from_json

PHASE: Final = "bringup"


def run(
    options: BringupOptions,
    port: Port,
    clearance: Clearance,
    console: Console,
    *,
    host: Backend | None = None,
    target: Backend | None = None,
    in_ci: bool = True,
) -> int:
    """Run phase 3; the caller holds the port (`phases.port.writing`).

    Args:
        options: resolved command line.
        port: open, its gates PASS through presim.
        clearance: of these gates.
        console: where results go; progress goes to stderr.
        host: executes the sources here; None = the host backend.
        target: runs them on a device; None = what the options ask for.
        in_ci: append the gate to `$GITHUB_STEP_SUMMARY` where CI sets it.

    Returns:
        0 where the gate is PASS; 4 where nothing but a device is missing; else 1.

    Raises:
        RefusedError: something of the design cannot be emitted; nothing is written.
        UnavailableError: there is no compiler.
    """
    clock = Clock()
    clock.step("reading the port")
    source = source_of(port)
    design_bytes = port.read(DESIGN_FILE)
    designs = design_from_json(design_bytes)
    custom = custom_of(options.person, called_by(designs))
    with tempfile.TemporaryDirectory(prefix="bringup-") as folder:
        work = Bringup(
            source=source,
            design_bytes=design_bytes,
            designs=designs,
            device=load_device(port.info.device),
            clearance=clearance,
            root=Path(folder) / "generated",
            host=host if host is not None else HostBackend(port.info.device, options.backend_options),
            target=target if target is not None else _target(options, port.info.device),
            custom=custom,
        )
        collected = collect(work, options, clock.step)
    clock.step("judging and writing")
    code, report = _commit(options, port, source, collected, design_bytes=design_bytes, clock=clock, in_ci=in_ci)
    clock.end()
    for symbol, code_of in custom.kernels.items():
        console.print(cli.plain(f"your kernel: {code_of.path} stands for {symbol}"))
    for op, code_of in custom.twins.items():
        console.print(cli.plain(f"your twin: {code_of.path} for op {op!r} ({TWIN_WORDS})"))
    _tell(console, options, collected, report)
    return code


def _target(options: BringupOptions, device: str) -> Backend | None:
    """The backend of a device that was asked for."""
    if options.backend == "host":
        return None
    return BACKENDS[options.backend](device, options.backend_options)


def _commit(
    options: BringupOptions,
    port: Port,
    source: Source,
    collected: Collected,
    *,
    design_bytes: bytes,
    clock: Clock,
    in_ci: bool,
) -> tuple[int, GateReport]:
    """Judge and write."""
    written = {
        OPTIONS: options.to_bytes(),
        **{GENERATED + name: data for name, data in collected.files.items()},
    }
    rules = rules_file(port, collected.overflows)
    evidence = replace(collected.evidence, rules=rule_evidence(rules, collected.overflows))
    report = judge(
        PHASE,
        evidence,
        options.out,
        files={**source.files, DESIGN_FILE: design_bytes, **written},
        person=options.person,
        waivers=options.waivers,
        today=options.today,
        level=options.level,
    )
    files = {
        **written,
        **({RULES_FILE: rules} if rules is not None else {}),
        f"gates/{PHASE}.json": report_to_json(report),
    }
    files |= _reports(options, source, report, step_tables(collected.evidence))
    files[RUN] = canonical_json({**earlier_runs(port), PHASE: clock.record()})
    write_phase(options.out, PHASE, files, options.person)
    if in_ci:
        append_step_summary(render_markdown(report), os.environ)
    return exit_code(report), report


def exit_code(report: GateReport) -> int:
    """0 for PASS; 4 where the only open items are blocked for want of a device or tool; else 1."""
    if report.passed:
        return OK
    counted = {i.verdict for i in report.items if report.level == "hardware" or i.level == "host"}
    if Verdict.BLOCKED in counted and not counted & {Verdict.FAIL, Verdict.NOT_RUN}:
        return UNAVAILABLE
    return GATE_NOT_PASSED


def _reports(
    options: BringupOptions, source: Source, report: GateReport, tables: tuple[Table, ...]
) -> Mapping[str, bytes]:
    """Reports over the gates of all phases so far, with the steps in words."""
    seen = survey(options.out, options.today)
    above = [seen.gate(name).report for name in NAMES[: NAMES.index(PHASE)]]
    return build_reports((*(r for r in above if r is not None), report), source.manifest, tables)


def _tell(console: Console, options: BringupOptions, collected: Collected, report: GateReport) -> None:
    e = collected.evidence
    kinds: Sequence[str] = [s.kind for s in e.steps]
    words = ", ".join(f"{kinds.count(k)} {k}" for k in ("stage", "chain", "dispatch", "handoff") if k in kinds)
    console.print(cli.plain(f"steps run: {words or 'none'}; {sum(s.elements for s in e.steps)} elements compared"))
    kernels = len([n for n in collected.files if n.endswith(".cc")])
    console.print(
        cli.plain(f"generated: {len(collected.files)} files, {kernels} kernels, profile mlir-aie {e.toolchain_profile}")
    )
    for row in collected.overflows:
        fits = f"; a split that fits: {row.split}" if row.split else ""
        console.print(cli.plain(f"overflow: {row.dispatch}: {row.place}: need {row.need} bytes, have {row.have}{fits}"))
    if e.unavailable:
        console.print(cli.plain(f"no device: {e.unavailable}"))
    print_outcome(console, options.out, report, has_data=True)
