"""Phases 1 and 2 over models and devices: each fifo boundary of each design against the oracle, for 3 inputs.

`python -m tests.presim_models.report [--models a,b] [--devices x,y] [--write docs/presim-models.md]`
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from manifest.device import load_device
from phases.__main__ import main as phases
from phases.baseline.__main__ import main as baseline
from phases.presim.__main__ import main as presim
from presim.design import Design
from presim.design_io import DESIGN_FILE, design_from_json

ROOT: Final = Path(__file__).resolve().parents[2]
CORPUS: Final = ROOT.parent / "shared" / "corpus"
EXAMPLE: Final = ROOT / "examples" / "branching"
MODELS: Final = (
    "digits_mlp",
    "digits_mlp.quark_xint8",
    "digits_cnn",
    "digits_cnn.quark_xint8",
    "cntk_mnist",
    "mnist_resnet",
    "mnist_resnet.quark_xint8",
    "branching",
)
DEVICES: Final = ("npu1", "npu2", "vek280")
INCOMPLETE: Final = (("digits_mlp", "vek385"),)
"""On a device some of whose figures nobody has published: they are waived by their names."""

INPUTS: Final = 3
HEAD: Final = f"""\
Phases 1 and 2 on each model's real data: the simulated design against the oracle, every object on every
fifo, for {INPUTS} different inputs back to back. Elements that fill an object up to whole blocks count too.
Nothing is measured on a device. Made by `python -m tests.presim_models.report`."""
Main = Callable[[Sequence[str]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Outcome of one model on one device.

    Attributes:
        baseline: verdict of the gate of phase 1, or "exit N" where it wrote none.
        presim: verdict of the gate of phase 2, in the same way.
        inputs: different inputs that went through the design back to back.
        boundaries: fifos whose objects were compared; all of them, or `open_items` says otherwise.
        waived: device figures waived by their names.
        open_items: codes that are FAIL or NOT_RUN, or the first line of a refusal.
        seconds: both phases.
    """

    model: str
    device: str
    baseline: str = "-"
    presim: str = "-"
    workers: int = 0
    tiles: int = 0
    fifos: int = 0
    boundaries: int = 0
    inputs: int = 0
    elements: int = 0
    mismatches: int = 0
    waived: tuple[str, ...] = ()
    open_items: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Both gates pass, and everything that there is was compared and is equal."""
        whole = self.fifos > 0 and self.boundaries == self.fifos and self.elements > 0
        return (self.baseline, self.presim, self.mismatches, self.inputs) == ("PASS", "PASS", 0, INPUTS) and whole


def files_of(model: str) -> tuple[Path, Path]:
    """(model file, its data)."""
    if model == "branching":
        return EXAMPLE / "branching.onnx", EXAMPLE / "branching.npz"
    return CORPUS / "models" / f"{model}.onnx", CORPUS / "feeds" / f"{model.partition('.')[0]}.npz"


def run(model: str, device: str, port: Path) -> Row:
    """Both phases in this process."""
    source, data = files_of(model)
    start = time.monotonic()
    begin = [str(source), "--data", str(data), "--device", device, "--out", str(port)]
    first, refusal = phase(baseline, begin, port, "baseline")
    waived: set[str] = set()
    if first == "NOT_RUN":
        waived |= _waive(port, "baseline", device)
        first, refusal = phase(baseline, begin, port, "baseline")
    if first != "PASS":
        seconds = time.monotonic() - start
        words = refusal or open_items(port, "baseline")
        return Row(model=model, device=device, baseline=first, open_items=words, seconds=seconds)
    second, refusal = phase(presim, [str(port)], port, "presim")
    if second == "NOT_RUN":
        waived |= _waive(port, "presim", device)
        phase(baseline, begin, port, "baseline")
        second, refusal = phase(presim, [str(port)], port, "presim")
    seconds = time.monotonic() - start
    row = Row(model=model, device=device, baseline=first, presim=second, open_items=refusal, seconds=seconds)
    return row if refusal else _with_figures(row, port, waived)


def phase(main: Main, arguments: Sequence[str], port: Path, name: str) -> tuple[str, str]:
    """(verdict of the gate, first line of a refusal)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    if code not in (0, 1):
        lines = [line for line in err.getvalue().splitlines() if line.startswith(("[", "error"))]
        return f"exit {code}", (lines or err.getvalue().splitlines() or ["no message"])[0]
    return str(gate_of(port, name)["verdict"]), ""


def gate_of(port: Path, phase: str) -> dict[str, Any]:
    """The gate of a phase as it was written."""
    found: dict[str, Any] = json.loads((port / "gates" / f"{phase}.json").read_text())
    return found


def _waive(port: Path, phase: str, device: str) -> set[str]:
    """Waive the unknown device figures of a gate, each by its name; anything else stays open."""
    names: set[str] = set()
    unknown = load_device(device).unknown()
    until = (date.today() + timedelta(days=30)).isoformat()
    for item in gate_of(port, phase)["items"]:
        subjects = item["subjects"] if item["verdict"] == "NOT_RUN" else ()
        for figure in (name for name in subjects if name in unknown):
            words = ["--reason", "nobody has published it", "--owner", "report", "--until", until]
            with contextlib.redirect_stdout(io.StringIO()):
                phases(["waive", str(port), item["code"], "--figure", figure, *words])
            names.add(figure)
    return names


def _with_figures(row: Row, port: Path, waived: set[str]) -> Row:
    designs: tuple[Design, ...] = design_from_json((port / DESIGN_FILE).read_bytes())
    (exact,) = [item["figures"] for item in gate_of(port, "presim")["items"] if item["code"] == "PS003"]
    return replace(
        row,
        workers=sum(len(d.workers) for d in designs),
        tiles=sum(len({w.tile for w in d.workers}) for d in designs),
        fifos=sum(len(d.fifos) for d in designs),
        boundaries=exact["boundaries"],
        inputs=exact["distinct_inputs"],
        elements=exact["elements_compared"],
        mismatches=exact["mismatches"],
        waived=tuple(sorted(waived)),
        open_items=open_items(port, "presim"),
    )


def open_items(port: Path, phase: str) -> str:
    """Codes of the items that are FAIL or NOT_RUN."""
    return " ".join(item["code"] for item in gate_of(port, phase)["items"] if item["verdict"] in ("FAIL", "NOT_RUN"))


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown; seconds are left out, they are no property of a model."""
    gates = ("model", "device", "baseline", "presim")
    numbers = ("workers", "tiles", "fifos", "compared fifos", "inputs", "elements", "mismatches")
    columns = (*gates, *numbers, "waived figures", "open items or refusal")
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in rows:
        counts = (row.workers, row.tiles, row.fifos, row.boundaries, row.inputs, row.elements, row.mismatches)
        cells = [row.model, row.device, row.baseline, row.presim, *(f"{n:,}" for n in counts), ", ".join(row.waived)]
        lines.append(f"| {' | '.join([*cells, row.open_items.replace('|', '/')])} |")
    return "\n".join(lines) + "\n"


def pairs(models: Sequence[str] = MODELS, devices: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """(model, device) of every row."""
    every = [(model, device) for model in MODELS for device in DEVICES] + list(INCOMPLETE)
    return [(m, d) for m, d in every if m in models and (devices is None or d in devices)]


def main() -> int:
    """Run and print; 1 if any row is not good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--devices")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for model, device in pairs(given.models.split(","), given.devices and given.devices.split(",")):
            row = run(model, device, Path(scratch) / f"{model}.{device}.port")
            rows.append(row)
            print(f"{row.seconds:6.1f} s  {table([row]).splitlines()[-1]}", flush=True)
    if given.write:
        given.write.write_text(f"# Models in the simulator\n\n{HEAD}\n\n{table(rows)}")
    return 0 if rows and all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
