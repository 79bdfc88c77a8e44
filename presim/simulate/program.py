"""Programs of the design into instructions: loops become jumps, names become lanes and arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from presim.design import Acquire, Argument, Call, Kernel, Loop, Release, Side, Step
from presim.simulate.invoke import (
    AwaitCascade,
    BufferOperand,
    CascadeInOperand,
    CascadeLane,
    CascadeOutOperand,
    CommitCascade,
    Invoke,
    ObjectOperand,
    Operand,
    PutCascade,
    TakeCascade,
)
from presim.simulate.kernel import KernelFunction, TileModes
from presim.simulate.worker import (
    NO_LOOP,
    Enter,
    GiveBack,
    HoldEmpty,
    HoldFull,
    Instruction,
    Next,
    Place,
    Port,
    Restart,
    Worker,
)
from presim.steps import variable_of


class Compiler:
    """Turns the steps of one worker into instructions.

    Args:
        worker: gets the code.
        port: the end of a fifo, by its name and side.
        buffers: arrays by name, None = without data.
        cascades: (the one it reads, the one it writes).
        kernels: rows by name.
        functions: what the rows run; none = without data.
        modes: of the tile.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        port: Callable[[str, Side], Port],
        buffers: Mapping[str, Any],
        cascades: tuple[CascadeLane | None, CascadeLane | None],
        kernels: Mapping[str, Kernel],
        functions: Mapping[str, KernelFunction],
        modes: TileModes,
    ) -> None:
        self.worker = worker
        self.port = port
        self.buffers = buffers
        self.cascade_in, self.cascade_out = cascades
        self.kernels = kernels
        self.functions = functions
        self.modes = modes
        self.code: list[Instruction] = []
        self.loops = 0

    def compile(self, program: Sequence[Step]) -> None:
        """Give the worker its code."""
        self._body(program, (), {})
        self.code.append(Restart(((len(program), NO_LOOP),)))
        self.worker.code = self.code
        self.worker.counters = [0] * self.loops

    def _body(self, steps: Sequence[Step], place: Place, counters: Mapping[str, int]) -> None:
        for index, step in enumerate(steps):
            if isinstance(step, Loop):
                self._loop(step, index, place, counters)
                continue
            here = (*place, (index, NO_LOOP))
            if isinstance(step, Call):
                self._call(step, here, counters)
                continue
            port = self.port(step.fifo, step.side)
            if isinstance(step, Release):
                self.code.append(GiveBack(here, port, step.count))
            else:
                self.code.append(self._hold(step, here, port))

    def _hold(self, step: Acquire, place: Place, port: Port) -> Instruction:
        return (HoldEmpty if port.fills else HoldFull)(place, port, step.count)

    def _loop(self, step: Loop, index: int, place: Place, counters: Mapping[str, int]) -> None:
        loop = self.loops
        self.loops += 1
        here = (*place, (index, loop))
        enter = Enter(here, loop, step.times)
        self.code.append(enter)
        body = len(self.code)
        self._body(step.body, here, {**counters, step.counter: loop} if step.counter else counters)
        self.code.append(Next(here, loop, step.times, body))
        enter.beyond = len(self.code)

    def _call(self, step: Call, place: Place, counters: Mapping[str, int]) -> None:
        reads = any(a.kind == "cascade_in" for a in step.arguments)
        writes = any(a.kind == "cascade_out" for a in step.arguments)
        if reads and self.cascade_in is not None:
            self.code.append(TakeCascade(place, self.cascade_in))
        scalars: dict[str, int] = {}
        variables: list[tuple[str, int, int, int]] = []
        for name, value in step.scalars:
            found = variable_of(value) if isinstance(value, str) else None
            if found is None:
                scalars[name] = int(value)
            else:
                variables.append((name, counters[found[0]], found[1], found[2]))
        self.code.append(
            Invoke(
                place,
                row=self.kernels[step.kernel],
                operands=[self._operand(argument) for argument in step.arguments],
                scalars=scalars,
                variables=variables,
                worker=self.worker.name,
                modes=self.modes,
                function=self.functions.get(step.kernel),
            )
        )
        if writes and self.cascade_out is not None:
            self.code += [PutCascade(place, self.cascade_out), AwaitCascade(place, self.cascade_out)]
        if reads and self.cascade_in is not None:
            self.code.append(CommitCascade(place, self.cascade_in))

    def _operand(self, argument: Argument) -> Operand:
        if argument.kind == "fifo":
            return ObjectOperand(self.port(argument.name, argument.side), argument.index)
        if argument.kind == "buffer":
            return BufferOperand(self.buffers[argument.name])
        lane = self.cascade_in if argument.kind == "cascade_in" else self.cascade_out
        if lane is None:
            msg = f"{self.worker.name}: {argument.kind} without a cascade"
            raise ValueError(msg)
        return CascadeInOperand(lane) if argument.kind == "cascade_in" else CascadeOutOperand(lane)
