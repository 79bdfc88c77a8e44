"""What a child showed, as an outcome."""

from dataclasses import replace
from pathlib import Path

import pytest

from bringup.backends.host.outcome import outcome_of
from bringup.execute import HostResult
from tests.bringup.backends.folders import job_in

GOOD = HostResult(verdict="completes", text="completes", sound=True, compared={"x": 4, "y": 4}, schedules=4)


def test_a_sound_run_completes(tmp_path: Path) -> None:
    assert outcome_of(GOOD, job_in(tmp_path)).status == "completed"


@pytest.mark.parametrize("name", ["onnx", "onnxruntime"])
def test_a_child_that_had_the_reference_in_memory_proves_nothing(tmp_path: Path, name: str) -> None:
    outcome = outcome_of(replace(GOOD, foreign=(name,)), job_in(tmp_path))
    assert outcome.status == "crash"
    assert name in outcome.text


def test_a_run_in_which_nothing_was_compared_is_no_good_one(tmp_path: Path) -> None:
    outcome = outcome_of(replace(GOOD, compared={"x": 4}), job_in(tmp_path))
    assert outcome.status == "mismatch"
    assert "nothing of 'y' was compared" in outcome.text
