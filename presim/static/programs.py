"""Programs of workers: acquires fit their pools, releases fit what is held, bodies do not drift, rates agree."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from presim.design import Acquire, Call, Fifo, Loop, Side, Step, Worker
from presim.static.findings import Checked, StaticFinding, error, warning
from presim.static.scope import Scope
from presim.steps import elements_of, side_of, steps_of

DEPTHS: Final = "acquire_depth"
BALANCE: Final = "release_balance"
DRIFT: Final = "drift"
RATES: Final = "rates"

Key = tuple[str, Side]


@dataclass(slots=True)
class Walk:
    """What a program does when nothing blocks.

    Attributes:
        held: objects held, by (fifo, side).
        taken: objects acquired so far.
        given: objects released so far.
        touched: of the objects held, oldest first, whether a call got them.
        findings: broken rules, each place once.
    """

    held: dict[Key, int] = field(default_factory=dict)
    taken: dict[Key, int] = field(default_factory=dict)
    given: dict[Key, int] = field(default_factory=dict)
    touched: dict[Key, list[bool]] = field(default_factory=dict)
    findings: dict[tuple[str, str], StaticFinding] = field(default_factory=dict)

    def state(self) -> tuple[object, ...]:
        """What decides how the program goes on."""
        return (tuple(sorted(self.held.items())), tuple(sorted((k, tuple(v)) for k, v in self.touched.items())))


class _Walker:
    """Runs a program of one worker with everything always there; equal rounds of a loop are counted, not run."""

    def __init__(self, fifos: Mapping[str, Fifo], worker: Worker) -> None:
        self.fifos = fifos
        self.worker = worker
        self.calls = any(isinstance(s, Call) for s in steps_of(worker.program))
        self.walk = Walk()

    def run(self) -> None:
        """One pass of the program."""
        self._body(self.worker.program, "")

    def _body(self, steps: Sequence[Step], prefix: str) -> None:
        for index, step in enumerate(steps):
            place = f"{prefix}{index}"
            if isinstance(step, Loop):
                self._loop(step, place)
            elif isinstance(step, Call):
                self._call(step, place)
            else:
                key = (step.fifo, side_of(self.fifos[step.fifo], self.worker.name, step.side))
                if isinstance(step, Acquire):
                    self._acquire(key, step.count)
                else:
                    self._release(key, step.count, place)

    def _loop(self, step: Loop, place: str) -> None:
        walk = self.walk
        for turn in range(step.times):
            before, taken, given = walk.state(), dict(walk.taken), dict(walk.given)
            self._body(step.body, f"{place}.")
            if walk.state() == before:
                rest = step.times - turn - 1
                for counts, old in ((walk.taken, taken), (walk.given, given)):
                    for key in counts:
                        counts[key] += rest * (counts[key] - old.get(key, 0))
                return

    def _acquire(self, key: Key, count: int) -> None:
        walk = self.walk
        new = max(0, count - walk.held.get(key, 0))
        walk.held[key] = walk.held.get(key, 0) + new
        walk.taken[key] = walk.taken.get(key, 0) + new
        walk.touched.setdefault(key, []).extend([False] * new)

    def _release(self, key: Key, count: int, place: str) -> None:
        walk = self.walk
        held = walk.held.get(key, 0)
        if count > held:
            self._found(place, f"releases {count} of fifo {key[0]!r} and holds {held}", used=count, limit=held)
        given = min(count, held)
        touched = walk.touched.setdefault(key, [])
        if key[1] == "produce" and self.calls and not all(touched[:given]):
            self._found(place, f"hands over an object of fifo {key[0]!r} that no kernel was given to write")
        del touched[:given]
        walk.held[key] = held - given
        walk.given[key] = walk.given.get(key, 0) + given

    def _call(self, step: Call, place: str) -> None:
        for argument in step.arguments:
            if argument.kind != "fifo":
                continue
            key = (argument.name, side_of(self.fifos[argument.name], self.worker.name, argument.side))
            held = self.walk.held.get(key, 0)
            if argument.index >= held:
                text = f"kernel {step.kernel!r} gets object {argument.index} of fifo {argument.name!r}, held are {held}"
                self._found(place, text, used=argument.index, limit=held)
            else:
                self.walk.touched[key][argument.index] = True

    def _found(self, place: str, text: str, *, used: int | None = None, limit: int | None = None) -> None:
        where = f"worker {self.worker.name!r} step {place}"
        self.walk.findings.setdefault((where, text), error(BALANCE, where, text, used=used, limit=limit))


def _walks(scope: Scope, passes: int) -> Iterator[tuple[Worker, list[tuple[dict[Key, int], dict[Key, int]]], Walk]]:
    """Every worker with (taken, given) of each pass, and the walk at the end."""
    fifos = {f.name: f for f in scope.design.fifos}
    for worker in scope.design.workers:
        walker = _Walker(fifos, worker)
        counts = []
        before: tuple[dict[Key, int], dict[Key, int]] = ({}, {})
        for _ in range(passes if worker.while_true else 1):
            walker.run()
            now = (dict(walker.walk.taken), dict(walker.walk.given))
            counts.append(
                tuple({k: n - old.get(k, 0) for k, n in new.items()} for new, old in zip(now, before, strict=True))
            )
            before = now
        yield worker, counts, walker.walk  # type: ignore[misc]


def acquire_depth(scope: Scope) -> Checked:
    """No acquire asks for more objects than its pool has, as declared and as the compiler allocates it."""
    found: list[StaticFinding] = []
    looked_at = 0
    for worker in scope.design.workers:
        for step in steps_of(worker.program):
            if not isinstance(step, Acquire):
                continue
            looked_at += 1
            side = side_of(scope.fifo(step.fifo), worker.name, step.side)
            pool = scope.wiring.pools[scope.wiring.ports[worker.name, step.fifo, side]]
            if step.count > pool.depth:
                text = (
                    f"acquires {step.count} of fifo {step.fifo!r}, whose pool holds {pool.depth}"
                    f" (declared {pool.declared}, allocated {pool.allocated})"
                )
                found.append(error(DEPTHS, f"worker {worker.name!r}", text, used=step.count, limit=pool.depth))
    for pool in scope.wiring.pools.values():
        grown = pool.kind == "produce" and pool.largest_acquire and pool.declared > pool.largest_acquire + 1
        if grown and pool.allocated == pool.declared and not pool.init_objects:
            text = (
                f"the producer's pool of {pool.declared} is deeper than its largest acquire plus one; a toolchain that"
                f" takes a list for the consumers alone allocates {pool.largest_acquire + 1}"
            )
            found.append(
                warning(DEPTHS, f"fifo {pool.fifo!r}", text, used=pool.declared, limit=pool.largest_acquire + 1)
            )
    return Checked(rule=DEPTHS, looked_at=looked_at, findings=tuple(dict.fromkeys(found)))


def release_balance(scope: Scope) -> Checked:
    """No program releases more than it holds, uses an object that it does not hold, or hands over an unwritten one."""
    found: list[StaticFinding] = []
    for _, _, walk in _walks(scope, 2):
        found += walk.findings.values()
    return Checked(rule=BALANCE, looked_at=len(scope.design.workers), findings=tuple(found))


def drift(scope: Scope) -> Checked:
    """A body that starts again takes as many objects the second time as the first: else inputs run into each other."""
    found = []
    for worker, passes, walk in _walks(scope, 3):
        if len(passes) < 2:
            continue
        for key in walk.held:
            takes = [taken.get(key, 0) for taken, _ in passes]
            if len(set(takes)) > 1:
                text = (
                    f"its program takes {takes[0]} objects of fifo {key[0]!r} the first time and {takes[-1]} later:"
                    f" it keeps {walk.held[key]} when it ends"
                )
                found.append(warning(DRIFT, f"worker {worker.name!r}", text, used=takes[0], limit=takes[-1]))
    return Checked(rule=DRIFT, looked_at=len(scope.design.workers), findings=tuple(found))


@dataclass(frozen=True, slots=True)
class _Rate:
    """Objects that an actor moves at one end of a fifo in one pass; the host's pass is an inference."""

    actor: str
    objects: Fraction


def rates(scope: Scope) -> Checked:
    """What is sent into every fifo in an inference is what is taken out of it.

    Programs may run several times an inference: how often is solved from the host's tasks on. More wanted than sent
    stops the design, more sent than wanted shifts every following input.
    """
    given: dict[tuple[str, str, Side], int] = {}
    for worker, passes, _ in _walks(scope, 3):
        for (fifo, side), count in passes[-1][1].items():
            given[worker.name, fifo, side] = count
    pairs = list(_pairs(scope, given))
    passes_of = _passes(pairs)
    found = []
    for name, source, target in pairs:
        sent, taken = (rate.objects * passes_of.get(rate.actor, Fraction(1)) for rate in (source, target))
        if sent != taken:
            text = f"{_count(sent)} objects are sent an inference and {_count(taken)} are taken"
            make = error if taken > sent else warning
            found.append(make(RATES, f"fifo {name!r}", text, used=int(taken), limit=int(sent)))
    return Checked(rule=RATES, looked_at=len(pairs), findings=tuple(dict.fromkeys(found)))


def _passes(pairs: Sequence[tuple[str, _Rate, _Rate]]) -> dict[str, Fraction]:
    """How often each program runs in an inference: what most of its fifos say, once where they do not agree."""
    passes = {"host": Fraction(1)}
    while True:
        votes: dict[str, Counter[Fraction]] = {}
        for _, source, target in pairs:
            for known, other in ((source, target), (target, source)):
                if known.actor in passes and other.actor not in passes and other.objects:
                    value = known.objects * passes[known.actor] / other.objects
                    votes.setdefault(other.actor, Counter())[value] += 1
        if not votes:
            return passes
        for actor, counted in votes.items():
            most = max(counted.values())
            values = [value for value, count in counted.items() if count == most]
            passes[actor] = values[0] if len(values) == 1 else Fraction(1)


def _count(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _pairs(scope: Scope, given: Mapping[tuple[str, str, Side], int]) -> Iterator[tuple[str, _Rate, _Rate]]:
    """(fifo, what is sent, what is taken) in objects of the consumers, for every sender and every one that takes."""
    for fifo in scope.design.fifos:
        if fifo.iter_count is not None:
            continue
        for source in _sent(scope, fifo, given):
            for end in fifo.consumers:
                if end.kind == "shim":
                    yield fifo.name, source, _Rate("host", Fraction(_tasks(scope, fifo.name, "drain")))
                elif end.kind == "worker":
                    count = given.get((end.actor, fifo.name, "consume"), 0)
                    yield fifo.name, source, _Rate(end.actor, Fraction(count))


def _tasks(scope: Scope, fifo: str, direction: str) -> int:
    """Objects that the host's tasks move in an inference."""
    return sum(t.objects for t in scope.design.sequence if t.fifo == fifo and t.direction == direction)


def _sent(scope: Scope, fifo: Fifo, given: Mapping[tuple[str, str, Side], int]) -> list[_Rate]:
    """What one pass of each first sender puts into a fifo, in objects of its consumers; links are followed back."""
    cut = Fraction(elements_of(fifo.shape), elements_of(fifo.consumer_shape or fifo.shape)) * fifo.repeat_count
    if fifo.producer.kind == "shim":
        return [_Rate("host", _tasks(scope, fifo.name, "fill") * cut)]
    if fifo.producer.kind == "worker":
        return [_Rate(fifo.producer.actor, given.get((fifo.producer.actor, fifo.name, "produce"), 0) * cut)]
    link = next((link for link in scope.design.links if fifo.name in link.targets), None)
    rates_found = []
    for name in () if link is None else link.sources:
        before = scope.fifo(name)
        arriving = elements_of(before.consumer_shape or before.shape)
        whole = elements_of(fifo.shape) if link is not None and link.kind == "forward" else arriving
        share = Fraction(arriving, whole) * cut
        rates_found += [_Rate(source.actor, source.objects * share) for source in _sent(scope, before, given)]
    return rates_found
