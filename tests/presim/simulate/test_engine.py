"""The scheduler: order, turns, bounds, and who can never go on."""

from presim.simulate.diagnose import diagnose, stuck
from presim.simulate.engine import QUANTUM, Actor, Engine, Goal, Need
from presim.simulate.lane import Lane
from presim.simulate.result import Wait


class Counter(Actor):
    """Counts to `last` and ends; notes its turns."""

    __slots__ = ("at", "goal", "last", "turns")

    def __init__(self, name: str, last: int, turns: list[str], goal: Goal | None = None) -> None:
        super().__init__(name)
        self.at = 0
        self.last = last
        self.turns = turns
        self.goal = goal

    def run(self, budget: int) -> int:
        self.turns.append(self.name)
        while budget:
            if self.at == self.last:
                self.done = True
                if self.goal is not None:
                    self.goal.reached = True
                return budget
            self.at += 1
            budget -= 1
        return 0

    def needs(self) -> list[Need]:
        return []


class Waiting(Actor):
    """Waits for an object of a lane for ever."""

    __slots__ = ("kind", "lane")

    def __init__(self, name: str, lane: Lane, kind: str) -> None:
        super().__init__(name)
        self.lane = lane
        self.kind = kind

    def run(self, budget: int) -> int:
        return budget

    def needs(self) -> list[Need]:
        return [Need(self.lane, self.kind, "acquire", "0", 0, 1, 1)]  # type: ignore[arg-type]


def test_round_robin_gives_equal_turns_in_the_order_of_the_actors() -> None:
    turns: list[str] = []
    engine = Engine([Counter(n, 2 * QUANTUM, turns) for n in "abc"], max_steps=10**9)
    assert engine.run() == "fixpoint"
    assert turns == list("abcabcabc")


def test_a_seed_gives_its_own_order_every_time() -> None:
    def order(seed: int) -> list[str]:
        turns: list[str] = []
        assert Engine([Counter(n, 40, turns) for n in "abc"], max_steps=10**9, seed=seed).run() == "fixpoint"
        return turns

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(6)}) > 3


def test_a_goal_ends_the_run_and_the_rest_can_go_on() -> None:
    turns: list[str] = []
    goal = Goal()
    engine = Engine([Counter("a", 10, turns, goal), Counter("b", 10**6, turns)], max_steps=10**9)
    assert engine.run(goal) == "goal"
    assert turns == ["a"]
    assert engine.run() == "fixpoint"


def test_bounds_hold_over_all_runs_and_for_one() -> None:
    counter = Counter("a", 10**6, [])
    engine = Engine([counter], max_steps=1000)
    assert engine.run(limit=100) == "bound"
    assert counter.at <= 100
    assert engine.run() == "bound"
    assert counter.at <= 1000
    assert engine.run() == "bound"


def test_only_those_are_stuck_whom_nobody_that_runs_could_help() -> None:
    lanes = {name: Lane(name, name, 1) for name in "pqr"}
    a, b = Waiting("a", lanes["p"], "full"), Waiting("b", lanes["q"], "full")
    c, runs = Waiting("c", lanes["r"], "full"), Counter("runs", 10, [])
    lanes["p"].filler, lanes["q"].filler, lanes["r"].filler = b, a, runs
    runs.queued = True
    assert stuck([a, b, c, runs]) == {id(a), id(b)}
    lanes["q"].filler = runs
    assert stuck([a, b, c, runs]) == set()


def test_a_chain_leads_to_who_never_delivers() -> None:
    lanes = {name: Lane(name, name, 1) for name in "pq"}
    a, b = Waiting("a", lanes["p"], "full"), Waiting("b", lanes["q"], "full")
    lanes["p"].filler = b
    found = diagnose([a])
    assert found.cycle == ()
    assert [(w.actor, w.fifo) for w in found.chain] == [("a", "p"), ("b", "q")]
    assert found.reason == "nothing fills pool 'q'"
    lanes["q"].filler = a
    found = diagnose([a])
    assert [(w.actor, w.fifo) for w in found.cycle] == [("a", "p"), ("b", "q")]
    assert (found.chain, found.starved) == ((), ("p", "q"))


def test_waits_are_told_in_words() -> None:
    def said(op: str, kind: str, step: str = "0[3].1") -> str:
        return Wait(actor="w", op=op, fifo="f", side="f:consume:v", step=step, kind=kind, have=1, need=2).line()  # type: ignore[arg-type]

    assert said("acquire", "full") == "w acquires 2 of fifo 'f', 1 there at step 0[3].1"
    assert said("acquire", "free", "") == "w acquires 2 of fifo 'f', 1 free"
    assert said("send", "full", "") == "w has nothing of fifo 'f' to send"
    assert said("receive", "free", "") == "w finds no room for fifo 'f' at consume:v"
    assert said("await", "full", "task 1") == "w awaits 2 objects of fifo 'f', 1 came"
    assert said("put", "free") == "w puts 2 words on cascade 'f', 1 fit at step 0[3].1"
