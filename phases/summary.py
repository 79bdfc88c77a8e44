"""A gate in words and tables, for the end of a run and for `status`."""

import shlex
from pathlib import Path

from rich.console import Console

from checklists.model import GateReport, Verdict
from phases.cli import plain, table, verdict_text
from phases.gates import first_open


def print_items(console: Console, report: GateReport) -> None:
    """The items of a gate as a table, waivers below."""
    rows = table("item", "verdict", "title", "what was found")
    for item in report.items:
        rows.add_row(item.code, verdict_text(item.verdict), plain(item.title), plain(item.summary))
    console.print(rows)
    for waiver in report.waivers:
        console.print(plain(f"waived: {waiver.line()}"))
    for waiver in report.expired_waivers:
        console.print(plain(f"waiver over, without effect: {waiver.line()}"))
    for waiver in report.unused_waivers:
        console.print(plain(f"waiver that met nothing to waive: {waiver.line()}"))


def print_outcome(console: Console, root: Path, report: GateReport, *, has_data: bool) -> None:
    """End of a run: items, verdict, the first open item in words, where the reports are, what to do next.

    Args:
        console: where results go.
        root: the port.
        report: the gate that was judged.
        has_data: whether real data was given.
    """
    print_items(console, report)
    console.print(f"gate {report.phase}: ", verdict_text(report.verdict), f" at {report.level} level", sep="")
    item = first_open(report)
    if item is not None:
        console.print(plain(f"first open item: {item.code} {item.title}: {item.verdict}: {item.summary}"))
    console.print(
        plain(f"port: {root}   reports: {root / 'reports'}   gate: {root / 'gates' / f'{report.phase}.json'}")
    )
    for line in next_steps(root, report, has_data=has_data):
        console.print(plain(f"next: {line}"))


def next_steps(root: Path, report: GateReport, *, has_data: bool) -> tuple[str, ...]:
    """What a person can do now, one line each."""
    port = shlex.quote(str(root))
    if report.passed and report.phase == "presim":
        return (
            f"python -m phases.bringup {port} --backend host --level host emits sources and executes them here",
            f"python -m pytest {port}/regress runs the standing stage tests",
        )
    if report.passed and report.phase == "bringup":
        return (
            f"python -m phases.optimize {port} ranks what costs time and searches for a better design",
            f"make -C {port}/generated builds for the device, where mlir-aie 1.4 is installed",
            f"python -m phases lint-generated {port} applies the static rules again",
        )
    if report.passed and report.phase == "optimize":
        return (f"python -m phases.optimize {port} --adopt makes the design that was found the design",)
    if report.passed:
        return (
            f"python -m phases.presim {port} plans the dataflow and simulates it",
            f"python -m phases oracle {port} --inputs x.npz --outputs y.npz runs the oracle on other inputs",
        )
    steps = []
    if report.level == "hardware" and any(i.verdict is Verdict.BLOCKED for i in report.items):
        steps.append(f"python -m phases.{report.phase} {port} --level host judges what needs no device")
    if not has_data:
        steps.append(f"python -m phases.baseline {port} --data real.npz gives the real-data items what they need")
    item = first_open(report)
    if item is not None:
        steps.append(f"python -m phases explain {item.code} says what the item asks for")
        if item.verdict is Verdict.NOT_RUN and item.figures.get("unknown_device_figures"):
            about = f"--figure {item.subjects[0]} --reason ... --owner ... --until YYYY-MM-DD"
            steps.append(f"python -m phases waive {port} {item.code} {about} accepts that it is not known, one by one")
        if item.verdict is Verdict.FAIL and item.subjects:
            about = (
                f"--tensor or --op (one of {', '.join(item.subjects[:3])}) --reason ... --owner ... --until YYYY-MM-DD"
            )
            steps.append(f"python -m phases waive {port} {item.code} {about} records that you accept it")
    return tuple(steps)
