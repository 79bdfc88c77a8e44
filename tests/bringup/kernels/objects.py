"""Random objects, attributes and multipliers for kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bringup.kernels.model import KernelModule, Role
from tests.bringup.kernels.emitted import Call, Case, make_row, parameter

Array = NDArray[Any]
EXACT = {"int32", "int64"}


def codes(shape: tuple[int, ...], dtype: str, seed: int, *, bits: int = 0) -> Array:
    """Random codes, many of them at the ends and in the middle of the range; of `bits` bits where given."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    low, high = (int(info.min), int(info.max)) if not 0 < bits < info.bits else (1 - (1 << bits), (1 << bits) - 1)
    found = rng.integers(low, high, shape, endpoint=True, dtype=dtype)
    ends = np.array([low, low + 1, high - 1, high, 0, 1], dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(ends, shape), found).astype(dtype)


def output(
    out: Array,
    channels: int,
    *,
    finish: str = "round",
    zero_point: int = 0,
    inside: bool = False,
    bounds: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Attributes of the output."""
    info = np.iinfo(out.dtype)
    exact = (-(1 << 63), (1 << 63) - 1)
    low, high = exact if finish == "exact" else bounds or (int(info.min), int(info.max))
    return {
        "finish": finish,
        "out_dtype": out.dtype.name,
        "out_channels": channels,
        "y_zero_point": 0 if finish == "exact" else zero_point,
        "qmin": low,
        "qmax": high,
        "zero_point_inside": int(inside),
    }


def shape_of(blocks: int, width: int | None) -> tuple[int, ...]:
    """An object: a row, or a vector where the width is None."""
    return (blocks * 8,) if width is None else (blocks, width, 8)


def poisoned(shape: tuple[int, ...], dtype: str) -> Array:
    """An object that nobody wrote."""
    return np.full(shape, 85, dtype)


def multipliers(seed: int, count: int, *, shift: int = 34, spread: int = 4) -> Array:
    """(2, count) multipliers of 31 bits and their shifts."""
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(1 << 30, 1 << 31, count), rng.integers(shift, shift + spread, count)], np.int32)


ROLES: Mapping[str, Role] = {"in": "object_in", "row": "object_in", "out": "object_out"}


def make_case(
    module: KernelModule,
    kind: str,
    attributes: Mapping[str, Any],
    named: Mapping[str, Sequence[Array]],
    *,
    scalars: Sequence[Mapping[str, int]] = (),
    written: Sequence[str] = ("out",),
    **changes: Any,
) -> Case:
    """A kernel and one call for every array that a parameter has.

    Args:
        module: emitter.
        kind: kernel type.
        attributes: of the kernel.
        named: arrays of every call by name of the parameter; numbers at the end of a name do not count for its role.
        scalars: of every call.
        written: names of parameters that are written; names beside them are read.
        changes: of the row, and `modes` of the tile.
    """
    modes = changes.pop("modes", ("floor", "none"))
    parameters = []
    for name, arrays in named.items():
        plain: Any = name.rstrip("0123456789")
        writes = plain in written
        parameters.append(parameter(name, ROLES.get(plain, plain), arrays[0], writes=writes))
    count = max(len(arrays) for arrays in named.values())
    calls = [
        Call(
            arrays=[arrays[number % len(arrays)] for arrays in named.values()],
            scalars=scalars[number % len(scalars)] if scalars else {},
        )
        for number in range(count)
    ]
    return Case(module=module, row=make_row(kind, attributes, parameters, **changes), calls=calls, modes=modes)
