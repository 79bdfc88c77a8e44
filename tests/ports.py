"""Ports for tests: a real folder with a real gate, without running an import."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from checklists.report import report_to_json
from manifest.io import arrays_to_bytes, canonical_json, manifest_to_json
from manifest.model import Manifest, ModelInfo, Op, Quantization, Requantization, Scheme, Target, Tensor
from oracle.evidence import BaselineEvidence
from phases.pipeline import item_codes
from phases.port import read_person, write_phase, writing
from phases.record import PortInfo, Source
from phases.runner import judge
from phases.state import WAIVERS_TOML
from phases.waivers import parse_waivers
from tests.baseline_evidence import good_evidence

TODAY = date(2026, 3, 1)
IMAGE = Quantization(scales=(0.5,), zero_points=(3,), exponents=(-1,))


def small_manifest(scale: float = 0.5) -> Manifest:
    """Float input `image` (1, 4), quantised to `image_q` int8, given back as the float `y`."""
    quant = Quantization(scales=(scale,), zero_points=(3,), exponents=(-1,) if scale == 0.5 else None)
    requant = Requantization(reference="srs", target="srs", qmin=-128, qmax=127)
    tensors = (
        Tensor(name="image", shape=(1, 4), dtype="float32", onnx_dtype="float32", role="input"),
        Tensor(name="image_q", shape=(1, 4), dtype="int8", onnx_dtype="int8", role="activation", quant=quant),
        Tensor(name="y", shape=(1, 4), dtype="float32", onnx_dtype="float32", role="output"),
    )
    ops = (
        Op(
            name="q",
            type="QuantizeLinear",
            inputs=("image",),
            outputs=("image_q",),
            nodes=("q",),
            where="host",
            requant=requant,
        ),
        Op(name="dq", type="DequantizeLinear", inputs=("image_q",), outputs=("y",), nodes=("dq",), where="host"),
    )
    return Manifest(
        model=ModelInfo(
            sha256="0" * 64,
            format="qdq",
            opset=13,
            ir_version=8,
            producer="test",
            inputs=("image",),
            outputs=("y",),
        ),
        target=Target(device="npu2"),
        scheme=Scheme(
            activations="int8 per tensor", weights="none", bias="none", power_of_two=True, not_power_of_two=()
        ),
        tensors=tensors,
        ops=ops,
    )


def make_port(
    folder: Path,
    *,
    evidence: BaselineEvidence | None = None,
    manifest: Manifest | None = None,
    options: Mapping[str, Any] | None = None,
    today: date = TODAY,
) -> Path:
    """Write model, data and port into `folder`, or the port again; returns the port."""
    root, model, data = folder / "m.port", folder / "m.onnx", folder / "real.npz"
    for path in (model, data):
        if not path.exists():
            path.write_bytes(path.name.encode())
    with writing(root):
        person = read_person(root)
        info = PortInfo(
            tool_version="0",
            model=Source.of(model, port=root),
            data=Source.of(data, port=root),
            device="npu2",
            options=options or {},
        )
        files = {
            "port.json": info.to_bytes(),
            "manifest.json": manifest_to_json(manifest or small_manifest()),
            "tensors.npz": arrays_to_bytes({}),
            "data/canary.npz": arrays_to_bytes({"t000001": np.zeros((1, 1, 4), np.float32)}),
        }
        report = judge(
            "baseline",
            evidence or good_evidence(),
            root,
            files=files,
            person=person,
            waivers=parse_waivers(person.get(WAIVERS_TOML), item_codes()),
            values={"cpu flags": ["avx2"]},
            today=today,
        )
        files["gates/baseline.json"] = report_to_json(report)
        files["reports/run.json"] = canonical_json({"seconds": 1.5})
        files["reports/baseline.ipynb"] = b'{"cells": []}\n'
        write_phase(root, "baseline", files, person)
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
