"""From a step that went wrong to the most likely cause, with the evidence for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.stages import stages
from phases.bringup.engine import Engine, Step
from phases.bringup.hypotheses import Cause, causes_of
from phases.bringup.tasks import Task
from phases.presim.flow import carries_activation
from phases.presim.source import Source
from presim.design import Design, Fifo
from presim.packing import from_objects, object_count, object_shape

Array = NDArray[Any]


def diagnosed(step: Step, engine: Engine, source: Source, tensors: Mapping[str, Array]) -> Step:
    """A failed step with its causes in the text; a step that is exact as it is.

    Args:
        step: as it ran.
        engine: runs the stage again without comparing, to see the whole tensor.
        source: of the port.
        tensors: target values, (F, *shape), of every inference.
    """
    if step.evidence.status != "mismatch":
        return step
    found = causes(step.task, engine, source, tensors)
    if not found:
        words = "no single change of layout, shift, rounding, saturation, bias, zero point or weights predicts it"
    else:
        words = "; ".join(cause.line() for cause in found[:2])
    text = f"{step.evidence.text}; likely cause: {words}"
    return replace(step, evidence=replace(step.evidence, text=text))


def causes(task: Task, engine: Engine, source: Source, tensors: Mapping[str, Array]) -> tuple[Cause, ...]:
    """Causes for the first drained tensor of a task that is wrong."""
    outcome = engine.backend.run(replace(engine.job(task), expected=()), task.inputs)
    wanted = {stage.name: stage for stage in stages(source.manifest)}
    names = [name for part in task.parts for name in part.split(" + ")]
    ops = tuple(op for name in names if name in wanted for op in wanted[name].ops)
    count = len(outcome.outputs)
    for tensor, drains in _drained(task.design, source).items():
        got = _whole(source, tensor, drains, outcome.outputs)
        want = tensors[tensor][:count]
        if got is None or np.array_equal(got, want):
            continue
        given = {name: array[:count] for name, array in tensors.items()}
        return causes_of(source.manifest, source.arrays, ops, given, tensor=tensor, want=want, got=got)
    return ()


def _drained(design: Design, source: Source) -> dict[str, list[tuple[str, Fifo]]]:
    """(host tensor, fifo) of every activation that a design drains whole."""
    fifos = {f.name: f for f in design.fifos}
    found: dict[str, list[tuple[str, Fifo]]] = {}
    for transfer in design.sequence:
        fifo = fifos[transfer.fifo]
        if transfer.direction == "drain" and carries_activation(fifo, source.manifest) and not fifo.slices:
            found.setdefault(fifo.tensor, []).append((transfer.tensor, fifo))
    return found


def _whole(
    source: Source, tensor: str, drains: Sequence[tuple[str, Fifo]], outputs: Sequence[Mapping[str, Array]]
) -> Array | None:
    """A drained tensor as (F, *shape), None where it did not come whole."""
    row = source.manifest.tensor(tensor)
    host, fifo = drains[0]
    shape = fifo.form or row.shape
    like = replace(row, shape=tuple(shape))
    found = []
    for got in outputs:
        flat = got.get(host)
        if flat is None or flat.size != object_count(like) * int(np.prod(object_shape(like))):
            return None
        found.append(from_objects(like, np.asarray(flat).reshape(-1)).reshape(row.shape))
    return np.stack(found) if found else None
