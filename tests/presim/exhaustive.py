"""Every interleaving of small networks of semaphores: the judge of the simulator, which shares no line with it.

A network is processes, each a list of operations run in order, and semaphores with values: `dec` waits until `n` are
there and takes them, `test` waits until `n` are there and takes none, `inc` gives `n`. A fifo of depth d is two
semaphores: places (d at first) and tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Operation = tuple[str, str, int]
State = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Ends:
    """All states in which nothing can move, as (every process that counts is through, values by semaphore)."""

    states: int
    ends: frozenset[tuple[bool, tuple[tuple[str, int], ...]]]

    @property
    def always_through(self) -> bool:
        return all(through for through, _ in self.ends)

    @property
    def never_through(self) -> bool:
        return not any(through for through, _ in self.ends)


def explore(
    processes: Mapping[str, Sequence[Operation]],
    values: Mapping[str, int],
    *,
    goal: Sequence[str] | None = None,
    limit: int = 2_000_000,
) -> Ends:
    """Visit every reachable state.

    Args:
        processes: operations by name.
        values: of the semaphores at the start.
        goal: processes that have to get through; None = all.
        limit: states; more are an error of the test.
    """
    names, semaphores = list(processes), list(values)
    place = {s: i for i, s in enumerate(semaphores)}
    programs = [[(kind, place[s], n) for kind, s, n in processes[name]] for name in names]
    must = [i for i, name in enumerate(names) if goal is None or name in goal]
    start: State = (tuple(0 for _ in names), tuple(values[s] for s in semaphores))
    seen, todo, ends = {start}, [start], set()
    while todo:
        at, value = todo.pop()
        moved = False
        for i, program in enumerate(programs):
            if at[i] == len(program):
                continue
            kind, s, n = program[at[i]]
            if kind != "inc" and value[s] < n:
                continue
            moved = True
            change = n if kind == "inc" else -n if kind == "dec" else 0
            after = (*at[:i], at[i] + 1, *at[i + 1 :]), (*value[:s], value[s] + change, *value[s + 1 :])
            if after not in seen:
                seen.add(after)
                todo.append(after)
        if not moved:
            through = all(at[i] == len(programs[i]) for i in must)
            ends.add((through, tuple(zip(semaphores, value, strict=True))))
        assert len(seen) <= limit, "the network is too large for the test"
    return Ends(len(seen), frozenset(ends))


def topology_network(
    case: Mapping[str, Any], depths: Mapping[str, int] | None = None
) -> tuple[dict[str, list[Operation]], dict[str, int]]:
    """A topology in the format of the cases as processes and semaphores."""
    processes: dict[str, list[Operation]] = {}
    for node, blocks in case["nodes"].items():
        program: list[Operation] = []
        for times, steps in blocks:
            for _ in range(times):
                for kind, edge, n in steps:
                    if kind == "p":
                        program.append(("test", f"{edge} tokens", n))
                    for _ in range(n if kind != "p" else 0):
                        first, second = ("places", "tokens") if kind == "w" else ("tokens", "places")
                        program += [("dec", f"{edge} {first}", 1), ("inc", f"{edge} {second}", 1)]
        processes[node] = program
    values = {}
    for name, edge in case["edges"].items():
        depth = (depths or {}).get(name, edge["depth"])
        values[f"{name} tokens"] = edge.get("init", 0)
        values[f"{name} places"] = depth - edge.get("init", 0)
    return processes, values


def topology_runs(case: Mapping[str, Any], depths: Mapping[str, int] | None = None) -> tuple[bool, dict[str, int]]:
    """Whether all nodes end, and the tokens left; every interleaving has to say the same."""
    found = explore(*topology_network(case, depths))
    assert found.always_through or found.never_through
    left = {tuple((s[:-7], v) for s, v in values if s.endswith(" tokens") and v) for _, values in found.ends}
    assert len(left) == 1
    return found.always_through, dict(left.pop())


def least_depths(case: Mapping[str, Any], most: int) -> dict[str, int]:
    """For each edge that alone lets a case run, its least depth up to `most`, found by counting up."""
    found = {}
    for name, edge in case["edges"].items():
        for depth in range(edge["depth"] + 1, most + 1):
            if topology_runs(case, {name: depth})[0]:
                found[name] = depth
                break
    return found
