"""Runtime and Program: the sequence runs first, then every core function is traced once."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from presim.iron.api import row
from presim.iron.buffer import Buffer
from presim.iron.descriptors import array_type, is_array_type, is_scalar_type
from presim.iron.device import Device, device_of
from presim.iron.errors import UnsupportedError, WrongCallError, WrongValueError
from presim.iron.fifo import ObjectFifo, ObjectFifoHandle
from presim.iron.links import ObjectFifoLink
from presim.iron.sequence import RuntimeData, Session
from presim.iron.trace import CURRENT, SEQUENCE, Node, Tracer
from presim.iron.worker import Worker, flat


class Runtime:
    """The sequence that the host runs, with what its parameters are."""

    @row("aie.iron.Runtime")
    def __init__(self, sequence_fn: Callable[..., Any], fn_args: Sequence[Any] | None = None) -> None:
        if not callable(sequence_fn):
            msg = f"Runtime: expected the function of the sequence, got a {type(sequence_fn).__name__}"
            raise WrongCallError(msg)
        self.sequence_fn = sequence_fn
        self.fn_args = list(fn_args or ())
        for arg in flat(self.fn_args):
            if isinstance(arg, ObjectFifo):
                msg = f"fn_args of a Runtime: ObjectFifo {arg.name!r} itself, expected its prod() or cons()"
                raise WrongValueError(msg)
            if isinstance(arg, ObjectFifoHandle):
                arg.bind_host()

    def arguments(self) -> tuple[list[Any], list[RuntimeData]]:
        """What the body is called with, and the host tensors among it."""
        names = _names(self.sequence_fn, len(self.fn_args))
        values: list[Any] = []
        tensors: list[RuntimeData] = []
        for name, arg in zip(names, self.fn_args, strict=True):
            if is_array_type(arg):
                tensors.append(RuntimeData(name, array_type(arg, f"argument {name!r} of the sequence"), arg))
                values.append(tensors[-1])
            elif is_scalar_type(arg):
                msg = f"argument {name!r} of the sequence is a number of the host; the simulator has none"
                raise UnsupportedError(msg)
            else:
                values.append(arg)
        return values, tensors


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """Parameter names of the body, `arg<n>` where it has none of its own or one is `_`."""
    found = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    ]
    names = [found[i] if i < len(found) else f"arg{i}" for i in range(count)]
    return [f"arg{i}" if set(n) == {"_"} or names.count(n) > 1 else n for i, n in enumerate(names)]


@dataclass(frozen=True, slots=True)
class TracedWorker:
    """A worker and what its core function does."""

    name: str
    worker: Worker
    body: tuple[Node, ...]


@dataclass(slots=True)
class Resolved:
    """A program after `resolve_program`: what the lowering reads.

    Attributes:
        name: of the device symbol.
        device: that it is for.
        workers: traced.
        session: what the sequence did.
        tensors: host tensors in the order of the sequence's parameters.
        constants: buffers that the host writes, by name.
        fifos, links: of the design, in the order in which they were made.
        buffers: likewise.
    """

    name: str
    device: Device
    workers: list[TracedWorker]
    session: Session
    tensors: list[RuntimeData]
    constants: Mapping[str, np.ndarray[Any, Any]]
    fifos: list[ObjectFifo] = field(default_factory=list)
    links: list[ObjectFifoLink] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def __str__(self) -> str:
        return f"// aie.device @{self.name}: {len(self.workers)} workers, {len(self.fifos)} fifos (stand-in, no MLIR)"


RESOLVED: list[Resolved] = []
"""Programs of this process, in the order in which they were resolved."""


class Program:
    """Device, sequence and workers."""

    @row("aie.iron.Program")
    def __init__(self, device: Any, rt: Runtime, workers: Sequence[Worker] | None = None) -> None:
        self.device = device_of(device)
        if not isinstance(rt, Runtime):
            msg = f"Program: rt: expected a Runtime, got a {type(rt).__name__}"
            raise WrongCallError(msg)
        self.rt = rt
        self.workers = list(flat(workers or ()))
        for worker in self.workers:
            if not isinstance(worker, Worker):
                msg = f"Program: workers: expected Workers, got a {type(worker).__name__}"
                raise WrongCallError(msg)

    @row("aie.iron.Program.enable_trace")
    def enable_trace(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        trace_size: int | None = None,
        workers: Any = None,
        reuse_output_buffer: bool = False,
        coretile_events: Any = None,
        coremem_events: Any = None,
        memtile_events: Any = None,
        shimtile_events: Any = None,
        egress_shim_col: int | None = None,
    ) -> None:
        """Record events on the hardware; nothing here."""

    @row("aie.iron.Program.resolve_program")
    def resolve_program(self, device_name: str = "main") -> Resolved:
        """Run the sequence, trace the workers, keep the result for the lowering."""
        session = Session()
        values, tensors = self.rt.arguments()
        token = SEQUENCE.set(session)
        try:
            self.rt.sequence_fn(*values)
        finally:
            SEQUENCE.reset(token)
        open_groups = [g.number for g in session.groups if not g.finished]
        if open_groups:
            msg = f"the sequence ends with task groups {open_groups} that nobody finished"
            raise WrongValueError(msg)
        constants = _constants(session)
        names = _unique([_name(w) for w in self.workers])
        traced = [_trace(n, w, constants) for n, w in zip(names, self.workers, strict=True)]
        made = Resolved(device_name, self.device, traced, session, tensors, constants)
        _collect(made)
        RESOLVED.append(made)
        return made


def _name(worker: Worker) -> str:
    return "idle" if worker.core_fn is None else getattr(worker.core_fn, "__name__", "core")


def _unique(names: list[str]) -> list[str]:
    """Names as they are where they are unique, with a number where not."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        if names.count(name) == 1:
            found.append(name)
            continue
        seen[name] = seen.get(name, -1) + 1
        found.append(f"{name}{seen[name]}")
    return found if len(set(found)) == len(found) else [f"{n}#{i}" for i, n in enumerate(names)]


def _constants(session: Session) -> dict[str, np.ndarray[Any, Any]]:
    """Buffers as the host leaves them before the cores read them."""
    found = {}
    for buffer in Buffer.made:
        if buffer.name not in session.written:
            continue
        values = np.zeros(buffer.type.shape, buffer.type.dtype)
        if buffer.initial is not None:
            values[...] = buffer.initial.reshape(buffer.type.shape)
        for index, value in session.written[buffer.name].items():
            values[index] = value
        found[buffer.name] = values
    return found


def _trace(name: str, worker: Worker, constants: dict[str, np.ndarray[Any, Any]]) -> TracedWorker:
    current = Tracer(name, constants)
    if worker.core_fn is not None:
        token = CURRENT.set(current)
        try:
            worker.core_fn(*worker.fn_args)
        finally:
            CURRENT.reset(token)
    return TracedWorker(name, worker, tuple(current.body))


def _collect(made: Resolved) -> None:
    """Fifos that a worker, the host or a link of those has, their links, and the buffers of workers."""
    wanted = {h.fifo.name for t in made.workers for h in t.worker.fifos}
    wanted |= {t.handle.fifo.name for t in made.session.transfers}
    grown = True
    while grown:
        grown = False
        for link in ObjectFifoLink.made:
            names = {h.fifo.name for h in (*link.sources, *link.targets)}
            if names & wanted and not names <= wanted:
                wanted |= names
                grown = True
    made.fifos = [f for f in ObjectFifo.made if f.name in wanted]
    made.links = [k for k in ObjectFifoLink.made if k.sources[0].fifo.name in wanted]
    used = {b.name for t in made.workers for b in t.worker.buffers} | _touched(made)
    made.buffers = [b for b in Buffer.made if b.name in used]


def _touched(made: Resolved) -> set[str]:
    """Buffers that core functions reach without having them as an argument."""
    found: set[str] = set()

    def look(nodes: Sequence[Node]) -> None:
        for node in nodes:
            memory = getattr(node, "memory", None)
            memories = [memory] if memory is not None else list(getattr(node, "arguments", ()))
            found.update(m.name for m in memories if getattr(m, "kind", "") == "buffer")
            for part in ("body", "then", "other"):
                look(getattr(node, part, ()))

    for traced in made.workers:
        look(traced.body)
    return found
