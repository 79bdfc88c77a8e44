"""CPU flags as a value, and what they say about onnxruntime's integer kernels.

Why: on x86 with AVX2 or AVX512BW but without VNNI, onnxruntime multiplies uint8 activations with int8 weights by an
instruction that adds two 16-bit products with int16 saturation. Such a kernel is no reference. Which kernel runs is
decided by the CPU, so the flags enter as a frozen value that a test can make up, and the choice is recorded.

Source: measured under masked CPUID, `facts/ort-arithmetic.md` section 3 (kernels) and 1.3 (QLinearAdd).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import QRANGE, Manifest, Op, Tensor

CPUINFO: Final = Path("/proc/cpuinfo")
VNNI: Final = frozenset({"avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8"})
DECIDING: Final = VNNI | {"sse4_1", "avx2", "fma", "avx512bw", "asimd", "asimddp"}
"""Flags that choose a kernel; only these are recorded."""

_U8_MAX: Final = 255
_I16: Final = (-32768, 32767)
_MATRIX_OPS: Final = frozenset({"Conv", "Gemm", "MatMul"})


@dataclass(frozen=True, slots=True)
class CpuFlags:
    """Feature flags of a CPU under the names of `/proc/cpuinfo`; empty = unknown."""

    flags: frozenset[str]

    @property
    def deciding(self) -> tuple[str, ...]:
        """The flags that choose a kernel, sorted."""
        return tuple(sorted(self.flags & DECIDING))

    @property
    def known(self) -> bool:
        """Whether the flags say which family of kernels runs (x86 or 64-bit ARM)."""
        return bool(self.flags & {"sse4_1", "avx2", "asimd"})

    @property
    def fma(self) -> bool:
        """Whether QLinearAdd is computed with fused multiply-add (x86 with AVX2 and FMA)."""
        return {"avx2", "fma"} <= self.flags

    @property
    def saturates_u8s8(self) -> bool:
        """Whether u8*s8 products pass through int16 saturation; an unknown CPU is taken to do so."""
        if not self.known:
            return True
        return bool(self.flags & {"avx2", "avx512bw"}) and not self.flags & VNNI

    @property
    def reproduces_add(self) -> bool:
        """Whether the float formula of QLinearAdd is the one that runs (x86; ARM uses a fixed-point multiplier)."""
        return bool(self.flags & {"sse4_1", "avx2"})


def read_cpu_flags(path: Path = CPUINFO) -> CpuFlags:
    """The flags of the first CPU in a file in the form of `/proc/cpuinfo`; empty where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return CpuFlags(frozenset())
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("flags", "features"):
            return CpuFlags(frozenset(value.split()))
    return CpuFlags(frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOp:
    """What decides whether an integer kernel can saturate.

    Attributes:
        name: op name.
        activation: dtype of the activation operand.
        weight: dtype of the weight operand.
        highest_pair: largest sum of two non-negative weight parts within one output channel.
        lowest_pair: smallest sum of two non-positive weight parts within one output channel.
    """

    name: str
    activation: str
    weight: str
    highest_pair: int
    lowest_pair: int

    @property
    def could_saturate(self) -> bool:
        """Whether some input drives a pair of u8*s8 products beyond int16.

        The order in which a kernel pairs its products is not documented, so any two weights of an output channel
        count as a pair: a superset of what can happen.
        """
        if (self.activation, self.weight) != ("uint8", "int8"):
            return False
        return _U8_MAX * self.highest_pair > _I16[1] or _U8_MAX * self.lowest_pair < _I16[0]


def pair_sums(weights: npt.NDArray[Any]) -> tuple[int, int]:
    """Extreme sums of two weights of one output channel.

    Args:
        weights: (channels, K) integer codes as stored; values of one channel meet in one sum.

    Returns:
        (largest sum of two non-negative parts, smallest sum of two non-positive parts), (0, 0) where empty.
    """
    if weights.size == 0:
        return 0, 0
    ordered = np.sort(weights.astype(np.int64), axis=1)
    high = np.maximum(ordered[:, -2:], 0).sum(axis=1).max()
    low = np.minimum(ordered[:, :2], 0).sum(axis=1).min()
    return int(high), int(low)


def kernel_ops(manifest: Manifest, arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[KernelOp, ...]:
    """The Conv, Gemm and MatMul ops of a manifest with their actual weights; unknown weights count as full range."""
    tensors = manifest.by_name()
    return tuple(_kernel_op(op, tensors, arrays) for op in manifest.ops if op.type in _MATRIX_OPS)


def _kernel_op(op: Op, tensors: Mapping[str, Tensor], arrays: Mapping[str, npt.NDArray[Any]]) -> KernelOp:
    weight = tensors[op.inputs[1]]
    if weight.array is None:
        low, high = QRANGE.get(weight.dtype, (0, 0))
        pairs = (2 * max(high, 0), 2 * min(low, 0))
    else:
        pairs = pair_sums(_by_channel(op, arrays[weight.array]))
    return KernelOp(
        name=op.name,
        activation=tensors[op.inputs[0]].dtype,
        weight=weight.dtype,
        highest_pair=pairs[0],
        lowest_pair=pairs[1],
    )


def _by_channel(op: Op, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Weights as (output channels, K)."""
    if op.type == "Conv" or (op.type == "Gemm" and op.attributes.get("transB") == 1):
        return weights.reshape(weights.shape[0], -1)
    if weights.ndim == 1:
        return weights.reshape(1, -1)
    return np.moveaxis(weights, -2, -1).reshape(-1, weights.shape[-2])


def hazard_ops(flags: CpuFlags, ops: Iterable[KernelOp]) -> tuple[str, ...]:
    """Names of the ops whose integer kernel could saturate on this CPU with these weights."""
    if not flags.saturates_u8s8:
        return ()
    return tuple(op.name for op in ops if op.could_saturate)


def integer_kernels_exact(flags: CpuFlags, ops: Iterable[KernelOp]) -> bool:
    """Whether onnxruntime's integer kernels are exact for these ops on this CPU."""
    return not hazard_ops(flags, ops)
