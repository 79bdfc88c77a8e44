"""Exact integer matrix products through floating-point BLAS.

A product of integers is exact in float32 as long as no partial sum exceeds 2**24, whatever the order of summation
and with or without fused multiply-adds. That holds for every input when max|x| * max_n sum_k |w[n, k]| <= 2**24 (the
L1 bound); up to 2**53 float64 takes over; beyond, K is split into parts that each obey the bound.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.value import FLOAT32_EXACT, FLOAT64_EXACT, Array, carrier


class Product:
    """weights (…, N, K) x columns (…, K, M), prepared once for weights that stay.

    Args:
        weights: int64, zero points already subtracted.
        reach: largest |x| of the columns, zero points already subtracted.
        float64_limit: magnitude up to which float64 counts as exact (smaller only to exercise the K split).

    Attributes:
        bounds: largest |result| per channel (leading axes and N, flattened).
        bound: the largest of them.
        channels: their number.
        dtype: dtype that the columns must have (float32 or float64).
        carrier: dtype of the result.
    """

    def __init__(self, weights: Array, reach: int, *, float64_limit: int = FLOAT64_EXACT) -> None:
        magnitude = np.abs(weights)
        self.bounds = [int(b) for b in (magnitude.sum(axis=-1) * reach).reshape(-1)]
        self.channels = len(self.bounds)
        self.bound = max(self.bounds, default=0)
        single = max(self.bound, reach, int(magnitude.max(initial=0))) <= FLOAT32_EXACT
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        self._parts = _parts(magnitude, reach, float64_limit)
        self._weights = np.ascontiguousarray(weights.astype(self.dtype))
        self.carrier = carrier(self.bound) if len(self._parts) == 1 else np.dtype(np.int64)

    def __call__(self, columns: Array, out: Array) -> None:
        """Write the product to `out` (dtype `carrier`, shape (…, N, M)); `columns` has dtype `dtype`."""
        if len(self._parts) == 1:
            np.matmul(self._weights, columns, out=out)
            return
        out[...] = 0
        for part in self._parts:
            out += np.matmul(self._weights[..., part], columns[..., part, :]).astype(np.int64)


def _parts(magnitude: Array, reach: int, limit: int) -> Sequence[slice]:
    """Cuts of K whose L1 bounds stay within `limit`."""
    depth = magnitude.shape[-1]
    worst = magnitude.reshape(-1, depth).max(axis=0, initial=0) * reach
    parts, start, total = [], 0, 0
    for k, step in enumerate(worst.tolist()):
        if total + step > limit and k > start:
            parts.append(slice(start, k))
            start, total = k, 0
        total += step
    return [*parts, slice(start, depth)]


def exact_matmul(a: Array, b: Array, bound: int) -> Array:
    """A product of two activations: integer arrays (…, M, K) x (…, K, N) with every partial sum within `bound`."""
    dtype = carrier(bound)
    if dtype.kind == "f":
        return np.asarray(np.matmul(a.astype(dtype), b.astype(dtype)))
    return np.asarray(np.matmul(a.astype(np.int64).astype(dtype), b.astype(np.int64).astype(dtype)))
