"""A port made by hand: one op, QuantizeLinear of four float values at scale 1/2."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.typing import NDArray

from checklists.evaluate import evaluate
from checklists.model import CheckItem, Finding, Verdict
from checklists.report import report_to_json
from manifest.errors import RefusedError, UpstreamError
from manifest.io import arrays_to_bytes, canonical_json, manifest_to_json, sha256_hex
from manifest.model import (
    Dispatch,
    Manifest,
    ModelInfo,
    Observed,
    Op,
    Quantization,
    Requantization,
    Scheme,
    Target,
    Tensor,
)
from phases.reports import evidence as ev

Write = Callable[..., Path]


def build_manifest() -> Manifest:
    quant = Quantization(scales=(0.5,), zero_points=(0,), exponents=(-1,))
    seen = Observed(minimum=-1.0, maximum=3.0, samples=1, saturated=0)
    return Manifest(
        model=ModelInfo(
            sha256="b" * 64, format="qdq", opset=13, ir_version=8, producer="t", inputs=("x",), outputs=("q",)
        ),
        target=Target(device="npu2"),
        scheme=Scheme(activations="int8", weights="int8", bias="int32", power_of_two=True, not_power_of_two=()),
        tensors=(
            Tensor(name="q", shape=(1, 4), dtype="int8", onnx_dtype="int8", role="output", quant=quant, observed=seen),
            Tensor(name="x", shape=(1, 4), dtype="float32", onnx_dtype="float32", role="input"),
        ),
        ops=(
            Op(
                name="quantize",
                type="QuantizeLinear",
                inputs=("x",),
                outputs=("q",),
                where="host",
                requant=Requantization(reference="srs", target="srs", qmin=-128, qmax=127),
            ),
        ),
        dispatches=(
            Dispatch(
                name="d0", where="host", ops=("quantize",), inputs=("x",), outputs=("q",), cut_bytes=0, reason="end"
            ),
        ),
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(*, canary: bool = True, codes: tuple[int, ...] = (2, -2, 2, 6)) -> Path:
        root = tmp_path / "t.port"
        arrays: dict[str, NDArray[Any]] = {
            "t000001": np.array([[[1.0, -1.0, 0.75, 3.0]], [[0.0, 0.0, 0.0, 0.0]]], np.float32),
            "t000002": np.array([[codes]], np.int8),
        }
        files = {"manifest.json": manifest_to_json(build_manifest()), "tensors.npz": arrays_to_bytes({})}
        if canary:
            files["data/canary.npz"] = arrays_to_bytes(arrays)
            names = {"inputs": {"x": "t000001"}, "tensors": {"q": "t000002"}}
            files["data/canary.json"] = canonical_json(names)
        layers = ("$a: b$: 12.50", "c: -3.00")
        found = Finding(verdict=Verdict.PASS, summary="good", figures={"worst_layers_sqnr_db": layers})
        item: CheckItem[None] = CheckItem(code="BL003", title="t", source="s", basis="b", run=lambda _: found)
        inputs = {name: sha256_hex(data) for name, data in files.items()} | {"value:cpu flags": "c" * 64}
        report = evaluate([item], None, (), date(2030, 1, 1), inputs=inputs, tool_version="0")
        files["gates/baseline.json"] = report_to_json(report)
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        return root

    return make


def test_the_port_is_found_from_any_folder_in_it(write: Write) -> None:
    root = write()
    (root / "reports").mkdir()
    assert ev.find_port(root / "reports") == root.resolve()
    assert ev.find_port(root) == root.resolve()
    with pytest.raises(RefusedError, match="not in a port"):
        ev.find_port(root.parent)


def test_the_canary_comes_out_bit_for_bit(write: Write) -> None:
    rows = ev.rerun_canary(ev.load_evidence(write()))
    assert rows == (ev.CanaryRow(tensor="q", elements=4, differing=0),)


def test_one_other_code_in_the_stored_canary_is_found(write: Write) -> None:
    rows = ev.rerun_canary(ev.load_evidence(write(codes=(2, -2, 1, 6))))
    assert rows == (ev.CanaryRow(tensor="q", elements=4, differing=1),)


def test_a_stored_tensor_of_another_name_or_form_differs_everywhere(write: Write) -> None:
    evidence = ev.load_evidence(write())
    stored = evidence.stored["q"]
    for other in ({"p": stored}, {"q": stored.astype(np.int16)}, {"q": stored[:, :, :3]}, {"q": stored[0]}):
        assert all(row.differing == row.elements > 0 for row in ev.rerun_canary(replace(evidence, stored=other)))


def test_without_data_there_is_no_canary_and_nothing_to_compare(write: Write) -> None:
    evidence = ev.load_evidence(write(canary=False))
    assert evidence.stored == {}
    assert ev.rerun_canary(evidence) == ()


@pytest.mark.parametrize("name", ["manifest.json", "tensors.npz", "data/canary.npz", "data/canary.json"])
def test_a_changed_or_missing_file_is_named(write: Write, name: str) -> None:
    path = write() / name
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(UpstreamError, match=f"{name}: tampered"):
        ev.load_evidence(path.parents[name.count("/")])
    path.unlink()
    with pytest.raises(UpstreamError, match=f"{name}: missing"):
        ev.load_evidence(path.parents[name.count("/")])


def test_a_tampered_gate_is_named(write: Write) -> None:
    path = write() / "gates/baseline.json"
    path.write_bytes(path.read_bytes().replace(b'"good"', b'"fine"'))
    with pytest.raises(UpstreamError, match=r"gates/baseline\.json: tampered"):
        ev.load_evidence(path.parent.parent)


def test_sqnr_of_layers_is_read_from_the_gate_lowest_first(write: Write) -> None:
    gate = ev.load_evidence(write()).gate
    assert ev.layer_sqnr(gate) == (("c", -3.0), ("$a: b$", 12.5))
    assert ev.layer_sqnr(replace(gate, items=())) == ()


def test_plots_draw_names_that_look_like_formulas(write: Write) -> None:
    evidence = ev.load_evidence(write())
    ranges, sqnr = ev.plot_ranges(evidence.manifest), ev.plot_sqnr(evidence.gate)
    for plot, names in ((ranges, ["q"]), (sqnr, ["c", r"\$a: b\$"])):
        plot.canvas.draw()
        assert [t.get_text() for t in plot.axes[0].get_yticklabels()] == names
        assert "measured" in plot.axes[0].get_title()
    plt.close("all")


def test_plots_of_nothing_are_empty_and_no_fault(write: Write) -> None:
    evidence = ev.load_evidence(write())
    for plot in (
        ev.plot_ranges(replace(evidence.manifest, tensors=())),
        ev.plot_sqnr(replace(evidence.gate, items=())),
    ):
        plot.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize(("name", "text"), [("a\nb", r"a\nb"), ("$x$", r"\$x\$"), ("n" * 61, "n" * 59 + "…")])
def test_labels_are_bounded_and_plain(name: str, text: str) -> None:
    assert ev.label(name) == text
