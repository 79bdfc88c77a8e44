"""Weights that a memory tile sends over and over are there for every inference."""

from dataclasses import replace
from pathlib import Path

import pytest

from manifest.device import load_device
from manifest.errors import RefusedError
from phases.presim.probe import read_probe
from presim.timing import load_calibration, time_design

PROBE = Path(__file__).resolve().parents[3] / "examples/probes/streamed_weights.json"


@pytest.mark.parametrize("inferences", [1, 8])
def test_streamed_weights_last_for_every_inference(inferences: int) -> None:
    design = read_probe(PROBE).design
    found = time_design(design, load_device("npu2"), load_calibration(), inferences=inferences)
    assert len(found.finished) == inferences
    assert list(found.finished) == sorted(found.finished)


def test_an_iteration_count_ends_them() -> None:
    design = read_probe(PROBE).design
    fifos = tuple(replace(f, iter_count=3) if f.name == "w" else f for f in design.fifos)
    short = replace(design, fifos=fifos)
    device, calibration = load_device("npu2"), load_calibration()
    assert time_design(short, device, calibration, inferences=1).finished
    with pytest.raises(RefusedError, match="does not run to its end"):
        time_design(short, device, calibration, inferences=2)
