"""An equivalence: a shipped decomposition against the whole computation, on real data.

The file::

    {"name": "scores of block 3",               of the record; anything
     "decomposition": "chunked_softmax",        a name of presim.decompositions
     "chunks": [8, 16],                         lengths of a chunk, each tried
     "data": "scores.npz",                      beside the file
     "arrays": {"x": "attention_scores"},       input of the decomposition -> array of the data; left out: same names
     "allowed": 1e-6}                           largest difference of any element
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.io import read_npz
from phases.presim.person_json import check_keys, read_object
from presim.decompositions import DECOMPOSITIONS, Decomposition
from presim.evidence import EquivalenceEvidence

CODE: Final = "EQUIVALENCE-FILE"
REQUIRED: Final = ("name", "decomposition", "chunks", "data", "allowed")
OPTIONAL: Final = ("arrays", "text")
MAX_DATA_BYTES: Final = 1 << 30
MAX_CHUNKS: Final = 64
"""Lengths of a chunk in one file: each is a computation and a record of its own."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """A file of a person, checked.

    Attributes:
        name: of the record.
        decomposition: whole and pieces.
        chunks: lengths of a chunk that are tried.
        arrays: in the order of the decomposition's inputs.
        allowed: largest difference of any element.
    """

    name: str
    decomposition: Decomposition
    chunks: tuple[int, ...]
    arrays: tuple[Floats, ...]
    allowed: float


def read_equivalence(path: Path) -> Equivalence:
    """Read and check a file and its data.

    Raises:
        RefusedError: all problems.
    """
    value = read_object(path, CODE)
    where = str(path)
    problems = check_keys(value, REQUIRED, OPTIONAL, where, CODE)
    if problems:
        raise RefusedError(tuple(problems))
    if not isinstance(value["name"], str) or not value["name"].strip():
        problems.append(Problem(code=CODE, where=where, what="name: expected a few words"))
    allowed = value["allowed"]
    if type(allowed) not in (int, float) or not 0 <= allowed <= sys.float_info.max:
        problems.append(
            Problem(code=CODE, where=where, what="allowed: expected a number from 0", got=repr(allowed)[:80])
        )
    if value["decomposition"] not in tuple(DECOMPOSITIONS):
        what, expected = "no such decomposition", ", ".join(DECOMPOSITIONS)
        got = repr(value["decomposition"])[:80]
        raise RefusedError((*problems, Problem(code=CODE, where=where, what=what, expected=expected, got=got)))
    decomposition = DECOMPOSITIONS[value["decomposition"]]
    arrays = _arrays(value, decomposition, path, problems)
    chunks = _chunks(value["chunks"], decomposition, arrays, where, problems)
    if problems:
        raise RefusedError(tuple(problems))
    return Equivalence(
        name=value["name"].strip(),
        decomposition=decomposition,
        chunks=chunks,
        arrays=arrays,
        allowed=float(allowed),
    )


def compare(equivalence: Equivalence) -> tuple[EquivalenceEvidence, ...]:
    """The pieces of every chunk length against the whole; a difference that is no number counts as a mismatch."""
    decomposition = equivalence.decomposition
    whole = decomposition.whole(*equivalence.arrays).astype(np.float64)
    rows = []
    for chunk in equivalence.chunks:
        pieces = decomposition.pieces(*equivalence.arrays, chunk).astype(np.float64)
        apart = np.abs(pieces - whole)
        rows.append(
            EquivalenceEvidence(
                name=f"{equivalence.name} in chunks of {chunk}",
                decomposition=decomposition.name,
                elements=int(whole.size),
                mismatches=int(np.count_nonzero(~(apart <= equivalence.allowed))),
                largest_difference=float(apart.max()) if np.isfinite(apart).all() else math.inf,
                allowed=equivalence.allowed,
            )
        )
    return tuple(rows)


def _arrays(
    value: Mapping[str, Any], decomposition: Decomposition, path: Path, problems: list[Problem]
) -> tuple[Floats, ...]:
    names = value.get("arrays", {})
    if not isinstance(value["data"], str) or not isinstance(names, dict):
        problems.append(Problem(code=CODE, where=str(path), what="data: expected a path, arrays: an object of names"))
        return ()
    for name in sorted(set(names) - set(decomposition.inputs)):
        expected = ", ".join(decomposition.inputs)
        problems.append(Problem(code=CODE, where=f"{path}: arrays", what=f"no input {name!r}", expected=expected))
    data = path.parent / value["data"]
    stored = read_npz(data, max_bytes=MAX_DATA_BYTES)
    found = []
    for name in decomposition.inputs:
        key = names.get(name, name)
        array = stored.get(str(key))
        if array is None:
            what, expected = f"no array {key!r} for input {name!r}", ", ".join(sorted(stored))
            problems.append(Problem(code=CODE, where=str(data), what=what, expected=expected))
        elif array.dtype.kind != "f" or array.ndim == 0 or not array.size or not np.isfinite(array).all():
            what, expected = f"array {key!r} cannot be taken", "finite floats, at least one"
            problems.append(Problem(code=CODE, where=str(data), what=what, expected=expected, got=str(array.dtype)))
        else:
            found.append(array.astype(np.float32))
    if not problems and not _fits(decomposition, tuple(found)):
        shapes = ", ".join(str(a.shape) for a in found)
        problems.append(Problem(code=CODE, where=str(data), what="the arrays do not fit each other", got=shapes))
    return tuple(found)


def _fits(decomposition: Decomposition, arrays: tuple[Floats, ...]) -> bool:
    try:
        decomposition.whole(*arrays)
        decomposition.length(*arrays)
    except (ValueError, IndexError):
        return False
    return True


def _chunks(
    value: Any, decomposition: Decomposition, arrays: tuple[Floats, ...], where: str, problems: list[Problem]
) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or any(type(v) is not int or v < 1 for v in value):
        problems.append(Problem(code=CODE, where=where, what="chunks: expected a list of numbers from 1"))
        return ()
    if len(value) > MAX_CHUNKS:
        what, expected = "chunks: too many lengths", f"at most {MAX_CHUNKS}"
        problems.append(Problem(code=CODE, where=where, what=what, expected=expected, got=str(len(value))))
    if problems:
        return ()
    length = decomposition.length(*arrays)
    for chunk in value:
        if chunk >= length:
            what = f"a chunk of {chunk} holds all {length} values: nothing is decomposed"
            problems.append(Problem(code=CODE, where=where, what=what, expected=f"less than {length}"))
    return tuple(value)
