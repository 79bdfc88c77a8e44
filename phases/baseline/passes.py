"""One pass of real data through the oracle: ranges, accuracy, target arithmetic and dispatch hand-off, piece by piece.

Why one pass: all tensors of all feeds do not fit into memory, and the oracle is the costly part.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import Manifest, Observed
from oracle.evidence import TargetDeviation
from oracle.run import Oracle
from phases.baseline.accuracy import AccuracyMeter
from phases.baseline.ranges import merged, observed_ranges
from phases.feeds import Feeds, chunks

Array = NDArray[Any]
FloatRun = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Feeds that belong together; `judged` = accuracy is measured on them."""

    feeds: Mapping[str, Array]
    judged: bool
    labels: NDArray[np.int64] | None = None


@dataclass(slots=True)
class HandOff:
    """Elements of the dispatches run one by one against the whole model.

    `lost`: tensors that a dispatch reads and none before it hands on.
    """

    elements: int = 0
    mismatches: int = 0
    lost: tuple[str, ...] = ()

    def add(self, whole: Mapping[str, Array], parts: Mapping[str, Array], names: Sequence[str]) -> None:
        """Count the tensors `names`; one that the dispatches did not give differs whole."""
        for name in names:
            self.elements += whole[name].size
            if name not in parts or parts[name].shape != whole[name].shape:
                self.mismatches += whole[name].size
            else:
                self.mismatches += int(np.count_nonzero(parts[name] != whole[name]))


@dataclass(slots=True)
class Pass:
    """What a pass adds up."""

    observed: dict[str, Observed] = field(default_factory=dict)
    hand_off: HandOff = field(default_factory=HandOff)
    samples: int = 0
    elements: int = 0
    deviating: dict[str, tuple[int, int]] = field(default_factory=dict)

    def target(self, manifest: Manifest) -> TargetDeviation | None:
        """The deviation of the target arithmetic, tensors in the order of the graph; None where nothing ran."""
        if not self.samples:
            return None
        op_of = {name: op.name for op in manifest.ops for name in op.outputs}
        order = {name: place for place, name in enumerate(op_of)}
        names = sorted(self.deviating, key=lambda name: (order.get(name, len(order)), name))
        rows = tuple((name, op_of.get(name, ""), *self.deviating[name]) for name in names)
        total = sum(count for count, _ in self.deviating.values())
        return TargetDeviation(samples=self.samples, elements=self.elements, deviating=total, tensors=rows)


def run_pass(
    oracle: Oracle,
    manifest: Manifest,
    shares: Sequence[Share],
    *,
    meter: AccuracyMeter,
    float_run: FloatRun | None,
    progress: Callable[[str], None],
) -> Pass:
    """Run every share once.

    Args:
        oracle: of the manifest.
        manifest: with dispatches.
        shares: real data.
        meter: takes the judged shares.
        float_run: gives the float model's tensors on some feeds, or None.
        progress: takes a few words.

    Returns:
        The sums.
    """
    result = Pass()
    for share in shares:
        total = len(next(iter(share.feeds.values())))
        done = 0
        for piece in _pieces(manifest, share.feeds):
            count = len(next(iter(piece.values())))
            _one_piece(oracle, manifest, piece, result)
            if share.judged:
                tensors = oracle.run(piece, keep="all")
                labels = None if share.labels is None else share.labels[done : done + count]
                meter.add(tensors, None if float_run is None else float_run(piece), labels)
            done += count
            progress(f"oracle on real data: {done} of {total} samples")
    return result


def _pieces(manifest: Manifest, feeds: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    return chunks(Feeds(arrays=feeds, leading=True, notes=()), manifest)


def _one_piece(oracle: Oracle, manifest: Manifest, piece: Mapping[str, Array], result: Pass) -> None:
    by_name = manifest.by_name()
    reference = oracle.run(piece, keep="quantized")
    target = oracle.run(piece, arithmetic="target", keep="quantized")
    integers = {n: a for n, a in reference.items() if by_name[n].quant is not None}
    result.observed = merged(result.observed, observed_ranges(manifest, integers))
    result.samples += len(next(iter(piece.values())))
    for name, codes in integers.items():
        result.elements += codes.size
        distance = np.abs(codes.astype(np.int64) - target[name].astype(np.int64))
        count = int(np.count_nonzero(distance))
        if count:
            before = result.deviating.get(name, (0, 0))
            result.deviating[name] = (before[0] + count, max(before[1], int(distance.max())))
    if len(manifest.dispatches) > 1:
        result.hand_off.lost = lost_tensors(manifest)
        parts = run_dispatches(oracle, manifest, piece)
        names = sorted({n for d in manifest.dispatches for n in d.outputs})
        whole = oracle.run(piece, keep="carried")
        result.hand_off.add({n: whole[n] for n in names}, parts, names)


def lost_tensors(manifest: Manifest) -> tuple[str, ...]:
    """Tensors that a dispatch reads and that neither the graph's inputs nor a dispatch before it hands on."""
    handed = set(manifest.model.inputs)
    lost: dict[str, None] = {}
    for dispatch in manifest.dispatches:
        lost |= dict.fromkeys(name for name in dispatch.inputs if name not in handed)
        handed |= set(dispatch.outputs)
    return tuple(lost)


def run_dispatches(oracle: Oracle, manifest: Manifest, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Run the dispatches one by one; each sees only what the ones before handed on, and does not run without it.

    Args:
        oracle: of the manifest.
        manifest: with dispatches.
        feeds: by graph input, (F, *shape).

    Returns:
        Every tensor that leaves a dispatch.
    """
    handed: dict[str, Array] = dict(feeds)
    left: dict[str, Array] = {}
    for dispatch in manifest.dispatches:
        if not handed.keys() >= set(dispatch.inputs):
            continue
        given = {name: handed[name] for name in dispatch.inputs}
        computed = oracle.run_ops(dispatch.ops, given, keep="carried")
        outputs = {name: computed[name] for name in dispatch.outputs}
        handed |= outputs
        left |= outputs
    return left
