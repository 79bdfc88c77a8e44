"""Likely causes of a wrong tensor: one change at a time, applied to the manifest or to the tensor, and counted.

Why computed through the oracle: a cause is named only if the tensor that it predicts is the one that was got, element
for element. A cause that explains no more than the unchanged oracle is not named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.errors import PortError
from manifest.model import Manifest, Op, Requantization
from oracle.fixedpoint import ROUNDINGS
from oracle.run import Oracle

Array = NDArray[Any]
Arrays = Mapping[str, Array]

MATRIX: Final = frozenset({"Conv", "Gemm", "MatMul"})


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A manifest with one thing changed."""

    kind: str
    text: str
    manifest: Manifest
    arrays: Arrays


def causes_of(
    manifest: Manifest,
    arrays: Arrays,
    ops: Sequence[str],
    given: Mapping[str, Array],
    *,
    tensor: str,
    want: Array,
    got: Array,
) -> tuple[Cause, ...]:
    """Causes that predict a wrong tensor, those that explain most first.

    Args:
        manifest: of the port.
        arrays: its constants.
        ops: that make the tensor from what is given (a stage); changes are made to the last one with arithmetic.
        given: activations that they read, (F, *shape), target values.
        tensor: name of the wrong one.
        want: (F, *shape), target values.
        got: likewise, as it came.
    """
    found = list(tensor_causes(want, got))
    for variant in variants_of(manifest, arrays, ops, tensor):
        predicted = _predict(variant, ops, given, tensor)
        if predicted is not None and predicted.shape == got.shape and not np.array_equal(predicted, want):
            found.append(_cause(variant.kind, variant.text, predicted, got))
    return _best(found, want, got)


def tensor_causes(want: Array, got: Array) -> tuple[Cause, ...]:
    """Causes that show in a tensor alone, (F, *shape): order, staleness, one value everywhere."""
    return _best(list(_shapes(want, got)), want, got)


def _best(found: Sequence[Cause], want: Array, got: Array) -> tuple[Cause, ...]:
    """Those that explain more than the unchanged oracle, most first."""
    base = int((want == got).sum())
    return tuple(sorted((c for c in found if c.explained > base), key=lambda c: -c.explained))


def variants_of(manifest: Manifest, arrays: Arrays, ops: Sequence[str], tensor: str) -> Iterator[Variant]:
    """Every single change that is worth trying on the op that makes a tensor."""
    chosen = [op for op in manifest.ops if op.name in set(ops)]
    op = next((o for o in chosen if tensor in o.outputs), chosen[-1] if chosen else None)
    if op is None:
        return
    for kind, text, changed in _requants(op):
        yield Variant(kind=kind, text=f"op {op.name!r}: {text}", manifest=_with(manifest, changed), arrays=arrays)
    for kind, text, changed_arrays in _constants(manifest, arrays, op):
        yield Variant(kind=kind, text=f"op {op.name!r}: {text}", manifest=manifest, arrays={**arrays, **changed_arrays})
    for kind, text, changed_manifest in _points(manifest, op):
        yield Variant(kind=kind, text=text, manifest=changed_manifest, arrays=arrays)


def _with(manifest: Manifest, op: Op) -> Manifest:
    return replace(manifest, ops=tuple(op if o.name == op.name else o for o in manifest.ops))


def _requants(op: Op) -> Iterator[tuple[str, str, Op]]:
    r = op.requant
    if r is None or r.target not in ("srs", "multiplier_shift"):
        return

    def changed(**fields: Any) -> Op:
        return replace(op, requant=replace(r, **fields))

    for mode in sorted(ROUNDINGS):
        if mode != r.rounding:
            yield "rounding", f"rounding {mode} instead of {r.rounding}", changed(rounding=mode)
    for step in (-2, -1, 1, 2):
        shifts = tuple(s + step for s in r.shifts)
        yield "shift", f"shift {r.shifts[0] + step} instead of {r.shifts[0]}", changed(shifts=shifts)
    if r.saturation != "none":
        yield "saturation", "no saturation: codes wrap", _wrapping(op, r)
    yield from _clamps(op, r)


def _wrapping(op: Op, r: Requantization) -> Op:
    return replace(op, requant=replace(r, saturation="none"))


def _clamps(op: Op, r: Requantization) -> Iterator[tuple[str, str, Op]]:
    """The fused activation left out."""
    if op.activation is not None:
        wide = replace(r, qmin=min(r.qmin, -(1 << 15)), qmax=max(r.qmax, (1 << 16) - 1))
        for low, high in ((-128, 127), (0, 255), (-(1 << 15), (1 << 15) - 1), (0, (1 << 16) - 1)):
            if low <= r.qmin and r.qmax <= high:
                made = replace(op, activation=None, requant=replace(wide, qmin=low, qmax=high))
                yield "clamp", f"{op.activation.type} left out", made
                return


def _constants(manifest: Manifest, arrays: Arrays, op: Op) -> Iterator[tuple[str, str, Arrays]]:
    """Bias left out or added twice; weights in another order."""
    if op.type not in MATRIX:
        return
    tensors = manifest.by_name()
    bias = op.inputs[2] if len(op.inputs) > 2 else ""
    key = (op.bias.target_array if op.bias is not None else None) or (tensors[bias].array if bias else None)
    if key is not None:
        yield "bias", "bias left out", {key: np.zeros_like(arrays[key])}
        yield "bias", "bias added twice", {key: arrays[key] * 2}
    weights = tensors[op.inputs[1]].array
    if weights is not None:
        for text, moved in _orders(arrays[weights]):
            if moved.shape == arrays[weights].shape and not np.array_equal(moved, arrays[weights]):
                yield "weight_order", text, {weights: moved}


def _orders(weights: Array) -> Iterator[tuple[str, Array]]:
    """Other orders of a weight, of the same shape."""
    if weights.ndim == 4:
        yield "kernel rows and columns swapped", np.ascontiguousarray(weights.swapaxes(2, 3))
        yield "input and output channels swapped", np.ascontiguousarray(weights.swapaxes(0, 1))
        yield "kernel turned by 180 degrees", np.ascontiguousarray(weights[:, :, ::-1, ::-1])
    if weights.ndim == 2:
        yield "weights transposed", np.ascontiguousarray(weights.T)
        yield "weights stored in the order of their transpose", np.ascontiguousarray(weights.T).reshape(weights.shape)
    yield "outputs in reverse order", np.ascontiguousarray(weights[::-1])
    yield "all weights zero (never loaded)", np.zeros_like(weights)


def _points(manifest: Manifest, op: Op) -> Iterator[tuple[str, str, Manifest]]:
    """Zero point of an input or of the output left out."""
    tensors = manifest.by_name()
    for name in (*op.inputs[:2], *op.outputs):
        tensor = tensors.get(name)
        if tensor is None or tensor.quant is None or not any(tensor.quant.zero_points):
            continue
        without = replace(tensor.quant, zero_points=tuple(0 for _ in tensor.quant.zero_points))
        rows = tuple(replace(t, quant=without) if t.name == name else t for t in manifest.tensors)
        yield "zero_point", f"op {op.name!r}: zero point of {name!r} left out", replace(manifest, tensors=rows)


def _predict(variant: Variant, ops: Sequence[str], given: Mapping[str, Array], tensor: str) -> Array | None:
    """What a variant computes; None where it has no meaning."""
    try:
        oracle = Oracle(variant.manifest, variant.arrays)
        return oracle.run_ops(ops, given, arithmetic="target", keep="stored").get(tensor)
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
