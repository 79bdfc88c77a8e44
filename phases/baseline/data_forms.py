"""The forms of a data file: one array per model input, and how its axes are read.

Feed form: the first axis is the feed, the rest exactly the model's shape. Batch form: the first axis takes the place of
the model's batch axis of 1 (or of an open one). What could be read in two ways is refused with both readings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem
from phases.baseline.preprocessing import Preprocessing

Dim = int | str
InputSpec = tuple[str, str, tuple[Dim, ...]]
"""Name, dtype in numpy's words, dimensions (text = open)."""

BATCH_NAMES: Final = frozenset({"", "?", "n", "b", "bs", "none"})
"""Names of an open first dimension that say batch; names that contain `batch` or begin with `unk` do too."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """The arrays of an `.npz` file and the sha256 of its bytes."""

    path: str
    sha256: str
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How an array was read: its form and the shape of one feed."""

    form: Literal["feed", "batch", "single"]
    shape: tuple[int, ...]


def turned(array: NDArray[Any], declared: Preprocessing | None) -> NDArray[Any]:
    """The array in the axis order that the model takes: channels moved to the front where NHWC is declared."""
    return (
        np.moveaxis(array, -1, -3) if declared is not None and declared.layout == "NHWC" and array.ndim >= 3 else array
    )


def array_name(file: DataFile, name: str, inputs: int, suffix: str, problems: list[Problem]) -> str | None:
    """Name of the array for an input: its own name, or `x` where the model has one input."""
    key = (
        eval_name(file, name, inputs)
        if suffix
        else next((k for k in _names(name, inputs, "") if k in file.arrays), None)
    )
    if key is not None:
        return key
    has = ", ".join(repr(k[:40]) for k in list(file.arrays)[:10])
    what = f"no array for the model's input {name!r}" + (" in the evaluation set" if suffix else "")
    expected = " or ".join(repr(k) for k in _names(name, inputs, suffix))
    remedy = "name the array after the input: numpy.savez(FILE, **{input_name: array})"
    problems.append(Problem(code="DATA-MISSING", where=file.path, what=what, expected=expected, got=has, remedy=remedy))
    return None


def _names(name: str, inputs: int, suffix: str) -> tuple[str, ...]:
    own = (f"{name}{suffix}",)
    return own if inputs > 1 or name == "x" else (*own, f"x{suffix}")


def eval_name(file: DataFile, name: str, inputs: int) -> str | None:
    """Name of the evaluation array of an input, None where the file has none."""
    return next((k for k in _names(name, inputs, "_eval") if k in file.arrays), None)


def text(shape: tuple[Dim, ...]) -> str:
    """A shape in words; an unnamed open dimension is `?`."""
    return "(" + ", ".join(str(d) if d != "" else "?" for d in shape) + ("," if len(shape) == 1 else "") + ")"


def _fits(dims: tuple[Dim, ...], shape: tuple[int, ...]) -> bool:
    return len(dims) == len(shape) and all(isinstance(d, str) or d == s for d, s in zip(dims, shape, strict=True))


def _is_batch_name(dim: str) -> bool:
    low = dim.lower()
    return low in BATCH_NAMES or "batch" in low or low.startswith("unk")


def read_form(file: DataFile, key: str, spec: InputSpec, shape: tuple[int, ...]) -> Reading | Problem:
    """The one way to read array `key` of `shape` for the input; a problem where there is none or there are two."""
    name, _, dims = spec
    where = f"{file.path}: array {key!r}"
    if shape and _fits(dims, shape[1:]):
        return Reading("feed", shape[1:])
    if not shape or not dims or not _fits(dims[1:], shape[1:]):
        return _mismatch(where, name, dims, shape)
    first, count, rest = dims[0], shape[0], shape[1:]
    if first == 1 or (isinstance(first, str) and (count <= 1 or _is_batch_name(first))):
        return Reading("batch", (1, *rest))
    if first == count:
        return Reading("single", shape)
    if isinstance(first, str):
        readings = f"{count} feeds of {text((1, *rest))}, or one feed of {text(shape)}"
    elif count and count % first == 0:
        readings = (
            f"{count // first} feeds of {text((first, *rest))}, or {count} feeds for a model that takes {first} rows"
        )
    else:
        return _mismatch(where, name, dims, shape)
    expected = text(("feeds", *dims))
    return Problem(
        code="DATA-AMBIGUOUS",
        where=where,
        what=f"can be read in two ways for input {name!r}: {readings}",
        expected=expected,
        got=text(shape),
        remedy=f"add a first axis for the feeds: {expected}",
    )


def _mismatch(where: str, name: str, dims: tuple[Dim, ...], shape: tuple[int, ...]) -> Problem:
    expected = text(("feeds", *dims))
    if dims and (dims[0] == 1 or isinstance(dims[0], str)):
        expected += f" or {text(('feeds', *dims[1:]))}"
    remedy = ""
    if len(dims) == 4 and len(shape) in (4, 5):
        moved = (*shape[:-3], shape[-1], *shape[-3:-1])
        if _fits(dims, moved[1:]) or (_fits(dims[1:], moved[1:]) and dims[0] == 1):
            remedy = 'the channels seem to come last: declare layout = "NHWC" under [preprocessing] in port.toml'
    if not remedy and len(shape) == len(dims) - 1 and len(dims) > 1 and _fits(dims[2:], shape[1:]):
        remedy = f"an axis of 1 seems to be missing: reshape to {text((shape[0], *dims[1:]))}"
    what = f"the shape does not fit input {name!r}"
    return Problem(code="DATA-SHAPE", where=where, what=what, expected=expected, got=text(shape), remedy=remedy)
