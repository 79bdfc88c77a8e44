"""Random and boundary inputs of one stage, as integers (floats only where a graph input is quantised).

All-lowest, all-highest, zero point, alternating extremes, one-hot, ramps, small values, uniform codes, and for
Conv, Gemm and MatMul inputs whose exact result lies on a rounding tie, or as near to one as two inputs can bring it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import QRANGE, Op, Tensor

Array = npt.NDArray[Any]
Random = np.random.Generator

_PAIRS: Final = 1 << 16
_TRIES: Final = 4
_FLOAT_NOISE: Final = 1e-9
"""Ties that float64 takes for something beside a tie are the ones that a careless oracle gets wrong."""
_HUGE: Final = (3.4e38, -3.4e38, 1e30, -1e30, 1e-30, -1e-30, 1e-45, 0.0, -0.0, np.inf, -np.inf, np.nan)


def float_inputs(tensor: Tensor, output: Tensor, count: int, rng: Random, *, special: bool = True) -> Array:
    """Inputs of a QuantizeLinear at the graph's edge: around ties, beyond the range, inf, NaN, denormals.

    Why not for other ops: what a maximum makes of NaN depends on the processor, and an overflow before it makes one.

    Args:
        tensor: the float32 tensor.
        output: the quantised tensor.
        count: cases F.
        rng: source of randomness.
        special: with infinities, NaN, denormals and the ends of float32.

    Returns:
        (F, *shape) float32.
    """
    shape = (count, *tensor.shape)
    if output.quant is None:
        return rng.normal(size=shape).astype(np.float32)
    scale, zero = np.float32(output.quant.scales[0]), output.quant.zero_points[0]
    low, high = QRANGE[output.dtype]
    codes = rng.integers(low - 3, high + 3, size=shape)
    halves = rng.choice([0.0, 0.5, 0.25], size=shape)
    with np.errstate(over="ignore"):
        values = ((codes - zero + halves).astype(np.float32) * scale).astype(np.float32)
        nudge = rng.integers(-1, 2, size=shape)
        values = np.where(nudge > 0, np.nextafter(values, np.float32(np.inf)), values)
        values = np.where(nudge < 0, np.nextafter(values, np.float32(-np.inf)), values)
    chosen = rng.random(size=shape) < 0.1
    specials = rng.choice(np.asarray(_HUGE, np.float32), size=shape)
    result: Array = np.where(chosen & special, specials, values).astype(np.float32)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """The code range of one integer input."""

    shape: tuple[int, ...]
    dtype: str
    low: int
    high: int
    zero: int

    def full(self, code: int) -> Array:
        """A tensor filled with one code."""
        return np.full(self.shape, code, self.dtype)


def codes_of(tensor: Tensor) -> Codes:
    """Range, zero point and shape of an integer tensor."""
    low, high = QRANGE[tensor.dtype]
    zero = tensor.quant.zero_points[0] if tensor.quant is not None else 0
    return Codes(shape=tensor.shape, dtype=tensor.dtype, low=low, high=high, zero=zero)


def _lowest(c: Codes, _rng: Random) -> Array:
    return c.full(c.low)


def _highest(c: Codes, _rng: Random) -> Array:
    return c.full(c.high)


def _zero(c: Codes, _rng: Random) -> Array:
    return c.full(c.zero)


def _alternating(c: Codes, _rng: Random) -> Array:
    index = np.arange(int(np.prod(c.shape))).reshape(c.shape)
    return np.where(index % 2 == 0, c.low, c.high).astype(c.dtype)


def _checkered(c: Codes, _rng: Random) -> Array:
    index = np.indices(c.shape).sum(axis=0) if c.shape else np.zeros((), np.int64)
    return np.where(index % 2 == 0, c.high, c.low).astype(c.dtype)


def _extremes(c: Codes, rng: Random) -> Array:
    return rng.choice(np.asarray([c.low, c.high], c.dtype), size=c.shape)


def _one_hot(c: Codes, rng: Random) -> Array:
    values = c.full(c.zero)
    if values.size:
        values.reshape(-1)[rng.integers(values.size)] = rng.choice([c.low, c.high, min(c.zero + 1, c.high)])
    return values


def _ramp(c: Codes, rng: Random) -> Array:
    start, step = int(rng.integers(0, 1 << 16)), int(rng.integers(0, 4)) * 2 + 1
    index = (np.arange(int(np.prod(c.shape)), dtype=np.int64) * step + start) % (c.high - c.low + 1)
    return (index + c.low).astype(c.dtype).reshape(c.shape)


def _small(c: Codes, rng: Random) -> Array:
    return np.clip(c.zero + rng.integers(-3, 4, size=c.shape), c.low, c.high).astype(c.dtype)


def _levels(c: Codes, rng: Random) -> Array:
    """Another level per index of the first two axes, with a little noise: averages spread over all codes."""
    form = (*c.shape[:2], *(1 for _ in c.shape[2:]))
    noise = rng.integers(-2, 3, size=c.shape)
    levels: Array = np.clip(rng.integers(c.low, c.high + 1, size=form) + noise, c.low, c.high)
    return levels.astype(c.dtype)


def _uniform(c: Codes, rng: Random) -> Array:
    return rng.integers(c.low, c.high + 1, size=c.shape).astype(c.dtype)


BOUNDARY: Final[tuple[Callable[[Codes, Random], Array], ...]] = (
    _lowest, _highest, _zero, _alternating, _checkered, _one_hot, _one_hot, _extremes, _ramp,
)  # fmt: skip
RANDOM: Final[tuple[Callable[[Codes, Random], Array], ...]] = (_uniform, _levels, _small, _ramp, _extremes)


def integer_inputs(tensors: Mapping[str, Tensor], cases: int, rng: Random) -> dict[str, Array]:
    """Boundary and random cases for the integer inputs of a stage.

    With several inputs every boundary pattern of the first meets three of each other input: its own kind, the next
    one and the opposite extreme.

    Args:
        tensors: the inputs.
        cases: random cases beside the boundary cases.
        rng: source of randomness.

    Returns:
        By name, (F, *shape) in storage dtype.
    """
    boundary = len(BOUNDARY)
    turns = (0,) if len(tensors) == 1 else (0, 1, boundary - 1)
    stacks: dict[str, Array] = {}
    for position, (name, tensor) in enumerate(tensors.items()):
        codes = codes_of(tensor)
        rows = [BOUNDARY[(i + turn * position) % boundary](codes, rng) for turn in turns for i in range(boundary)]
        rows += [RANDOM[(i + position) % len(RANDOM)](codes, rng) for i in range(cases)]
        stacks[name] = np.stack(rows)
    return stacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A Conv, Gemm or MatMul with constant weights, ready for a search of ties.

    Attributes:
        op: the op.
        activation: its first input.
        output: the quantised tensor of the stage.
        weights: integer weights less their zero points, as stored.
        ratios: output codes per product, one per output channel.
        offsets: bias in output codes, one per output channel.
    """

    op: Op
    activation: Tensor
    output: Tensor
    weights: Array
    ratios: Array
    offsets: Array


def tie_inputs(matrix: Matrix, count: int, rng: Random) -> Array:
    """Inputs that are zero but for two elements chosen so that one output lies on (or nearest to) a tie.

    Returns:
        (count, *shape of the activation) in storage dtype.
    """
    codes = codes_of(matrix.activation)
    rows = []
    for _ in range(count):
        values = codes.full(codes.zero)
        best = min((_pair(matrix, codes, rng) for _ in range(_TRIES)), key=lambda pair: pair[0])
        for place, code in best[1]:
            values[place] = code
        rows.append(values)
    return np.stack(rows)


_Places = tuple[tuple[tuple[int, ...], int], tuple[tuple[int, ...], int]]


def _pair(matrix: Matrix, codes: Codes, rng: Random) -> tuple[float, _Places]:
    """Distance to a tie, and two elements with their codes."""
    channel, (first, second), (w0, w1) = _taps(matrix, rng)
    d0, d1 = _differences(codes, rng)
    ratio, offset = (
        float(matrix.ratios[channel % len(matrix.ratios)]),
        float(matrix.offsets[channel % len(matrix.offsets)]),
    )
    values = (d0 * w0 + d1 * w1) * ratio + offset
    low, high = QRANGE[matrix.output.dtype]
    zero = matrix.output.quant.zero_points[0] if matrix.output.quant is not None else 0
    inside = (values + zero > low) & (values + zero < high)
    distance = np.where(inside, np.abs(values - np.floor(values) - 0.5), 1.0)
    ties = np.flatnonzero(distance <= distance.min() + _FLOAT_NOISE)
    chosen = int(rng.choice(ties))
    places = ((first, int(d0[chosen]) + codes.zero), (second, int(d1[chosen]) + codes.zero))
    return float(distance[chosen]), places


def _differences(codes: Codes, rng: Random) -> tuple[Array, Array]:
    """Pairs of (code - zero point): all of them for 8 bit, random ones above."""
    if codes.high - codes.low < 256:
        line = np.arange(codes.low, codes.high + 1) - codes.zero
        a, b = np.meshgrid(line, line)
        return a.reshape(-1), b.reshape(-1)
    pairs = rng.integers(codes.low, codes.high + 1, size=(2, _PAIRS)) - codes.zero
    return pairs[0], pairs[1]


_Taps = tuple[int, tuple[tuple[int, ...], tuple[int, ...]], tuple[int, int]]


def _taps(matrix: Matrix, rng: Random) -> _Taps:
    """An output channel, two input elements that reach the same output element of it, and their weights."""
    if matrix.op.type == "Conv":
        return _conv_taps(matrix, rng)
    weights = matrix.weights
    if matrix.op.type == "Gemm" and matrix.op.attributes.get("transB"):
        weights = weights.T
    depth, width = weights.shape[-2:]
    channel = int(rng.integers(width))
    k0, k1 = (int(k) for k in rng.choice(depth, size=2, replace=depth < 2))
    shape = matrix.activation.shape
    lead = tuple(int(rng.integers(size)) for size in shape[:-1])
    batch = tuple(0 if n == 1 else min(int(b), n - 1) for n, b in zip(weights.shape[:-2], lead, strict=False))
    if matrix.op.type == "Gemm" and matrix.op.attributes.get("transA"):
        row = int(rng.integers(shape[1]))
        places = ((k0, row), (k1, row))
    else:
        places = ((*lead, k0), (*lead, k1))  # type: ignore[assignment]
    return channel, places, (int(weights[(*batch, k0, channel)]), int(weights[(*batch, k1, channel)]))


def _conv_taps(matrix: Matrix, rng: Random) -> _Taps:
    weights, attributes = matrix.weights, matrix.op.attributes
    channel = int(rng.integers(weights.shape[0]))
    groups = int(str(attributes["group"]))
    first = channel // (weights.shape[0] // groups) * weights.shape[1]
    kernel: Any = weights.shape[2:]
    strides: Any = attributes["strides"]
    dilations: Any = attributes["dilations"]
    pads: Any = attributes["pads"]
    image = int(rng.integers(matrix.activation.shape[0]))
    out = matrix.output.shape[2:] if len(matrix.output.shape) == len(matrix.activation.shape) else None
    start = [0 if out is None else int(rng.integers(size)) for size in (out or kernel)]
    found: list[tuple[tuple[int, ...], int]] = []
    for _ in range(64):
        tap = tuple(int(rng.integers(size)) for size in kernel)
        place = tuple(
            s * stride - pad + t * d
            for s, stride, pad, t, d in zip(start, strides, pads[: len(kernel)], tap, dilations, strict=True)
        )
        inside = all(0 <= p < size for p, size in zip(place, matrix.activation.shape[2:], strict=True))
        inner = int(rng.integers(weights.shape[1]))
        if inside:
            found.append(((image, first + inner, *place), int(weights[(channel, inner, *tap)])))
        if len({place for place, _ in found}) == 2:
            break
    if not found:
        return channel, ((image, first, *([0] * len(kernel))),) * 2, (0, 0)
    (a, wa), (b, wb) = found[0], found[-1]
    return channel, (a, b), (wa, 0 if a == b else wb)
