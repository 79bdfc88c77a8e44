"""Need and have of every core tile's data memory, once buffers are packed."""

import json
from collections.abc import Mapping

from bringup.emit.budget import split_proposal
from bringup.emit.kernels import kernels_of
from bringup.emit.model import EmitInput
from bringup.evidence import MemoryRow
from bringup.kernels import KERNELS
from bringup.kernels.model import KernelModule
from presim.static.budget import uses
from presim.static.scope import place, scope_of


def memory_rows(given: EmitInput, *, modules: Mapping[str, KernelModule] = KERNELS) -> tuple[MemoryRow, ...]:
    """One row for each core tile of each dispatch; a split where it does not fit and one would.

    Raises:
        RefusedError: a kernel that cannot be emitted.
    """
    limit = given.device.l1_bytes.value
    have = None if limit is None else int(limit)
    rows = []
    for design in given.designs:
        constants = given.constants.get(design.dispatch, {})
        kernels = kernels_of(design, given.manifest, given.device, constants, modules)
        packed = kernels.design or design
        for tile, use in sorted(uses(scope_of(packed, given.device)).items()):
            if tile.kind != "core":
                continue
            need = sum(use.data_bytes.values())
            over = have is not None and need > have
            proposal = split_proposal(packed, use.data_bytes, have) if over and have is not None else None
            split = "" if proposal is None else json.dumps(proposal)
            rows.append(MemoryRow(dispatch=design.dispatch, place=place(tile), need=need, have=have, split=split))
    return tuple(rows)
