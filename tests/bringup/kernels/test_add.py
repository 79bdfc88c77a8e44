"""`add`: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import add
from manifest.errors import RefusedError
from tests.bringup.kernels.emitted import Call, Case, differences, fewer, make_row, parameter
from tests.bringup.kernels.objects import codes, output, poisoned, shape_of

HALF = (1 << 30, 1 << 30, 31)
THIRDS = (1431655765, 2004318071, 33)


def case(
    *,
    extents: tuple[int, int | None, int] = (2, 5, 13),
    dtypes: tuple[str, str, str] = ("int8", "int8", "int8"),
    zero_points: tuple[int, int, int] = (3, -7, 5),
    operands: tuple[tuple[int, int], ...] = (),
    constant: int = -1,
    requant: tuple[int, ...] = THIRDS,
    factors: tuple[int, ...] = (),
    objects: int = 1,
    changes: dict[str, Any] | None = None,
    calls: int = 3,
    **finish: Any,
) -> Case:
    """A sum; `operands` are (channels, width) of operands that are broadcast."""
    blocks, width, channels = extents
    shapes = [shape_of(blocks, width), shape_of(blocks, width)]
    counts = [channels, channels]
    for index, (count, wide) in enumerate(operands):
        counts[index] = count
        shapes[index] = shape_of(-(-count // 8), wide if width is not None else None)
    exact = bool(factors)
    out = poisoned(shape_of(blocks, width), dtypes[2])
    attributes = {
        **output(out, channels, finish="exact" if exact else "round", zero_point=zero_points[2], **finish),
        "a_zero_point": zero_points[0],
        "b_zero_point": zero_points[1],
        "a_channels": counts[0],
        "b_channels": counts[1],
        "constant": constant,
        "factors": factors,
    }
    made = []
    held = codes((objects, *shapes[constant]), dtypes[constant], 99) if constant >= 0 else None
    wide = max(abs(v) for v in requant) >= 1 << 31
    pairs = np.array(requant, np.int64 if wide else np.int32)
    for number in range(calls):
        bits = 20 if exact else 0
        inputs = [codes(s, d, 7 * number + i, bits=bits) for i, (s, d) in enumerate(zip(shapes, dtypes, strict=False))]
        arrays = [inputs[i] for i in range(2) if i != constant]
        arrays += [held] if held is not None else []
        arrays += [] if exact else [pairs]
        made.append(Call(arrays=[*arrays, out], scalars={"row": number % objects}))
    names = [f"in{i}" for i in range(2 - (constant >= 0))]
    names += ["constant"] * (constant >= 0) + ["requant"] * (not exact) + ["out"]
    roles: Any = {"in0": "object_in", "in1": "object_in", "out": "object_out"}
    parameters = [
        parameter(n, roles.get(n, n), a, writes=n == "out") for n, a in zip(names, made[0].arrays, strict=True)
    ]
    return Case(module=add, row=make_row("add", attributes, parameters, **(changes or {})), calls=made)


def cases() -> dict[str, Case]:
    eight, unsigned = ("int8", "int8", "int8"), ("uint8", "int8", "uint8")
    wide = (5 << 30, 3 << 31, 36)
    return {
        "odd width": case(),
        "vector": case(extents=(3, None, 20)),
        "eight lanes": case(extents=(1, 1, 8)),
        "ties": case(requant=HALF, zero_points=(0, 0, 0)),
        "signs": case(dtypes=unsigned, zero_points=(128, -3, 7), extents=(2, 4, 16)),
        "int16": case(dtypes=("int16", "int16", "int16"), extents=(2, 3, 11)),
        "uint16": case(dtypes=("uint16",) * 3, zero_points=(30000, 1, 500), extents=(1, 6, 8)),
        "accumulators": case(dtypes=("int32", "int32", "int8"), zero_points=(0, 0, 5), requant=(1 << 30, 1 << 29, 58)),
        "inside": case(inside=True, zero_points=(0, 0, 3), requant=HALF),
        "left shift": case(requant=(1, 3, -2), zero_points=(120, 0, 0)),
        "large shift": case(requant=(1 << 30, 3, 62)),
        "clamped": case(bounds=(-20, 40)),
        "wide multipliers": case(requant=wide),
        "wide multiplier of one": case(requant=(12345, 5 << 30, 34), extents=(1, 4, 8)),
        "no saturation": case(requant=(3, 5, 0), changes={"saturation": "none"}),
        "symmetric": case(requant=(3, 5, 0), changes={"saturation": "symmetric"}, zero_points=(0, 0, 0)),
        "modes of the tile": case(requant=HALF, changes={"rounding": "", "saturation": ""}),
        "pos_inf": case(requant=HALF, zero_points=(0, 0, 0), changes={"rounding": "pos_inf"}),
        "constant": case(constant=1, objects=3, extents=(2, 3, 16)),
        "constant first": case(constant=0, operands=((13, 1),), extents=(2, 4, 13)),
        "one number": case(constant=1, operands=((13, 5), (1, 1))),
        "one channel": case(operands=((1, 5), (13, 1)), dtypes=eight),
        "exact": case(dtypes=("int32", "int8", "int32"), zero_points=(0, 4, 0), factors=(1, 1024)),
        "exact, 64 bits": case(dtypes=("int32", "int64", "int64"), zero_points=(0, 0, 0), factors=(1 << 33, -3)),
    }


@pytest.mark.parametrize("arch", ["aie2", "aie2p"])
def test_equal(tmp_path: Path, arch: str) -> None:
    found = fewer(cases(), arch)
    assert dict(zip(found, differences(list(found.values()), tmp_path, arch=arch), strict=True)) == dict.fromkeys(
        found, 0
    )


def test_faults_are_seen(tmp_path: Path) -> None:
    faults = {
        "other zero point": ("a_zero_point = 3", "a_zero_point = 4"),
    }
    found = [case() for _ in faults]
    for one, edit in zip(found, faults.values(), strict=True):
        one.edit = edit
    assert all(differences(found, tmp_path))


def test_refused() -> None:
    with pytest.raises(RefusedError, match="64-bit"):
        add.source(case(dtypes=("int64", "int32", "int8"), zero_points=(0, 0, 0)).row)
