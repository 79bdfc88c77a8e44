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


def pipeline_network(
    case: Mapping[str, Any], depths: Mapping[tuple[str, str], int] | None = None
) -> tuple[dict[str, list[Operation]], dict[str, int]]:
    """A pipeline of `random_pipelines` as processes and semaphores.

    Every end of a fifo has a pool, a stream takes a full object at its source and an empty one at every target before
    anything is handed on. A worker runs its program once more than there are inferences; the host starts all tasks of
    an inference and waits for the outputs.
    """
    processes: dict[str, list[Operation]] = {}
    values: dict[str, int] = {}
    total = case["inferences"]
    for name, fifo in case["fifos"].items():
        for side in (fifo["producer"], *fifo["consumers"]):
            depth = (depths or {}).get((name, side), fifo["depths"][side])
            by_host = side == "host"
            values[f"{name}@{side} full"] = 0
            values[f"{name}@{side} free"] = 0 if by_host else depth
        source, targets = f"{name}@{fifo['producer']}", [f"{name}@{c}" for c in fifo["consumers"]]
        one: list[Operation] = [("dec", f"{source} full", 1), *(("dec", f"{t} free", 1) for t in targets)]
        one += [*(("inc", f"{t} full", 1) for t in targets), ("inc", f"{source} free", 1)]
        processes[f"stream {name}"] = one * (fifo["objects"] * (total + 1))
    for worker, program in case["workers"].items():
        processes[worker] = _unrolled(case, worker, program, total + 1)
    host: list[Operation] = []
    for _ in range(total):
        ends = [(n, f) for n, f in case["fifos"].items() if "host" in (f["producer"], *f["consumers"])]
        for name, fifo in ends:
            host.append(("inc", f"{name}@host {'full' if fifo['producer'] == 'host' else 'free'}", fifo["objects"]))
        host += [("dec", f"{name}@host full", f["objects"]) for name, f in ends if "host" in f["consumers"]]
    processes["host"] = host
    return processes, values


def _unrolled(case: Mapping[str, Any], worker: str, program: Sequence[Any], passes: int) -> list[Operation]:
    held: dict[str, int] = {}
    made: list[Operation] = []
    for _ in range(passes):
        for kind, name, n in program:
            produces = case["fifos"][name]["producer"] == worker
            first, second = ("free", "full") if produces else ("full", "free")
            if kind == "acquire":
                new = max(0, n - held.get(name, 0))
                held[name] = held.get(name, 0) + new
                made += [("dec", f"{name}@{worker} {first}", new)] if new else []
            else:
                held[name] -= n
                made.append(("inc", f"{name}@{worker} {second}", n))
    return made


def pipeline_runs(case: Mapping[str, Any], depths: Mapping[tuple[str, str], int] | None = None) -> bool:
    """Whether the host gets all it waits for; every interleaving has to say the same."""
    found = explore(*pipeline_network(case, depths), goal=["host"])
    assert found.always_through or found.never_through
    return found.always_through
