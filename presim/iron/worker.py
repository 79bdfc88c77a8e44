"""Workers, barriers and cascades."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from presim.iron.api import row
from presim.iron.buffer import Buffer, ScratchpadParameter
from presim.iron.device import AnyComputeTile, Tile
from presim.iron.errors import UnsupportedError, WrongCallError, WrongValueError
from presim.iron.fifo import ObjectFifo, ObjectFifoHandle
from presim.iron.sequence import session
from presim.iron.trace import UnsetNode, WaitNode, static_int, tracer

MOST_VALUE = 63


def flat(values: Any) -> Iterator[Any]:
    """Values of nested lists and tuples."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from flat(value)
        else:
            yield value


class Worker:
    """A core function on a core tile."""

    @row("aie.iron.Worker")
    def __init__(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        core_fn: Callable[..., Any] | None,
        fn_args: Sequence[Any] | None = None,
        tile: Tile | None = AnyComputeTile,
        while_true: bool = True,
        stack_size: int | None = None,
        allocation_scheme: str | None = None,
        trace: int | None = None,
        trace_events: Any = None,
        dynamic_objfifo_lowering: bool | None = None,
    ) -> None:
        self.core_fn = core_fn
        self.fn_args = list(fn_args or ())
        self.tile = tile or AnyComputeTile
        if not isinstance(self.tile, Tile) or self.tile.kind in {"mem", "shim"}:
            msg = f"tile of a Worker: expected a compute tile, got {tile}"
            raise WrongValueError(msg)
        self.while_true = while_true
        self.stack_size = stack_size
        self.fifos: list[ObjectFifoHandle] = []
        self.buffers: list[Buffer] = []
        self.barriers: list[WorkerRuntimeBarrier] = []
        self.outgoing: list[CascadeFlow] = []
        for arg in flat(self.fn_args):
            self._take(arg)

    def _take(self, arg: Any) -> None:
        if isinstance(arg, ObjectFifo):
            msg = f"fn_args of a Worker: ObjectFifo {arg.name!r} itself, expected its prod() or cons()"
            raise WrongValueError(msg)
        if isinstance(arg, ObjectFifoHandle):
            arg.bind(self, "a Worker")
            self.fifos.append(arg)
        elif isinstance(arg, Buffer):
            arg.claim(self)
            self.buffers.append(arg)
        elif isinstance(arg, WorkerRuntimeBarrier):
            self.barriers.append(arg)
        elif isinstance(arg, ScratchpadParameter):
            msg = f"ScratchpadParameter {arg.name!r}: a value that the host gives at run time; the simulator has none"
            raise UnsupportedError(msg)

    @classmethod
    @row("aie.iron.Worker.grid")
    def grid(cls, rows: int, cols: int, factory: Callable[[int, int], Any]) -> list[list[Any]]:
        """Workers by row and column, each made by `factory(row, column)`."""
        return [[factory(r, c) for c in range(cols)] for r in range(rows)]

    def __str__(self) -> str:
        return "a Worker"


class WorkerRuntimeBarrier:
    """A lock of each worker that has it, set by the runtime sequence."""

    made: ClassVar[list["WorkerRuntimeBarrier"]] = []

    @row("aie.iron.WorkerRuntimeBarrier")
    def __init__(self, initial_value: int = 0) -> None:
        if static_int(initial_value, "initial_value") != 0:
            msg = "WorkerRuntimeBarrier with an initial_value: the simulator follows barriers that start at 0"
            raise UnsupportedError(msg)
        self.name = f"barrier{len(WorkerRuntimeBarrier.made)}"
        WorkerRuntimeBarrier.made.append(self)

    @row("aie.iron.WorkerRuntimeBarrier.wait_for_value")
    def wait_for_value(self, value: int) -> None:
        """In a core: wait until the sequence sets this value."""
        tracer("wait_for_value()").add(WaitNode(self.name, static_int(value, "value of a barrier")))

    @row("aie.iron.WorkerRuntimeBarrier.release_with_value")
    def release_with_value(self, value: int) -> None:
        """In a core: take `value` off the barrier, so that the next wait needs a set of its own."""
        tracer("release_with_value()").add(UnsetNode(self.name, static_int(value, "value of a barrier")))

    @row("aie.iron.WorkerRuntimeBarrier.set")
    def set(self, value: int) -> None:
        """In the sequence: set the lock of every worker that has the barrier."""
        number = static_int(value, "value of a barrier")
        if not 0 <= number <= MOST_VALUE:
            msg = f"value of a barrier: expected 0 to {MOST_VALUE}, got {number}"
            raise WrongValueError(msg)
        current = session("WorkerRuntimeBarrier.set()")
        current.sets.append((self, number, len(current.transfers)))


class CascadeFlow:
    """A cascade stream from one worker to a neighbour."""

    @row("aie.iron.CascadeFlow")
    def __init__(self, src: Worker, dst: Worker) -> None:
        for worker in (src, dst):
            if not isinstance(worker, Worker):
                msg = f"CascadeFlow: expected Workers, got a {type(worker).__name__}"
                raise WrongCallError(msg)
        self.src = src
        self.dst = dst
        src.outgoing.append(self)
