"""What a failed step is told to come from: one more run to its end, and only where numbers were computed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.model import DeviceIdentity, Job, Outcome, Place, Unavailable
from phases.bringup.diagnosis import diagnosed
from phases.bringup.engine import Engine, Site, Step
from phases.bringup.tasks import Task
from phases.presim.source import Source
from presim.design import Design, Endpoint, Fifo, Transfer
from tests.qdq_models import linear

Array = np.ndarray[Any, Any]
K = 16
WEIGHTS = np.random.default_rng(3).integers(-100, 101, (K, K)).astype(np.int8)
X = np.random.default_rng(4).integers(-128, 128, (3, 1, K)).astype(np.int8)


def codes(weights: Array) -> Array:
    """Written down: shift 6."""
    rounded: Array = np.clip(np.rint(X.astype(np.int64) @ weights.astype(np.int64) / 2.0**6), -128, 127)
    return rounded.astype(np.int8)


RIGHT = codes(WEIGHTS)


class Ends:
    """Gives what it is made with, and keeps the jobs."""

    name = "ends"

    def __init__(self, outputs: Array) -> None:
        self.outputs = outputs
        self.jobs: list[Job] = []

    def identity(self) -> DeviceIdentity | Unavailable:
        return DeviceIdentity(name="", reported="", runs="host")

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        self.jobs.append(job)
        assert len(inputs) == len(self.outputs)
        return Outcome(status="completed", text="", outputs=tuple({"host": y.reshape(-1)} for y in self.outputs))


def step(backend: Ends, place: Place, status: str = "mismatch") -> tuple[Step, Engine]:
    """A stage `gemm` that was wrong at `place` and gave nothing, as a run that ends at the first difference."""
    y = Fifo(
        name="y",
        shape=(K,),
        dtype="int8",
        depth=2,
        producer=Endpoint(actor="w", kind="worker", tile=None),
        consumers=(Endpoint(actor="shim", kind="shim", tile=None),),
        tensor="y.q",
    )
    sequence = (Transfer(direction="drain", fifo="y", tensor="host", objects=1),)
    design = Design(dispatch="d0", device="npu2", workers=(), fifos=(y,), sequence=sequence)
    task = Task(
        name="gemm",
        kind="stage",
        dispatch="d0",
        order=0,
        design=design,
        parts=("gemm",),
        added=("gemm",),
        inputs=tuple({"x": x.reshape(-1)} for x in X),
        expected=({"y": RIGHT[0]},) * 3,
        outputs=tuple({"host": want.reshape(-1)} for want in RIGHT),
        carried=("y",),
    )
    site = Site(root=Path("nowhere"), design_files={0: "d"}, canary_sha256="", distinct=3, real=3)
    engine = Engine(backend, "host", site, lambda _: None)
    outcome = Outcome(status=status, text="wrong data", place=place)  # type: ignore[arg-type]
    return Step(
        task=task, outcome=outcome, evidence=engine.evidence(engine.job(task), task, outcome, sees=True)
    ), engine


def told(got: Array, place: Place = Place(tensor="y.q", expected=1.0, got=2.0), status: str = "mismatch") -> Any:  # noqa: B008
    imported = linear(WEIGHTS, x_scale=0.5, w_scale=0.25, y_scale=0.125 * 2**6).load()
    source = Source(manifest=imported.manifest, arrays=imported.arrays, files={}, canary={})
    backend = Ends(got)
    made, engine = step(backend, place, status)
    return diagnosed(made, engine, source, {"xd.q": X, "y.q": RIGHT}), backend


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (codes(-WEIGHTS), "likely cause: op 'gemm': weights with the other sign: predicts 48 of 48 elements"),
        (codes(WEIGHTS.T), "likely cause: op 'gemm': weights transposed: predicts 48 of 48 elements"),
        (np.where(np.arange(K) == 5, RIGHT ^ 1, RIGHT), "predicts it; index 5 of axis 1 alone differs, in 3 of 48"),
        (RIGHT, "cause not looked for: no tensor of it came to the host whole and wrong"),
    ],
)
def test_the_cause_is_looked_for_in_whole_tensors_of_a_run_to_its_end(got: Array, words: str) -> None:
    found, backend = told(got)
    assert words in found.evidence.text
    assert found.evidence.uniform == ()
    (job,) = backend.jobs
    assert (job.expected, job.outputs) == ((), ())


def test_a_tensor_of_one_value_is_evidence_too() -> None:
    found, _ = told(np.zeros_like(RIGHT))
    assert "zeros: wrong device, or never written" in found.evidence.text
    assert found.evidence.uniform == ("host",)


@pytest.mark.parametrize(("place", "status"), [(Place(worker="w"), "mismatch"), (Place(expected=1.0), "crash")])
def test_where_nothing_was_computed_no_cause_is_guessed(place: Place, status: str) -> None:
    found, backend = told(codes(-WEIGHTS), place, status)
    assert found.evidence.text == "wrong data"
    assert backend.jobs == []


def test_evidence_of_a_step_stays_but_for_its_words() -> None:
    found, _ = told(codes(-WEIGHTS))
    made, _ = step(Ends(RIGHT), found.outcome.place)
    assert replace(found.evidence, text="wrong data") == made.evidence
