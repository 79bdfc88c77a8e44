"""Inputs for the oracle from a person's `.npz`, and its results in the types of the ONNX file.

Why stricter than the data of phase 1: here the numbers that come out are compared bit for bit with something else,
so nothing is cast, reshaped or left out in silence.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.io import read_npz
from manifest.model import Manifest, Tensor

MAX_INPUT_BYTES: Final = 8 << 30
CHUNK_BYTES: Final = 256 << 20
UNUSED: Final = "INPUT-UNUSED"
"""Code of the notes about graph inputs that the import left out: arrays for them are left out too."""
_LABELS: Final = "y|y_eval|x_eval|x_calib"
IGNORED: Final = {
    "indexed": re.compile(r"out_\d+"),
    "names": re.compile(_LABELS),
    "x": re.compile(_LABELS),
}
"""Arrays of a file of real data that are no inputs: left out, with a note; any other name is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeds:
    """Inputs of the oracle.

    Attributes:
        arrays: input name -> (F, *shape) in the ONNX dtype, F >= 1.
        leading: whether they came with the feed axis; results then keep theirs.
        notes: how the file was understood, one line each.
    """

    arrays: Mapping[str, NDArray[Any]]
    leading: bool
    notes: tuple[str, ...]

    @property
    def count(self) -> int:
        """F."""
        return next((int(a.shape[0]) for a in self.arrays.values()), 1)


def read_feeds(path: Path, manifest: Manifest, *, max_bytes: int = MAX_INPUT_BYTES) -> Feeds:
    """Read a file of inputs, arrays by input name, or `in_0`, `in_1`, ... by position, or `x` for a single input.

    Args:
        path: the `.npz`.
        manifest: names, shapes and types of the inputs.
        max_bytes: size of all arrays at most.

    Raises:
        RefusedError: every missing, extra, mis-shaped or mis-typed array.
    """
    return take_feeds(read_npz(path, max_bytes=max_bytes), manifest, str(path))


def take_feeds(arrays: Mapping[str, NDArray[Any]], manifest: Manifest, where: str = "inputs") -> Feeds:
    """Like `read_feeds`, from arrays in memory."""
    tensors = [manifest.tensor(name) for name in manifest.model.inputs]
    keys, scheme = _keys(arrays, [t.name for t in tensors])
    unused = {note.where for note in manifest.notes if note.code == UNUSED}
    problems = list(_name_problems(arrays, [*keys, *unused.intersection(arrays)], scheme, where))
    found = {t.name: arrays[k] for t, k in zip(tensors, keys, strict=True) if k in arrays}
    for tensor, key in zip(tensors, keys, strict=True):
        if key in arrays:
            problems += _array_problems(arrays[key], tensor, f"{where}: array {key!r}")
    leading = {name: array.ndim > len(manifest.tensor(name).shape) for name, array in found.items()}
    counts = {name: found[name].shape[0] for name, has in leading.items() if has}
    if not problems and (len(set(leading.values())) > 1 or len(set(counts.values())) > 1):
        got = ", ".join(f"{name}: {counts.get(name, 'no feed axis')}" for name in leading)
        what, expected = "the inputs have different numbers of feeds", "one number for all"
        problems.append(Problem(code="ORACLE-FEEDS", where=where, what=what, expected=expected, got=got))
    if problems:
        raise RefusedError(tuple(problems))
    has_axis = any(leading.values())
    feeds = {name: array if has_axis else array[np.newaxis] for name, array in found.items()}
    used = [f"{k} = input {t.name!r}" for t, k in zip(tensors, keys, strict=True) if k != t.name]
    left = sorted(set(arrays) - set(keys))
    notes = (*used, *(f"array {name!r} is no input and was left out" for name in left))
    return Feeds(arrays=feeds, leading=has_axis, notes=notes)


def _keys(arrays: Mapping[str, Any], names: Sequence[str]) -> tuple[list[str], str]:
    """The array for each input, and by which scheme: ONNX names rule, then positions, then `x`."""
    indexed = [f"in_{k}" for k in range(len(names))]
    if not set(names) & set(arrays) and set(indexed) & set(arrays):
        return indexed, "indexed"
    if len(names) == 1 and names[0] not in arrays and "x" in arrays:
        return ["x"], "x"
    return list(names), "names"


def _name_problems(arrays: Mapping[str, Any], keys: Sequence[str], scheme: str, where: str) -> Iterator[Problem]:
    for key in keys:
        if key not in arrays:
            what = f"no array for input {key!r}"
            yield Problem(code="ORACLE-INPUT-MISSING", where=where, what=what, expected=", ".join(map(repr, keys)))
    ignored = IGNORED.get(scheme)
    for name in sorted(set(arrays) - set(keys)):
        if ignored is None or not ignored.fullmatch(name):
            what, expected = f"array {name!r} is no input", ", ".join(map(repr, keys))
            yield Problem(code="ORACLE-INPUT-EXTRA", where=where, what=what, expected=expected, remedy="leave it out")


def _array_problems(array: NDArray[Any], tensor: Tensor, where: str) -> Iterator[Problem]:
    name, shape = f"input {tensor.name!r}", tensor.shape
    if array.dtype.name != tensor.onnx_dtype:
        what, got = f"wrong type for {name}", array.dtype.name
        remedy = f"store it with .astype('{tensor.onnx_dtype}')" if array.dtype.kind in "fiu" else ""
        yield Problem(
            code="ORACLE-INPUT-TYPE", where=where, what=what, expected=tensor.onnx_dtype, got=got, remedy=remedy
        )
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        what, got = f"{name} holds NaN or infinite values", str(int((~np.isfinite(array)).sum()))
        yield Problem(code="ORACLE-INPUT-FINITE", where=where, what=what, expected="finite numbers", got=got)
    feed_form = array.ndim == len(shape) + 1 and array.shape[1:] == shape and array.shape[0] > 0
    if array.shape != shape and not feed_form:
        expected = f"{_words(shape)}, or (F, {_words(shape)[1:]} with F feeds"
        batched = shape[:1] == (1,) and array.shape[1:] == shape[1:] and array.shape[0] > 0
        remedy = "put the feed axis in front: array[:, None]" if batched else ""
        what = f"wrong shape for {name}"
        yield Problem(
            code="ORACLE-INPUT-SHAPE", where=where, what=what, expected=expected, got=_words(array.shape), remedy=remedy
        )


def _words(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def chunks(feeds: Feeds, manifest: Manifest) -> Iterator[dict[str, NDArray[Any]]]:
    """The feeds in pieces that keep all tensors of a run within about 256 MiB."""
    per_feed = 8 * sum(int(np.prod(t.shape, dtype=np.int64)) for t in manifest.tensors if t.array is None)
    step = max(1, CHUNK_BYTES // max(1, per_feed))
    for start in range(0, feeds.count, step):
        yield {name: array[start : start + step] for name, array in feeds.arrays.items()}


def as_onnx(tensor: Tensor, array: NDArray[Any]) -> NDArray[Any]:
    """A result in the type that the ONNX file gives the tensor.

    Args:
        tensor: its description.
        array: (F, *shape), integers in the storage dtype, or float32.

    Returns:
        Integers as they are where the file has integers; float32(float32(code - zero_point) * scale) where the file
        has a float that is held as codes here.
    """
    if array.dtype.name == tensor.onnx_dtype or tensor.quant is None:
        return array
    shape = [1] * array.ndim
    if tensor.quant.axis is not None:
        shape[tensor.quant.axis + 1] = -1
    zero_points = np.asarray(tensor.quant.zero_points, np.int64)
    scales = np.asarray(tensor.quant.scales, np.float32)
    if tensor.quant.axis is not None:
        zero_points, scales = zero_points.reshape(shape), scales.reshape(shape)
    return np.asarray((array.astype(np.int64) - zero_points).astype(np.float32) * scales)
