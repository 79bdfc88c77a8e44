"""Host tensors of a design file from and to a person's `.npz`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from presim.iron.lowered import Lowered
from presim.simulate.given import is_exact

Array = NDArray[Any]
Feeds = tuple[tuple[Mapping[str, Array], ...], bool]
"""Tensors of each inference, and whether the file has an axis of inferences in front."""


def inputs_of(lowered: Lowered, given: Mapping[str, Array], where: str) -> Feeds:
    """Tensors that the sequence fills from.

    Args:
        lowered: the design.
        given: arrays by name of the sequence's parameter, in its shape or with one more axis in front.
        where: names the file.

    Raises:
        RefusedError: an array is absent, not known, or does not fit.
    """
    names = {t.tensor for t in lowered.design.sequence if t.direction == "fill"} - set(lowered.arrays)
    return _feeds(lowered, given, names, where, "fills from")


def expected_of(lowered: Lowered, given: Mapping[str, Array], where: str) -> Feeds:
    """Tensors that the sequence drains into, to compare with; see `inputs_of`."""
    names = {t.tensor for t in lowered.design.sequence if t.direction == "drain"}
    return _feeds(lowered, given, names & set(given) or names, where, "drains into")


def _feeds(lowered: Lowered, given: Mapping[str, Array], names: set[str], where: str, does: str) -> Feeds:
    types = {name: (dtype, shape) for name, dtype, shape in lowered.argument_types}
    problems = [
        _problem(where, f"array {name!r}", "there is no such tensor that the sequence " + does, sorted(names))
        for name in sorted(set(given) - names)
    ]
    found: dict[str, list[Array]] = {}
    for name in sorted(names):
        dtype, shape = types[name]
        if name not in given:
            problems.append(_problem(where, f"array {name!r}", f"is absent; the sequence {does} it", []))
            continue
        parts = _parts(given[name], dtype, shape)
        if parts is None:
            text = f"{given[name].dtype.name} {given[name].shape}"
            want = [f"{dtype} {shape}, or one more axis in front"]
            problems.append(_problem(where, f"array {name!r}", f"does not fit: {text}", want))
            continue
        found[name] = parts
    counts = {len(parts) for parts in found.values()}
    if not problems and len(counts) > 1:
        problems.append(_problem(where, "arrays", f"are of {sorted(counts)} inferences", ["as many in each"]))
    if problems:
        raise RefusedError(tuple(problems))
    count = counts.pop() if counts else 1
    leading = any(given[n].size > found[n][0].size or given[n].ndim > len(types[n][1]) for n in found)
    return tuple({name: parts[i] for name, parts in found.items()} for i in range(count)), leading


def _parts(array: Array, dtype: str, shape: tuple[int, ...]) -> list[Array] | None:
    """One array per inference in the tensor's type, None where it does not fit."""
    elements = int(np.prod(shape, dtype=np.int64))
    if not array.size or array.size % elements or not is_exact(array, dtype):
        return None
    count = array.size // elements
    if count > 1 and array.shape[0] != count:
        return None
    return list(array.astype(dtype).reshape(count, *shape))


def results_of(lowered: Lowered, outputs: Sequence[Mapping[str, Array]], *, leading: bool) -> dict[str, Array]:
    """Results by tensor, with an axis of inferences in front where the inputs have one."""
    shapes = {name: shape for name, _, shape in lowered.argument_types}
    found: dict[str, Array] = {}
    for name in outputs[0] if outputs else ():
        parts = [o[name].reshape(shapes[name]) if o[name].size == np.prod(shapes[name]) else o[name] for o in outputs]
        found[name] = np.stack(parts) if leading else parts[0]
    return found


def _problem(where: str, what: str, text: str, expected: Sequence[str]) -> Problem:
    return Problem(code="IRON-DATA", where=f"{where}: {what}", what=text, expected=", ".join(expected))
