"""One graph against onnxruntime stage by stage, each stage fed with onnxruntime's own values.

Why stage by stage: a difference then stays with the op that makes it. Where no stage differs, the whole run is equal
as well, since every stage saw what the oracle would have computed.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Manifest, Op
from oracle.evidence import TensorComparison
from oracle.reference.graph import Graph
from oracle.reference.judge import (
    dequantised,
    is_dequantised,
    judge_codes,
    judge_constant,
    judge_floats,
    requantised,
    rules_of,
)
from oracle.reference.sample import StageRun
from oracle.reference.session import Session
from oracle.reference.tally import Tallies
from oracle.stages import Stage, stages

Array = npt.NDArray[Any]

CHUNK_BYTES: Final = 48 << 20
MAX_CHUNK: Final = 256


@dataclass(slots=True)
class Result:
    """Rows of a comparison and the ops that were judged by a tolerance or the tie rule."""

    tallies: Tallies = field(default_factory=Tallies)
    in_float: dict[str, None] = field(default_factory=dict)
    samples: int = 0

    def table(self) -> tuple[TensorComparison, ...]:
        """All rows."""
        return self.tallies.table()


def chunks(manifest: Manifest, feeds: Mapping[str, Array]) -> Iterator[tuple[int, dict[str, Array]]]:
    """Feeds in pieces whose tensors fit into `CHUNK_BYTES`: (feeds before, piece)."""
    count = len(next(iter(feeds.values()))) if feeds else 0
    per_feed = sum(4 * prod(t.shape) for t in manifest.tensors if t.array is None)
    size = max(1, min(MAX_CHUNK, CHUNK_BYTES // max(per_feed, 1)))
    for start in range(0, count, size):
        yield start, {name: array[start : start + size] for name, array in feeds.items()}


class StageWise:
    """Compares a graph stage by stage.

    Args:
        graph: the graph.
        session: the graph (or the part of it that `stage` needs) in onnxruntime with all compared tensors as outputs.
        stage: the only stage to compare; all of them where None.
    """

    def __init__(self, graph: Graph, session: Session, *, stage: Stage | None = None) -> None:
        self._graph = graph
        self._session = session
        self._tensors = graph.manifest.by_name()
        self._stages = stages(graph.manifest) if stage is None else (stage,)

    def run(self, feeds: Mapping[str, Array]) -> Result:
        """Compare all feeds, each (F, *shape)."""
        result = Result()
        for offset, piece in chunks(self._graph.manifest, feeds):
            truth = self._session.run(piece, self._graph.target.visible)
            self.compare_chunk(piece, truth, offset, result)
        return result

    def compare_chunk(
        self, piece: Mapping[str, Array], truth: Mapping[str, Array], offset: int, result: Result
    ) -> None:
        """Compare one chunk of feeds with what onnxruntime returned for it."""
        values: dict[str, Array] = dict(piece)
        result.samples += len(next(iter(piece.values())))
        self.constants(truth, result)
        for stage in self._stages:
            for unit in units(self._graph.manifest, stage, truth):
                inputs = {name: values[name] for name in unit.inputs}
                got = self._graph.oracle.run_ops(unit.ops, inputs, arithmetic="reference", keep="all")
                run = StageRun(graph=self._graph, stage=unit, tensors=inputs, made=got, offset=offset)
                for name in unit.outputs:
                    values[name] = self._compare(run, name, truth.get(name), got[name], result)

    def constants(self, truth: Mapping[str, Array], result: Result) -> None:
        """Quantised constants that the file computes and the importer folded."""
        for name in self._graph.target.codes:
            key = self._tensors[name].array
            if key is not None and name in truth:
                result.tallies.add(name, name, "constant", judge_constant(self._graph.arrays[key], truth[name]))

    def _compare(self, run: StageRun, name: str, expected: Array | None, got: Array, result: Result) -> Array:
        """Compare one tensor; returns what the following stages read."""
        if expected is None:
            return got
        op = run.producer(name)
        tensor = self._tensors[name]
        if tensor.dtype == "float32":
            judged = judge_floats(run, name, expected, got, bit_equal=self._is_bit_equal(op))
            onward = expected
        elif expected.dtype == np.float32:
            judged = judge_floats(run, name, expected, dequantised(tensor, got), bit_equal=True)
            onward = got if not judged.unexplained else requantised(tensor, expected)
        else:
            judged = judge_codes(run, name, expected, got)
            onward = expected
        result.tallies.add(name, op.name, op.type, judged)
        if judged.near_ties or judged.within_tolerance or (tensor.dtype != "float32" and rules_of(run).ties):
            result.in_float[op.name] = None
        return onward if onward.shape == got.shape and onward.dtype == got.dtype else got

    def _is_bit_equal(self, op: Op) -> bool:
        return is_dequantised(op, self._tensors)


def units(manifest: Manifest, stage: Stage, visible: Container[str]) -> tuple[Stage, ...]:
    """A stage in parts that can be compared one after the other.

    Mostly the stage itself. Where an integer tensor that onnxruntime shows is read inside the stage, one part per such
    tensor and one for the rest, each from given integer tensors, so that a difference does not pass on.

    Args:
        manifest: of the graph.
        stage: the stage.
        visible: tensors that onnxruntime shows.
    """
    names = set(stage.ops)
    ops = [op for op in manifest.ops if op.name in names]
    made = {name: op for op in ops for name in op.outputs}
    cuts = {n for op in ops for n in op.inputs if n in made and n in visible and _is_integer(manifest, n)}
    shown = [n for n in made if n in cuts or n in stage.outputs]
    if not cuts:
        outputs = tuple(n for n in made if n in shown or n in visible)
        return (Stage(name=stage.name, ops=stage.ops, inputs=stage.inputs, outputs=outputs),)
    return tuple(_chain(manifest, made, cuts, name) for name in made if name in shown or name in visible)


def _is_integer(manifest: Manifest, name: str) -> bool:
    return manifest.tensor(name).dtype not in ("exact", "float32")


def _chain(manifest: Manifest, made: Mapping[str, Op], cuts: set[str], output: str) -> Stage:
    """The ops between given tensors and one output."""
    todo, chosen, inputs = [output], set(), dict[str, None]()
    while todo:
        op = made[todo.pop()]
        chosen.add(op.name)
        for name in op.inputs:
            if not name or manifest.tensor(name).array is not None:
                continue
            if name in made and name not in cuts:
                todo.append(name)
            else:
                inputs[name] = None
    ordered = tuple(op.name for op in manifest.ops if op.name in chosen)
    return Stage(name=made[output].name, ops=ordered, inputs=tuple(inputs), outputs=(output,))
