"""Decompositions that change the mathematics: a whole computation, and the same in pieces as a dataflow would do it.

An integer sum in any order is the same sum, also where it wraps; a split of channels or a cascade needs no proof.
A maximum that is corrected as it grows, or a mean in two passes, is other mathematics: it is held against the whole on
real data before any dataflow exists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """A whole and its pieces.

    Attributes:
        name: as files name it.
        inputs: names of the arrays that it takes.
        whole: computes on all at once.
        pieces: computes chunk after chunk; the last argument is the length of a chunk.
        length: what is cut into chunks, from the arrays.
        text: what is decomposed, in one line.
    """

    name: str
    inputs: tuple[str, ...]
    whole: Callable[..., Floats]
    pieces: Callable[..., Floats]
    length: Callable[..., int]
    text: str


def softmax(x: Floats) -> Floats:
    """Softmax over the last axis, float32; (..., K)."""
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    result: Floats = (shifted / shifted.sum(axis=-1, keepdims=True)).astype(np.float32)
    return result


def chunked_softmax(x: Floats, chunk: int) -> Floats:
    """Softmax over the last axis in chunks: a running maximum, and a running sum that is corrected as it grows."""
    peak = np.full((*x.shape[:-1], 1), -np.inf, np.float32)
    total = np.zeros_like(peak)
    pieces = [x[..., at : at + chunk] for at in range(0, x.shape[-1], chunk)]
    for piece in pieces:
        higher = np.maximum(peak, piece.max(axis=-1, keepdims=True))
        total = total * np.exp(peak - higher) + np.exp(piece - higher).sum(axis=-1, keepdims=True)
        peak = higher
    return np.concatenate([np.exp(piece - peak) / total for piece in pieces], axis=-1).astype(np.float32)


def attention(q: Floats, k: Floats, v: Floats) -> Floats:
    """softmax(q k^T / sqrt(d)) v; q (..., M, D), k (..., N, D), v (..., N, E)."""
    scores = (q @ np.swapaxes(k, -1, -2)) / np.float32(np.sqrt(q.shape[-1]))
    result: Floats = (softmax(scores.astype(np.float32)) @ v).astype(np.float32)
    return result


def streaming_attention(q: Floats, k: Floats, v: Floats, chunk: int) -> Floats:
    """Attention with keys and values in chunks: the output so far is scaled down whenever the maximum grows."""
    scale = np.float32(np.sqrt(q.shape[-1]))
    peak = np.full((*q.shape[:-1], 1), -np.inf, np.float32)
    total = np.zeros_like(peak)
    output = np.zeros((*q.shape[:-1], v.shape[-1]), np.float32)
    for at in range(0, k.shape[-2], chunk):
        scores = (q @ np.swapaxes(k[..., at : at + chunk, :], -1, -2)) / scale
        higher = np.maximum(peak, scores.max(axis=-1, keepdims=True))
        weights = np.exp(scores - higher)
        fade = np.exp(peak - higher)
        total = total * fade + weights.sum(axis=-1, keepdims=True)
        output = output * fade + weights @ v[..., at : at + chunk, :]
        peak = higher
    result: Floats = (output / total).astype(np.float32)
    return result


def normalised(x: Floats) -> Floats:
    """Layer normalisation over the last axis without scale and bias, epsilon 1e-5; (..., K)."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = np.square(x - mean).mean(axis=-1, keepdims=True)
    result: Floats = ((x - mean) / np.sqrt(variance + np.float32(1e-5))).astype(np.float32)
    return result


def chunked_normalised(x: Floats, chunk: int) -> Floats:
    """Layer normalisation with mean and variance from running chunks (Welford, by chunks)."""
    count, mean = 0, np.zeros((*x.shape[:-1], 1), np.float32)
    squares = np.zeros_like(mean)
    for at in range(0, x.shape[-1], chunk):
        piece = x[..., at : at + chunk]
        size = piece.shape[-1]
        own = piece.mean(axis=-1, keepdims=True)
        delta = own - mean
        squares = squares + np.square(piece - own).sum(axis=-1, keepdims=True)
        squares = squares + np.square(delta) * np.float32(count * size / (count + size))
        mean = mean + delta * np.float32(size / (count + size))
        count += size
    result: Floats = ((x - mean) / np.sqrt(squares / np.float32(count) + np.float32(1e-5))).astype(np.float32)
    return result


def _last(x: Floats, *_: Floats) -> int:
    return int(x.shape[-1])


def _keys(_: Floats, k: Floats, *__: Floats) -> int:
    return int(k.shape[-2])


DECOMPOSITIONS: Final[Mapping[str, Decomposition]] = MappingProxyType(
    {
        row.name: row
        for row in (
            Decomposition(
                name="chunked_softmax",
                inputs=("x",),
                whole=softmax,
                pieces=chunked_softmax,
                length=_last,
                text="softmax over the last axis, chunk after chunk with a running maximum and sum",
            ),
            Decomposition(
                name="streaming_attention",
                inputs=("q", "k", "v"),
                whole=attention,
                pieces=streaming_attention,
                length=_keys,
                text="attention over the keys, chunk after chunk with a rescaled output",
            ),
            Decomposition(
                name="chunked_layer_norm",
                inputs=("x",),
                whole=normalised,
                pieces=chunked_normalised,
                length=_last,
                text="layer normalisation over the last axis, chunk after chunk with a running mean and variance",
            ),
        )
    }
)
"""By name."""

DECOMPOSED: Final[Mapping[str, str]] = MappingProxyType(
    {"softmax": "chunked_softmax", "attention": "streaming_attention", "layer_norm": "chunked_layer_norm"}
)
"""Kernel type -> the decomposition that it computes by. No kernel of these types exists yet."""
