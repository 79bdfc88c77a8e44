"""`mul`: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import mul
from tests.bringup.kernels.emitted import Case, differences, fewer
from tests.bringup.kernels.objects import codes, make_case, multipliers, output, poisoned, shape_of

CALLS = 3


def case(
    *,
    extents: tuple[int, int | None, int] = (2, 5, 13),
    dtypes: tuple[str, str, str] = ("int8", "int8", "uint8"),
    zero_points: tuple[int, int, int] = (-3, 4, 130),
    x: tuple[int, int] | None = None,
    constant: tuple[int, int] | None = None,
    objects: int = 1,
    requant: Any = ((1 << 30,), (37,)),
    finish: str = "round",
    bits: int = 0,
    **changes: Any,
) -> Case:
    """A product; `x` and `constant` are (channels, width) of operands that are broadcast."""
    blocks, width, channels = extents
    x_channels, x_width = x or (channels, width)
    c_channels, c_width = constant or (channels, width)
    shape = shape_of(-(-x_channels // 8) if x else blocks, x_width)
    held = shape_of(-(-c_channels // 8) if constant else blocks, c_width if width is not None else None)
    out = poisoned(shape_of(blocks, width), dtypes[2])
    attributes = {
        **output(out, channels, finish=finish, zero_point=zero_points[2]),
        "x_zero_point": zero_points[0],
        "c_zero_point": zero_points[1],
        "x_channels": x_channels,
        "c_channels": c_channels,
        "along": "",
    }
    named = {
        "in0": [codes(shape, dtypes[0], seed, bits=bits) for seed in range(CALLS)],
        "constant": [codes((objects, *held), dtypes[1], 9, bits=bits)],
        **({"requant": [np.array(requant, np.int32)]} if finish == "round" else {}),
        "out": [out],
    }
    scalars = [{"row": number % objects} for number in range(CALLS)]
    return make_case(mul, "mul", attributes, named, scalars=scalars, **changes)


def cases() -> dict[str, Case]:
    long: Any = {"dtypes": ("int32", "int8", "int64"), "zero_points": (0, 3, 0), "finish": "exact"}
    return {
        "odd width": case(),
        "rows of a constant": case(objects=3, extents=(1, 3, 8)),
        "vector": case(extents=(3, None, 20)),
        "one number": case(constant=(1, 1)),
        "by channel": case(constant=(13, 1)),
        "by channel, vector": case(constant=(1, 1), extents=(2, None, 16)),
        "by place": case(constant=(1, 5)),
        "one channel": case(x=(1, 5), constant=(13, 1)),
        "signs": case(dtypes=("uint8", "int8", "int8"), zero_points=(128, 0, 0)),
        "ties": case(requant=((1,), (5,)), zero_points=(0, 0, 130)),
        "no saturation": case(requant=((1,), (4,)), saturation="none"),
        "multipliers by channel": case(requant=multipliers(3, 13, shift=36)),
        "multipliers by channel, broadcast": case(constant=(13, 1), requant=multipliers(3, 13, shift=36)),
        "16 by 8 bits": case(dtypes=("int16", "uint8", "int16"), requant=((1 << 30,), (45,))),
        "32 by 8 bits": case(dtypes=("int32", "int8", "int16"), zero_points=(0, 3, 7), requant=((1 << 30,), (55,))),
        "exact": case(dtypes=("uint8", "int8", "int32"), finish="exact"),
        "exact, 64 bits": case(**long),
        "exact, one number": case(**long, constant=(1, 1)),
    }


@pytest.mark.parametrize("arch", ["aie2", "aie2p"])
def test_equal(tmp_path: Path, arch: str) -> None:
    found = fewer(cases(), arch)
    assert dict(zip(found, differences(list(found.values()), tmp_path, arch=arch), strict=True)) == dict.fromkeys(
        found, 0
    )


def test_faults_are_seen(tmp_path: Path) -> None:
    edits = {
        "zero point of the constant": ("b_zero_point = 4", "b_zero_point = 3"),
        "broadcast": ("b_channels = 13", "b_channels = 1"),
        "padding": ("\n    static constexpr int32_t channels = 13", "\n    static constexpr int32_t channels = 15"),
    }
    found = [case(constant=(13, 1)) for _ in edits]
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)
