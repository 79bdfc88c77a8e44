"""Two dumps of tensors, from anywhere: which tensor differs first, at which element, and why.

Why the port decides the order: the first wrong tensor in the order of the graph is the cause, later ones follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import PortError
from oracle.run import Oracle
from oracle.stages import Stage, stages
from phases.api import LoadedPort
from phases.bringup.hypotheses import Cause, causes_of, tensor_causes

Array = NDArray[Any]
Dump = Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDifference:
    """One tensor of both dumps.

    Attributes:
        name: of it.
        elements: in the expected dump.
        different: of them; NaN equals NaN.
        note: what keeps it from being compared element by element, "" = nothing.
        index: of the first element that differs.
        expected: its value.
        got: its value.
        largest: largest absolute difference; NaN where it has no meaning.
    """

    name: str
    elements: int
    different: int
    note: str = ""
    index: tuple[int, ...] = ()
    expected: float | None = None
    got: float | None = None
    largest: float = 0.0

    @property
    def same(self) -> bool:
        """Whether both dumps hold the same tensor."""
        return not self.different and not self.note


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything about two dumps.

    Attributes:
        rows: tensors of both, in the order of the graph, else of the expected dump.
        missing: in the expected dump alone.
        extra: in the other alone.
        op: that makes the first wrong tensor, "" where no port says so.
        causes: for the first wrong tensor.
        not_tried: why causes in the op could not be tried, "" = they were.
    """

    rows: tuple[TensorDifference, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    op: str = ""
    causes: tuple[Cause, ...] = ()
    not_tried: str = ""

    @property
    def first(self) -> TensorDifference | None:
        """The first tensor that differs."""
        return next((row for row in self.rows if not row.same), None)


def compare_dumps(expected: Dump, got: Dump, port: LoadedPort | None = None) -> Comparison:
    """Compare two dumps.

    Args:
        expected: by ONNX name, (*shape) or with one leading axis of inferences.
        got: likewise.
        port: gives the order of the graph, the op, and causes that need the op's arithmetic.
    """
    names = [n for n in _order(expected, port) if n in got]
    rows = tuple(difference(n, expected[n], got[n]) for n in names)
    missing = tuple(n for n in expected if n not in got)
    extra = tuple(n for n in got if n not in expected)
    wrong = next((r for r in rows if not r.same), None)
    if wrong is None:
        return Comparison(rows=rows, missing=missing, extra=extra)
    if wrong.note:
        return Comparison(rows=rows, missing=missing, extra=extra, op=_maker(wrong.name, port))
    op, causes, why = _explain(wrong.name, expected, got, port)
    return Comparison(rows=rows, missing=missing, extra=extra, op=op, causes=causes, not_tried=why)


def difference(name: str, want: Array, got: Array) -> TensorDifference:
    """Compare one tensor exactly; dtypes may differ where the values do not."""
    if want.shape != got.shape:
        note = f"shape {list(got.shape)}, expected {list(want.shape)}"
        return TensorDifference(name=name, elements=int(want.size), different=int(want.size), note=note)
    if want.dtype.kind not in "biuf" or got.dtype.kind not in "biuf":
        note = f"{got.dtype} against {want.dtype}: no numbers to compare"
        return TensorDifference(name=name, elements=int(want.size), different=0, note=note)
    wrong = _unequal(want, got)
    if not wrong.any():
        return TensorDifference(name=name, elements=int(want.size), different=0)
    flat = int(np.flatnonzero(wrong.reshape(-1))[0])
    index = tuple(int(i) for i in np.unravel_index(flat, want.shape))
    with np.errstate(all="ignore"):
        gap = np.abs(want.astype(np.float64) - got.astype(np.float64))[wrong]
    return TensorDifference(
        name=name,
        elements=int(want.size),
        different=int(wrong.sum()),
        index=index,
        expected=want[index].item(),
        got=got[index].item(),
        largest=float(gap.max()),
    )


def _unequal(want: Array, got: Array) -> Array:
    """Elements that differ, by value; NaN equals NaN. An integer and a float are compared without rounding either."""
    kinds = want.dtype.kind + got.dtype.kind
    if kinds == "ff":
        return np.asarray((want != got) & ~(np.isnan(want) & np.isnan(got)))
    if "f" not in kinds:
        return np.asarray(want != got)
    whole, real = (want, got) if kinds[1] == "f" else (got, want)
    if whole.dtype.kind == "b":
        return np.asarray(whole != real)
    info, real = np.iinfo(whole.dtype), real.astype(np.promote_types(real.dtype, np.float64))
    inside = (real >= float(info.min)) & (real < float(int(info.max) + 1)) & (np.floor(real) == real)
    return np.asarray(~inside | (np.where(inside, real, 0).astype(whole.dtype) != whole))


def _order(expected: Dump, port: LoadedPort | None) -> list[str]:
    """Names in the order of the graph where a port gives one; names that it does not know come last."""
    if port is None:
        return list(expected)
    graph = [*port.manifest.model.inputs, *(n for op in port.manifest.ops for n in op.outputs)]
    known = [n for n in dict.fromkeys(graph) if n in expected]
    return [*known, *(n for n in expected if n not in set(known))]


def _maker(name: str, port: LoadedPort | None) -> str:
    """The op that makes a tensor, "" where no port says so."""
    ops = () if port is None else port.manifest.ops
    return next((op.name for op in ops if name in op.outputs), "")


def _numbers(array: Array) -> Array:
    """Truth values as 0 and 1, which can be subtracted."""
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def _explain(name: str, expected: Dump, got: Dump, port: LoadedPort | None) -> tuple[str, tuple[Cause, ...], str]:
    """(op, causes, why the op's arithmetic was not tried)."""
    want, have = _numbers(expected[name]), _numbers(got[name])
    if port is None:
        return "", _plain(want, have), "no --port was given, so only order and staleness were tried"
    op = _maker(name, port)
    if not op:
        return "", _plain(want, have), f"tensor {name!r} is no output of an op of the port"
    shape = port.manifest.tensor(name).shape
    leading = want.ndim == len(shape) + 1
    if want.shape != ((want.shape[0], *shape) if leading else shape):
        return op, _plain(want, have), f"tensor {name!r} has not the shape of the port, {list(shape)}"
    stage = next(s for s in stages(port.manifest) if op in s.ops)
    given = _given(stage, expected, port, leading=leading)
    if given is None:
        return op, _plain(want, have), f"the expected dump lacks {', '.join(map(repr, stage.inputs))} and graph inputs"
    found = causes_of(
        port.manifest, port.arrays, stage.ops, given, tensor=name, want=_lead(want, leading), got=_lead(have, leading)
    )
    return op, found, ""


def _given(stage: Stage, expected: Dump, port: LoadedPort, *, leading: bool) -> dict[str, Array] | None:
    """What the ops of a stage read, (F, *shape); from the graph inputs where the dump lacks it."""
    if all(n in expected for n in stage.inputs):
        return {n: _lead(expected[n], leading) for n in stage.inputs}
    inputs = port.manifest.model.inputs
    if not all(n in expected for n in inputs):
        return None
    feeds = {n: _lead(expected[n], leading) for n in inputs}
    try:
        everything = Oracle(port.manifest, port.arrays).run(feeds, arithmetic="target", keep="stored")
    except PortError:
        return None
    return {n: array for n, array in {**feeds, **everything}.items() if n in stage.inputs}


def _lead(array: Array, leading: bool) -> Array:
    return array if leading else array[np.newaxis]


def _plain(want: Array, got: Array) -> tuple[Cause, ...]:
    """Causes that show in the tensor alone; the first axis may be that of the inferences or not."""
    found = tensor_causes(want[np.newaxis], got[np.newaxis])
    if want.ndim:
        found = (*tensor_causes(want, got), *found)
    best = {cause.text: cause for cause in found}
    return tuple(sorted(best.values(), key=lambda c: -c.explained))
