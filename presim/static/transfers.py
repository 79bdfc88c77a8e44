"""Transfers and layouts: whole words, and patterns that a buffer descriptor can hold.

Widths of the fields: `AIEXDialect.cpp` of mlir-aie (wrap 10 bits in shim and memory tiles, 8 in cores; steps 20, 17 and
13 bits; 6 bits of iterations). The outermost of all dimensions has no wrap field. A pattern that turns out to be
contiguous needs none of them.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from presim.design import TileKind
from presim.pools import StreamEnd
from presim.static.findings import Checked, StaticFinding, error
from presim.static.scope import Scope, place, unknown

WORDS: Final = "whole_words"
PATTERNS: Final = "access_patterns"
LENGTHS: Final = "transfer_lengths"

WORD_BYTES: Final = 4
WRAP_LIMIT: Final[dict[TileKind, int]] = {"shim": 1023, "mem": 1023, "core": 255}
STEP_LIMIT: Final[dict[TileKind, int]] = {"shim": 1 << 20, "mem": 1 << 17, "core": 1 << 13}
ITERATIONS: Final = 64
_PREFIX: Final[dict[TileKind, str]] = {"shim": "shim", "mem": "mem", "core": "core"}

Dims = Sequence[tuple[int, int]]


def whole_words(scope: Scope) -> Checked:
    """Everything that a DMA moves is a multiple of 4 bytes: objects, segments, and runs of a pattern."""
    found: list[StaticFinding] = []
    looked_at = 0
    for stream in scope.wiring.streams:
        dtype = scope.fifo(stream.fifo).dtype
        size = np.dtype(dtype).itemsize
        for end in (stream.source, *stream.targets):
            parts = _parts(scope, end)
            looked_at += len(parts)
            for elements in parts:
                if elements * size % WORD_BYTES:
                    text = f"{elements} elements of {dtype} are {elements * size} bytes, not a multiple of {WORD_BYTES}"
                    where = f"fifo {stream.fifo!r} at {end.actor!r}"
                    found.append(error(WORDS, where, text, used=elements * size, limit=WORD_BYTES))
    return Checked(rule=WORDS, looked_at=looked_at, findings=tuple(dict.fromkeys(found)))


def _parts(scope: Scope, end: StreamEnd) -> list[int]:
    if not end.pool:
        return [end.elements]
    segments = scope.wiring.pools[end.pool].segments
    return [segments[i].elements for i in end.segments]


def transfer_lengths(scope: Scope) -> Checked:
    """No descriptor moves more words than its length field holds."""
    found: list[StaticFinding] = []
    looked_at = 0
    for stream in scope.wiring.streams:
        size = np.dtype(scope.fifo(stream.fifo).dtype).itemsize
        for end in (stream.source, *stream.targets):
            if not end.pool:
                continue
            figure = f"{_PREFIX[end.tile_kind]}_bd_words"
            limit = scope.figure(figure)
            where = f"fifo {stream.fifo!r} on {place(end.tile)}"
            for elements in _parts(scope, end):
                looked_at += 1
                words = -(-elements * size // WORD_BYTES)
                if limit is None:
                    found.append(unknown(LENGTHS, where, figure, scope.device, words))
                elif words > limit:
                    text = f"an object part of {words} words, a descriptor moves at most {limit}"
                    found.append(error(LENGTHS, where, text, used=words, limit=limit))
    return Checked(rule=LENGTHS, looked_at=looked_at, findings=tuple(dict.fromkeys(found)))


def access_patterns(scope: Scope) -> Checked:
    """Patterns of transfers and layouts fit a buffer descriptor: dimensions, wraps, steps, whole words."""
    found: list[StaticFinding] = []
    looked_at = 0
    for where, dims, itemsize, kind in _patterns(scope):
        looked_at += 1
        figure = f"{_PREFIX[kind]}_bd_dims"
        limit = scope.figure(figure)
        for text, used, most in pattern_faults(dims, itemsize, kind):
            found.append(error(PATTERNS, where, text, used=used, limit=most))
        count = len(word_dims(dims, itemsize))
        allowed = None if limit is None else limit + (1 if kind == "shim" else 0)
        if not contiguous(dims):
            if allowed is None:
                found.append(unknown(PATTERNS, where, figure, scope.device, count))
            elif count > allowed:
                text = f"{count} dimensions, a descriptor of a {kind} tile has {allowed}"
                found.append(error(PATTERNS, where, text, used=count, limit=allowed))
    return Checked(rule=PATTERNS, looked_at=looked_at, findings=tuple(found))


def _patterns(scope: Scope) -> Iterator[tuple[str, Dims, int, TileKind]]:
    for index, transfer in enumerate(scope.design.sequence):
        if transfer.sizes:
            dims = tuple(zip(transfer.sizes, transfer.strides, strict=True))
            size = np.dtype(scope.fifo(transfer.fifo).dtype).itemsize
            yield f"transfer {index} of fifo {transfer.fifo!r}", dims, size, "shim"
    for stream in scope.wiring.streams:
        size = np.dtype(scope.fifo(stream.fifo).dtype).itemsize
        for end in (stream.source, *stream.targets):
            if end.dims:
                yield f"dims of fifo {stream.fifo!r} at {end.actor!r}", end.dims, size, end.tile_kind


def contiguous(dims: Dims) -> bool:
    """Whether a pattern is one run of elements, one after the other."""
    expected = 1
    for size, stride in reversed(dims):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def word_dims(dims: Dims, itemsize: int) -> list[tuple[int, int]]:
    """Dimensions outer to inner in 32-bit words, ones in front left out; the innermost run stays in elements' order."""
    inner, stride = dims[-1]
    words = [(size, step * itemsize // WORD_BYTES) for size, step in dims[:-1]]
    words.append((inner * itemsize // WORD_BYTES or 1, 1) if stride == 1 else (inner, stride * itemsize // WORD_BYTES))
    while len(words) > 1 and words[0][0] == 1:
        words.pop(0)
    return words


def pattern_faults(dims: Dims, itemsize: int, kind: TileKind) -> list[tuple[str, int, int]]:
    """(text, used, limit) of what keeps a pattern out of one descriptor.

    Args:
        dims: (size, stride) outer to inner, elements.
        itemsize: bytes of an element.
        kind: of the tile whose DMA walks it.
    """
    if contiguous(dims):
        return []
    found = _word_faults(dims, itemsize)
    if found:
        return found
    words = word_dims(dims, itemsize)
    wrapped = 3 if kind == "mem" else 2
    for position, (size, step) in enumerate(reversed(words)):
        name = f"dimension {len(words) - 1 - position} of {len(words)} (size {size} words, inner is last)"
        limit = WRAP_LIMIT[kind] if position < wrapped else ITERATIONS if kind == "shim" and position == 3 else None
        if limit is not None and size > limit:
            a, b = split_size(size, limit)
            remedy = f"; {size} = {a} * {b} as two dimensions would do" if a > 1 else "; split the transfer"
            found.append((f"{name} is above {limit}, the wrap that a {kind} tile can code{remedy}", size, limit))
        if step > STEP_LIMIT[kind]:
            found.append((f"{name}: step of {step} words is above {STEP_LIMIT[kind]}", step, STEP_LIMIT[kind]))
    return found


def _word_faults(dims: Dims, itemsize: int) -> list[tuple[str, int, int]]:
    inner, stride = dims[-1]
    if inner != 1 and stride != 1:
        remedy = "add an inner dimension (1, 1)" if itemsize >= WORD_BYTES else "a DMA takes whole words of 4 bytes"
        return [(f"the inner stride is {stride}, expected 1 (mlir-aie 2930: dropped in silence); {remedy}", stride, 1)]
    if itemsize >= WORD_BYTES:
        return []
    run = (inner if stride == 1 else 1) * itemsize
    if run % WORD_BYTES:
        return [(f"inner runs of {run} bytes, expected a multiple of {WORD_BYTES}", run, WORD_BYTES)]
    odd = next((s for n, s in dims[:-1] if n > 1 and s * itemsize % WORD_BYTES), None)
    if odd is not None:
        return [
            (f"a stride of {odd * itemsize} bytes, expected a multiple of {WORD_BYTES}", odd * itemsize, WORD_BYTES)
        ]
    return []


def split_size(size: int, limit: int) -> tuple[int, int]:
    """Factors (outer, inner) of a size, both within a limit, inner as large as possible; (1, size) = there are none."""
    for inner in range(min(limit, size), max(1, math.isqrt(size) // limit), -1):
        if size % inner == 0 and size // inner <= limit:
            return size // inner, inner
    return 1, size
