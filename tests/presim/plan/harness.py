"""Plans of small models, simulated with real data and held against the oracle on every fifo."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.device import Device, load_device
from manifest.model import Dispatch, Manifest
from oracle.run import Oracle
from presim.blocks import to_objects
from presim.design import Acquire, Design, Fifo, Loop, Release, Step
from presim.directives import Directives
from presim.kernels import KERNELS
from presim.kernels.attributes import Forms
from presim.packing import pack_constants
from presim.plan import design_of
from presim.simulate.data import SimData, SimOptions
from presim.simulate.result import SimResult
from presim.simulate.run import simulate
from presim.static.structure import structure

Array = NDArray[Any]
NPU2 = load_device("npu2")
GOOD = ("completes", "completes_leaving")


def with_figures(device: Device = NPU2, **figures: int) -> Device:
    """A device with other figures, such as a smaller L1."""
    return replace(device, **{name: replace(getattr(device, name), value=n) for name, n in figures.items()})


def whole(manifest: Manifest) -> Dispatch:
    """All ops on the array as one dispatch."""
    ops = [op for op in manifest.ops if op.where == "npu"]
    constants = {t.name for t in manifest.tensors if t.array is not None}
    made = {n for op in ops for n in op.outputs}
    read = [n for op in ops for n in op.inputs if n and n not in constants]
    elsewhere = {n for op in manifest.ops if op.where != "npu" for n in op.inputs} | set(manifest.model.outputs)
    outputs = [n for op in ops for n in op.outputs if n in elsewhere]
    return Dispatch(
        name="d0",
        where="npu",
        ops=tuple(op.name for op in ops),
        inputs=tuple(dict.fromkeys(n for n in read if n not in made)),
        outputs=tuple(outputs),
        cut_bytes=0,
        reason="test",
    )


def plan_of(
    manifest: Manifest,
    device: Device = NPU2,
    directives: Directives | None = None,
    dispatch: Dispatch | None = None,
) -> Design:
    """The design, structurally sound."""
    design = design_of(manifest, device, directives or Directives(), dispatch or whole(manifest))
    assert structure(design) == ()
    assert unbalanced(design) == []
    return design


def stored(manifest: Manifest, arrays: Mapping[str, Array], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor as integers, (feeds, *shape)."""
    return {**inputs, **Oracle(manifest, arrays).run(inputs, arithmetic="target", keep="stored")}


def random_inputs(manifest: Manifest, count: int, seed: int = 0) -> dict[str, Array]:
    """Float inputs that use the range of the codes, (count, *shape)."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in manifest.model.inputs:
        tensor = manifest.tensor(name)
        if tensor.dtype == "float32":
            found[name] = rng.normal(0, 1, (count, *tensor.shape)).astype(np.float32)
        else:
            info = np.iinfo(tensor.dtype)
            found[name] = rng.integers(info.min, info.max + 1, (count, *tensor.shape)).astype(tensor.dtype)
    return found


def blocks_of(fifo: Fifo, forms: Forms, array: Array) -> Array:
    """Objects of one inference that a fifo has to carry, as its consumers get them."""
    values = array.astype(forms.of(fifo.tensor).dtype)
    values = values.reshape(fifo.form) if fifo.form else values
    for piece in fifo.slices:
        axis = {"channels": 1 if values.ndim == 4 else values.ndim - 1, "columns": 3}.get(piece.axis)
        if axis is not None:
            values = np.take(values, np.arange(piece.first, piece.first + piece.count), axis)
    objects = to_objects(values)
    for piece in fifo.slices:
        if piece.axis == "objects":
            objects = objects[piece.first :: piece.step][: piece.count]
    return objects.reshape(-1, *(fifo.consumer_shape or fifo.shape))


def run_with_data(
    design: Design, manifest: Manifest, arrays: Mapping[str, Array], tensors: Mapping[str, Array], schedules: int = 1
) -> SimResult:
    """Simulate with the oracle's inputs; every fifo of a tensor and every output is compared."""
    forms = Forms(manifest)
    fifos = {f.name: f for f in design.fifos}
    feeds = range(len(next(iter(tensors.values()))))
    watched = [f for f in design.fifos if f.tensor in tensors and f.init_array is None]
    host = {t.tensor: fifos[t.fifo] for t in design.sequence}
    drained = {t.tensor for t in design.sequence if t.direction == "drain"}
    whole_fifos = {n: replace(f, consumer_shape=(), slices=()) for n, f in host.items()}

    def of_host(name: str, feed: int) -> Array:
        fifo = whole_fifos[name]
        values = tensors[name][feed].astype(forms.of(name).dtype)
        return to_objects(values.reshape(fifo.form) if fifo.form else values)

    data = SimData(
        kernels={k.name: KERNELS[k.type] for k in design.kernels},
        arrays=pack_constants(design, forms, dict(arrays)),
        inputs=[{n: of_host(n, i) for n in host if n not in drained or n in filled(design)} for i in feeds],
        outputs=[{n: of_host(n, i) for n in drained} for i in feeds],
        fifos=[{f.name: blocks_of(f, forms, tensors[f.tensor][i]) for f in watched} for i in feeds],
    )
    return simulate(design, data=data, options=SimOptions(schedules=schedules))


def filled(design: Design) -> set[str]:
    """Host tensors that go in."""
    return {t.tensor for t in design.sequence if t.direction == "fill"}


def assert_exact(
    manifest: Manifest,
    arrays: Mapping[str, Array],
    device: Device = NPU2,
    directives: Directives | None = None,
    inputs: Mapping[str, Array] | None = None,
) -> Design:
    """Plan, simulate three inferences, compare everything; returns the design."""
    design = plan_of(manifest, device, directives)
    tensors = stored(manifest, arrays, inputs or random_inputs(manifest, 3))
    result = run_with_data(design, manifest, arrays, tensors)
    assert result.verdict in GOOD, result.text
    assert result.sound, result.text
    assert min(result.compared.values(), default=1) > 0
    return design


def counted(program: tuple[Step, ...]) -> dict[tuple[str, str], list[int]]:
    """(objects newly acquired, objects released) of a program, by fifo and side."""
    found: dict[tuple[str, str], list[int]] = {}

    def walk(steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, Loop):
                for _ in range(step.times):
                    walk(step.body)
            elif isinstance(step, Acquire | Release):
                totals = found.setdefault((step.fifo, step.side), [0, 0])
                if isinstance(step, Acquire):
                    totals[0] += max(0, step.count - (totals[0] - totals[1]))
                else:
                    totals[1] += step.count

    walk(program)
    return found


def unbalanced(design: Design) -> list[str]:
    """Fifos whose ends do not move the same elements in one inference, and programs that keep objects."""
    fifos = {f.name: f for f in design.fifos}
    made: dict[str, int] = {}
    taken: list[tuple[str, str, int]] = []
    wrong = []
    for worker in design.workers:
        for (name, side), (acquired, released) in counted(worker.program).items():
            fifo = fifos[name]
            if acquired != released:
                wrong.append(f"{worker.name} keeps objects of {name}")
            if side == "produce" or (not side and fifo.producer.actor == worker.name):
                made[name] = acquired * math.prod(fifo.shape)
            elif fifo.init_array is None:
                taken.append((name, worker.name, acquired * math.prod(fifo.consumer_shape or fifo.shape)))
    for transfer in design.sequence:
        fifo = fifos[transfer.fifo]
        if transfer.direction == "fill":
            made[fifo.name] = transfer.objects * math.prod(fifo.shape)
        else:
            taken.append((fifo.name, "host", transfer.objects * math.prod(fifo.consumer_shape or fifo.shape)))
    _through_links(design, made)
    return wrong + [
        f"{name}: {made.get(name)} elements made, {actor} takes {elements}"
        for name, actor, elements in taken
        if made.get(name) != elements
    ]


def _through_links(design: Design, made: dict[str, int]) -> None:
    """Elements that memory tiles pass on."""
    fifos = {f.name: f for f in design.fifos}
    for _ in design.links:
        for link in design.links:
            total = sum(made.get(s, 0) for s in link.sources)
            sizes = [math.prod(fifos[t].shape) for t in link.targets]
            for target, size in zip(link.targets, sizes, strict=True):
                made[target] = total * size // sum(sizes)
