"""Examples whose designs are broken, and the gate over one of them."""

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from checklists.evaluate import evaluate
from checklists.items.presim import ITEMS
from checklists.model import GateReport
from manifest.device import load_device
from phases.baseline.__main__ import main as baseline
from phases.port import open_port
from phases.presim import simulation
from phases.presim.collect import collect
from phases.presim.options import PresimOptions
from phases.presim.predicting import predict
from phases.presim.source import Source, source_of
from presim.design import Design
from presim.directives import directives_of
from presim.packing import pack_constants
from presim.place import place
from presim.plan import design_of
from tests.faults.catalogue import Broken

TODAY: Final = date(2026, 3, 1)
DEVICE: Final = "npu2"
HALVED: Final = {"trunk_fc": {"parallelism": {"cas_num": 2}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A port's contents and its sound designs."""

    source: Source
    designs: tuple[Design, ...]


def make(folder: Path, model: Path, data: Path, directives: Mapping[str, Any] | None = None) -> Made:
    """Run phase 1 on a model and plan it, without the gate."""
    port = folder / f"{model.stem}.port"
    if not port.exists():
        with redirect_stdout(io.StringIO()):
            baseline([str(model), "--data", str(data), "--device", DEVICE, "--out", str(port)])
    source = source_of(open_port(port))
    device = load_device(DEVICE)
    asked = directives_of(dict(directives or {}), source.manifest)
    names = [d.name for d in source.manifest.dispatches if d.where == "npu"]
    designs = tuple(place(design_of(source.manifest, device, asked, name), device, asked) for name in names)
    return Made(source=source, designs=designs)


def gate(made: Made, designs: tuple[Design, ...], *, schedules: int = 3) -> GateReport:
    """The presim gate over designs."""
    device = load_device(DEVICE)
    options = PresimOptions(out=Path("none"), today=TODAY, schedules=schedules)
    predicted = predict(made.designs, device, batch=options.batch)
    evidence = collect(
        made.source,
        designs,
        designs,
        options,
        device=device,
        records={},
        predicted=predicted,
        progress=lambda _: None,
    ).evidence
    return evaluate(ITEMS, evidence, (), TODAY, phase="presim")


def judge(made: Made, broken: Broken, patch: pytest.MonkeyPatch) -> GateReport:
    """The gate over the designs with a fault in the first of them."""
    first, *rest = made.designs
    if broken.stale is not None:
        change = broken.stale

        def packed(*arguments: Any) -> Mapping[str, Any]:
            return change(pack_constants(*arguments))

        patch.setattr(simulation, "pack_constants", packed)
    return gate(made, (broken.breaks(replace(first)), *rest))


def examples(root: Path, folder: Path, shared: Path) -> dict[str, Made]:
    """The examples by name; ports go to `folder`."""
    digits, branching, corpus = root / "examples/digits", root / "examples/branching", shared / "corpus"
    two = (branching / "branching.onnx", branching / "branching.npz")
    return {
        "digits": make(folder, digits / "digits_cnn.onnx", digits / "digits.npz"),
        "branching": make(folder, *two),
        "joined": make(folder, *two, HALVED),
        "resnet": make(folder, corpus / "models/mnist_resnet.onnx", corpus / "feeds/mnist_resnet.npz"),
    }
