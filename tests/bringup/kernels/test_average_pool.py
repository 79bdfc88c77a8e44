"""`average_pool`: compiled kernels against the simulator's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import average_pool
from tests.bringup.kernels.emitted import Case, differences, fewer
from tests.bringup.kernels.objects import multipliers, output, poisoned
from tests.bringup.kernels.pooling import geometry, out_size, pool_case


def counts_of(attributes: Mapping[str, Any], size: tuple[int, int]) -> tuple[int, ...]:
    """Numbers of elements that windows hold."""
    kernel, strides, dilations = (attributes[n] for n in ("kernel", "strides", "dilations"))
    pads, padded = attributes["pads"], attributes["count_include_pad"]
    sides: list[set[int]] = []
    for axis in (0, 1):
        low, high = (-pads[axis], size[axis] + pads[2 + axis]) if padded else (0, size[axis])
        starts = [o * strides[axis] - pads[axis] for o in range(out_size(attributes, axis, size[axis]))]
        sides.append({sum(low <= s + k * dilations[axis] < high for k in range(kernel[axis])) for s in starts})
    return tuple(sorted({r * c for r in sides[0] for c in sides[1]}))


def case(
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    *,
    dilations: tuple[int, int] = (1, 1),
    image: tuple[int, int, int] = (13, 6, 9),
    dtypes: tuple[str, str] = ("int8", "int8"),
    padded: bool = False,
    one: bool = False,
    ceil: bool = False,
    finish: str = "round",
    requant: Any = None,
    wide: bool = False,
    acc_bits: int = 32,
    zero_points: tuple[int, int] = (5, -3),
    **changes: Any,
) -> Case:
    """Averages over windows of an image (channels, H, W)."""
    out = poisoned((1,), dtypes[1])
    attributes: dict[str, Any] = {
        **output(out, image[0], finish=finish, zero_point=zero_points[1]),
        "kernel": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "x_zero_point": zero_points[0],
        "acc_bits": acc_bits,
        "in_width": image[2],
        "count_include_pad": int(padded),
        "ceil": int(ceil),
    }
    counts = (kernel[0] * kernel[1],) if one else counts_of(attributes, image[1:])
    attributes["counts"] = counts
    pairs = None
    if finish == "round":
        pairs = np.array(requant, np.int32) if requant else multipliers(1, len(counts), shift=32, spread=3)
        if wide:
            pairs = pairs.astype(np.int64) * np.array([[7], [1]]) + np.array([[0], [3]])
    return pool_case(average_pool, "average_pool", attributes, image=image, dtypes=dtypes, requant=pairs, **changes)


def cases() -> dict[str, Case]:
    integers: Any = {"dtypes": ("int32", "int32"), "zero_points": (0, 0), "finish": "exact"}
    long: Any = {"dtypes": ("int32", "int16"), "zero_points": (0, 7), "acc_bits": 64, "bits": 30}
    return {
        "2x2 halves": case((2, 2), (2, 2), image=(16, 6, 8)),
        "3x3 padded": case((3, 3), (1, 1), (1, 1, 1, 1)),
        "3x3 halves, padded": case((3, 3), (2, 2), (1, 1, 1, 1), image=(8, 7, 11)),
        "pads count": case((3, 3), (1, 1), (1, 1, 1, 1), padded=True),
        "pads count, beyond": case((3, 3), (2, 2), (0, 0, 1, 1), padded=True, image=(8, 6, 10)),
        "beyond the pads": case((3, 3), (2, 2), (0, 0, 1, 1), padded=True, ceil=True, image=(8, 7, 9)),
        "beyond the image": case((3, 3), (2, 2), ceil=True, image=(8, 6, 8)),
        "one count": case((3, 3), (1, 1), (1, 1, 1, 1), padded=True, one=True),
        "dilated": case((2, 3), (1, 1), (1, 2, 1, 2), dilations=(2, 2)),
        "steps of 3": case((3, 2), (3, 3), image=(10, 7, 11)),
        "uint8": case((3, 2), (1, 2), dtypes=("uint8", "uint8"), zero_points=(200, 3)),
        "many taps": case((20, 14), image=(3, 21, 15), dtypes=("uint8", "uint8"), requant=((1 << 30,), (39,))),
        "ties": case((2, 2), (2, 2), requant=((1,), (2,)), zero_points=(0, 0)),
        "ties up": case((2, 2), (2, 2), requant=((1,), (2,)), zero_points=(0, 0), rounding="pos_inf"),
        "wide": case((3, 3), (1, 1), (1, 1, 1, 1), wide=True),
        "16 bits": case((3, 3), (2, 2), dtypes=("int16", "uint16"), zero_points=(-9, 40000)),
        "clamp": case((1, 1), finish="clamp", zero_points=(0, 0)),
        "clamp beyond": case((2, 2), finish="clamp", zero_points=(0, 0), saturation="none"),
        "exact": case((3, 3), (1, 1), (1, 1, 1, 1), dtypes=("int8", "int32"), zero_points=(5, 0), finish="exact"),
        "exact sums": case((2, 2), (2, 2), **integers, bits=24),
        "exact, 64 bits": case((3, 3), (1, 1), (1, 1, 1, 1), **{**integers, "dtypes": ("int32", "int64")}, acc_bits=64),
        "sums wrap": case((2, 2), (2, 2), **{**integers, "dtypes": ("int32", "int64")}),
        "64 bits": case((2, 2), (2, 2), **long, requant=((1 << 30,), (50,))),
        "32 bits wrap": case((2, 2), (2, 2), dtypes=("int32", "int8"), zero_points=(0, 7), requant=((1 << 30,), (56,))),
    }


@pytest.mark.parametrize("arch", ["aie2", "aie2p"])
def test_equal(tmp_path: Path, arch: str) -> None:
    found = fewer(cases(), arch)
    assert dict(zip(found, differences(list(found.values()), tmp_path, arch=arch), strict=True)) == dict.fromkeys(
        found, 0
    )


def test_faults_are_seen(tmp_path: Path) -> None:
    edits = {
        "zero point": ("x_zero_point = 5", "x_zero_point = 4"),
        "left pad": ("left = 1", "left = 0"),
        "pads count": ("padded = false", "padded = true"),
        "16-bit sums of many": ("narrow = false", "narrow = true"),
    }
    found = [case((3, 3), (1, 1), (1, 1, 1, 1), image=(8, 4, 9)) for _ in range(len(edits) - 1)]
    found.append(case((20, 14), image=(3, 21, 15), dtypes=("uint8", "uint8"), requant=((1 << 30,), (39,))))
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)


def test_random_windows(tmp_path: Path) -> None:
    found = [case(**geometry(seed), padded=seed % 2 == 0, dtypes=("uint8", "int8")) for seed in range(24)]
    assert differences(found, tmp_path) == [0] * len(found)
