"""Everything that a design follows from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from presim.plan.share import Share
from presim.plan.spread import Spread

Pool = tuple[str, str]
"""(fifo, actor) of a consumer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Everything that a design follows from.

    Attributes:
        spreads: of every node that has workers, in the order of the graph.
        groups: shares that run on one worker, upstream first.
        depths: of pools that have to be deeper than usual.
        kept: pools that move into a memory tile, with the objects that lie together there.
        layouts: of the weights of ops, where they are asked for.
    """

    spreads: tuple[Spread, ...]
    groups: tuple[tuple[Share, ...], ...]
    depths: Mapping[Pool, int] = field(default_factory=dict)
    kept: Mapping[Pool, int] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)


def worker_of(group: tuple[Share, ...]) -> str:
    """Name of the worker of a group."""
    return " + ".join(share.name for share in group)
