"""What is left when the host has what it wanted, and whether it grows from one inference to the next."""

from collections.abc import Mapping, Sequence

from presim.simulate.build import World
from presim.simulate.result import Left, LeftKind

Key = tuple[str, str, str]
"""(kind, fifo, where)."""


def snapshot(world: World) -> dict[Key, int]:
    """Tokens in pools, objects held, and objects of tasks that are not through, now."""
    counts: dict[Key, int] = {}
    for pool, lanes in world.lanes.items():
        for lane in lanes:
            if not lane.constant:
                key = ("tokens", lane.fifo, pool)
                counts[key] = counts.get(key, 0) + lane.tokens()
    for worker in world.workers:
        for port in worker.ports:
            counts["held" if not port.fills else "claimed", port.fifo, worker.name] = port.held
    for fifo, channel in world.channels.items():
        lane = channel.lane
        counts["task", fifo, "host"] = lane.tokens() if channel.fills else lane.depth - lane.published
    return counts


def initial(world: World) -> dict[Key, int]:
    """What is there before anything runs."""
    return snapshot(world)


def judge(start: Mapping[Key, int], after: Sequence[Mapping[Key, int]], *, settled: bool) -> tuple[Left, ...]:
    """What is left, with a judgement.

    Args:
        start: before the first inference.
        after: after each inference.
        settled: everything stood still after each; otherwise counts are of a moment and growth says nothing.
    """
    found = []
    for key in after[-1]:
        counts = tuple(counted.get(key, 0) for counted in after)
        kind, fifo, where = key
        shown: LeftKind = "tokens" if kind == "tokens" else "task" if kind == "task" else "held"
        moves = settled and len(counts) > 1 and counts[-1] != counts[-2]
        if not moves and (counts[-1] in {0, start.get(key, 0)} or kind == "claimed"):
            continue
        found.append(
            Left(
                kind=shown,
                fifo=fifo,
                where=where,
                counts=counts,
                fine=not moves,
                why=_why(kind, counts, moves=moves, settled=settled),
            )
        )
    return tuple(found)


def _why(kind: str, counts: Sequence[int], *, moves: bool, settled: bool) -> str:
    if moves:
        step = counts[-1] - counts[-2]
        what = "grows" if step > 0 else "shrinks"
        return f"{what} by {abs(step)} from one inference to the next: what is sent and what is taken differ"
    if not settled:
        return "a part of the design runs on without the host, the count is of a moment"
    words = {
        "tokens": "sent ahead and kept for the next inference",
        "held": "kept by the worker while it waits for the next inference",
        "task": "the host started more than was taken so far",
    }
    return words.get(kind, "") + ("; one inference does not show whether it grows" if len(counts) == 1 else "")
