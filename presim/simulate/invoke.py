"""Kernel calls of a worker: arguments are checked, resolved and handed over; a cascade may block before and after."""

from collections.abc import Mapping, Sequence
from typing import Any

from presim.design import Kernel
from presim.simulate.engine import Need
from presim.simulate.kernel import CascadePort, KernelContext, KernelFunction, TileModes
from presim.simulate.lane import Lane
from presim.simulate.result import FaultKind
from presim.simulate.worker import Instruction, Place, Port, Worker


class Operand:
    """An argument of a call."""

    __slots__ = ()

    def value(self, worker: Worker, call: "Invoke") -> Any:
        """Check it and give what the kernel gets."""
        raise NotImplementedError


class ObjectOperand(Operand):
    """An object held of a fifo."""

    __slots__ = ("index", "port")

    def __init__(self, port: Port, index: int) -> None:
        self.port = port
        self.index = index

    def value(self, worker: Worker, call: "Invoke") -> Any:
        """See `Operand.value`."""
        port = self.port
        if self.index >= port.held:
            raise self._not_held(worker, call)
        lane = port.lane
        number = (lane.published if port.fills else lane.freed) + self.index
        if port.fills:
            lane.mark(number, written=True)
        elif not lane.is_written(number):
            text = f"{worker.name} reads object {number} of fifo {port.fifo!r}, which nobody wrote"
            raise worker.fault(call, "read_unwritten", port.fifo, number, text)
        return lane.views[number % lane.ring] if lane.views else None

    def _not_held(self, worker: Worker, call: "Invoke") -> Exception:
        port = self.port
        number = port.oldest() - port.released + self.index
        if self.index < port.held + port.released:
            text = f"{worker.name} uses object {number} of fifo {port.fifo!r} after its release"
            return worker.fault(call, "use_after_release", port.fifo, number, text)
        text = f"{worker.name} uses object {self.index} of fifo {port.fifo!r} and holds {port.held}"
        return worker.fault(call, "not_held", port.fifo, port.oldest() + self.index, text)


class BufferOperand(Operand):
    """Memory of the tile that is no fifo; None = simulated without data."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def value(self, worker: Worker, call: "Invoke") -> Any:
        """See `Operand.value`."""
        del worker, call
        return self.array


class CascadeLane(Lane):
    """The stream between two cores: what a call puts on it counts until the reader's call is through.

    Why the reader's whole call: reader and writer go in step, word by word, and a block is longer than the stream. A
    writer whose block fits (`words` <= `capacity`) goes on at once.
    """

    __slots__ = ("blocks", "capacity", "words")

    def __init__(self, name: str, capacity: int, words: int) -> None:
        super().__init__(name, name, 1)
        self.capacity = capacity
        self.words = words or capacity + 1
        self.blocks: list[Any] = []

    def pending(self) -> int:
        """Words that are on the stream or wait to get on it."""
        return (self.published - self.freed) * self.words


class TakeCascade(Instruction):
    """Before a call that reads the cascade: wait for a block."""

    __slots__ = ("lane",)

    def __init__(self, place: Place, lane: CascadeLane) -> None:
        super().__init__(place)
        self.lane = lane

    def run(self, worker: Worker) -> bool:
        """See `Instruction.run`."""
        lane = self.lane
        if lane.published == lane.taken:
            lane.drain_waiter = worker
            return False
        lane.take(1)
        worker.moved = True
        worker.pc += 1
        worker.operations += 1
        worker.log.append(("take", lane.fifo, lane.taken - 1))
        return True

    def needs(self, worker: Worker) -> list[Need]:
        """See `Instruction.needs`."""
        return [Need(self.lane, "full", "take", worker.where(self), self.lane.tokens(), 1, 0)]


class PutCascade(Instruction):
    """After a call that writes the cascade: its block goes onto the stream."""

    __slots__ = ("lane",)

    def __init__(self, place: Place, lane: CascadeLane) -> None:
        super().__init__(place)
        self.lane = lane

    def run(self, worker: Worker) -> bool:
        """See `Instruction.run`."""
        lane = self.lane
        lane.claim(1)
        worker.moved = True
        worker.pc += 1
        worker.operations += 1
        worker.log.append(("put", lane.fifo, lane.claimed - 1))
        lane.publish(1)
        return True


class AwaitCascade(Instruction):
    """Then wait until the stream has taken all of it."""

    __slots__ = ("lane",)

    def __init__(self, place: Place, lane: CascadeLane) -> None:
        super().__init__(place)
        self.lane = lane

    def run(self, worker: Worker) -> bool:
        """See `Instruction.run`."""
        lane = self.lane
        if lane.pending() > lane.capacity:
            lane.fill_waiter = worker
            return False
        worker.pc += 1
        return True

    def needs(self, worker: Worker) -> list[Need]:
        """See `Instruction.needs`."""
        lane = self.lane
        have = max(0, lane.capacity - lane.pending() + lane.words)
        return [Need(lane, "free", "put", worker.where(self), have, lane.words, 0)]


class CommitCascade(Instruction):
    """The call is through: what it read is off the stream."""

    __slots__ = ("lane",)

    def __init__(self, place: Place, lane: CascadeLane) -> None:
        super().__init__(place)
        self.lane = lane

    def run(self, worker: Worker) -> bool:
        """See `Instruction.run`."""
        self.lane.free(1)
        worker.pc += 1
        return True


class CascadeInOperand(Operand):
    """The block that came over the cascade."""

    __slots__ = ("lane",)

    def __init__(self, lane: CascadeLane) -> None:
        self.lane = lane

    def value(self, worker: Worker, call: "Invoke") -> Any:
        """See `Operand.value`."""
        del worker, call
        return self.lane.blocks.pop(0) if self.lane.blocks else None


class CascadeOutOperand(Operand):
    """Where the block for the next core is put."""

    __slots__ = ("lane",)

    def __init__(self, lane: CascadeLane) -> None:
        self.lane = lane

    def value(self, worker: Worker, call: "Invoke") -> Any:
        """See `Operand.value`."""
        del worker, call
        return CascadePort()


class Invoke(Instruction):
    """A kernel call."""

    __slots__ = ("context", "function", "operands", "row", "scalars", "variables")

    def __init__(
        self,
        place: Place,
        *,
        row: Kernel,
        operands: Sequence[Operand],
        scalars: Mapping[str, int],
        variables: Sequence[tuple[str, int, int, int]],
        worker: str,
        modes: TileModes,
        function: KernelFunction | None,
    ) -> None:
        super().__init__(place)
        self.row = row
        self.operands = tuple(operands)
        self.scalars = dict(scalars)
        self.variables = tuple(variables)
        self.function = function
        self.context = KernelContext(
            worker=worker, kernel=row.name, attributes=dict(row.attributes), scalars=self.scalars, modes=modes
        )

    def run(self, worker: Worker) -> bool:
        """See `Instruction.run`."""
        values = [operand.value(worker, self) for operand in self.operands]
        for name, loop, factor, offset in self.variables:
            self.scalars[name] = worker.counters[loop] * factor + offset
        modes = self.context.modes
        if self.row.rounding:
            modes.rounding = self.row.rounding
        if self.row.saturation:
            modes.saturation = self.row.saturation
        if self.function is not None:
            self._call(worker, self.function, values)
        worker.log.append(("call", self.row.name, worker.passes))
        worker.pc += 1
        return True

    def _call(self, worker: Worker, function: KernelFunction, values: list[Any]) -> None:
        try:
            function(self.context, *values)
        except Exception as error:
            # A kernel is foreign code: whatever it raises is the verdict on the design, not a fault of the simulator.
            kind: FaultKind = "write_not_held" if "read-only" in str(error) else "kernel"
            text = f"kernel {self.row.name!r} of {worker.name}: {type(error).__name__}: {error}"
            raise worker.fault(self, kind, "", -1, text) from error
        for operand, value in zip(self.operands, values, strict=True):
            if isinstance(operand, CascadeOutOperand):
                if value.block is None:
                    text = f"kernel {self.row.name!r} of {worker.name} put nothing on the cascade"
                    raise worker.fault(self, "cascade", operand.lane.fifo, operand.lane.claimed, text)
                operand.lane.blocks.append(value.block)
