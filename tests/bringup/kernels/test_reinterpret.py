"""`copy`: compiled kernels against the simulator's."""

from pathlib import Path

from bringup.kernels import reinterpret
from tests.bringup.kernels.emitted import Case, differences
from tests.bringup.kernels.objects import codes, make_case, poisoned


def case(source: tuple[int, ...], target: tuple[int, ...], dtype: str = "int8") -> Case:
    """The same elements."""
    inputs = [codes(source, dtype, seed) for seed in range(2)]
    named = {"in0": inputs, "out": [poisoned(target, dtype)]}
    return make_case(reinterpret, "copy", {"out_channels": 8}, named, rounding="", saturation="")


def cases() -> dict[str, Case]:
    return {
        "row": case((2, 5, 8), (2, 5, 8)),
        "row to vector": case((3, 1, 8), (24,), "uint8"),
        "eight lanes": case((8,), (8,)),
        "16 bits": case((16,), (2, 1, 8), "uint16"),
        "32 bits": case((1, 3, 8), (1, 3, 8), "int32"),
        "64 bits": case((1, 3, 8), (24,), "int64"),
    }


def test_equal(tmp_path: Path) -> None:
    found = cases()
    assert dict(zip(found, differences(list(found.values()), tmp_path), strict=True)) == dict.fromkeys(found, 0)


def test_faults_are_seen(tmp_path: Path) -> None:
    one = case((2, 5, 8), (2, 5, 8))
    one.edit = ("elements = 80", "elements = 72")
    assert differences([one], tmp_path) != [0]
