"""`max_pool`: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import max_pool
from tests.bringup.kernels.emitted import Case, differences, fewer
from tests.bringup.kernels.objects import multipliers, output, poisoned
from tests.bringup.kernels.pooling import geometry, pool_case


def case(
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    *,
    dilations: tuple[int, int] = (1, 1),
    image: tuple[int, int, int] = (13, 6, 9),
    dtypes: tuple[str, str] = ("int8", "int8"),
    finish: str = "clamp",
    requant: Any = None,
    zero_points: tuple[int, int] = (5, 5),
    along: str = "",
    **changes: Any,
) -> Case:
    """A maximum over windows of an image (channels, H, W)."""
    out = poisoned((1,), dtypes[1])
    attributes = {
        **output(out, image[0], finish=finish, zero_point=zero_points[1]),
        "kernel": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "x_zero_point": zero_points[0],
        "along": along,
    }
    pairs = None if requant is None else np.array(requant, np.int32)
    return pool_case(max_pool, "max_pool", attributes, image=image, dtypes=dtypes, requant=pairs, **changes)


def cases() -> dict[str, Case]:
    accumulators: Any = {"dtypes": ("int32", "int8"), "zero_points": (0, 5), "bits": 20, "finish": "round"}
    return {
        "2x2 halves": case((2, 2), (2, 2), image=(16, 6, 8)),
        "2x2 halves, odd": case((2, 2), (2, 2), image=(3, 5, 7)),
        "3x3 halves, padded": case((3, 3), (2, 2), (1, 1, 1, 1), image=(16, 7, 10)),
        "3x3 halves, padded right": case((3, 3), (2, 2), (0, 0, 1, 1), image=(16, 8, 12)),
        "3x3": case((3, 3), (1, 1), (1, 1, 1, 1)),
        "3x3, even width": case((3, 3), (1, 1), (1, 1, 1, 1), image=(16, 4, 8)),
        "one row": case((1, 3), (1, 1), (0, 1, 0, 1)),
        "one column, halves": case((2, 1), (2, 2), image=(8, 6, 9)),
        "dilated": case((2, 3), (1, 1), (1, 2, 1, 2), dilations=(2, 2)),
        "dilated, halves": case((2, 3), (1, 2), (0, 1, 0, 2), dilations=(2, 3), image=(8, 6, 20)),
        "steps of 3": case((3, 2), (3, 3), image=(10, 7, 11)),
        "wider than the image": case((3, 3), (1, 1), (1, 1, 1, 1), image=(8, 2, 2)),
        "one pixel": case((2, 2), (2, 2), image=(8, 2, 2)),
        "uint8": case((2, 2), (1, 1), dtypes=("uint8", "uint8")),
        "16 bits": case((3, 3), (2, 2), (1, 1, 1, 1), dtypes=("uint16", "uint16")),
        "rounded": case((2, 2), (2, 2), dtypes=("int8", "uint8"), finish="round", requant=((1 << 30,), (31,))),
        "rounded sums": case((3, 3), (2, 2), (1, 1, 1, 1), **accumulators, requant=((1 << 30,), (43,))),
        "by channel": case((2, 2), (2, 2), **accumulators, along="channel", requant=multipliers(2, 13, shift=42)),
        "exact": case((2, 2), (2, 2), dtypes=("int32", "int32"), zero_points=(0, 0), finish="exact"),
        "codes to integers": case((2, 2), (1, 1), dtypes=("uint8", "int32"), zero_points=(9, 0), finish="exact"),
        "64 bits": case((2, 2), (2, 2), dtypes=("int64", "int64"), zero_points=(0, 0), finish="exact"),
        "64 bits, rounded": case(
            (2, 2), (2, 2), dtypes=("int64", "int8"), zero_points=(0, 3), finish="round", bits=40, requant=((5,), (36,))
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
        "left pad": ("left = 1", "left = 0"),
        "pad at the top": ("pad_top, pad_bottom);", "0, pad_bottom);"),
        "pad at the bottom": ("pad_top, pad_bottom);", "pad_top, 0);"),
        "rows the other way": ("{row0, row1, row2}", "{row2, row1, row0}"),
        "kernel": ("kernel_width = 3", "kernel_width = 2"),
        "upper bound": ("127, false", "99, false"),
    }
    found = [case((3, 3), (2, 2), (1, 1, 1, 1), image=(8, 5, 9)) for _ in edits]
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)


def test_reads_stay_inside(tmp_path: Path) -> None:
    one = case((3, 3), (2, 2), image=(8, 3, 9))
    load = "aie::filter_odd(aie::load_unaligned_v<2 * LANES>(row + 8 * (column - 1), 8), 8)"
    one.edit = (load, "aie::filter_even(aie::load_unaligned_v<2 * LANES>(row + 8 * column, 8), 8)")
    with pytest.raises(AssertionError, match="AddressSanitizer"):
        differences([one], tmp_path)


def test_random_windows(tmp_path: Path) -> None:
    found = [case(**geometry(seed), dtypes=("uint8", "uint8")) for seed in range(24)]
    assert differences(found, tmp_path) == [0] * len(found)
