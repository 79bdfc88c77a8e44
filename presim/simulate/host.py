"""The host: the runtime sequence of one inference after the other, and the shim ends of its tasks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from presim.design import Transfer
from presim.simulate.engine import Actor, Goal, Need
from presim.simulate.lane import ENDLESS, Lane, poison_of
from presim.simulate.result import Fault, SimFaultError
from presim.simulate.stream import order_of

Array = NDArray[Any]

QUEUE_LIMIT: Final = 6
"""Tasks that a channel takes that nobody waited for: a queue of four, one that runs, one in between (mlir-air 1822)."""


class Task:
    """A transfer that the host started.

    Attributes:
        transfer: what it moves.
        begin, end: numbers of its objects on the channel.
        over: all its objects are through.
        dropped: the channel's queue was full, the hardware forgot it.
    """

    __slots__ = ("begin", "dropped", "end", "over", "transfer")

    def __init__(self, transfer: Transfer, begin: int) -> None:
        self.transfer = transfer
        self.begin = begin
        self.end = begin + transfer.objects
        self.over = False
        self.dropped = False


class Channel:
    """A shim DMA channel: the host's end of one fifo.

    Attributes:
        lane: objects that the tasks offer (fill) or take (drain).
        fills: direction.
        elements: of one object.
        tasks: started and not known to be over, oldest first.
        started: tasks of this inference.
        current: the task that moves.
        host: woken when a task is over.
    """

    __slots__ = ("current", "elements", "fills", "host", "lane", "orders", "started", "tasks")

    def __init__(self, fifo: str, *, fills: bool, elements: int) -> None:
        self.lane = Lane(fifo, "host", ENDLESS if fills else 0, ring=1)
        self.fills = fills
        self.elements = elements
        self.tasks: list[Task] = []
        self.started = 0
        self.current: Task | None = None
        self.orders: dict[Transfer, NDArray[np.int64]] = {}
        self.host: Host | None = None

    def push(self, task: Task) -> None:
        """Start a task; it is lost where the queue is full."""
        task.dropped = len(self.tasks) >= QUEUE_LIMIT
        self.tasks.append(task)
        self.started += 1
        if task.dropped:
            return
        if self.fills:
            self.lane.claimed += task.transfer.objects
            self.lane.publish(task.transfer.objects)
        else:
            self.lane.depth += task.transfer.objects
            waiter = self.lane.fill_waiter
            if waiter is not None:
                self.lane.fill_waiter = None
                waiter.wake()

    def require_written(self, number: int) -> None:
        """Fault an object that reaches the host though nobody wrote it.

        Raises:
            SimFaultError: it was not written.
        """
        if not self.lane.is_written(number):
            fifo = self.lane.fifo
            text = f"the host drains object {number} of fifo {fifo!r}, which nobody wrote"
            raise SimFaultError(
                Fault(kind="read_unwritten", actor="host", step="", fifo=fifo, number=number, text=text)
            )

    def next_begin(self) -> int:
        """Number of the first object of the next task."""
        return self.lane.published if self.fills else self.lane.depth

    def progress(self, number: int) -> None:
        """An object is through; ends the task whose last one it was."""
        task = self.task_of(number)
        if task.end == number + 1:
            task.over = True
            if self.host is not None:
                self.host.wake()

    def retire(self, task: Task) -> None:
        """A token came: the task and all before it are over and free their places."""
        if task in self.tasks:
            del self.tasks[: self.tasks.index(task) + 1]

    def task_of(self, number: int) -> Task:
        """The task that an object belongs to."""
        task = self.current
        if task is None or not task.begin <= number < task.end:
            task = next(t for t in self.tasks if not t.dropped and t.begin <= number < t.end)
            self.current = task
        return task

    def selection(self, number: int) -> tuple[str, slice | NDArray[np.int64]]:
        """The host tensor of an object and which of its elements it is, in stream order."""
        task = self.task_of(number)
        transfer = task.transfer
        at = (number - task.begin) * self.elements
        if not transfer.sizes:
            at += transfer.offset
            return transfer.tensor, slice(at, at + self.elements)
        order = self.orders.get(transfer)
        if order is None:
            order = tap_order(transfer, self.elements)
            self.orders[transfer] = order
        return transfer.tensor, order[at : at + self.elements]


class Host(Actor):
    """Runs the sequence once per inference; the goal is its end.

    Attributes:
        sequence: transfers in the order in which the host starts them.
        channels: by fifo.
        goal: set when the sequence of an inference is through.
        inference: number of the one that runs.
    """

    __slots__ = ("channels", "goal", "inference", "operations_of", "pc", "program", "sequence", "tasks")

    def __init__(self, sequence: Sequence[Transfer], channels: Mapping[str, Channel], goal: Goal, log: int) -> None:
        super().__init__("host", log)
        self.sequence = tuple(sequence)
        self.channels = channels
        self.goal = goal
        self.program = host_program(self.sequence)
        self.tasks: dict[int, Task] = {}
        self.pc = 0
        self.inference = 0
        for channel in channels.values():
            channel.host = self

    def begin_next(self) -> None:
        """The next inference: what is over is forgotten, what is not stays on its channel."""
        self.inference += 1
        self.pc = 0
        self.tasks = {}
        self.goal.reached = False
        for channel in self.channels.values():
            channel.tasks = [t for t in channel.tasks if not t.over]
            channel.started = 0
        self.wake()

    def run(self, budget: int) -> int:
        """Start tasks and wait for tokens."""
        while budget:
            if self.pc >= len(self.program):
                self.goal.reached = True
                return budget
            starts, indices = self.program[self.pc]
            if starts:
                self._start(indices[0])
            elif not self._awaited(indices):
                return budget
            self.pc += 1
            budget -= 1
        return 0

    def _start(self, index: int) -> None:
        transfer = self.sequence[index]
        channel = self.channels[transfer.fifo]
        task = Task(transfer, channel.next_begin())
        self.tasks[index] = task
        channel.push(task)
        self.log.append((transfer.direction, transfer.fifo, index))

    def _awaited(self, indices: tuple[int, ...]) -> bool:
        if not all(self.tasks[i].over for i in indices):
            return False
        for i in indices:
            task = self.tasks[i]
            self.channels[task.transfer.fifo].retire(task)
            self.log.append(("await", task.transfer.fifo, i))
        return True

    def needs(self) -> list[Need]:
        """Tokens that it waits for."""
        if self.pc >= len(self.program) or self.program[self.pc][0]:
            return []
        found = []
        for i in self.program[self.pc][1]:
            task = self.tasks[i]
            if task.over:
                continue
            channel = self.channels[task.transfer.fifo]
            lane = channel.lane
            through = lane.freed if channel.fills else lane.published
            have = 0 if task.dropped else max(0, min(through, task.end) - task.begin)
            kind: Literal["full", "free"] = "free" if channel.fills else "full"
            found.append(Need(lane, kind, "await", f"task {i}", have, task.transfer.objects, 0))
        return found

    def supplies(self, fifo: str) -> bool:
        """Whether a task for this fifo is still to be started in this inference."""
        return any(starts and self.sequence[i[0]].fifo == fifo for starts, i in self.program[self.pc :])

    def refusal(self, fifo: str) -> str:
        """Why nothing more comes for a fifo in this inference."""
        channel = self.channels.get(fifo)
        if channel is None or channel.started == 0:
            return f"the host starts no task for fifo {fifo!r}"
        dropped = sum(task.dropped for task in channel.tasks)
        if dropped:
            return (
                f"{dropped} of {channel.started} tasks of fifo {fifo!r} were started while {QUEUE_LIMIT} were"
                " outstanding on its channel, and lost"
            )
        objects = sum(t.objects for t in self.sequence if t.fifo == fifo)
        return f"the tasks of fifo {fifo!r} move {objects} objects an inference and no more"


def host_program(sequence: Sequence[Transfer]) -> tuple[tuple[bool, tuple[int, ...]], ...]:
    """The sequence as (starts, indices): start one transfer, or wait for those of a group that ask for it.

    A group ends behind its last transfer, the default group "" behind all.
    """
    last = {t.group: i for i, t in enumerate(sequence) if t.group}
    program: list[tuple[bool, tuple[int, ...]]] = []
    for index, transfer in enumerate(sequence):
        program.append((True, (index,)))
        if transfer.group and last[transfer.group] == index:
            waits = tuple(i for i, t in enumerate(sequence) if t.group == transfer.group and t.wait)
            program.append((False, waits))
    program.append((False, tuple(i for i, t in enumerate(sequence) if not t.group and t.wait)))
    return tuple(step for step in program if step[1])


def tap_order(transfer: Transfer, elements: int) -> NDArray[np.int64]:
    """Elements of the host tensor that a transfer touches, in stream order.

    Args:
        transfer: `sizes` and `strides` in elements, () = as many as its objects have, one after the other.
        elements: of one object.
    """
    count = transfer.objects * elements
    order = order_of(tuple(zip(transfer.sizes, transfer.strides, strict=True)), -1) if transfer.sizes else None
    return transfer.offset + (np.arange(count, dtype=np.int64) if order is None else order)


def reach(transfer: Transfer, elements: int) -> int:
    """Elements that a host tensor has to have for a transfer.

    Args:
        transfer: of sound structure.
        elements: of one object.
    """
    if not transfer.sizes:
        return transfer.offset + transfer.objects * elements
    return transfer.offset + 1 + sum((n - 1) * s for n, s in zip(transfer.sizes, transfer.strides, strict=True))


class HostMemory:
    """Tensors of the host, one set per inference; fills read from it, drains write into it.

    Attributes:
        inputs: by inference and tensor name, any shape.
        constants: tensors that are the same in every inference (weights).
        outputs: by inference and tensor name, one-dimensional; poisoned at first.
    """

    def __init__(self, inputs: Sequence[Mapping[str, Array]], constants: Mapping[str, Array]) -> None:
        self.inputs = inputs
        self.constants = constants
        self.outputs: list[dict[str, Array]] = [{} for _ in inputs]
        self.inference = 0

    def begin(self, inference: int, sizes: Mapping[str, tuple[int, str]]) -> None:
        """Fresh outputs for an inference; `sizes` holds elements and dtype by tensor."""
        self.inference = inference
        self.outputs[inference] = {
            name: np.full(count, poison_of(dtype), dtype) for name, (count, dtype) in sizes.items()
        }

    def load(self, channel: Channel, number: int) -> None:
        """Bring an object of a fill to its channel."""
        name, selection = channel.selection(number)
        tensor = self.inputs[self.inference].get(name)
        if tensor is None:
            tensor = self.constants[name]
        channel.lane.flat[0][...] = tensor.reshape(-1)[selection]

    def store(self, channel: Channel, number: int) -> None:
        """Write an object of a drain where it belongs.

        Raises:
            SimFaultError: nobody wrote it.
        """
        channel.require_written(number)
        name, selection = channel.selection(number)
        self.outputs[self.inference][name][selection] = channel.lane.flat[0]
