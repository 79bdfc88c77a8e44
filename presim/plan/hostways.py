"""Several streams between the host and one op: slices of what a cascade reads, parts of what workers make side by side.

A descriptor of a shim takes the channels of a slice out of every object, so that neither a memory tile nor a single
stream has to carry all of it.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from presim.blocks import object_count, object_shape
from presim.plan.graph import Value
from presim.plan.share import some_channels
from presim.static.transfers import WORD_BYTES, WRAP_LIMIT, pattern_faults, split_size
from presim.steps import elements_of

MOST_GROUPS: Final = 48
"""Streams that are looked at; a device has fewer, and its budget is checked for the whole design."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Channels `first` to `first + count` of a value, in a fifo that the host fills or drains."""

    fifo: str
    first: int
    count: int


Dims = tuple[tuple[int, int], ...]


def slice_pattern(value: Value, first: int, count: int, itemsize: int) -> tuple[int, Dims]:
    """(first element, (size, stride) outer to inner) of a slice of channels in the host's tensor.

    () = no descriptor codes it.

    Args:
        value: all of a tensor.
        first: channel that the slice begins with, a multiple of 8.
        count: channels of it; the last slice may end within a block of 8.
        itemsize: bytes of an element.
    """
    whole = object_shape(value.form)
    row, run = elements_of(whole), elements_of(some_channels(whole, count))
    offset = first * (value.form[3] if len(value.form) == 4 else 1)
    words = run * itemsize // WORD_BYTES
    a, b = split_size(words, WRAP_LIMIT["shim"])
    inner = b * WORD_BYTES // itemsize
    rows = ((object_count(value.form), row),)
    for dims in ((*rows, (run, 1)), (*rows, (a, inner), (inner, 1))):
        if not pattern_faults(dims, itemsize, "shim"):
            return offset, dims
    return offset, ()


def grouped(count: int, groups: int) -> tuple[tuple[int, int], ...]:
    """(first, end) of `count` things in so many groups of nearly the same size; never more groups than things."""
    groups = max(1, min(groups, count, MOST_GROUPS))
    edges = [count * i // groups for i in range(groups + 1)]
    return tuple(pairwise(edges))
