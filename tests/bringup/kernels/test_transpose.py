"""`transpose`: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

import pytest

from bringup.kernels import transpose
from tests.bringup.kernels.emitted import Case, differences, fewer
from tests.bringup.kernels.layouts import layout_case
from tests.bringup.kernels.objects import multipliers


def case(shape: tuple[int, ...], perm: tuple[int, ...], **changes: Any) -> Case:
    """Axes in another order."""
    return layout_case(transpose, "transpose", (shape, tuple(shape[p] for p in perm)), perm=perm, **changes)


def cases() -> dict[str, Case]:
    integers: Any = {"dtypes": ("int32", "int8"), "zero_points": (0, 5), "finish": "round", "bits": 20}
    return {
        "to channels last": case((1, 11, 3, 5), (0, 2, 3, 1)),
        "to channels first": case((2, 3, 4, 9), (0, 3, 1, 2), bundled=True),
        "all axes": case((2, 3, 4, 5), (3, 2, 1, 0)),
        "nothing": case((1, 9, 2, 3), (0, 1, 2, 3)),
        "matrix": case((5, 12), (1, 0)),
        "matrix, bundled": case((5, 12), (1, 0), bundled=True),
        "three axes": case((3, 4, 10), (2, 0, 1)),
        "five axes": case((1, 2, 3, 2, 9), (0, 4, 1, 3, 2), bundled=True),
        "vector": case((13,), (0,)),
        "16 bits": case((4, 9), (1, 0), dtypes=("uint16", "uint16")),
        "rounded": case((4, 9), (1, 0), dtypes=("int8", "uint8"), finish="round", requant=((3,), (3,)), bundled=True),
        "rounded, negative shift": case((4, 9), (1, 0), finish="round", requant=((3,), (-1,)), saturation="symmetric"),
        "rounded by channel": case((1, 9, 2, 3), (0, 2, 1, 3), **integers, axis=2, requant=multipliers(1, 9, shift=40)),
        "exact": case((4, 9), (1, 0), dtypes=("uint8", "int32"), finish="exact", zero_points=(7, 0)),
        "64 bits": case((4, 9), (1, 0), dtypes=("int64", "int64"), finish="exact", zero_points=(0, 0)),
        "64 bits, rounded": case(
            (4, 9),
            (1, 0),
            dtypes=("int64", "int16"),
            finish="round",
            zero_points=(0, 1),
            bits=40,
            requant=((7,), (30,)),
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
        "an element less": ("elements = 108", "elements = 107"),
        "axes": ("channel_in = 2", "channel_in = 1"),
        "one object cleared less": ("y_objects = 4", "y_objects = 3"),
        "width": ("width_in = 3", "width_in = 2"),
    }
    found = [case((1, 9, 4, 3), (0, 2, 1, 3), bundled=True) for _ in edits]
    found[2] = case((1, 4, 9, 3), (0, 2, 1, 3), bundled=True)
    edits["one object cleared less"] = ("y_objects = 4", "y_objects = 3")
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)
