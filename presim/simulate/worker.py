"""Workers: the steps of a program as instructions that run until one of them blocks."""

from collections.abc import Sequence
from typing import Any, Final

from numpy.typing import NDArray

from presim.simulate.engine import Actor, Need
from presim.simulate.lane import Lane
from presim.simulate.result import Fault, FaultKind, SimFaultError

Array = NDArray[Any]
Place = tuple[tuple[int, int], ...]
"""Path of a step: (index in its body, loop that this step is, -1 = none), outermost first."""

NO_LOOP: Final = -1


class Port:
    """A worker's end of a fifo: what it holds of one lane."""

    __slots__ = ("fifo", "fills", "held", "lane", "opaque", "released")

    def __init__(self, fifo: str, lane: Lane, *, fills: bool, opaque: bool) -> None:
        self.fifo = fifo
        self.lane = lane
        self.fills = fills
        self.opaque = opaque
        self.held = 0
        self.released = 0

    def oldest(self) -> int:
        """Number of the oldest object held."""
        return self.lane.published if self.fills else self.lane.freed

    def grant(self, first: int, count: int) -> None:
        """Objects that the worker may write from now on; a worker without calls is taken to write all of them."""
        lane = self.lane
        if lane.views:
            for number in range(first, first + count):
                lane.views[number % lane.ring].setflags(write=True)
        if self.opaque and self.fills and lane.written:
            for number in range(first, first + count):
                lane.written[number % lane.ring] = 1

    def revoke(self, count: int) -> None:
        """The oldest objects are no longer the worker's."""
        lane = self.lane
        if lane.views:
            first = self.oldest()
            for number in range(first, first + count):
                lane.views[number % lane.ring].setflags(write=False)


class Instruction:
    """One step; `run` does it and moves on, or says that it cannot."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        self.place = place

    def run(self, worker: "Worker") -> bool:
        """Do the step; False = blocked, to be tried again when woken."""
        raise NotImplementedError

    def needs(self, worker: "Worker") -> list[Need]:
        """What is missing while it blocks."""
        del worker
        return []


class Hold(Instruction):
    """Acquire, absolute: only what is not held yet is asked for."""

    __slots__ = ("count", "port")

    def __init__(self, place: Place, port: Port, count: int) -> None:
        super().__init__(place)
        self.port = port
        self.count = count

    def needs(self, worker: "Worker") -> list[Need]:
        """See `Instruction.needs`."""
        port, lane = self.port, self.port.lane
        return [
            Need(
                lane,
                "free" if port.fills else "full",
                "acquire",
                worker.where(self),
                lane.room() if port.fills else lane.tokens(),
                self.count - port.held,
                self.count,
            )
        ]


class HoldEmpty(Hold):
    """Acquire as a producer."""

    __slots__ = ()

    def run(self, worker: "Worker") -> bool:
        """See `Instruction.run`."""
        port = self.port
        need = self.count - port.held
        lane = port.lane
        if need > 0:
            if lane.depth - lane.claimed + lane.freed < need:
                lane.fill_waiter = worker
                return False
            first = lane.claimed
            lane.claim(need)
            port.held = self.count
            port.released = 0
            port.grant(first, need)
            worker.moved = True
        worker.pc += 1
        worker.operations += 1
        worker.log.append(("acquire", port.fifo, lane.claimed - 1))
        return True


class HoldFull(Hold):
    """Acquire as a consumer."""

    __slots__ = ()

    def run(self, worker: "Worker") -> bool:
        """See `Instruction.run`."""
        port = self.port
        need = self.count - port.held
        lane = port.lane
        if need > 0:
            if lane.published - lane.taken < need:
                lane.drain_waiter = worker
                return False
            first = lane.taken
            lane.take(need)
            port.held = self.count
            port.released = 0
            port.grant(first, need)
            worker.moved = True
        worker.pc += 1
        worker.operations += 1
        worker.log.append(("acquire", port.fifo, lane.taken - 1))
        return True


class GiveBack(Instruction):
    """Release of the oldest objects held."""

    __slots__ = ("count", "port")

    def __init__(self, place: Place, port: Port, count: int) -> None:
        super().__init__(place)
        self.port = port
        self.count = count

    def run(self, worker: "Worker") -> bool:
        """See `Instruction.run`."""
        port, count = self.port, self.count
        if count > port.held:
            text = f"{worker.name} releases {count} of fifo {port.fifo!r} and holds {port.held}"
            raise worker.fault(self, "release_above_held", port.fifo, port.oldest(), text)
        port.revoke(count)
        port.held -= count
        port.released = count
        worker.pc += 1
        worker.operations += 1
        worker.moved = True
        if port.fills:
            worker.log.append(("release", port.fifo, port.lane.published + count - 1))
            port.lane.publish(count)
        else:
            worker.log.append(("release", port.fifo, port.lane.freed + count - 1))
            port.lane.free(count)
        return True


class Enter(Instruction):
    """Begin of a loop."""

    __slots__ = ("beyond", "loop", "times")

    def __init__(self, place: Place, loop: int, times: int) -> None:
        super().__init__(place)
        self.loop = loop
        self.times = times
        self.beyond = 0

    def run(self, worker: "Worker") -> bool:
        """See `Instruction.run`."""
        worker.counters[self.loop] = 0
        worker.pc = worker.pc + 1 if self.times > 0 else self.beyond
        return True


class Next(Instruction):
    """End of a loop's body."""

    __slots__ = ("body", "loop", "times")

    def __init__(self, place: Place, loop: int, times: int, body: int) -> None:
        super().__init__(place)
        self.loop = loop
        self.times = times
        self.body = body

    def run(self, worker: "Worker") -> bool:
        """See `Instruction.run`."""
        count = worker.counters[self.loop] + 1
        worker.counters[self.loop] = count
        worker.pc = self.body if count < self.times else worker.pc + 1
        return True


class Restart(Instruction):
    """End of the program: from the start again with what is held, or the end."""

    __slots__ = ()

    def run(self, worker: "Worker") -> bool:
        """See `Instruction.run`."""
        worker.passes += 1
        for array, poison in worker.scratch:
            array.fill(poison)
        if not worker.while_true:
            worker.done = True
            return False
        if not worker.moved:
            worker.done = worker.spins = True
            return False
        worker.moved = False
        worker.pc = 0
        return True


class Worker(Actor):
    """A program on a core.

    Attributes:
        code: instructions, a `Restart` last.
        pc: index of the next one.
        counters: iteration of every loop.
        passes: times that the program ended.
        ports: ends of its fifos.
        scratch: arrays that hold nothing when the program starts, and what they are filled with.
        spins: the program can run for ever without moving an object.
    """

    __slots__ = ("code", "counters", "moved", "passes", "pc", "ports", "scratch", "spins", "while_true")

    def __init__(self, name: str, *, while_true: bool, log_events: int = 16) -> None:
        super().__init__(name, log_events)
        self.while_true = while_true
        self.code: Sequence[Instruction] = ()
        self.counters: list[int] = []
        self.ports: tuple[Port, ...] = ()
        self.scratch: list[tuple[Array, Any]] = []
        self.pc = 0
        self.passes = 0
        self.moved = False
        self.spins = False

    def run(self, budget: int) -> int:
        """Run instructions until one blocks or the budget is used."""
        code = self.code
        while budget:
            if not code[self.pc].run(self):
                return budget
            budget -= 1
        return 0

    def needs(self) -> list[Need]:
        """What its instruction waits for."""
        return [] if self.done else self.code[self.pc].needs(self)

    def idle_reason(self) -> str:
        """Why it does nothing any more."""
        if self.spins:
            return "its program goes round without moving an object"
        return "its program has ended (while_true is not set)" if self.done else ""

    def where(self, instruction: Instruction) -> str:
        """Path of a step: `2[3].1` is step 1 of the body of step 2 in its iteration 3."""
        parts = [str(at) if loop == NO_LOOP else f"{at}[{self.counters[loop]}]" for at, loop in instruction.place]
        return ".".join(parts)

    def fault(self, instruction: Instruction, kind: FaultKind, fifo: str, number: int, text: str) -> SimFaultError:
        """A broken rule at one of its steps."""
        return SimFaultError(
            Fault(kind=kind, actor=self.name, step=self.where(instruction), fifo=fifo, number=number, text=text)
        )
