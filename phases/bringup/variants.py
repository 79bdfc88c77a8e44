"""Manifests with one thing changed: every single mistake of emitted code that is worth trying on an op.

Each is computed by the oracle and held against what was got; see `phases.bringup.hypotheses`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.model import Manifest, Op, Requantization
from oracle.fixedpoint import ROUNDINGS

Array = NDArray[Any]
Arrays = Mapping[str, Array]

MATRIX: Final = frozenset({"Conv", "Gemm", "MatMul"})
BLOCKS: Final = (8, 16)
"""Output channels that kernels keep together."""
RESET_ROUNDING: Final = "floor"
"""What a tile begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A manifest with one thing changed.

    Attributes:
        kind: as in `Cause`.
        text: in words.
        manifest: changed or not.
        arrays: its constants, changed or not.
        given: activations that replace those given, (F, *shape).
    """

    kind: str
    text: str
    manifest: Manifest
    arrays: Arrays
    given: Arrays = field(default_factory=dict)


def variants_of(
    manifest: Manifest, arrays: Arrays, ops: Sequence[str], tensor: str, given: Arrays
) -> Iterator[Variant]:
    """Every single change that is worth trying on the op that makes a tensor.

    Args:
        manifest: of the port.
        arrays: its constants.
        ops: that may be changed; the last one where none makes the tensor.
        tensor: name.
        given: activations by name, (F, *shape).
    """
    chosen = [op for op in manifest.ops if op.name in set(ops)]
    op = next((o for o in chosen if tensor in o.outputs), chosen[-1] if chosen else None)
    if op is None:
        return
    for kind, text, changed in (*_requants(op), *_late(op), *_scales(manifest, op), *_pads(op)):
        yield Variant(kind=kind, text=f"op {op.name!r}: {text}", manifest=_with(manifest, changed), arrays=arrays)
    for kind, text, changed_arrays in _constants(manifest, arrays, op):
        yield Variant(kind=kind, text=f"op {op.name!r}: {text}", manifest=manifest, arrays={**arrays, **changed_arrays})
    for kind, text, changed_manifest in _points(manifest, op):
        yield Variant(kind=kind, text=text, manifest=changed_manifest, arrays=arrays)
    yield from _borders(manifest, arrays, op, given)


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
            never = ", as if set_rounding was never called" if mode == RESET_ROUNDING else ""
            yield "rounding", f"rounding {mode} instead of {r.rounding}{never}", changed(rounding=mode)
    for step in (-2, -1, 1, 2):
        shifts = tuple(s + step for s in r.shifts)
        yield "shift", f"shift {r.shifts[0] + step} instead of {r.shifts[0]}", changed(shifts=shifts)
    if r.saturation != "none":
        yield "saturation", "no saturation: codes wrap", changed(saturation="none")
        if r.rounding != RESET_ROUNDING:
            text = f"modes never set: rounding {RESET_ROUNDING} and no saturation"
            yield "rounding", text, changed(rounding=RESET_ROUNDING, saturation="none")
    yield from _clamps(op, r)


def _clamps(op: Op, r: Requantization) -> Iterator[tuple[str, str, Op]]:
    """The fused activation left out."""
    if op.activation is not None:
        wide = replace(r, qmin=min(r.qmin, -(1 << 15)), qmax=max(r.qmax, (1 << 16) - 1))
        for low, high in ((-128, 127), (0, 255), (-(1 << 15), (1 << 15) - 1), (0, (1 << 16) - 1)):
            if low <= r.qmin and r.qmax <= high:
                made = replace(op, activation=None, requant=replace(wide, qmin=low, qmax=high))
                yield "clamp", f"{op.activation.type} left out", made
                return


def _scales(manifest: Manifest, op: Op) -> Iterator[tuple[str, str, Op]]:
    """Multipliers and shifts of another op."""
    r = op.requant
    if r is None:
        return
    tried = {(r.multipliers, r.shifts)}
    for other in manifest.ops:
        q = other.requant
        if q is None or other.type not in MATRIX or op.type not in MATRIX or (q.multipliers, q.shifts) in tried:
            continue
        if (len(q.multipliers), len(q.shifts)) == (len(r.multipliers), len(r.shifts)):
            tried.add((q.multipliers, q.shifts))
            made = replace(op, requant=replace(r, multipliers=q.multipliers, shifts=q.shifts))
            yield "stale", f"the multiplier and shift of op {other.name!r}", made


def _pads(op: Op) -> Iterator[tuple[str, str, Op]]:
    """A window that is one place beside where it has to be."""
    pads = op.attributes.get("pads")
    if not isinstance(pads, tuple) or len(pads) % 2:
        return
    half = len(pads) // 2
    numbers = [int(p) for p in pads if isinstance(p, int)]
    for axis in range(half if len(numbers) == len(pads) else 0):
        for step in (-1, 1):
            moved = list(numbers)
            moved[axis] += step
            moved[axis + half] -= step
            if min(moved) >= 0:
                made = replace(op, attributes={**op.attributes, "pads": tuple(moved)})
                yield "layout", f"padding {moved} instead of {numbers}", made


def _constants(manifest: Manifest, arrays: Arrays, op: Op) -> Iterator[tuple[str, str, Arrays]]:
    """Bias in another way, weights in another order, constants of another op."""
    if op.type not in MATRIX:
        return
    key = _bias_key(manifest, op)
    if key is not None:
        yield "bias", "bias left out", {key: np.zeros_like(arrays[key])}
        yield "bias", "bias added twice", {key: arrays[key] * 2}
    weights = manifest.by_name()[op.inputs[1]].array
    if weights is not None:
        for text, moved in _orders(arrays[weights], _output_axis(op)):
            if moved.shape == arrays[weights].shape and not np.array_equal(moved, arrays[weights]):
                yield "weight_order", text, {weights: moved}
    yield from _others(manifest, arrays, op)


def _bias_key(manifest: Manifest, op: Op) -> str | None:
    """Key of the integers that are added, None = no bias."""
    bias = op.inputs[2] if len(op.inputs) > 2 else ""
    own = manifest.by_name()[bias].array if bias else None
    return (op.bias.target_array if op.bias is not None else None) or own


def _late(op: Op) -> Iterator[tuple[str, str, Op]]:
    """The bias added to codes: as if it had been shifted up by what the codes are shifted down."""
    r, bias = op.requant, op.bias
    if r is None or bias is None or set(r.multipliers) != {1} or min(r.shifts) < 0 or bias.kind == "rescaled":
        return
    before = bias.shifts or (0,)
    if min(before) < 0 or (len(before) > 1 and len(r.shifts) not in (1, len(before))):
        return
    count = max(len(before), len(r.shifts))
    own, more = (shifts * (count // len(shifts)) for shifts in (before, r.shifts))
    shifts = tuple(a + b for a, b in zip(own, more, strict=True))
    yield "bias", "bias added behind the shift", replace(op, bias=replace(bias, kind="shifted", shifts=shifts))


def _others(manifest: Manifest, arrays: Arrays, op: Op) -> Iterator[tuple[str, str, Arrays]]:
    """Weights and bias of another op, of the same form."""
    tensors = manifest.by_name()
    mine = tensors[op.inputs[1]].array, _bias_key(manifest, op)
    for other in manifest.ops:
        if other.type not in MATRIX or other.name == op.name:
            continue
        theirs = tensors[other.inputs[1]].array, _bias_key(manifest, other)
        for what, key, source in zip(("weights", "bias"), mine, theirs, strict=True):
            if key is None or source is None or key == source:
                continue
            same = arrays[key].shape == arrays[source].shape and arrays[key].dtype == arrays[source].dtype
            if same and not np.array_equal(arrays[key], arrays[source]):
                yield "stale", f"the {what} of op {other.name!r}", {key: arrays[source]}


def _output_axis(op: Op) -> int:
    """Axis of the weights that counts outputs."""
    if op.type == "Conv":
        return 0
    return 0 if op.type == "Gemm" and op.attributes.get("transB") else -1


def _orders(weights: Array, outputs: int) -> Iterator[tuple[str, Array]]:
    """Other orders and other signs of a weight, of the same shape."""
    if weights.ndim == 4:
        yield "kernel rows in reverse order", np.ascontiguousarray(weights[:, :, ::-1])
        yield "kernel columns in reverse order", np.ascontiguousarray(weights[:, :, :, ::-1])
        yield "kernel rows and columns swapped", np.ascontiguousarray(weights.swapaxes(2, 3))
        yield "input and output channels swapped", np.ascontiguousarray(weights.swapaxes(0, 1))
        yield "kernel turned by 180 degrees", np.ascontiguousarray(weights[:, :, ::-1, ::-1])
    if weights.ndim == 2:
        yield "weights transposed", np.ascontiguousarray(weights.T)
        yield "weights stored in the order of their transpose", np.ascontiguousarray(weights.T).reshape(weights.shape)
    yield "outputs in reverse order", np.ascontiguousarray(np.flip(weights, outputs))
    for size in BLOCKS:
        yield from _exchanged(weights, outputs, size)
    yield "all weights zero (never loaded)", np.zeros_like(weights)
    yield "weights with the other sign", np.negative(weights)
    if weights.dtype.kind == "i":
        yield "weights without their sign bit", weights & np.iinfo(weights.dtype).max


def _exchanged(weights: Array, outputs: int, size: int) -> Iterator[tuple[str, Array]]:
    """Neighbouring blocks of outputs exchanged, one pair at a time."""
    count = weights.shape[outputs] // size
    for first in range(count - 1):
        order = np.arange(weights.shape[outputs])
        begin = first * size
        order[begin : begin + 2 * size] = np.roll(order[begin : begin + 2 * size], size)
        text = f"blocks of {size} outputs exchanged, from output {begin} on"
        yield text, np.ascontiguousarray(np.take(weights, order, outputs))


def _points(manifest: Manifest, op: Op) -> Iterator[tuple[str, str, Manifest]]:
    """Zero point of an input or of the output left out, or one off."""
    tensors = manifest.by_name()
    for name in (*op.inputs[:2], *op.outputs):
        tensor = tensors.get(name)
        if tensor is None or tensor.quant is None or len(set(tensor.quant.zero_points)) != 1:
            continue
        right = tensor.quant.zero_points[0]
        for wrong in dict.fromkeys((0, right - 1, right + 1)):
            if wrong == right:
                continue
            quant = replace(tensor.quant, zero_points=tuple(wrong for _ in tensor.quant.zero_points))
            rows = tuple(replace(t, quant=quant) if t.name == name else t for t in manifest.tensors)
            what = "left out" if wrong == 0 else f"is {wrong} instead of {right}"
            yield "zero_point", f"op {op.name!r}: zero point of {name!r} {what}", replace(manifest, tensors=rows)


def _borders(manifest: Manifest, arrays: Arrays, op: Op, given: Arrays) -> Iterator[Variant]:
    """Padding that holds code 0 where the zero point is another."""
    tensor = manifest.by_name().get(op.inputs[0])
    pads = op.attributes.get("pads")
    if op.type != "Conv" or tensor is None or tensor.quant is None or tensor.name not in given:
        return
    if not isinstance(pads, tuple) or len(pads) != 4 or not any(tensor.quant.zero_points) or not any(pads):
        return
    top, left, bottom, right = (int(p) for p in pads if isinstance(p, int))
    values = np.pad(given[tensor.name], ((0, 0), (0, 0), (0, 0), (top, bottom), (left, right)))
    rows = tuple(replace(t, shape=values.shape[1:]) if t.name == tensor.name else t for t in manifest.tensors)
    bare = replace(op, attributes={**op.attributes, "pads": (0, 0, 0, 0)})
    changed = replace(_with(manifest, bare), tensors=rows)
    text = f"op {op.name!r}: the padding holds code 0, not the zero point of {tensor.name!r}"
    yield Variant(kind="zero_point", text=text, manifest=changed, arrays=arrays, given={tensor.name: values})
