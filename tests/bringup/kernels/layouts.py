"""Whole tensors in another order."""

import math
from typing import Any

import numpy as np

from bringup.kernels.model import KernelModule
from presim.blocks import object_count, object_shape, to_objects
from tests.bringup.kernels.emitted import Case
from tests.bringup.kernels.objects import Array, codes, make_case, output, poisoned


def layout_case(
    module: KernelModule,
    kind: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    *,
    perm: tuple[int, ...] = (),
    bundled: bool = False,
    dtypes: tuple[str, str] = ("int8", "int8"),
    finish: str = "clamp",
    requant: Any = None,
    axis: int = -1,
    zero_points: tuple[int, int] = (3, 3),
    bits: int = 0,
    **changes: Any,
) -> Case:
    """A tensor of one shape as one of the other, object by object or bundled."""
    source, target = shapes
    assert math.prod(source) == math.prod(target)
    channels = target[1] if len(target) == 4 else target[-1] if target else 1
    out = poisoned((object_count(target), *object_shape(target)), dtypes[1])
    attributes = {
        **output(out, channels, finish=finish, zero_point=zero_points[1]),
        "x_shape": source,
        "y_shape": target,
        "perm": perm,
        "axis": axis,
        "x_zero_point": zero_points[0],
        **({"bundled": 1} if bundled else {}),
    }
    tensors = [to_objects(codes(source, dtypes[0], seed, bits=bits)) for seed in range(2)]
    named: dict[str, list[Array]] = {}
    if bundled:
        named["in0"] = tensors
    else:
        named = {f"in{i}": [t[i] for t in tensors] for i in range(len(tensors[0]))}
    if requant is not None:
        named["requant"] = [np.array(requant, np.int32)]
    outs = {"out": [out]} if bundled or len(out) == 1 else {f"out{i}": [o] for i, o in enumerate(out)}
    if not bundled and len(out) == 1:
        outs = {"out": [out[0]]}
    return make_case(module, kind, attributes, {**named, **outs}, **changes)
