"""What a plan says about itself: how every op is spread, what is padding, what has to be known."""

from collections.abc import Sequence
from typing import Final

from presim.design import Design, Split
from presim.directives import Directives
from presim.kernels.attributes import Forms
from presim.plan.choices import Choices, worker_of
from presim.plan.limits import Limits
from presim.plan.share import fired_of, macs_of, need_of, padding_fraction
from presim.plan.spread import Spread

BANK_BYTES: Final = 16384
"""Weights of a tile that one bank of the compiler's model holds."""


def splits_of(choices: Choices, forms: Forms) -> tuple[Split, ...]:
    """One row per op and way in which it is spread; an op on one worker is one part of its output channels."""
    by_op: dict[str, list[Spread]] = {}
    for spread in choices.spreads:
        by_op.setdefault(spread.node.op.name, []).append(spread)
    return tuple(row for spreads in by_op.values() for row in _rows(spreads, forms))


def _rows(spreads: list[Spread], forms: Forms) -> list[Split]:
    """Rows of the strips of one op."""
    first = spreads[0].shares[0]
    ways = [
        ("columns", len(spreads)),
        ("rows" if first.outer else "output_channels", first.beside[1]),
        ("reduction", first.cascade[1]),
    ]
    used = [(kind, parts) for kind, parts in ways if parts > 1] or [("output_channels", 1)]
    shares = [share for spread in spreads for share in spread.shares]
    macs = sum(macs_of(share, forms) * sum(f.kernel == 0 for f in fired_of(share)) for share in shares)
    return [
        Split(
            op=first.node.op.name,
            kind=kind,
            parts=parts,
            padding_fraction=padding_fraction(first, forms),
            resident_weights=all(spread.resident for spread in spreads),
            macs=macs,
        )
        for kind, parts in used
    ]


def unused_of(choices: Choices, directives: Directives, ops: Sequence[str]) -> tuple[str, ...]:
    """What of the directives changes nothing: the op is a view, or a memory tile does it, and no core computes it.

    A placement is left to the placer.
    """
    computed = {spread.node.op.name for spread in choices.spreads}
    rows = [(op, directives.of(op)) for op in ops if op not in computed]
    asked = [(op, "parallelism") for op, row in rows if row.parallelism is not None]
    asked += [(op, "layout") for op, row in rows if row.layout is not None]
    return tuple(f"{key} of {op!r} not used: it has no core in this dispatch" for op, key in asked)


def notes_of(choices: Choices, design: Design, forms: Forms, limits: Limits) -> tuple[str, ...]:
    """Lints and decisions in words, in the order of the graph."""
    notes = [f"figure {name} of the device is not published: its budget was not checked" for name in limits.unknown]
    notes += [f"tensor {name!r} is carried by the objects of {carrier!r}" for name, carrier in design.views]
    for group in choices.groups:
        weights = sum(need_of(share, forms).weights for share in group)
        if weights > BANK_BYTES:
            notes.append(f"worker {worker_of(group)!r}: {weights} bytes of weights, more than a bank ({BANK_BYTES})")
        if len(group) > 1:
            notes.append(f"worker {worker_of(group)!r} runs {len(group)} ops: the array has too few cores")
    for spread in choices.spreads:
        if not spread.resident:
            notes.append(f"op {spread.node.op.name!r}: weights come from a memory tile for every output object")
    for (fifo, worker), depth in sorted(choices.depths.items()):
        where = "in a memory tile" if (fifo, worker) in choices.kept else "on the core"
        count = depth * choices.kept.get((fifo, worker), 1)
        notes.append(f"fifo {fifo!r} keeps {count} objects for {worker!r} {where}: another path needs them first")
    return tuple(notes)
