"""What flows between the ops of the oracle.

Every array inside has its feed axis LAST: (*shape, F). With the feeds of a whole data set behind each pixel, windows,
taps and per-channel arithmetic run over long contiguous rows whatever the image size, which is where the speed is.

A tensor is held in one of three forms: codes (its storage dtype), float32, or `Exact`: integers in the smallest dtype
that holds them (float32 up to 2**24, float64 up to 2**53, int64, Python ints) with a rational scale.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.model import QRANGE, Op, Quantization, Tensor

Array = NDArray[Any]
Values = Mapping[str, Array]
Arithmetic = Literal["reference", "target", "exact"]

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53
INT64_EXACT = 1 << 62


def carrier(bound: int) -> np.dtype[Any]:
    """Smallest dtype in which sums and products up to `bound` in magnitude are exact."""
    if bound <= FLOAT32_EXACT:
        return np.dtype(np.float32)
    if bound <= FLOAT64_EXACT:
        return np.dtype(np.float64)
    return np.dtype(np.int64) if bound < INT64_EXACT else np.dtype(object)


def as_carrier(array: Array, dtype: np.dtype[Any]) -> Array:
    """`array` in `dtype`, integers kept exact (object arrays hold Python ints)."""
    if array.dtype == dtype:
        return array
    if dtype.kind == "O":
        return array.astype(np.int64).astype(object) if array.dtype.kind == "f" else array.astype(object)
    return array.astype(dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Real value = integer * scales[c] + offsets[c].

    Attributes:
        scales: positive, 1 or one per channel.
        bound: largest |integer| over all inputs in their dtypes' ranges.
        axis: channel axis of the logical shape (feed axis not counted), None with one scale.
        offsets: as many as `scales`; not zero where a bias is no multiple of the scale.
        nominal: what the manifest counts in (its `target` multipliers apply to value / nominal), as many as `scales`;
            differs from `scales` where a bias of finer scale or a clamp makes the integers finer.
        kernel_scales: float32 scales with which onnxruntime's QGemm turns its accumulator into a float, else ().
    """

    scales: tuple[Fraction, ...]
    bound: int
    axis: int | None = None
    offsets: tuple[Fraction, ...] = (Fraction(0),)
    nominal: tuple[Fraction, ...] = ()
    kernel_scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.scales)
        object.__setattr__(self, "offsets", self.offsets * (count if len(self.offsets) == 1 else 1))
        nominal = self.nominal or self.scales
        object.__setattr__(self, "nominal", nominal * (count if len(nominal) == 1 else 1))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that holds the integers."""
        return carrier(self.bound)


class Finish(Protocol):
    """Turns a block of exact integers into what is stored; may overwrite the block."""

    dtype: np.dtype[Any]

    def __call__(self, acc: Array, out: Array) -> None:
        """Write the finished `acc` to `out` (same shape)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One op, prepared.

    Attributes:
        run: from the values at hand to the output; hands blocks of exact integers to the `Finish`.
        exact: form of those integers; None where `run` gives the stored form itself and ignores the `Finish`.
        rank: rank of the blocks handed over.
        axis: their channel axis, None where all elements share one scale.
        multiplier: float32 multipliers of onnxruntime's kernel for this op (`scale_f32`), else None.
        multipliers: replace those of the manifest in `target`, where the op has already applied its own.
    """

    run: Callable[[Values, Finish], Array]
    exact: Exact | None = None
    rank: int = 0
    axis: int | None = None
    multiplier: Array | None = None
    multipliers: tuple[int, ...] | None = None


def refuse(op: Op, what: str, **more: str) -> RefusedError:
    """The error for an op that the oracle has no meaning for."""
    return RefusedError((Problem(code="ORACLE-UNSUPPORTED", where=f"op {op.name!r} ({op.type})", what=what, **more),))


class Workspace:
    """Scratch arrays that are reused from op to op, so that large buffers are not allocated again and again."""

    def __init__(self) -> None:
        self._slots: dict[str, Array] = {}

    @property
    def size_bytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in self._slots.values())

    def take(self, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An uninitialised array; valid until `slot` is taken again."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        held = self._slots.get(slot)
        if held is None or held.size < size:
            held = self._slots[slot] = np.empty(size, np.uint8)
        return np.asarray(held[:size].view(dtype)).reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an op may look at while it is prepared.

    Attributes:
        tensors: by name.
        arrays: constants by their key.
        arithmetic: `exact` stops in front of the rounding (for exact real values).
        opset: of the model (Softmax changed its meaning in 13).
        fma: whether QLinearAdd contracts to fused multiply-adds, as on x86 with AVX2.
        exact: forms of the exact tensors seen so far.
        workspace: scratch memory.
    """

    tensors: Mapping[str, Tensor]
    arrays: Mapping[str, Array]
    arithmetic: Arithmetic
    opset: int = 21
    fma: bool = True
    exact: dict[str, Exact] = field(default_factory=dict)
    workspace: Workspace = field(default_factory=Workspace)

    def constant(self, name: str) -> Array | None:
        """The array of a constant tensor in its stored dtype; None for an activation or an absent input."""
        tensor = self.tensors.get(name)
        return None if tensor is None or tensor.array is None else self.arrays[tensor.array]

    def quant(self, name: str) -> Quantization:
        """Quantization of a tensor that must have one."""
        quant = self.tensors[name].quant
        if quant is None:
            problem = Problem(code="ORACLE-NOT-QUANTIZED", where=f"tensor {name!r}", what="has no scale")
            raise RefusedError((problem,))
        return quant

    def point(self, op: Op, name: str) -> tuple[Fraction, int]:
        """Scale and zero point of a per-tensor quantised tensor."""
        quant = self.quant(name)
        if len(quant.scales) != 1:
            raise refuse(op, f"input {name!r} is quantised per channel", expected="one scale")
        return Fraction(quant.scales[0]), quant.zero_points[0]


def centred_bound(tensor: Tensor) -> int:
    """Largest |code - zero point| that the dtype allows."""
    low, high = QRANGE[tensor.dtype]
    points = tensor.quant.zero_points if tensor.quant else (0,)
    return max(max(high - z, z - low) for z in points)


def spread(values: Any, axis: int | None, rank: int, dtype: Any) -> Array:
    """Per-channel numbers shaped for an internal array of `rank` logical axes (plus the feed axis)."""
    array: Array = np.asarray(values, dtype=dtype).reshape(-1)
    if array.size == 1:
        return array.reshape(())
    return array.reshape(tuple(-1 if i == axis else 1 for i in range(rank + 1)))
