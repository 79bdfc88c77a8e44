"""Random small topologies: chains, forks, joins, loops with tokens; most of them balanced, many of them too shallow."""

import random
from typing import Any

Step = tuple[str, str, int]


def random_topology(seed: int) -> dict[str, Any]:
    """A topology of two to four nodes and up to five edges, each with one writer and one reader."""
    draw = random.Random(seed)
    count = draw.choice((2, 3, 3, 4))
    names = [f"n{i}" for i in range(count)]
    edges: dict[str, dict[str, int]] = {}
    steps: dict[str, list[list[Step]]] = {name: [] for name in names}
    usual = draw.randint(1, 5)
    for index in range(draw.randint(count - 1, count + 1)):
        source, target = (index, index + 1) if index < count - 1 else sorted(draw.sample(range(count), 2))
        if draw.random() < 0.08:
            source, target = target, draw.choice((source, target))
        edge = f"e{index}"
        tokens = draw.choice((usual, usual, usual, draw.randint(1, 4)))
        init = draw.choice((0, 1, 1)) if source >= target else draw.choice((0,) * 6 + (1,))
        edges[edge] = {"depth": max(init, draw.choice((1, 1, 1, 2, 3))), "init": init}
        surplus = draw.choice((0,) * 20 + (1, -1))
        steps[names[source]].append([("w", edge, 1)] * tokens)
        steps[names[target]].append([("r", edge, 1)] * max(1, tokens + surplus))
    return {"nodes": {name: blocks(merged(own, draw), edges, draw) for name, own in steps.items()}, "edges": edges}


def merged(queues: list[list[Step]], draw: random.Random) -> list[Step]:
    """The accesses of a node in some order: edge after edge, in turn, takes first, or anyhow."""
    order = [list(queue) for queue in queues]
    draw.shuffle(order)
    how = draw.choice(("after", "turn", "turn", "takes", "any"))
    if how == "takes":
        order.sort(key=lambda queue: queue[0][0] == "w")
    out: list[Step] = []
    while any(order):
        alive = [queue for queue in order if queue]
        if how == "turn":
            out += [queue.pop() for queue in alive]
        else:
            out.append((draw.choice(alive) if how == "any" else alive[0]).pop())
    return out


def blocks(steps: list[Step], edges: dict[str, dict[str, int]], draw: random.Random) -> list[Any]:
    """Equal neighbours become one step with a count or a block with times; a window stands before some takes."""
    made: list[Any] = []
    index = 0
    while index < len(steps):
        kind, edge, _ = steps[index]
        run = 1
        while index + run < len(steps) and steps[index + run] == steps[index]:
            run += 1
        if kind == "r" and draw.random() < 0.15:
            made.append([1, [["p", edge, min(run, edges[edge]["depth"] + draw.choice((0, 0, 0, 1)))]]])
        if draw.random() < 0.5:
            made.append([1, [[kind, edge, run]]])
        else:
            made.append([run, [[kind, edge, 1]]])
        index += run
    return made
