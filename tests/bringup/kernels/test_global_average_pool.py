"""`global_average_pool` and its end: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import global_average_pool
from tests.bringup.kernels.emitted import Case, differences, fewer
from tests.bringup.kernels.objects import codes, make_case, multipliers, output, poisoned


def sums(
    *,
    extents: tuple[int, int, int] = (2, 5, 13),
    dtype: str = "int8",
    zero_point: int = -3,
    bits: int = 32,
    **changes: Any,
) -> Case:
    """Rows added up; the first one clears the sums."""
    blocks, width, channels = extents
    rows = [0, 1, 7, 0]
    attributes = {"out_channels": channels, "x_zero_point": zero_point, "acc_bits": bits}
    acc = [codes((blocks, 8), f"int{bits}", seed) for seed in range(len(rows))]
    named = {"in0": [codes((blocks, width, 8), dtype, 30 + seed) for seed in range(len(rows))], "acc": acc}
    scalars = [{"row": row} for row in rows]
    kind = "global_average_pool"
    return make_case(global_average_pool, kind, attributes, named, scalars=scalars, written=("acc",), **changes)


def end(
    shape: tuple[int, ...],
    *,
    channels: int = 13,
    dtype: str = "int8",
    requant: Any = ((1 << 30,), (52,)),
    finish: str = "round",
    bits: int = 32,
    **changes: Any,
) -> Case:
    """Sums rounded into a row or a vector."""
    out = poisoned(shape, dtype)
    attributes = {
        **output(out, channels, finish=finish, zero_point=9),
        "along": "channel" if finish == "round" and len(requant[0]) > 1 else "",
    }
    named: dict[str, list[Any]] = {"acc": [codes((2, 8), f"int{bits}", seed) for seed in range(3)]}
    if finish == "round":
        named["requant"] = [np.array(requant, np.int32)]
    named["out"] = [out]
    return make_case(global_average_pool, "global_average_pool_finish", attributes, named, **changes)


def cases() -> dict[str, Case]:
    return {
        "odd width": sums(),
        "even width": sums(extents=(1, 6, 8), dtype="uint8", zero_point=255),
        "one pixel": sums(extents=(2, 1, 16)),
        "no zero point": sums(extents=(3, 7, 17), zero_point=0),
        "wide rows": sums(extents=(1, 257, 3), dtype="uint8", zero_point=0),
        "rows as wide as 16 bits take": sums(extents=(1, 256, 8), dtype="uint8", zero_point=1),
        "16 bits": sums(dtype="uint16", zero_point=40000),
        "32 bits": sums(dtype="int32", zero_point=0),
        "64 bits": sums(dtype="int32", zero_point=0, bits=64),
        "to a row": end((2, 1, 8)),
        "to a vector": end((16,)),
        "ties": end((16,), requant=((1,), (25,))),
        "ties up": end((16,), requant=((1,), (25,)), rounding="pos_inf"),
        "16-bit codes": end((2, 1, 8), dtype="int16", requant=((1 << 30,), (46,))),
        "by channel": end((2, 1, 8), requant=multipliers(1, 13, shift=53)),
        "exact": end((2, 1, 8), dtype="int32", finish="exact"),
        "64-bit sums": end((16,), bits=64, requant=((5,), (61,))),
        "64-bit sums, exact": end((16,), dtype="int64", finish="exact", bits=64),
    }


@pytest.mark.parametrize("arch", ["aie2", "aie2p"])
def test_equal(tmp_path: Path, arch: str) -> None:
    found = fewer(cases(), arch)
    assert dict(zip(found, differences(list(found.values()), tmp_path, arch=arch), strict=True)) == dict.fromkeys(
        found, 0
    )


def test_faults_are_seen(tmp_path: Path) -> None:
    edits = {
        "zero point": ("x_zero_point = -3", "x_zero_point = 3"),
        "never cleared": ("acc, row);", "acc, 1);"),
        "always cleared": ("acc, row);", "acc, 0);"),
        "padding": ("channels = 13", "channels = 16"),
    }
    found = [sums() for _ in edits]
    wide = sums(extents=(1, 300, 8), dtype="uint8", zero_point=0)
    wide.calls = [wide.calls[0]]
    wide.calls[0].arrays[0] = np.full((1, 300, 8), 255, np.uint8)
    found.append(wide)
    edits["16-bit sums of long rows"] = ("narrow = false", "narrow = true")
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)
