"""Phase 1 over the model corpus: one row per file with exit code, gate, elements compared and how they differ.

`python -m tests.corpus.report [--families a,b] [--write docs/corpus.md]`
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from phases.baseline.__main__ import main as baseline

ROOT: Final = Path(__file__).resolve().parents[2]
CORPUS: Final = ROOT.parent / "shared" / "corpus"
FAMILIES: Final = (
    "cntk_mnist",
    "digits_mlp",
    "digits_cnn",
    "mnist_resnet",
    "qat_digits_mlp_pot8_qcdq",
    "qat_mnist_cnn_w8a8_qcdq",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Outcome of one file. `refusal` is the first line of an exit 2, else ""."""

    file: str
    exit_code: int
    verdict: str
    open_items: tuple[str, ...]
    elements: int
    mismatches: int
    near_ties: int
    within_tolerance: int
    reference_inexact: int
    unexplained: int
    target_deviating: int
    refusal: str
    seconds: float


def files(family: str) -> list[Path]:
    """Model files of a family that are QDQ, QOperator or float, by name."""
    entry = json.loads((CORPUS / "index.json").read_text())[family]
    return sorted(CORPUS / path for path in entry["files"].values() if not path.endswith("_qonnx.onnx"))


def feed_of(model: Path) -> Path:
    """The real data of a model file."""
    index: dict[str, Any] = json.loads((CORPUS / "index.json").read_text())
    for entry in index.values():
        if any((CORPUS / path) == model for path in entry["files"].values()):
            return CORPUS / "feeds" / f"{entry['feed']}.npz"
    msg = f"{model}: not in the corpus index"
    raise KeyError(msg)


def run(model: Path, port: Path) -> Row:
    """Port one file."""
    out, err = io.StringIO(), io.StringIO()
    start = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = baseline([str(model), "--data", str(feed_of(model)), "--out", str(port)])
    seconds = time.monotonic() - start
    refusal = err.getvalue().strip().splitlines()[0] if code == 2 else ""
    if code == 2 and port.exists():
        msg = f"{model.name}: refused, but something was written"
        raise AssertionError(msg)
    items: dict[str, Any] = {}
    verdict = "-"
    if code in (0, 1):
        gate = json.loads((port / "gates/baseline.json").read_text())
        items, verdict = {i["code"]: i for i in gate["items"]}, gate["verdict"]
    figures = items.get("BL009", {}).get("figures", {})
    return Row(
        file=model.name,
        exit_code=code,
        verdict=verdict,
        open_items=tuple(c for c, i in items.items() if i["verdict"] in ("FAIL", "NOT_RUN")),
        elements=figures.get("elements", 0),
        mismatches=figures.get("mismatches", 0),
        near_ties=figures.get("near_ties", 0),
        within_tolerance=figures.get("floats_within_tolerance", 0),
        reference_inexact=figures.get("reference_inexact", 0),
        unexplained=figures.get("unexplained", 0),
        target_deviating=items.get("BL011", {}).get("figures", {}).get("deviating", 0),
        refusal=refusal.replace(str(CORPUS), ""),
        seconds=seconds,
    )


def table(rows: list[Row]) -> str:
    """The rows as Markdown; seconds are left out, they are no property of a file."""
    found = ("elements", "mismatches", "near ties", "floats within tolerance")
    counts = (*found, "reference inexact", "unexplained", "target deviates")
    columns = ("file", "exit", "gate", *counts, "open items or refusal")
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in rows:
        explained = (row.near_ties, row.within_tolerance, row.reference_inexact)
        numbers = (row.elements, row.mismatches, *explained, row.unexplained)
        cells = [row.file, str(row.exit_code), row.verdict, *(f"{n:,}" for n in (*numbers, row.target_deviating))]
        lines.append(f"| {' | '.join([*cells, row.refusal or ' '.join(row.open_items)])} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run and print; 1 if any element is unexplained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for family in given.families.split(","):
            for model in files(family):
                row = run(model, Path(scratch) / model.name)
                rows.append(row)
                print(f"{row.seconds:6.1f} s  {table([row]).splitlines()[-1]}", flush=True)
    if given.write:
        words = "Phase 1 on each model's real data, against onnxruntime on one host's CPU."
        words += " Made by `python -m tests.corpus.report`."
        given.write.write_text(f"# Corpus\n\n{words}\n\n{table(rows)}")
    return 1 if any(row.unexplained for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
