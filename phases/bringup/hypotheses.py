"""Likely causes of a wrong tensor: one change at a time, applied to the manifest or to the tensor, and counted.

Why computed through the oracle: a cause is named only if the tensor that it predicts is the one that was got, element
for element. A cause that explains less than half of what the unchanged oracle does not is not named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import PortError
from manifest.model import Manifest
from oracle.run import Oracle
from phases.bringup.variants import Variant, variants_of

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One hypothesis that predicts what was got better than the oracle does.

    Attributes:
        kind: layout, shift, rounding, saturation, bias, zero_point, weight_order, stale, uniform, clamp.
        text: in words, with op or tensor.
        explained: elements that it predicts.
        elements: of the tensor.
    """

    kind: str
    text: str
    explained: int
    elements: int

    @property
    def certain(self) -> bool:
        """Whether it predicts every element."""
        return self.explained == self.elements

    def line(self) -> str:
        """The cause with its evidence on one line."""
        return f"{self.text}: predicts {self.explained} of {self.elements} elements"


def causes_of(
    manifest: Manifest,
    arrays: Arrays,
    ops: Sequence[str],
    given: Mapping[str, Array],
    *,
    tensor: str,
    want: Array,
    got: Array,
    suspect: str = "",
) -> tuple[Cause, ...]:
    """Causes that predict a wrong tensor, those that explain most first.

    Args:
        manifest: of the port.
        arrays: its constants.
        ops: that make the tensor from what is given.
        given: activations that they read, (F, *shape), target values.
        tensor: name of the wrong one.
        want: (F, *shape), target values.
        got: likewise, as it came.
        suspect: tensor that was wrong first, made by the op that is changed; "" = the wrong tensor itself.
    """
    found = list(_shapes(want, got))
    for variant in variants_of(manifest, arrays, ops, suspect or tensor, given):
        predicted = _predict(variant, ops, given, tensor)
        if predicted is not None and predicted.shape == got.shape and not np.array_equal(predicted, want):
            found.append(_cause(variant.kind, variant.text, predicted, got))
    return _best([*found, *_codes(want, got)], want, got)


def tensor_causes(want: Array, got: Array) -> tuple[Cause, ...]:
    """Causes that show in a tensor alone, (F, *shape): order, staleness, one value everywhere."""
    return _best([*_shapes(want, got), *_codes(want, got)], want, got)


def part_of(want: Array, got: Array) -> str:
    """In words, the places of an axis beside each other that hold everything that differs; "" = it is everywhere.

    Args:
        want: (F, *shape), target values.
        got: likewise, as it came.
    """
    wrong = np.argwhere(want != got)
    for axis in range(1, want.ndim):
        places = np.unique(wrong[:, axis])
        first, last = int(places[0]), int(places[-1])
        if places.size == last - first + 1 and 2 * places.size <= want.shape[axis]:
            where = f"index {first}" if first == last else f"indices {first} to {last}"
            verb = "differs" if first == last else "differ"
            return f"{where} of axis {axis - 1} alone {verb}, in {len(wrong)} of {want.size} elements"
    return ""


def _best(found: Sequence[Cause], want: Array, got: Array) -> tuple[Cause, ...]:
    """Those that explain at least half of what the unchanged oracle does not, most first."""
    base = int((want == got).sum())
    wrong = int(want.size) - base
    good = [c for c in found if c.explained > base and 2 * (c.explained - base) >= wrong]
    return tuple(sorted(good, key=lambda c: -c.explained))


def _predict(variant: Variant, ops: Sequence[str], given: Mapping[str, Array], tensor: str) -> Array | None:
    """What a variant computes; None where it has no meaning."""
    try:
        oracle = Oracle(variant.manifest, variant.arrays)
        feeds = {**given, **variant.given}
        return oracle.run_ops(ops, feeds, arithmetic="target", keep="stored").get(tensor)
    except (PortError, ValueError, ArithmeticError, OverflowError):
        return None


def _cause(kind: str, text: str, predicted: Array, got: Array) -> Cause:
    return Cause(kind=kind, text=text, explained=int((predicted == got).sum()), elements=int(got.size))


def _shapes(want: Array, got: Array) -> Iterator[Cause]:
    """Causes that show in the tensor alone: one value everywhere, another inference's, another order."""
    if got.size > 1 and np.ptp(got) == 0 and np.ptp(want) != 0:
        value = got.flat[0].item()
        what = "zeros: wrong device, or never written" if value == 0 else "one value: poison of memory nobody wrote"
        yield Cause(
            kind="uniform", text=f"the tensor holds {value} everywhere ({what})", explained=got.size, elements=got.size
        )
        return
    for text, predicted in _moved(want):
        if predicted.shape == got.shape and not np.array_equal(predicted, want):
            kind = "stale" if "inference" in text else "layout"
            yield _cause(kind, text, predicted, got)


def _codes(want: Array, got: Array) -> Iterator[Cause]:
    """Right codes with something done to all of them: held between limits, moved by one number."""
    if (
        got.size < 2
        or np.ptp(got) == 0
        or want.dtype.kind not in "iu"
        or got.dtype.kind not in "iu"
        or want.shape != got.shape
    ):
        return
    for bound, limit, predicted in (
        ("end at", (got.max(), want.max()), np.minimum(want, got.max())),
        ("begin at", (got.min(), want.min()), np.maximum(want, got.min())),
    ):
        if not np.array_equal(predicted, want):
            text = f"codes {bound} {limit[0]} instead of {limit[1]} (clamp)"
            yield _cause("clamp", text, predicted, got)
    wrong = want != got
    values = np.unique(got[wrong])
    if values.size == 1 and np.unique(want[wrong]).size > 1:
        text = f"what differs is {values[0]} in {int(wrong.sum())} places (never written, or cut off)"
        yield _cause("uniform", text, np.where(wrong, values[0], want), got)
    steps, counts = np.unique(got.astype(np.int64) - want.astype(np.int64), return_counts=True)
    step = int(steps[np.argmax(counts)])
    if step:
        info = np.iinfo(want.dtype)
        largest = min(int(info.max), int(np.iinfo(np.int64).max))
        predicted = np.clip(want.astype(np.int64) + step, info.min, largest)
        yield _cause("zero_point", f"every code is {step:+d} off (zero point)", predicted, got)


def _moved(want: Array) -> Iterator[tuple[str, Array]]:
    """The right values in a wrong order, (F, *shape)."""
    if len(want) > 1:
        yield "every inference holds what the one before gave (stale)", np.roll(want, 1, axis=0)
        yield "every inference holds what the first gave (stale)", np.broadcast_to(want[:1], want.shape)
    shape = want.shape
    axes: Sequence[tuple[int, int]] = [(a, b) for a in range(1, want.ndim) for b in range(a + 1, want.ndim)]
    for a, b in axes:
        swapped = np.ascontiguousarray(want.swapaxes(a, b))
        if swapped.shape == shape:
            yield f"axes {a - 1} and {b - 1} swapped", swapped
        yield f"written in the order of axes {a - 1} and {b - 1} swapped", swapped.reshape(shape)
    for axis in range(1, want.ndim):
        if shape[axis] > 1:
            yield f"axis {axis - 1} reversed", np.flip(want, axis)
            yield f"axis {axis - 1} late by one place", np.roll(want, 1, axis)
            yield f"axis {axis - 1} early by one place", np.roll(want, -1, axis)
    yield from _blocked(want)


def _blocked(want: Array) -> Iterator[tuple[str, Array]]:
    """Rows in blocks of 8 channels taken for plain rows, and the other way round."""
    if want.ndim == 5 and want.shape[2] % 8 == 0:
        f, n, c, h, w = want.shape
        blocks = want.reshape(f, n, c // 8, 8, h, w).transpose(0, 1, 4, 2, 5, 3)
        yield "blocks of 8 channels read as they lie", np.ascontiguousarray(blocks).reshape(want.shape)
        plain = want.transpose(0, 1, 3, 2, 4).reshape(f, n, h, c // 8, w, 8)
        back = plain.transpose(0, 1, 3, 5, 2, 4).reshape(want.shape)
        yield "plain rows read as blocks of 8 channels", np.ascontiguousarray(back)
