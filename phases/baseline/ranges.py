"""Ranges seen on real data: per quantised tensor, and per graph input against what its scale and `port.toml` allow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.model import QRANGE, Manifest, Observed, Tensor
from oracle.evidence import InputRange
from phases.baseline.preprocessing import Preprocessing

LAYOUT_OPS: Final = frozenset({"Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Identity"})


@dataclass(frozen=True, slots=True)
class _Representable:
    """Real values that the codes of a graph input reach, one step apart."""

    minimum: float
    maximum: float
    scale: float
    codes: int


def real_values(tensor: Tensor, codes: NDArray[Any]) -> NDArray[np.float64]:
    """(code - zero point) * scale in float64.

    Args:
        tensor: of the codes; without quantization the values are returned as they are.
        codes: (F, *shape).
    """
    if tensor.quant is None:
        return codes.astype(np.float64)
    scale, zero = np.asarray(tensor.quant.scales), np.asarray(tensor.quant.zero_points, np.float64)
    if tensor.quant.axis is not None and scale.size > 1:
        column = (-1, *(1,) * (len(tensor.shape) - 1 - tensor.quant.axis))
        scale, zero = scale.reshape(column), zero.reshape(column)
    values: NDArray[np.float64] = (codes.astype(np.float64) - zero) * scale
    return values


def observed_ranges(manifest: Manifest, tensors: Mapping[str, NDArray[Any]]) -> dict[str, Observed]:
    """Ranges of the quantised activations.

    Args:
        manifest: of the tensors.
        tensors: codes (F, *shape) by name, as the oracle returns them; names without a scale are passed over.

    Returns:
        By tensor name, only tensors with elements.
    """
    by_name = manifest.by_name()
    found: dict[str, Observed] = {}
    for name, codes in tensors.items():
        tensor = by_name.get(name)
        if tensor is None or tensor.quant is None or tensor.array is not None or not codes.size:
            continue
        found[name] = _observed(tensor, codes)
    return found


def _observed(tensor: Tensor, codes: NDArray[Any]) -> Observed:
    low, high = QRANGE[tensor.dtype]
    if tensor.quant is not None and len(tensor.quant.scales) > 1:
        values = real_values(tensor, codes)
        ends = (float(values.min()), float(values.max()))
    else:
        both = real_values(tensor, np.array([codes.min(), codes.max()]))
        ends = (float(both[0]), float(both[1]))
    saturated = int(np.count_nonzero(codes == low) + np.count_nonzero(codes == high))
    return Observed(minimum=ends[0], maximum=ends[1], samples=codes.shape[0], saturated=saturated)


def merged(first: Mapping[str, Observed], second: Mapping[str, Observed]) -> dict[str, Observed]:
    """Ranges over two disjoint sets of feeds."""
    both = {
        name: Observed(
            minimum=min(a.minimum, second[name].minimum),
            maximum=max(a.maximum, second[name].maximum),
            samples=a.samples + second[name].samples,
            saturated=a.saturated + second[name].saturated,
        )
        for name, a in first.items()
        if name in second
    }
    return {**first, **second, **both}


def with_observed(manifest: Manifest, observed: Mapping[str, Observed]) -> Manifest:
    """The manifest with the observed ranges filled in; other tensors unchanged."""
    tensors = tuple(replace(t, observed=observed.get(t.name, t.observed)) for t in manifest.tensors)
    return replace(manifest, tensors=tensors)


def input_ranges(
    manifest: Manifest,
    feeds: Mapping[str, NDArray[Any]],
    preprocessing: Mapping[str, Preprocessing] | None = None,
) -> tuple[InputRange, ...]:
    """Every graph input's data against its quantised range and its declared range.

    Args:
        manifest: with the graph inputs and the ops behind them.
        feeds: (F, *shape) by input name, real values, or codes for integer inputs.
        preprocessing: what `port.toml` declares, per input.

    Returns:
        One row per graph input that has a feed, in graph order.
    """
    declared = preprocessing or {}
    names = [name for name in manifest.model.inputs if name in feeds and feeds[name].size]
    return tuple(_input_range(manifest, name, feeds[name], declared.get(name)) for name in names)


def _input_range(manifest: Manifest, name: str, feed: NDArray[Any], declared: Preprocessing | None) -> InputRange:
    values = real_values(manifest.tensor(name), feed)
    allowed = _representable(manifest, name)
    low, high = float(values.min()), float(values.max())
    clipped, used = 0, 0.0
    if allowed is not None:
        half = allowed.scale / 2
        outside = (values < allowed.minimum - half) | (values > allowed.maximum + half)
        clipped = int(np.count_nonzero(outside))
        span = allowed.maximum - allowed.minimum
        used = (min(high, allowed.maximum) - max(low, allowed.minimum)) / span
    limits = None if declared is None else declared.declared_range()
    return InputRange(
        name=name,
        samples=int(feed.shape[0]),
        minimum=low,
        maximum=high,
        representable_minimum=None if allowed is None else allowed.minimum,
        representable_maximum=None if allowed is None else allowed.maximum,
        declared_minimum=None if limits is None else limits[0],
        declared_maximum=None if limits is None else limits[1],
        clipped=clipped,
        elements=int(feed.size),
        used_codes_fraction=max(0.0, used),
        codes=256 if allowed is None else allowed.codes,
    )


def _representable(manifest: Manifest, name: str) -> _Representable | None:
    """The narrowest of the quantised ranges that a graph input runs into, through layout ops."""
    found = [r for t in _quantised_forms(manifest, name) if (r := _range_of(t)) is not None]
    return min(found, key=lambda r: r.maximum - r.minimum) if found else None


def _range_of(tensor: Tensor) -> _Representable | None:
    if tensor.quant is None or tensor.dtype not in QRANGE or len(tensor.quant.scales) != 1:
        return None
    low, high = QRANGE[tensor.dtype]
    scale, zero = tensor.quant.scales[0], tensor.quant.zero_points[0]
    return _Representable((low - zero) * scale, (high - zero) * scale, scale, high - low + 1)


def _quantised_forms(manifest: Manifest, name: str) -> list[Tensor]:
    by_name = manifest.by_name()
    pending, found = [name], []
    while pending:
        current = pending.pop()
        if by_name[current].quant is not None:
            found.append(by_name[current])
            continue
        for op in manifest.ops:
            if current in op.inputs[:1] and op.type in LAYOUT_OPS | {"QuantizeLinear"}:
                pending.extend(op.outputs)
    return found
