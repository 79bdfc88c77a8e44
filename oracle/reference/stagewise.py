"""One graph against onnxruntime stage by stage, each stage fed with onnxruntime's own values.

Why stage by stage: a difference then stays with the op that makes it. Where no stage differs, the whole run is equal
as well, since every stage saw what the oracle would have computed.
"""

from collections.abc import Iterator, Mapping
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
            inputs = {name: values[name] for name in stage.inputs}
            got = self._graph.oracle.run_ops(stage.ops, inputs, arithmetic="reference", keep="all")
            run = StageRun(graph=self._graph, stage=stage, tensors=inputs, made=got, offset=offset)
            for name in dict.fromkeys((*stage.outputs, *_made(run))):
                if name not in got:
                    continue
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
            onward = got
        else:
            judged = judge_codes(run, name, expected, got)
            onward = expected
        result.tallies.add(name, op.name, op.type, judged)
        if judged.near_ties or (tensor.dtype != "float32" and rules_of(run).ties):
            result.in_float[op.name] = None
        return onward if onward.shape == got.shape else got

    def _is_bit_equal(self, op: Op) -> bool:
        return is_dequantised(op, self._tensors)


def _made(run: StageRun) -> tuple[str, ...]:
    return tuple(name for op in run.ops() for name in op.outputs)
