"""Whether phase 3 was fed from the canary of the port: what went in, and what the file holds, hashed apart."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.io import load_arrays, parse_canonical
from phases.presim.source import CANARY, CANARY_NAMES, Inputs

Array = NDArray[Any]


def fed_sha256(inputs: Inputs) -> str:
    """Hash of the rows that were used and are called real; "" without any."""
    return _hash([{n: a[i] for n, a in inputs.feeds.items()} for i in range(inputs.real)])


def stored_sha256(files: Mapping[str, bytes], count: int) -> str:
    """Hash of the first `count` rows in the canary that differ from each other; "" without a canary.

    Args:
        files: of the port, with `data/canary.npz` and its names.
        count: rows that a run uses at most.
    """
    if CANARY not in files or CANARY_NAMES not in files:
        return ""
    arrays = load_arrays(files[CANARY])
    keys: Mapping[str, str] = parse_canonical(files[CANARY_NAMES], CANARY_NAMES)["inputs"]
    stored = {name: arrays[key] for name, key in keys.items()}
    rows: dict[bytes, dict[str, Array]] = {}
    for index in range(min((len(a) for a in stored.values()), default=0)):
        row = {name: array[index] for name, array in stored.items()}
        rows.setdefault(b"".join(row[n].tobytes() for n in sorted(row)), row)
    return _hash(list(rows.values())[:count])


def distinct_rows(inputs: Inputs) -> int:
    """Inputs that differ from each other, counted by their bytes."""
    names = sorted(inputs.feeds)
    return len({b"".join(inputs.feeds[n][i].tobytes() for n in names) for i in range(inputs.count)})


def _hash(rows: list[dict[str, Array]]) -> str:
    if not rows:
        return ""
    digest = hashlib.sha256()
    for row in rows:
        for name in sorted(row):
            array = np.ascontiguousarray(row[name])
            digest.update(f"{name}\0{array.dtype.name}\0{array.shape}\0".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
