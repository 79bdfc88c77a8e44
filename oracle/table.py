"""Tables over all codes of 8-bit inputs: whatever an elementwise op costs, it costs 256 or 65,536 evaluations."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oracle.value import Array

EIGHT_BIT = ("int8", "uint8")

Pointwise = Callable[[list[Array], Array], None]
"""Fills the output from inputs that broadcast to it; every element is computed alike."""


def tabulate(dtypes: Sequence[str], out_dtype: np.dtype[Any], function: Pointwise) -> Pointwise:
    """`function` over one or two 8-bit inputs as a table look-up.

    Args:
        dtypes: storage dtypes of the inputs, `int8` or `uint8`.
        out_dtype: dtype of the output.
        function: called once, with equally long vectors that hold every code (every pair of codes).

    Returns:
        A function with the same results on arrays of any shapes that broadcast.
    """
    places = np.arange(256 ** len(dtypes))
    digits = [places >> 8, places & 255] if len(dtypes) == 2 else [places]
    codes: list[Array] = [d.astype(np.uint8).view(name) for d, name in zip(digits, dtypes, strict=True)]
    table: Array = np.empty(places.size, out_dtype)
    function(codes, table)

    def look_up(arrays: list[Array], out: Array) -> None:
        index = _unsigned(arrays[0]) if len(arrays) == 1 else _pair(arrays[0], arrays[1])
        np.take(table, index, out=out, mode="clip")

    return look_up


def _unsigned(codes: Array) -> Array:
    return codes if codes.dtype == np.uint8 else codes.view(np.uint8)


def _pair(a: Array, b: Array) -> Array:
    index: Array = np.multiply(_unsigned(a), 256, dtype=np.uint16)
    return np.add(index, _unsigned(b), dtype=np.uint16)
