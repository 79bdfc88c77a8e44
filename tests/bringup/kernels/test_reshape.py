"""`reshape` and `flatten`: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

from bringup.kernels import flatten, reshape
from tests.bringup.kernels.emitted import Case, differences
from tests.bringup.kernels.layouts import layout_case
from tests.bringup.kernels.objects import multipliers


def case(source: tuple[int, ...], target: tuple[int, ...], **changes: Any) -> Case:
    """Elements in the order of another shape."""
    return layout_case(reshape, "reshape", (source, target), **changes)


def cases() -> dict[str, Case]:
    integers: Any = {"dtypes": ("int32", "uint8"), "zero_points": (0, 128), "finish": "round", "bits": 20}
    return {
        "to a vector": layout_case(flatten, "flatten", ((1, 5, 3, 4), (1, 60))),
        "to vectors": layout_case(flatten, "flatten", ((3, 5, 2, 2), (3, 20)), bundled=True),
        "to an image": case((1, 60), (1, 5, 3, 4)),
        "to another image": case((1, 12, 3, 4), (1, 4, 6, 6), bundled=True),
        "sizes without a common part": case((2, 15), (3, 10)),
        "one": case((1, 1, 1, 1), (1, 1)),
        "scalar": case((1,), ()),
        "one pixel": layout_case(flatten, "flatten", ((1, 19, 1, 1), (1, 19))),
        "one pixel, rounded": layout_case(
            flatten, "flatten", ((1, 19, 1, 1), (1, 19)), **integers, requant=((3,), (14,))
        ),
        "one pixel, exact": case((1, 19), (1, 19, 1, 1), dtypes=("uint8", "int32"), finish="exact", bundled=True),
        "several pixels": layout_case(flatten, "flatten", ((2, 9, 1, 1), (2, 9))),
        "rounded by channel": case((1, 9, 2, 3), (9, 6), **integers, axis=0, requant=multipliers(1, 9, shift=40)),
    }


def test_equal(tmp_path: Path) -> None:
    found = cases()
    assert dict(zip(found, differences(list(found.values()), tmp_path), strict=True)) == dict.fromkeys(found, 0)


def test_faults_are_seen(tmp_path: Path) -> None:
    edits = {"column": ("column_in = 3", "column_in = 0"), "lanes": ("& 7)", "& 3)")}
    found = [layout_case(flatten, "flatten", ((1, 5, 3, 4), (1, 60)))]
    found[0].edit = edits["column"]
    assert all(differences(found, tmp_path / "column"))
    found[0].edit = edits["lanes"]
    assert all(differences(found, tmp_path / "lanes"))
