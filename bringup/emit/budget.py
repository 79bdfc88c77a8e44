"""Whether everything fits into the memory of its tile once it is packed, and a split that would, where it does not."""

import json
from collections.abc import Mapping
from typing import Final

from manifest.device import Device
from manifest.errors import Problem
from presim.design import Design
from presim.directives import MAX_CASCADE
from presim.static.budget import Use, uses
from presim.static.scope import place, scope_of

SPLITTABLE: Final = ("conv", "gemm", "gemm_rows")
MAX_PARTS: Final = 64


def memory_problems(design: Design, device: Device) -> list[Problem]:
    """One problem for each tile whose memory does not hold what is on it.

    Args:
        design: with packed shapes.
        device: for the memory of its core and memory tiles; a figure that is not published makes no problem here.
    """
    limits = {"core": device.l1_bytes.value, "mem": device.memtile_bytes.value}
    found = []
    for tile, use in uses(scope_of(design, device)).items():
        need = sum(use.data_bytes.values())
        limit = limits.get(tile.kind)
        if limit is not None and need > limit:
            found.append(
                Problem(
                    code="EMIT-MEMORY",
                    where=f"dispatch {design.dispatch!r}, {place(tile)}",
                    what=f"packed buffers, fifos and stack do not fit ({_largest(use)})",
                    expected=f"at most {limit} bytes",
                    got=f"{need} bytes",
                    remedy=_remedy(design, use, limit),
                )
            )
    return found


def _largest(use: Use) -> str:
    name, size = max(use.data_bytes.items(), key=lambda item: (item[1], item[0]))
    return f"the largest is {name}, {size} bytes"


def _remedy(design: Design, use: Use, limit: int) -> str:
    proposal = split_proposal(design, use.data_bytes, limit)
    if proposal is None:
        return "cut the dispatch in front of this op (--cut), or stream its weights"
    return f"python -m phases.presim PORT --directives FILE, with this in FILE: {json.dumps(proposal)}"


def split_proposal(
    design: Design, data_bytes: Mapping[str, int], limit: int
) -> dict[str, dict[str, dict[str, int | str]]] | None:
    """The directive with the fewest parts by which a tile would fit, by output channels, then by the reduction too.

    An estimate: what is proportional to the op's parts are its weights (both splits) and its other constants (output
    channels); the rest stays.
    """
    ops = sorted({k.op for k in design.kernels if k.type in SPLITTABLE})
    for op in ops:
        mine = {n: b for n, b in data_bytes.items() if _kind(n, op, design) is not None}
        parts = next((s.parts for s in design.splits if s.op == op and s.kind == "output_channels"), 1)
        rest = sum(data_bytes.values()) - sum(mine.values())
        for length in (1, 2, 4, MAX_CASCADE) if mine else ():
            for number in range(1, MAX_PARTS // parts + 1):
                by_kind = {n: number * (length if _kind(n, op, design) == "weights" else 1) for n in mine}
                size = sum(-(-b // by_kind[n]) for n, b in mine.items())
                if number * length > 1 and rest + size <= limit:
                    return {op: {"parallelism": {"cas_num": parts * number, "cas_length": length}}}
    return None


def _kind(name: str, op: str, design: Design) -> str | None:
    """Kind of the constants of an op that an entry of the budget is for; None = of another, or no constants."""
    buffer = next((b for b in design.buffers if f"buffer {b.name}" == name), None)
    if buffer is None or buffer.array is None:
        return None
    kind, _, rest = buffer.array.partition(":")
    return kind if rest.rpartition(":")[0] == op else None
