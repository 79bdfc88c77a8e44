"""What moves and what only moves: boundaries between dispatches, regimes, conversions, weights."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any, Final

import numpy as np

from manifest.device import Device
from manifest.io import sha256_hex
from manifest.model import Manifest
from optimize.bandwidth import Table, boundary_cycles, default_table, table_from
from optimize.evidence import BoundaryEvidence, RegimeChoice
from optimize.search import SearchResult
from phases.baseline.partition import graph_of
from phases.baseline.placeable import planner
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


def table_of(given: Mapping[str, Any] | None, device: Device, calibration: Calibration) -> Table:
    """The table that a person gave, else the default one.

    Raises:
        RefusedError: it is malformed, or for another device.
    """
    return default_table(device, calibration) if given is None else table_from(given, device)


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
    return Traffic(
        boundaries=tuple(_boundaries(manifest, table, device)),
        bandwidth=(table.name, table.basis, table.sha256),
        conversions=tuple(sorted(conversions.items())),
        conversions_expected=len({k.op for d in designs for k in d.kernels if k.type in CONVERSIONS and k.op}),
        streamed=tuple(_streamed([op.name for op in weighted], designs, device)),
        weighted_ops=len(weighted),
    )


def _constant(manifest: Manifest, inputs: Sequence[str]) -> bool:
    return len(inputs) > 1 and bool(inputs[1]) and manifest.tensor(inputs[1]).array is not None


def _streamed(weighted: Sequence[str], designs: Sequence[Design], device: Device) -> list[tuple[str, str, str]]:
    """(op, resident or streamed, why) of ops with weights: bytes that its busiest core holds, against its memory."""
    rows = []
    for design in designs:
        ops = {kernel.name: kernel.op for kernel in design.kernels}
        buffers = {b.name: math.prod(b.shape) * np.dtype(b.dtype).itemsize for b in design.buffers if _weights(b.array)}
        streams = {f.name: f for f in design.fifos if _weights(f.init_array)}
        relayed = {n for link in design.links if set(link.sources) & set(streams) for n in link.targets} | set(streams)
        held: dict[str, int] = {}
        flowing: set[str] = set()
        for worker in design.workers:
            for call in steps_of(worker.program):
                if not isinstance(call, Call) or not ops.get(call.kernel):
                    continue
                names = {a.name for a in call.arguments}
                mine = sum(size for name, size in buffers.items() if name in names)
                held[ops[call.kernel]] = max(held.get(ops[call.kernel], 0), mine)
                flowing |= {ops[call.kernel]} if names & relayed else set()
        for op in weighted:
            if op in flowing:
                rows.append((op, "streamed", f"objects of weights from a memory tile; {held[op]} bytes stay in a core"))
            elif held.get(op):
                words = f"{held[op]} bytes of weights in its busiest core of {device.l1_bytes.value or 'unknown'} bytes"
                rows.append((op, "resident", words))
    return rows


def _weights(key: str | None) -> bool:
    """Whether a key of constants is one of weights, or of the constant operand of a product."""
    return key is not None and key.partition(":")[0].partition("@")[0] in ("weights", "constant")


def _boundaries(manifest: Manifest, table: Table, device: Device) -> list[BoundaryEvidence]:
    """Cuts between dispatches on the array, and whether the planner takes both sides as one."""
    refusal = planner(manifest, device)
    graph = graph_of(manifest)
    by_name = {op.name: op for op in manifest.ops}
    npu = [d for d in manifest.dispatches if d.where == "npu"]
    rows = []
    for first, second in pairwise(npu):
        ops = tuple(by_name[n] for n in (*first.ops, *second.ops))
        problems = refusal(tuple(op.name for op in ops), graph.entering(ops), graph.leaving(ops))
        words = f"{first.name} and {second.name} as one dispatch"
        rows.append(
            BoundaryEvidence(
                tensor=", ".join(first.outputs),
                bytes=first.cut_bytes,
                cycles=ceil(boundary_cycles(first.cut_bytes, table)),
                alternative=f"{words}, refused: {problems[0].line()}" if problems else f"{words}, which plans",
                better=not problems,
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
    """Which resource binds with one inference and with many, and whether the search knows a better design for it.

    Better: of one dispatch, on no more core tiles, with a lower latency for one inference or a lower interval for many.
    """
    name = sha256_hex(design_to_json(tuple(designs)))[:SHORT]
    now = {d.dispatch: time_design(d, device, calibration, inferences=INFERENCES) for d in designs}
    tiles = {d.dispatch: len(d.workers) for d in designs}
    found = []
    for regime in regimes(designs, device, calibration, batch=BATCH):
        key = "latency_cycles" if regime.batch == 1 else "interval_cycles"
        rows = [
            (int(getattr(c, key)) - ceil(getattr(now[dispatch], key)), f"{dispatch}: {c.name}")
            for dispatch, result in results.items()
            for c in result.front
            if c.tiles <= tiles[dispatch]
        ]
        gain, better = min(rows, default=(0, ""))
        found.append(
            RegimeChoice(regime=regime.name, bound=regime.bound, placement=name, better=better if gain < 0 else "")
        )
    return tuple(found)
