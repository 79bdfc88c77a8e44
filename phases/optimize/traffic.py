"""What moves and what only moves: boundaries between dispatches, regimes, conversions, weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from manifest.device import Device
from manifest.io import sha256_hex
from manifest.model import Manifest
from optimize.bandwidth import Table, boundary_cycles, default_table, read_table
from optimize.evidence import BoundaryEvidence, RegimeChoice
from optimize.search import SearchResult
from phases.optimize.trial import INFERENCES
from presim.design import Call, Design
from presim.design_io import design_to_json
from presim.steps import steps_of
from presim.timing import Calibration, regimes, time_design

BATCH: Final = 8
CONVERSIONS: Final = frozenset({"transpose", "reshape", "flatten", "requantize", "copy"})
"""Kernel types that only move or convert."""

WEIGHTED: Final = frozenset({"Conv", "Gemm", "MatMul"})
SHORT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """See the fields of `OptimizeEvidence` of the same names."""

    boundaries: tuple[BoundaryEvidence, ...]
    bandwidth: tuple[str, str, str]
    conversions: tuple[tuple[str, int], ...]
    conversions_expected: int
    streamed: tuple[tuple[str, str, str], ...]
    weighted_ops: int


def table_of(path: Path | None, device: Device, calibration: Calibration) -> Table:
    """The table that a person gave, else the default one.

    Raises:
        RefusedError: the file is malformed, or for another device.
    """
    return default_table(device, calibration) if path is None else read_table(path, device)


def traffic_of(
    manifest: Manifest, designs: Sequence[Design], table: Table, device: Device, calibration: Calibration
) -> Traffic:
    """Count what the final designs move.

    Args:
        manifest: of the port.
        designs: final, one for each dispatch on the array.
        table: bandwidth of the host's channels.
        device: of the port.
        calibration: of the timing model.
    """
    conversions = dict(_conversions(designs, device, calibration))
    weighted = [
        op for op in manifest.ops if op.type in WEIGHTED and op.where == "npu" and _constant(manifest, op.inputs)
    ]
    splits = {split.op: split for design in designs for split in design.splits}
    streamed = []
    for op in weighted:
        split = splits.get(op.name)
        if split is not None:
            how = "resident" if split.resident_weights else "streamed"
            why = (
                f"{split.kind}, {split.parts} parts: weights {'fit beside' if split.resident_weights else 'exceed'} L1"
            )
            streamed.append((op.name, how, why))
    return Traffic(
        boundaries=tuple(_boundaries(manifest, table)),
        bandwidth=(table.name, table.basis, table.sha256),
        conversions=tuple(sorted(conversions.items())),
        conversions_expected=len({k.op for d in designs for k in d.kernels if k.type in CONVERSIONS and k.op}),
        streamed=tuple(streamed),
        weighted_ops=len(weighted),
    )


def _constant(manifest: Manifest, inputs: Sequence[str]) -> bool:
    return len(inputs) > 1 and bool(inputs[1]) and manifest.tensor(inputs[1]).array is not None


def _boundaries(manifest: Manifest, table: Table) -> list[BoundaryEvidence]:
    """Cuts between dispatches on the array: out and in again; phase 1 cut because one dispatch does not hold both."""
    npu = [d for d in manifest.dispatches if d.where == "npu"]
    rows = []
    for dispatch in npu[:-1]:
        cycles = ceil(boundary_cycles(dispatch.cut_bytes, table))
        rows.append(
            BoundaryEvidence(
                tensor=", ".join(dispatch.outputs),
                bytes=dispatch.cut_bytes,
                cycles=cycles,
                alternative=f"one dispatch: does not fit ({dispatch.reason})",
                better=False,
            )
        )
    return rows


def _conversions(designs: Sequence[Design], device: Device, calibration: Calibration) -> list[tuple[str, int]]:
    """(op, cycles per inference of its busiest worker) of kernels that only move or convert."""
    rows = []
    for design in designs:
        mine: dict[str, set[str]] = {}
        for kernel in design.kernels:
            if kernel.type in CONVERSIONS and kernel.op:
                mine.setdefault(kernel.op, set()).add(kernel.name)
        whole = time_design(design, device, calibration, inferences=INFERENCES)
        busy = {a.actor: (a.busy + a.locks) / INFERENCES for a in whole.actors}
        for op, kernels in mine.items():
            workers = [w.name for w in design.workers if _calls(design, w.name) & kernels]
            rows.append((op, max(1, ceil(max((busy.get(w, 0.0) for w in workers), default=0.0)))))
    return rows


def _calls(design: Design, worker: str) -> set[str]:
    program = next(w.program for w in design.workers if w.name == worker)
    return {step.kernel for step in steps_of(program) if isinstance(step, Call)}


def regime_choices(
    designs: Sequence[Design], results: Mapping[str, SearchResult], device: Device, calibration: Calibration
) -> tuple[RegimeChoice, ...]:
    """Which resource binds with one inference and with many, and whether the search knows a better design for it."""
    name = sha256_hex(design_to_json(tuple(designs)))[:SHORT]
    found = []
    for regime in regimes(designs, device, calibration, batch=BATCH):
        key = "latency_cycles" if regime.batch == 1 else "interval_cycles"
        now = regime.latency_cycles if regime.batch == 1 else ceil(regime.interval_cycles)
        better = ""
        if len(designs) == 1 and results:
            (result,) = results.values()
            tiles = len(designs[0].workers)
            rows = [c for c in result.front if c.tiles <= tiles and int(getattr(c, key)) < now]
            better = min(rows, key=lambda c: int(getattr(c, key))).name if rows else ""
        found.append(RegimeChoice(regime=regime.name, bound=regime.bound, placement=name, better=better))
    return tuple(found)
