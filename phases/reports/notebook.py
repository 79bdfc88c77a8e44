"""`reports/baseline.ipynb`: reload the evidence of phase 1, run the canary again, look at ranges and SQNR.

Why it names no path and no figure: it finds the port from where it lies and reads everything there, so that its
bytes are the same in every port and it still works after the port was moved.
"""

from typing import Final

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CELLS: Final[tuple[tuple[str, str], ...]] = (
    (
        "markdown",
        """# Baseline: what exactly are the numbers?

Run all cells. Every figure says what it is: *measured* means on the CPU of the host that ran phase 1, with
onnxruntime as the reference; nothing here was measured on an NPU.

Jupyter saves outputs into this file, and `python -m phases check` then says that it changed: work on a copy, and set
`PORT` below to the folder of the port if the copy lies elsewhere.""",
    ),
    (
        "code",
        """from pathlib import Path

from phases.reports import evidence as ev

PORT = ev.find_port(Path.cwd())
evidence = ev.load_evidence(PORT)
print(evidence.gate.phase, "gate:", evidence.gate.words)
manifest = evidence.manifest
print(len(manifest.ops), "ops,", len(manifest.tensors), "tensors, device", manifest.target.device)""",
    ),
    ("markdown", "## The gate"),
    (
        "code",
        """for item in evidence.gate.items:
    print(f"{item.code} {item.verdict:14} {item.title}: {item.summary}")
for waiver in evidence.gate.waivers:
    print("accepted:", waiver.line())""",
    ),
    (
        "markdown",
        """## The canary, once more

The stored canary input goes through the oracle again; every stored tensor has to come out bit for bit.""",
    ),
    (
        "code",
        """rows = ev.rerun_canary(evidence)
print(len(rows), "tensors,", sum(row.elements for row in rows), "elements compared")
differing = [row for row in rows if row.differing]
for row in differing:
    print(row)
assert not differing, "the oracle no longer gives what phase 1 stored"
if not rows:
    print("phase 1 ran without data: nothing to compare")""",
    ),
    ("markdown", "## Ranges"),
    ("code", "ev.plot_ranges(manifest);"),
    ("markdown", "## SQNR per layer"),
    ("code", "ev.plot_sqnr(evidence.gate);"),
)


def render_notebook() -> bytes:
    """Return the notebook, without outputs; the same bytes every time."""
    cells = [_cell(kind, source, f"baseline-{n:02}") for n, (kind, source) in enumerate(CELLS, 1)]
    notebook = new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook)
    return (text.rstrip("\n") + "\n").encode("utf-8")


def _cell(kind: str, source: str, name: str) -> nbformat.NotebookNode:
    """One cell with an id that does not change."""
    cell: nbformat.NotebookNode
    cell = new_code_cell(source, id=name) if kind == "code" else new_markdown_cell(source, id=name)
    return cell
