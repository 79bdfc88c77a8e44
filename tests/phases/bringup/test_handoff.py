"""The hand-off: what is handed from the array to the host and on is compared, in the form of the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.model import DeviceIdentity, Job, Outcome
from manifest.device import load_device
from oracle.run import Oracle
from phases.bringup import handoff
from phases.bringup.engine import Engine, Site
from phases.bringup.handoff import Handoff, handoffs
from phases.bringup.tasks import tasks_of
from phases.port import open_port
from phases.presim.simulation import bench_of, from_host, host_ends
from phases.presim.source import different_inputs, source_of, target_tensors
from phases.presim.stages import units_of
from presim.design_io import design_from_json

Array = np.ndarray[Any, Any]


class Right:
    """Every job gives the oracle's outputs."""

    name = "right"

    def identity(self) -> DeviceIdentity:
        return DeviceIdentity(name="", reported="", runs="host")

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        assert len(inputs) == len(job.outputs)
        return Outcome(status="completed", text="completes", outputs=job.outputs, schedules=4)


@pytest.fixture
def scene(digits_port: Path) -> tuple[Handoff, Mapping[str, Array]]:
    """The digits example: a host segment before and behind one dispatch."""
    port = open_port(digits_port)
    source = source_of(port)
    inputs = different_inputs(source, 3)
    tensors = target_tensors(source, inputs.feeds)
    designs = design_from_json(port.read("design.json"))
    benches = {d.dispatch: bench_of(d, source.manifest, source.arrays, tensors, inputs) for d in designs}
    units = {name: units_of(bench.design, source.manifest) for name, bench in benches.items()}
    tasks = tasks_of(benches, units, load_device("npu2"))
    files = {t.order: f"{t.order}/design.py" for t in tasks}
    engine = Engine(
        Right(),
        "host",
        Site(root=Path("nowhere"), design_files=files, canary_sha256="c", distinct=3, real=3),
        lambda _: None,
    )
    engine.run(tasks)
    whole = {t.dispatch: t for t in tasks if t.kind == "dispatch"}
    assert handoffs(source.manifest) == 2
    return Handoff(source.manifest, Oracle(source.manifest, source.arrays), benches, whole, engine), inputs.feeds


def test_outputs_of_host_segments_count(scene: tuple[Handoff, Mapping[str, Array]]) -> None:
    made, feeds = scene
    found = made.run(feeds)
    assert found is not None
    assert (found.status, found.mismatches, found.inferences) == ("completed", 0, 3)
    outputs = [name for d in made.manifest.dispatches for name in d.outputs]
    assert {name for _, name in made.compared} == set(outputs)
    assert len(made.compared) == 3 * len(outputs)


def test_what_the_host_segment_behind_the_array_gives_is_compared(
    scene: tuple[Handoff, Mapping[str, Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, feeds = scene
    kept = made.oracle.run_ops
    last = made.manifest.dispatches[-1]
    assert last.where == "host"

    def off(ops: Any, *rest: Any, **named: Any) -> Any:
        found = kept(ops, *rest, **named)
        return {n: a + 1 if n in last.outputs else a for n, a in found.items()}

    monkeypatch.setattr(made.oracle, "run_ops", off)
    found = made.run(feeds)
    assert found is not None
    assert (found.status, found.mismatches) == ("mismatch", 1)
    assert repr(last.outputs[0]) in found.text
    assert "element [0" in found.text


def test_a_host_segment_before_the_array_is_compared_too(
    scene: tuple[Handoff, Mapping[str, Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, feeds = scene
    kept = made.oracle.run_ops
    monkeypatch.setattr(made.oracle, "run_ops", lambda *a, **k: {n: v * 0 for n, v in kept(*a, **k).items()})
    found = made.run(feeds)
    assert found is not None
    assert (found.status, found.inferences) == ("mismatch", 0)


def test_the_way_back_from_the_form_of_the_host_is_compared(
    scene: tuple[Handoff, Mapping[str, Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, feeds = scene
    monkeypatch.setattr(handoff, "from_host", lambda *a: np.flip(from_host(*a), -1))
    found = made.run(feeds)
    assert found is not None
    assert found.status == "mismatch"
    assert "tensor" in found.text


def test_an_output_that_is_a_drained_tensor_in_another_shape_is_handed_on(
    scene: tuple[Handoff, Mapping[str, Array]],
) -> None:
    made, _ = scene
    flatten = next(op for op in made.manifest.ops if op.type == "Flatten")
    dispatch = next(d for d in made.manifest.dispatches if flatten.name in d.ops)
    rows = next(iter(made.benches.values())).tensors
    source, output = flatten.inputs[0], flatten.outputs[0]
    handed = [{source: row[source]} for row in rows]
    made._reshape(replace(dispatch, outputs=(output,)), handed)
    assert all(np.array_equal(row[output], right[output]) for row, right in zip(handed, rows, strict=True))


def test_a_tensor_that_never_came_to_the_host_is_named(
    scene: tuple[Handoff, Mapping[str, Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, feeds = scene
    monkeypatch.setattr(handoff, "host_ends", lambda design, way: {} if way == "drain" else host_ends(design, way))
    found = made.run(feeds)
    assert found is not None
    assert found.status == "mismatch"
    assert "never came to the host" in found.text
