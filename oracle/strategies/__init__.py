"""Hypothesis strategies for quantized tensors, single ops and small graphs (extra `testing`).

Every case comes as a `Case`: a manifest with its constants and inputs, ready for `oracle.run.Oracle` and for anything
that is to be held against it. Shapes are small; values shrink to zero, scales to 1 or 2**-12, zero points to 0.

Example:
    >>> from hypothesis import given
    >>> from oracle.run import Oracle
    >>> from oracle.strategies import conv_cases
    >>> @given(conv_cases())
    ... def test_my_kernel(case):
    ...     want = Oracle(case.manifest, case.arrays).run(case.inputs, arithmetic="target")
"""

from oracle.strategies.cases import add_cases, conv_cases, gemm_cases, pool_cases, window_counts, windows
from oracle.strategies.graphs import graphs
from oracle.strategies.tensors import (
    ACTIVATIONS,
    EIGHT_BIT,
    Case,
    codes,
    quantizations,
    quantized_tensors,
    scales,
    zero_points,
)

__all__ = [
    "ACTIVATIONS",
    "EIGHT_BIT",
    "Case",
    "add_cases",
    "codes",
    "conv_cases",
    "gemm_cases",
    "graphs",
    "pool_cases",
    "quantizations",
    "quantized_tensors",
    "scales",
    "window_counts",
    "windows",
    "zero_points",
]
