"""Checks of a design that need no run: exact, each a function over the design, its device and its pools."""

from typing import Final

from manifest.device import Device
from presim.design import Design
from presim.static.budget import (
    budget_rows,
    buffer_descriptors,
    data_memory,
    descriptor_halves,
    dma_channels,
    locks,
    program_memory,
)
from presim.static.findings import Checked, Severity, StaticFinding
from presim.static.host import awaited_drains, host_tasks, task_queues
from presim.static.links import broadcast, links, replayed_broadcasts, segments
from presim.static.programs import acquire_depth, drift, rates, release_balance
from presim.static.scope import Check, Scope, scope_of
from presim.static.structure import structure
from presim.static.tiles import cascades, placement, shim_columns
from presim.static.transfers import access_patterns, transfer_lengths, whole_words

CHECKS: Final[tuple[Check, ...]] = (
    segments,
    links,
    broadcast,
    replayed_broadcasts,
    host_tasks,
    awaited_drains,
    task_queues,
    acquire_depth,
    release_balance,
    drift,
    rates,
    whole_words,
    access_patterns,
    transfer_lengths,
    placement,
    shim_columns,
    cascades,
    dma_channels,
    buffer_descriptors,
    descriptor_halves,
    locks,
    data_memory,
    program_memory,
)
"""In the order in which they are reported, the host before programs, as a missing task upsets their rates.

Each reads `Checked` and has a rule of its own name.
"""


def check_design(design: Design, device: Device) -> tuple[Checked, ...]:
    """Every check over a design; only the structure where that is not sound.

    Args:
        design: any design.
        device: for its figures; one that is not published gives a finding `unknown`.
    """
    parts = len(design.workers) + len(design.fifos) + len(design.links) + len(design.sequence)
    sound = Checked(rule="structure", looked_at=parts, findings=structure(design))
    if sound.findings:
        return (sound,)
    scope = scope_of(design, device)
    return (sound, *(check(scope) for check in CHECKS))


__all__ = [
    "CHECKS",
    "Check",
    "Checked",
    "Scope",
    "Severity",
    "StaticFinding",
    "budget_rows",
    "check_design",
    "scope_of",
    "structure",
]
