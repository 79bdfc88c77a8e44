"""From a step that went wrong to the most likely cause, with the evidence for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bringup.model import Outcome
from oracle.stages import stages
from phases.bringup.engine import Engine, Step, uniform
from phases.bringup.hypotheses import Cause, causes_of, part_of
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
        engine: runs the step again without comparing, to see whole tensors.
        source: of the port.
        tensors: target values, (F, *shape), of every inference.
    """
    computed = step.outcome.place.expected is not None or step.evidence.uniform
    if step.evidence.status != "mismatch" or not computed:
        return step
    outcome = engine.backend.run(replace(engine.job(step.task), expected=(), outputs=()), step.task.inputs)
    text = f"{step.evidence.text}; {words_of(step, outcome, source, tensors)}"
    dead = tuple(dict.fromkeys((*step.evidence.uniform, *uniform(outcome.outputs, step.task.outputs))))
    return replace(step, evidence=replace(step.evidence, text=text, uniform=dead))


def words_of(step: Step, outcome: Outcome, source: Source, tensors: Mapping[str, Array]) -> str:
    """The likely causes in words, or why none is named."""
    seen = wrong_tensor(step.task, outcome, source, tensors)
    if seen is None:
        return "cause not looked for: no tensor of it came to the host whole and wrong"
    found = causes(step, source, tensors, seen)
    if found:
        shown = [cause for cause in found if cause.certain] or found
        return "likely cause: " + "; ".join(cause.line() for cause in shown[:2])
    part = part_of(seen.want, seen.got)
    nothing = "no single change of layout, shift, rounding, saturation, bias, zero point or weights predicts it"
    return f"likely cause: {nothing}" + (f"; {part}" if part else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A drained tensor that is wrong, (F, *shape), and what it has to be."""

    name: str
    want: Array
    got: Array


def wrong_tensor(task: Task, outcome: Outcome, source: Source, tensors: Mapping[str, Array]) -> Wrong | None:
    """The first tensor that a run to its end drained whole and wrong."""
    for tensor, drains in _drained(task.design, source).items():
        got = _whole(source, tensor, drains, outcome.outputs)
        want = tensors[tensor][: len(outcome.outputs)]
        if got is not None and not np.array_equal(got, want):
            return Wrong(name=tensor, want=want, got=got)
    return None


def causes(step: Step, source: Source, tensors: Mapping[str, Array], wrong: Wrong) -> tuple[Cause, ...]:
    """Causes for a wrong tensor; what is changed is the op that made the first wrong fifo, drained or not."""
    wanted = {stage.name: stage for stage in stages(source.manifest)}
    names = [name for part in step.task.parts for name in part.split(" + ")]
    ops = tuple(op for name in names if name in wanted for op in wanted[name].ops)
    made = {output for op in source.manifest.ops if op.name in set(ops) for output in op.outputs}
    suspect = step.outcome.place.tensor
    given = {name: array[: len(wrong.got)] for name, array in tensors.items()}
    return causes_of(
        source.manifest,
        source.arrays,
        ops,
        given,
        tensor=wrong.name,
        want=wrong.want,
        got=wrong.got,
        suspect=suspect if suspect in made else "",
    )


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
