"""The edge of the oracle: checks of the arrays handed in, and the way out to the caller's layout."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.model import Tensor


def checked(
    wanted: Sequence[Tensor], given: Mapping[str, NDArray[Any]], unknown: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """The wanted arrays by name, all (F, *shape) in the tensor's dtype with one F.

    Args:
        wanted: tensors that are needed.
        given: by name.
        unknown: names in `given` that are no input.

    Raises:
        RefusedError: every fault of all of them, one problem each.
    """
    expected = ", ".join(repr(t.name) for t in wanted) or "no input"
    problems = [
        Problem(code="ORACLE-INPUT-UNKNOWN", where=f"input {n!r}", what="is no input", expected=expected)
        for n in unknown
    ]
    feeds: dict[str, NDArray[Any]] = {}
    for tensor in wanted:
        array = given.get(tensor.name)
        problem = _problem(tensor, array)
        if problem is None:
            feeds[tensor.name] = np.asarray(array)
        else:
            problems.append(problem)
    counts = {name: len(array) for name, array in feeds.items()}
    if len(set(counts.values())) > 1:
        problems.append(
            Problem(
                code="ORACLE-INPUT-FEEDS",
                where="inputs",
                what="differ in their number of feeds",
                expected="one number",
                got=", ".join(f"{name!r}: {n}" for name, n in counts.items()),
            )
        )
    if problems:
        raise RefusedError(tuple(problems))
    return feeds


_TURNED = 1 << 14
"""Elements that are turned at a time: both sides of the transposition stay in cache."""


def deliver(value: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy (*shape, F) to `out`, (F, *shape) and C-contiguous."""
    feeds = out.shape[0]
    flat, target = np.ascontiguousarray(value).reshape(-1, feeds), out.reshape(feeds, -1)
    step = max(64, _TURNED // max(feeds, 1))
    for start in range(0, flat.shape[0], step):
        target[:, start : start + step] = flat[start : start + step].T


def _problem(tensor: Tensor, array: NDArray[Any] | None) -> Problem | None:
    """What is wrong with one input, None where it is as the manifest says."""
    where = f"input {tensor.name!r}"
    dtype = "int64" if tensor.dtype == "exact" else tensor.dtype  # the integers of an accumulator
    shape = f"(feeds, {', '.join(map(str, tensor.shape))})"
    if array is None:
        return Problem(code="ORACLE-INPUT-MISSING", where=where, what="is missing", expected=f"{dtype} {shape}")
    array = np.asarray(array)
    if array.dtype != np.dtype(dtype) and not (tensor.dtype == "exact" and array.dtype == np.dtype(object)):
        return Problem(
            code="ORACLE-INPUT-DTYPE",
            where=where,
            what="has another dtype",
            expected=dtype,
            got=str(array.dtype),
            remedy="convert it first",
        )
    if array.ndim != len(tensor.shape) + 1 or array.shape[1:] != tensor.shape:
        return Problem(
            code="ORACLE-INPUT-SHAPE", where=where, what="has another shape", expected=shape, got=str(array.shape)
        )
    return None
