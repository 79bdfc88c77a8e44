"""A handful of elements of one tensor on which oracle and onnxruntime differ, with their exact values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from manifest.model import QRANGE, Manifest, Op, Tensor
from oracle.reference.exact import Evaluator, NotExactError, Term
from oracle.reference.graph import Graph
from oracle.stages import Stage

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """One stage on one chunk of feeds, computed by the oracle from `tensors`.

    Attributes:
        graph: the graph that is compared.
        stage: the stage.
        tensors: values of the stage's inputs, (F, *shape).
        made: what the oracle made of them, by tensor name.
        offset: number of feeds before this chunk.
    """

    graph: Graph
    stage: Stage
    tensors: Mapping[str, Array]
    made: Mapping[str, Array]
    offset: int

    @property
    def manifest(self) -> Manifest:
        """The manifest of the graph."""
        return self.graph.manifest

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The constants of the graph."""
        return self.graph.arrays

    def ops(self) -> tuple[Op, ...]:
        """The ops of the stage in execution order."""
        names = set(self.stage.ops)
        return tuple(op for op in self.manifest.ops if op.name in names)

    def producer(self, name: str) -> Op:
        """The op of the stage that makes a tensor."""
        return next(op for op in self.ops() if name in op.outputs)

    def evaluator(self) -> Evaluator:
        """Exact arithmetic over the stage; float32 values that the oracle computed inside it count as given."""
        by_name = self.manifest.by_name()
        floats = {name: array for name, array in self.made.items() if by_name[name].dtype == "float32"}
        return Evaluator(ops=self.ops(), tensors=by_name, arrays=self.arrays, inputs={**floats, **self.tensors})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Differing elements.

    Attributes:
        run: the stage.
        op: the op that makes the tensor.
        tensor: the tensor.
        indices: (n, 1 + rank) int64, feed of the chunk first.
        expected: onnxruntime's codes.
        got: the oracle's codes.
        terms: exact values in output codes, before zero point and clamp; None where there is none.
    """

    run: StageRun
    op: Op
    tensor: Tensor
    indices: npt.NDArray[Any]
    expected: tuple[int, ...]
    got: tuple[int, ...]
    terms: tuple[Term | None, ...]

    @property
    def zero_point(self) -> int:
        """Zero point of the tensor (0 without one)."""
        return zero_point_of(self.tensor)

    @property
    def limits(self) -> tuple[int, int]:
        """Lowest and highest code after fused activations."""
        return limits_of(self.op, self.tensor)


def zero_point_of(tensor: Tensor) -> int:
    """Zero point of a per-tensor quantised activation, 0 without one."""
    return tensor.quant.zero_points[0] if tensor.quant is not None else 0


def limits_of(op: Op, tensor: Tensor) -> tuple[int, int]:
    """Lowest and highest code that an op can write."""
    if op.requant is not None:
        return op.requant.qmin, op.requant.qmax
    return QRANGE[tensor.dtype]


def known(sample: Sample) -> list[int]:
    """Positions of the elements that have an exact value."""
    return [i for i, term in enumerate(sample.terms) if term is not None]


def values_of(sample: Sample) -> tuple[Fraction, ...]:
    """The exact values, where there are any."""
    return tuple(term.value for term in sample.terms if term is not None)


def terms_at(evaluator: Evaluator, name: str, indices: npt.NDArray[Any]) -> tuple[Term | None, ...]:
    """Exact values of some elements in units of the tensor's scale, before rounding, zero point and clamp.

    Args:
        evaluator: of the ops that make the tensor.
        name: the tensor.
        indices: (n, 1 + rank), feed first.

    Returns:
        One per index; None where there is no exact value.
    """
    found: list[Term | None] = []
    for index in indices:
        try:
            found.append(evaluator.in_codes(name, tuple(int(i) for i in index)))
        except NotExactError:
            found.append(None)
    return tuple(found)


def part(sample: Sample, chosen: Sequence[int]) -> Sample:
    """Some elements of a sample."""
    return replace(
        sample,
        indices=sample.indices[list(chosen)],
        expected=tuple(sample.expected[i] for i in chosen),
        got=tuple(sample.got[i] for i in chosen),
        terms=tuple(sample.terms[i] for i in chosen),
    )


def code_of(value: Fraction, zero_point: int, limits: tuple[int, int]) -> int:
    """Round half to even, add the zero point, clamp."""
    return max(limits[0], min(limits[1], round(value) + zero_point))
