"""The notebook of a real port, executed as a person would."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from phases.baseline.__main__ import main as baseline_main


@pytest.fixture(scope="module")
def port(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A port of a small quantised model with a few real samples."""
    root = tmp_path_factory.mktemp("notebook") / "digits_mlp.port"
    corpus = shared / "corpus"
    model, data = corpus / "models/digits_mlp.qdq_s8s8_pt.onnx", corpus / "feeds/digits_mlp.npz"
    code = baseline_main([str(model), "--data", str(data), "--out", str(root), "--max-samples", "8"])
    assert code in (0, 1)
    return root


def execute(port: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> nbformat.NotebookNode:
    monkeypatch.setenv("PYTHONPATH", str(root))
    notebook: nbformat.NotebookNode = nbformat.read(port / "reports/baseline.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(port / "reports")}})
    client.execute()
    return notebook


def text_of(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(output.get("text", "") for output in outputs)


def test_runs_from_where_it_lies_and_shows_gate_canary_and_plots(
    port: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = execute(port, root, monkeypatch)
    text = text_of(notebook)
    assert "baseline gate: " in text
    assert "at host level" in text
    assert "BL013" in text
    compared = next(line for line in text.splitlines() if line.endswith("elements compared"))
    tensors, elements = compared.split()[0], compared.split()[2]
    assert int(tensors) >= 4
    assert int(elements) > 0
    plots = [o for cell in notebook.cells for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})]
    assert len(plots) == 2


def test_a_canary_that_was_changed_stops_it_by_name(port: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = port / "data/canary.npz"
    before = canary.read_bytes()
    canary.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    try:
        with pytest.raises(CellExecutionError, match=r"data/canary\.npz: tampered"):
            execute(port, root, monkeypatch)
    finally:
        canary.write_bytes(before)
