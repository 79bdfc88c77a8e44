"""Strategies for scales, zero points, codes and quantized tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from manifest.model import QRANGE, DType, Manifest, Quantization, Tensor
from oracle.sketch import quantization

Array = NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

EIGHT_BIT: Final[tuple[DType, ...]] = ("int8", "uint8")
ACTIVATIONS: Final[tuple[DType, ...]] = ("int8", "uint8", "int16", "uint16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A manifest with everything that it needs.

    Attributes:
        manifest: what to compute; its graph inputs are integers.
        arrays: constants by key.
        inputs: by graph input, (F, *shape).
    """

    manifest: Manifest
    arrays: dict[str, Array]
    inputs: dict[str, Array]


def scales(*, power_of_two: bool | None = None) -> st.SearchStrategy[float]:
    """One float32 scale between 2**-14 and 4.

    Args:
        power_of_two: only powers of two, none on purpose, or (None) both.
    """
    powers = st.integers(-12, 2).map(lambda k: 2.0**k)
    decimals = st.sampled_from([0.1, 0.05, 0.02, 0.021, 0.004, 0.37, 3.0, 1.5])
    free = st.tuples(st.integers(1 << 12, 1 << 24), st.integers(-24, -4)).map(lambda p: p[0] * 2.0 ** p[1] / (1 << 12))
    arbitrary = st.one_of(decimals, free).map(lambda s: float(np.float32(s)))
    if power_of_two is None:
        return st.one_of(powers, arbitrary)
    return powers if power_of_two else arbitrary


def zero_points(dtype: DType, *, symmetric: bool = False) -> st.SearchStrategy[int]:
    """A zero point: 0, the middle of an unsigned type, or anything in range."""
    low, high = QRANGE[dtype]
    middle = 0 if low < 0 else (high + 1) // 2
    if symmetric:
        return st.just(middle)
    return st.one_of(st.just(0), st.just(middle), st.integers(low, high))


@st.composite
def quantizations(
    draw: Draw,
    dtype: DType = "int8",
    *,
    channels: int | None = None,
    axis: int | None = None,
    power_of_two: bool | None = None,
    symmetric: bool = False,
) -> Quantization:
    """Scale and zero point for a dtype.

    Args:
        draw: given by Hypothesis.
        dtype: storage dtype.
        channels: one scale and zero point per channel; None: one altogether.
        axis: channel axis.
        power_of_two: see `scales`; None draws one kind for all channels.
        symmetric: zero point 0 (the middle of an unsigned type).
    """
    kind = not draw(st.booleans()) if power_of_two is None else power_of_two
    count = 1 if channels is None else channels
    chosen = draw(st.lists(scales(power_of_two=kind), min_size=count, max_size=count))
    points = draw(st.lists(zero_points(dtype, symmetric=symmetric), min_size=count, max_size=count))
    return quantization(chosen, points, axis if channels is not None else None)


def codes(dtype: DType, shape: Sequence[int]) -> st.SearchStrategy[Array]:
    """Integers of a dtype: small, anything, or the extremes (where sums are largest)."""
    low, high = QRANGE[dtype]
    small = st.integers(max(low, -3), min(high, 3))
    elements = st.one_of(small, st.integers(low, high), st.sampled_from([low, high]))
    return hnp.arrays(np.dtype(dtype), tuple(shape), elements=elements)


@st.composite
def quantized_tensors(
    draw: Draw,
    *,
    dtypes: Sequence[DType] = ACTIVATIONS,
    shapes: st.SearchStrategy[tuple[int, ...]] | None = None,
    power_of_two: bool | None = None,
) -> tuple[Tensor, Array]:
    """A quantised tensor and codes for it, (F, *shape)."""
    dtype = draw(st.sampled_from(list(dtypes)))
    shape = draw(shapes if shapes is not None else hnp.array_shapes(min_dims=1, max_dims=4, max_side=4))
    quant = draw(quantizations(dtype, power_of_two=power_of_two))
    feeds = draw(st.integers(1, 3))
    tensor = Tensor(name="x", shape=shape, dtype=dtype, onnx_dtype=dtype, role="activation", quant=quant)
    return tensor, draw(codes(dtype, (feeds, *shape)))
