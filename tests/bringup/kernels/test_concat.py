"""`concat`: compiled kernels against the simulator's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import concat
from tests.bringup.kernels.emitted import Case, differences, fewer
from tests.bringup.kernels.objects import codes, make_case, multipliers, output, poisoned

CALLS = 3


def case(
    channels: Sequence[int],
    widths: Sequence[int | None],
    *,
    along: str = "channel",
    constants: Sequence[int] = (),
    objects: int = 1,
    finish: str = "round",
    dtypes: Sequence[str] = ("int8", "int8", "int8"),
    out_dtype: str = "int8",
    requant: Any = None,
    zero_points: Sequence[int] = (3, -4, 0),
    bits: int = 0,
    **changes: Any,
) -> Case:
    """Operands side by side; a width of None makes vectors."""
    across = along == "width"
    total = channels[0] if across else sum(channels)
    count = len(channels)
    held = tuple(constants) or (0,) * count
    shapes = [object_of(c, w) for c, w in zip(channels, widths, strict=True)]
    width = sum(w or 0 for w in widths) if across else widths[0]
    out = poisoned(object_of(total, width), out_dtype)
    attributes = {
        **output(out, total, finish=finish, zero_point=-5, bounds=(-100, 90) if finish != "exact" else None),
        "along": along,
        "channels": tuple(channels),
        "constants": held,
        "zero_points": tuple(zero_points[:count]),
        "factors": (5, -7, 1 << 16)[:count] if finish == "exact" else (),
    }
    named: dict[str, list[Any]] = {}
    for index, shape in enumerate(shapes):
        if not held[index]:
            named[f"in{index}"] = [codes(shape, dtypes[index], 10 * seed + index, bits=bits) for seed in range(CALLS)]
    for index, shape in enumerate(shapes):
        if held[index]:
            named[f"constant{index}"] = [codes((objects, *shape), dtypes[index], 77, bits=bits)]
    if finish == "round":
        named["requant"] = [np.array(requant, np.int32) if requant else multipliers(4, count, shift=30)]
    named["out"] = [out]
    scalars = [{"row": number % objects} for number in range(CALLS)]
    return make_case(concat, "concat", attributes, named, scalars=scalars, **changes)


def object_of(channels: int, width: int | None) -> tuple[int, ...]:
    blocks = -(-channels // 8)
    return (8 * blocks,) if width is None else (blocks, width, 8)


def cases() -> dict[str, Case]:
    integers: Any = {"dtypes": ("int32", "int32"), "finish": "exact", "zero_points": (0, 0), "bits": 14}
    return {
        "blocks": case((8, 16), (5, 5)),
        "last block": case((16, 11), (4, 4)),
        "parts of blocks": case((3, 13, 8), (5, 5, 5)),
        "parts of vectors": case((10, 7, 20), (None,) * 3),
        "vectors": case((16, 24), (None, None)),
        "by width": case((13, 13), (3, 4), along="width"),
        "constant": case((8, 5, 8), (3, 3, 3), constants=(0, 1, 0), objects=3),
        "constant by width": case((9, 9), (4, 1), along="width", constants=(0, 1)),
        "ties": case((8, 8), (4, 4), requant=((1, 3), (1, 2))),
        "left shift": case((8, 8), (4, 4), requant=((1, 3), (-1, 0)), saturation="none"),
        "clamp": case((8, 8), (5, 5), finish="clamp"),
        "clamp, parts": case((5, 8), (5, 5), finish="clamp"),
        "exact": case((8, 8), (3, 3), **integers, out_dtype="int32"),
        "exact, 64 bits": case((5, 8), (3, 3), **integers, out_dtype="int64"),
        "64 bits": case(
            (5, 8), (3, 3), dtypes=("int64", "int32"), zero_points=(0, 0), bits=20, requant=((3, 5), (12, 14))
        ),
    }


@pytest.mark.parametrize("arch", ["aie2", "aie2p"])
def test_equal(tmp_path: Path, arch: str) -> None:
    found = fewer(cases(), arch)
    assert dict(zip(found, differences(list(found.values()), tmp_path, arch=arch), strict=True)) == dict.fromkeys(
        found, 0
    )


def test_faults_are_seen(tmp_path: Path) -> None:
    edits = {
        "place": ("y_channel = 8", "y_channel = 0"),
        "multiplier of the other operand": ("requant + 2", "requant + 0"),
        "padding left": ("port::clear_padding<13, 2, 5>(out);", ""),
        "zero point": ("x_zero_point = 3", "x_zero_point = 0"),
    }
    found = [case((8, 5), (5, 5)) for _ in edits]
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)
