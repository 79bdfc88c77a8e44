"""What phase 2 reads of a port: manifest, arrays, canary inputs; and three inputs that differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.io import load_arrays, manifest_from_json, parse_canonical
from manifest.model import Manifest
from oracle.run import Oracle
from phases.port import Port

Array = NDArray[Any]
Read = Callable[[str], bytes]

MANIFEST: Final = "manifest.json"
TENSORS: Final = "tensors.npz"
CANARY: Final = "data/canary.npz"
CANARY_NAMES: Final = "data/canary.json"
NEEDED: Final = ("port.json", MANIFEST, TENSORS)
SEED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A port as phase 2 reads it.

    Attributes:
        files: name -> bytes of everything that was read.
        manifest: the deployment manifest.
        arrays: its constants by key.
        canary: real inputs by graph input, (F, *shape); empty where phase 1 had no data.
    """

    files: Mapping[str, bytes]
    manifest: Manifest
    arrays: Mapping[str, Array]
    canary: Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Inputs that differ from each other.

    Attributes:
        feeds: by graph input, (F, *shape).
        real: how many of them are the person's data, in front.
    """

    feeds: Mapping[str, Array]
    real: int

    @property
    def count(self) -> int:
        """F."""
        return len(next(iter(self.feeds.values()))) if self.feeds else 1


def read_source(read: Read, names: frozenset[str]) -> Source:
    """Read what phase 2 needs.

    Args:
        read: gives the bytes of a file of the port.
        names: files that are there.

    Raises:
        UpstreamError: a file is missing or not what phase 1 wrote.
    """
    files = {name: read(name) for name in NEEDED}
    canary: dict[str, Array] = {}
    if CANARY_NAMES in names:
        files |= {name: read(name) for name in (CANARY, CANARY_NAMES)}
        stored = load_arrays(files[CANARY])
        table = parse_canonical(files[CANARY_NAMES], CANARY_NAMES)["inputs"]
        canary = {name: stored[key] for name, key in table.items()}
    return Source(
        files=files,
        manifest=manifest_from_json(files[MANIFEST]),
        arrays=load_arrays(files[TENSORS]),
        canary=canary,
    )


def source_of(port: Port) -> Source:
    """`read_source` of an open port, every byte checked."""
    return read_source(port.read, frozenset(port.state.files))


def different_inputs(source: Source, count: int) -> Inputs:
    """`count` inputs that differ: real ones as far as they go, then made-up ones.

    Why shuffled real ones: they keep the range, so that the made-up part does not only saturate. A model whose inputs
    have too few elements gives fewer.
    """
    names = list(source.manifest.model.inputs)
    rows: list[dict[str, Array]] = []
    if source.canary:
        total = len(next(iter(source.canary.values())))
        for index in range(total):
            row = {name: source.canary[name][index] for name in names}
            if len(rows) < count and not _among(row, rows):
                rows.append(row)
    real = len(rows)
    random = np.random.default_rng(SEED)
    for _ in range(20 * count):
        if len(rows) >= count:
            break
        made = {name: _made_up(source, name, random) for name in names}
        if not _among(made, rows):
            rows.append(made)
    return Inputs(feeds={name: np.stack([row[name] for row in rows]) for name in names}, real=real)


def _made_up(source: Source, name: str, random: np.random.Generator) -> Array:
    tensor = source.manifest.tensor(name)
    if name in source.canary:
        return random.permutation(source.canary[name][0].reshape(-1)).reshape(tensor.shape)
    if tensor.dtype == "float32":
        return random.standard_normal(tensor.shape).astype(np.float32)
    limits = np.iinfo(tensor.dtype)
    return random.integers(limits.min, limits.max + 1, tensor.shape, dtype=tensor.dtype)


def _among(row: Mapping[str, Array], rows: list[dict[str, Array]]) -> bool:
    return any(all(np.array_equal(row[n], other[n]) for n in row) for other in rows)


def target_tensors(source: Source, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What the kernels have to compute: every tensor of the oracle in target arithmetic, (F, *shape).

    Exact tensors are integers; graph inputs are among them.
    """
    oracle = Oracle(source.manifest, source.arrays)
    return {**feeds, **oracle.run(feeds, arithmetic="target", keep="stored")}
