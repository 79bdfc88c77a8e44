"""Phase 1 from end to end: prepare, collect, judge, commit, tell."""

import os
from typing import Final

from rich.console import Console

from checklists.model import GateReport
from checklists.report import report_to_json
from manifest.io import arrays_to_bytes, canonical_json, manifest_to_json
from manifest.model import Manifest
from oracle.cpu import read_cpu_flags
from oracle.run import Oracle
from phases import cli
from phases.baseline.collect import collect
from phases.baseline.data import Data
from phases.baseline.options import BaselineOptions
from phases.baseline.prepare import Prepared, prepare
from phases.clock import Clock
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.port import write_phase
from phases.reports import build_reports
from phases.reports.markdown import append_step_summary, render_markdown
from phases.runner import judge
from phases.summary import print_outcome

CANARIES: Final = 4


def run(options: BaselineOptions, console: Console, *, in_ci: bool = True) -> int:
    """Run phase 1; the caller holds the port (`phases.port.writing`).

    Args:
        options: resolved command line.
        console: where results go; progress goes to stderr.
        in_ci: append the gate to `$GITHUB_STEP_SUMMARY` where CI sets it.

    Returns:
        0 where the gate is PASS, else 1.

    Raises:
        RefusedError: model or data are wrong or beyond reach; nothing is written.
    """
    clock = Clock()
    prepared = prepare(options, clock.step)
    flags = read_cpu_flags()
    collected = collect(prepared, options, flags, clock.step)
    clock.step("judging and writing")
    manifest = collected.manifest
    files = _files(options, prepared, manifest)
    report = judge(
        "baseline",
        collected.evidence,
        options.out,
        files=files,
        person=options.person,
        waivers=options.waivers,
        values={"cpu flags": list(collected.evidence.cpu.flags)},
        today=options.today,
    )
    files["gates/baseline.json"] = report_to_json(report)
    files |= build_reports((report,), manifest)
    files["reports/run.json"] = canonical_json(clock.record())
    write_phase(options.out, "baseline", files, options.person)
    if in_ci:
        append_step_summary(render_markdown(report), os.environ)
    clock.end()
    _tell(console, options, prepared, manifest, report)
    return OK if report.passed else GATE_NOT_PASSED


def _files(options: BaselineOptions, prepared: Prepared, manifest: Manifest) -> dict[str, bytes]:
    """What the gate is about: hashed by it as its inputs."""
    data = prepared.data
    info = options.info(prepared.source_sha256, None if data is None else data.sha256, prepared.external)
    files = {
        "port.json": info.to_bytes(),
        "manifest.json": manifest_to_json(manifest),
        "tensors.npz": arrays_to_bytes(prepared.imported.arrays),
    }
    if prepared.quantized_model is not None:
        files["model.qdq.onnx"] = prepared.quantized_model
    if data is not None:
        files |= _canary(prepared, manifest, data)
    return files


def _canary(prepared: Prepared, manifest: Manifest, data: Data) -> dict[str, bytes]:
    """Canary inputs (up to 4 feeds) and the oracle's tensors for the first, each (F, *shape); names in the JSON.

    Why keys: an archive cannot carry every ONNX name.
    """
    feeds = {name: array[:CANARIES] for name, array in data.feeds.items()}
    oracle = Oracle(manifest, prepared.imported.arrays)
    first = oracle.run({name: array[:1] for name, array in feeds.items()}, keep="all")
    cut = {name for d in manifest.dispatches for name in (*d.inputs, *d.outputs)}
    by_name = manifest.by_name()
    kept = {n: a for n, a in first.items() if n not in feeds and (by_name[n].quant is not None or n in cut)}
    keys = {name: f"t{number:06d}" for number, name in enumerate([*sorted(feeds), *sorted(kept)], 1)}
    names = {"inputs": {n: keys[n] for n in feeds}, "tensors": {n: keys[n] for n in kept}}
    arrays = {keys[n]: a for n, a in (feeds | kept).items()}
    return {"data/canary.json": canonical_json(names), "data/canary.npz": arrays_to_bytes(arrays)}


def _tell(
    console: Console, options: BaselineOptions, prepared: Prepared, manifest: Manifest, report: GateReport
) -> None:
    lines = list(prepared.notes)
    if prepared.data is not None:
        lines += [*prepared.data.understood, *prepared.data.notes]
    lines += [f"{note.code} {note.where}: {note.text}" for note in manifest.notes]
    for line in lines:
        console.print(cli.plain(f"note: {line}"))
    print_outcome(console, options.out, report, has_data=prepared.data is not None)
