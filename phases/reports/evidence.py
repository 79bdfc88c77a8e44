"""What the notebook does with a port: find it, believe it by its hashes, run the canary again, plot.

Why the files are checked against the gate and not against `state.json`: Jupyter saves its outputs into the notebook,
which is itself a file of the port; what the gate judged is unchanged by that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Plot
from numpy.typing import NDArray

from checklists.model import GateReport, one_line
from checklists.report import load_report
from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import load_arrays, manifest_from_json, parse_canonical, sha256_hex
from manifest.model import Manifest
from oracle.run import Oracle
from phases.reports.ranges import range_row

GATE: Final = "gates/baseline.json"
MANIFEST: Final = "manifest.json"
TENSORS: Final = "tensors.npz"
CANARY: Final = "data/canary.npz"
CANARY_NAMES: Final = "data/canary.json"
SHOWN: Final = 60
"""Bars of a plot at most; a title says how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A port as its baseline gate judged it.

    Attributes:
        root: the port.
        gate: the baseline gate.
        manifest: the deployment manifest.
        arrays: its constants by key.
        inputs: canary inputs by ONNX name, (F, *shape); empty where phase 1 had no data.
        stored: what the oracle gave for the first of them in phase 1, by ONNX name, (1, *shape).
    """

    root: Path
    gate: GateReport
    manifest: Manifest
    arrays: Mapping[str, NDArray[Any]]
    inputs: Mapping[str, NDArray[Any]]
    stored: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRow:
    """One stored tensor against the oracle as it computes now."""

    tensor: str
    elements: int
    differing: int


def find_port(start: Path) -> Path:
    """The port that `start` is in: the nearest folder upwards that has a baseline gate.

    Raises:
        RefusedError: there is none.
    """
    here = start.resolve()
    for folder in (here, *here.parents):
        if (folder / GATE).is_file():
            return folder
    remedy = "set PORT in the notebook to the folder of the port"
    raise RefusedError((Problem(code="PORT-NOT-A-PORT", where=str(start), what="not in a port", remedy=remedy),))


def load_evidence(root: Path) -> Evidence:
    """Read gate, manifest, arrays and canary, each checked against the hash in the gate.

    Raises:
        UpstreamError: the gate is tampered with, or a file is missing or not what it judged.
    """
    gate = load_report(_bytes(root, GATE), GATE)
    manifest = manifest_from_json(_judged(root, MANIFEST, gate))
    arrays = load_arrays(_judged(root, TENSORS, gate))
    inputs: dict[str, NDArray[Any]] = {}
    stored: dict[str, NDArray[Any]] = {}
    if CANARY in gate.inputs:
        canary = load_arrays(_judged(root, CANARY, gate))
        names = parse_canonical(_judged(root, CANARY_NAMES, gate), CANARY_NAMES)
        inputs = {name: canary[key] for name, key in names["inputs"].items()}
        stored = {name: canary[key] for name, key in names["tensors"].items()}
    return Evidence(root=root, gate=gate, manifest=manifest, arrays=arrays, inputs=inputs, stored=stored)


def rerun_canary(evidence: Evidence) -> tuple[CanaryRow, ...]:
    """Run the first canary through the oracle and compare every tensor that is stored for it.

    Returns:
        One row per stored tensor, in the order of their names; empty without a canary.
    """
    if not evidence.stored:
        return ()
    first = {name: array[:1] for name, array in evidence.inputs.items()}
    got = Oracle(evidence.manifest, evidence.arrays).run(first, arithmetic="reference", keep="all")
    return tuple(_canary_row(name, evidence.stored[name], got.get(name)) for name in sorted(evidence.stored))


def plot_ranges(manifest: Manifest) -> Plot:
    """Draw per activation which part of its range the given data used (measured on the given data)."""
    rows = [row for t in manifest.tensors if (row := range_row(t)) is not None and row.used]
    shown = rows[:SHOWN]
    plot, axes = plt.subplots(figsize=(9, 1.5 + 0.28 * len(shown)), layout="constrained")
    names = [label(row.name) for row in shown]
    places = np.arange(len(shown))
    axes.barh(places, [100.0] * len(shown), color="#e8ecf0")
    axes.barh(places, [row.right - row.left for row in shown], left=[row.left for row in shown], color="#3273c4")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel("percent of what the codes can hold; blue: seen on the given data")
    axes.set_title(f"Ranges of {len(shown)} of {len(rows)} activations (measured)")
    return plot


def layer_sqnr(gate: GateReport) -> tuple[tuple[str, float], ...]:
    """(tensor, SQNR in dB) of the layers that BL003 names, lowest first."""
    item = next((i for i in gate.items if i.code == "BL003"), None)
    rows = item.figures.get("worst_layers_sqnr_db", ()) if item is not None else ()
    if not isinstance(rows, tuple):
        return ()
    pairs = (row.rpartition(": ") for row in rows)
    return tuple(sorted(((name, float(db)) for name, _, db in pairs), key=lambda pair: pair[1]))


def plot_sqnr(gate: GateReport) -> Plot:
    """Draw the SQNR of the layers that BL003 names, against the float meaning (measured on this host's CPU)."""
    rows = layer_sqnr(gate)[:SHOWN]
    plot, axes = plt.subplots(figsize=(9, 1.5 + 0.28 * len(rows)), layout="constrained")
    places = np.arange(len(rows))
    axes.barh(places, [db for _, db in rows], color="#3273c4")
    axes.set_yticks(places, [label(name) for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("SQNR in dB against the float meaning")
    axes.set_title(f"{len(rows)} layers with the lowest SQNR (measured)")
    return plot


def label(name: str, limit: int = 60) -> str:
    """A name that a plot shows as it is: one line, bounded, `$` no formula."""
    text = one_line(name)
    text = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return text.replace("$", r"\$")


def _canary_row(name: str, stored: NDArray[Any], got: NDArray[Any] | None) -> CanaryRow:
    """Compare one tensor bit for bit; one that the oracle does not give, or of another form, differs everywhere."""
    if got is None or got.shape != stored.shape or got.dtype != stored.dtype:
        return CanaryRow(tensor=name, elements=stored.size, differing=stored.size)
    bits = np.dtype(f"u{stored.dtype.itemsize}")
    left, right = (np.ascontiguousarray(a).reshape(-1).view(bits) for a in (stored, got))
    return CanaryRow(tensor=name, elements=stored.size, differing=int(np.count_nonzero(left != right)))


def _judged(root: Path, name: str, gate: GateReport) -> bytes:
    """The content of a file, if it is what the gate judged."""
    data = _bytes(root, name)
    if sha256_hex(data) != gate.inputs.get(name):
        msg = f"{name}: tampered: it is not what {GATE} was judged on"
        raise UpstreamError(msg)
    return data


def _bytes(root: Path, name: str) -> bytes:
    """The content of a file of the port."""
    try:
        return (root / name).read_bytes()
    except OSError as error:
        msg = f"{name}: missing: cannot be read ({error.strerror})"
        raise UpstreamError(msg) from error
