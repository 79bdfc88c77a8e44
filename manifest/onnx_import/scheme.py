"""The scheme in one line each, exceptions to powers of two, and remarks on accuracy cliffs."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from manifest.model import Note, Op, Quantization, Scheme, Tensor
from manifest.onnx_import.graph import Array
from manifest.onnx_import.quant import broadcast

MIN_LEVELS: Final = 4
_SHOWN: Final = 16
_MIDDLE: Final[Mapping[str, int]] = {"int8": 0, "int16": 0, "uint8": 128, "uint16": 32768, "int32": 0}


def _symmetric(tensor: Tensor, quant: Quantization) -> bool:
    return all(z == _MIDDLE.get(tensor.dtype) for z in quant.zero_points)


def _kind(tensor: Tensor, quant: Quantization) -> str:
    """`int8 per channel, symmetric`."""
    granularity = "per channel" if quant.axis is not None else "per tensor"
    return f"{tensor.dtype} {granularity}, {'symmetric' if _symmetric(tensor, quant) else 'asymmetric'}"


def _summary(tensors: Iterable[Tensor]) -> str:
    kinds = sorted({_kind(t, t.quant) for t in tensors if t.quant is not None})
    return "; ".join(kinds) or "none"


def _bias_summary(ops: Iterable[Op], tensors: Mapping[str, Tensor]) -> str:
    words = {
        "accumulator": "at the accumulator's scale",
        "shifted": "own scale, shifted",
        "rescaled": "own scale, rescaled",
    }
    kinds = sorted({f"{tensors[op.inputs[2]].dtype} {words[op.bias.kind]}" for op in ops if op.bias is not None})
    return "; ".join(kinds) or "none"


def scheme_of(tensors: Mapping[str, Tensor], ops: Iterable[Op]) -> Scheme:
    """What the file's quantization is, as found."""
    listed = list(ops)
    quantised = [t for t in tensors.values() if t.quant is not None]
    odd = tuple(sorted(t.name for t in quantised if t.quant is not None and t.quant.exponents is None))
    return Scheme(
        activations=_summary(t for t in quantised if t.array is None),
        weights=_summary(t for t in quantised if t.role == "weight"),
        bias=_bias_summary(listed, tensors),
        power_of_two=bool(quantised) and not odd,
        not_power_of_two=odd,
    )


def cliff_notes(tensors: Mapping[str, Tensor], arrays: Mapping[str, Array], ops: Iterable[Op]) -> list[Note]:
    """Depthwise weights with one scale whose channels use fewer than 4 levels, with the channel numbers."""
    notes = []
    for op in ops:
        if op.type != "Conv" or op.attributes.get("group") == 1:
            continue
        weight = tensors[op.inputs[1]]
        if weight.quant is None or weight.array is None or weight.quant.axis is not None or weight.shape[1] != 1:
            continue
        channels = _flat_channels(arrays[weight.array], weight.quant)
        if channels:
            shown = ", ".join(str(c) for c in channels[:_SHOWN]) + (", ..." if len(channels) > _SHOWN else "")
            text = (
                f"depthwise weight {weight.name!r} has one scale for {weight.shape[0]} channels: channel {shown} "
                f"uses fewer than {MIN_LEVELS} levels; quantize it per channel"
            )
            notes.append(Note(code="WEIGHT-CLIFF", where=op.name, text=text))
    return notes


def _flat_channels(codes: Array, quant: Quantization) -> list[int]:
    """Channels whose largest |code - zero point| is below 4."""
    centred = np.abs(codes.astype(np.int64) - broadcast(quant, codes.ndim)[1])
    largest = centred.reshape(codes.shape[0], -1).max(axis=1)
    return [int(c) for c in np.flatnonzero(largest < MIN_LEVELS)]
