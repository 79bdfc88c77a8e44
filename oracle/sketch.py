"""Manifests written down by hand, without an ONNX file: for property tests of oracle, simulators and kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import (
    QRANGE,
    Accumulator,
    Activation,
    AttributeValue,
    Bias,
    DType,
    Manifest,
    ModelInfo,
    Op,
    Origin,
    Quantization,
    ReferenceKind,
    Requantization,
    Role,
    Scheme,
    Target,
    TargetKind,
    Tensor,
)
from oracle.fixedpoint import exponent_of, multiplier_shift_of

Array = NDArray[Any]


def quantization(scales: Sequence[float], points: Sequence[int], axis: int | None = None) -> Quantization:
    """A quantization with its exponents filled in where every scale is 2**k.

    Args:
        scales: rounded to float32.
        points: zero points, as many as `scales`.
        axis: channel axis where there is more than one scale.
    """
    rounded = tuple(float(np.float32(s)) for s in scales)
    exponents = [exponent_of(s) for s in rounded]
    known = tuple(e for e in exponents if e is not None)
    return Quantization(
        scales=rounded,
        zero_points=tuple(int(p) for p in points),
        axis=axis,
        exponents=known if len(known) == len(exponents) else None,
    )


def requantization(
    ratios: Sequence[Fraction],
    dtype: DType,
    *,
    reference: ReferenceKind | None = None,
    limits: tuple[int, int] | None = None,
    inside: bool = False,
    shared_shift: bool = False,
) -> Requantization:
    """The parameters for given ratios (one unit of what is rounded over the output scale).

    Args:
        ratios: one, one per channel, or one per input.
        dtype: of the output.
        reference: `srs` where all ratios are 2**k, else `rational`, unless given.
        limits: lowest and highest code; the dtype's range where None.
        inside: the zero point is added before the rounding.
        shared_shift: one shift for all multipliers, as Add has.

    Returns:
        `srs` with multipliers of 1 (powers of two with a shared shift) where every ratio is 2**-k, else
        `multiplier_shift` with multipliers below 2**31.
    """
    low, high = limits or QRANGE[dtype]
    exponents = [exponent_of(float(r)) if _is_power(r) else None for r in ratios]
    powers = [e for e in exponents if e is not None]
    target: TargetKind = "srs" if len(powers) == len(ratios) else "multiplier_shift"
    pairs = [(1, -e) for e in powers] if target == "srs" else [multiplier_shift_of(r) for r in ratios]
    if shared_shift:
        pairs = _shared(ratios, pairs, target)
    return Requantization(
        reference=reference or ("srs" if target == "srs" else "rational"),
        target=target,
        qmin=low,
        qmax=high,
        multipliers=tuple(m for m, _ in pairs),
        shifts=tuple(s for _, s in pairs)[: 1 if shared_shift else None],
        zero_point_inside=inside,
    )


def _is_power(ratio: Fraction) -> bool:
    return ratio.numerator & (ratio.numerator - 1) == 0 and ratio.denominator & (ratio.denominator - 1) == 0


def _shared(ratios: Sequence[Fraction], pairs: list[tuple[int, int]], target: TargetKind) -> list[tuple[int, int]]:
    """Multipliers on the shift of the largest ratio; for powers of two on the finest."""
    shifts = [s for _, s in pairs]
    shift = max(shifts) if target == "srs" else min(shifts)
    return [(round(r * Fraction(2) ** shift), shift) for r in ratios]


@dataclass(slots=True, kw_only=True)
class Sketch:
    """Collects tensors, constants and ops; `manifest` puts them together."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)

    def activation(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DType,
        quant: Quantization | None = None,
        *,
        role: Role = "activation",
        onnx_dtype: str = "",
    ) -> str:
        """An input or the output of an op; returns its name."""
        self.tensors[name] = Tensor(
            name=name,
            shape=tuple(int(n) for n in shape),
            dtype=dtype,
            onnx_dtype=onnx_dtype or ("float32" if dtype == "exact" else dtype),
            role=role,
            quant=quant,
        )
        return name

    def constant(self, name: str, array: Array, quant: Quantization | None = None, *, role: Role = "weight") -> str:
        """A constant in its storage dtype; returns its name."""
        key = self.store(array)
        dtype: Any = array.dtype.name
        self.tensors[name] = Tensor(
            name=name, shape=array.shape, dtype=dtype, onnx_dtype=dtype, role=role, quant=quant, array=key
        )
        return name

    def store(self, array: Array) -> str:
        """An array without a tensor (a rescaled bias, a table); returns its key."""
        key = f"t{len(self.arrays) + 1:06d}"
        self.arrays[key] = array
        return key

    def op(
        self,
        op_type: str,
        inputs: Sequence[str],
        output: str,
        *,
        requant: Requantization | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
        bias: Bias | None = None,
        origin: Origin = "qdq",
        accumulator: Accumulator | None = None,
        activation: Activation | None = None,
        host: bool = False,
    ) -> str:
        """Append an op; returns its output."""
        name = f"{op_type.lower()}_{len(self.ops)}"
        self.ops.append(
            Op(
                name=name,
                type=op_type,
                inputs=tuple(inputs),
                outputs=(output,),
                attributes=dict(attributes or {}),
                origin=origin,
                nodes=(name,),
                where="host" if host else "npu",
                accumulator=accumulator,
                bias=bias,
                activation=activation,
                requant=requant,
            )
        )
        return output

    def manifest(self, inputs: Sequence[str], outputs: Sequence[str]) -> Manifest:
        """The manifest; `inputs` and `outputs` are the graph's."""
        return Manifest(
            model=ModelInfo(
                sha256="0" * 64,
                format="mixed",
                opset=21,
                ir_version=10,
                producer="sketch",
                inputs=tuple(inputs),
                outputs=tuple(outputs),
            ),
            target=Target(device="npu2"),
            scheme=Scheme(activations="", weights="", bias="", power_of_two=False, not_power_of_two=()),
            tensors=tuple(self.tensors[n] for n in sorted(self.tensors)),
            ops=tuple(self.ops),
        )
