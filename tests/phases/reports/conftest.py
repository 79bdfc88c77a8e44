"""A gate and a manifest with hostile names, and their plain twins."""

from datetime import date
from functools import partial

import pytest

from checklists.evaluate import evaluate
from checklists.model import CheckItem, FigureTable, Finding, GateReport, Verdict, Waiver
from manifest.model import (
    Accumulator,
    Dispatch,
    Manifest,
    ModelInfo,
    Note,
    Observed,
    Op,
    Quantization,
    Requantization,
    Scheme,
    Target,
    Tensor,
)

HOSTILE = "<script>alert(1)</script>|`*_[x](y)\n# PASS \x1b[31m \u202e ]]>"


def found(verdict: Verdict, name: str, _: None) -> Finding:
    figures: FigureTable = {
        "elements": 7,
        "share": 0.25,
        "names": (name, "b"),
        f"{name}: data": "0..1",
        "absent": None,
        "yes": True,
    }
    return Finding(verdict=verdict, summary=f"tensor {name}", figures=figures, subjects=(name,))


def build_gate(name: str) -> GateReport:
    verdicts = [v for v in Verdict if v is not Verdict.WAIVED]
    items = [
        CheckItem(
            code=f"BL{n:03}",
            title=f"Title {n}",
            source="guide, section 1",
            basis="measured on this host's CPU with onnxruntime",
            run=partial(found, verdict, name),
        )
        for n, verdict in enumerate([*verdicts, Verdict.FAIL], 1)
    ]
    until = date(2031, 1, 1)
    waivers = (
        Waiver(code="BL006", subject=name, reason=f"because {name}", owner="ann", until=until),
        Waiver(code="BL001", reason="of no use", owner="ann", until=until),
        Waiver(code="BL002", reason="too late", owner="ann", until=date(2029, 1, 1)),
    )
    inputs = {"manifest.json": "a" * 64}
    return evaluate(items, None, waivers, date(2030, 1, 1), inputs=inputs, tool_version="0.1.0")


def build_manifest(name: str) -> Manifest:
    quant = Quantization(scales=(0.5,), zero_points=(0,), exponents=(-1,))
    x = Tensor(
        name=name,
        shape=(1, 4),
        dtype="int8",
        onnx_dtype="int8",
        role="activation",
        quant=quant,
        observed=Observed(minimum=-32.0, maximum=63.5, samples=3, saturated=1),
    )
    return Manifest(
        model=ModelInfo(
            sha256="b" * 64, format="qdq", opset=13, ir_version=8, producer=name, inputs=(name,), outputs=("y",)
        ),
        target=Target(device="npu2"),
        scheme=Scheme(activations="int8", weights="int8", bias="int32", power_of_two=True, not_power_of_two=()),
        tensors=(x, Tensor(name="y", shape=(1, 4), dtype="int8", onnx_dtype="int8", role="output", quant=quant)),
        ops=(
            Op(
                name=name,
                type="Conv",
                inputs=(name, "w", ""),
                outputs=("y",),
                accumulator=Accumulator(bits=32, bound=99),
                requant=Requantization(reference="srs", target="srs", qmin=-128, qmax=127),
            ),
        ),
        dispatches=(
            Dispatch(name="d0", where="npu", ops=(name,), inputs=(name,), outputs=("y",), cut_bytes=0, reason=name),
        ),
        notes=(Note(code="ONNX-NOTE", where=name, text=name),),
    )


@pytest.fixture
def gate() -> GateReport:
    return build_gate("conv_out")


@pytest.fixture
def hostile_gate() -> GateReport:
    return build_gate(HOSTILE)


@pytest.fixture
def manifest() -> Manifest:
    return build_manifest("x")


@pytest.fixture
def hostile_manifest() -> Manifest:
    return build_manifest(HOSTILE)
