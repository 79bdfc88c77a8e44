"""Worker programs as Python functions with `range_` loops.

Objects are what the last acquire of an end gave: one object, or several with the oldest first. A release moves on
which of them are held; a call that uses objects from before a release inside the same loop cannot be said, since the
values of a loop body are the same in every turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bringup.emit import text
from bringup.emit.names import CORE, identifier
from bringup.emit.rows import Parts, Use, extent_of, window_arguments
from bringup.emit.text import comment, indented
from bringup.kernels.model import Source
from manifest.errors import Problem, RefusedError
from presim.design import Acquire, Argument, Call, Loop, Release, Side, Step, Worker
from presim.steps import side_of, variable_of

End = tuple[str, Side]
"""(fifo, side)."""


@dataclass(frozen=True, slots=True)
class View:
    """What an acquire gave: its variable, how many objects, how many of them were given back, the loop it is in."""

    variable: str
    count: int
    released: int
    loop: int


@dataclass(slots=True)
class Program:
    """A printed worker.

    Attributes:
        lines: the function.
        arguments: variables that the worker is given, in the order of the function's parameters.
    """

    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What programs refer to.

    Attributes:
        parts: of the design.
        sources: by kernel.
        handles: variable by (fifo, index of the consumer or -1).
        buffers: variable by buffer.
        kernels: variable by kernel.
    """

    parts: Parts
    sources: Mapping[str, Source]
    handles: Mapping[tuple[str, int], str]
    buffers: Mapping[str, str]
    kernels: Mapping[str, str]


def program_of(worker: Worker, scene: Scene) -> Program:
    """The function of a worker.

    Raises:
        RefusedError: a step that Python values cannot follow.
    """
    printer = _Printer(worker, scene)
    body = list(printer.steps(worker.program, ()))
    parameters = ", ".join(printer.arguments)
    head = [comment(f"worker {worker.name!r}"), f"def {CORE}{identifier(worker.name)}({parameters}):"]
    return Program(lines=[*head, *indented(body or ["pass"])], arguments=list(printer.arguments))


class _Printer:
    """Follows which objects are held where."""

    def __init__(self, worker: Worker, scene: Scene) -> None:
        self.worker = worker
        self.scene = scene
        self.arguments: dict[str, None] = {}
        self.views: dict[End, View] = {}
        self.loops = 0
        self.current = 0

    def steps(self, program: Sequence[Step], counters: tuple[tuple[str, str], ...]) -> Iterator[str]:
        for step in program:
            if isinstance(step, Loop):
                yield from self.loop(step, counters)
            elif isinstance(step, Call):
                yield self.call(step, dict(counters))
            else:
                yield self.move(step)

    def loop(self, loop: Loop, counters: tuple[tuple[str, str], ...]) -> Iterator[str]:
        taken = {variable for _, variable in counters}
        variable = identifier(loop.counter) if loop.counter else "_"
        while variable in taken:
            variable += "_"
        inner = (*counters, (loop.counter, variable)) if loop.counter else counters
        self.loops += 1
        before, outer = dict(self.views), self.current
        self.current = self.loops
        for end in self.released_in(loop.body):
            self.views.pop(end, None)
        body = list(self.steps(loop.body, inner))
        self.current = outer
        for end, view in before.items():
            self.views.setdefault(end, view)
        touched = {end for end, view in self.views.items() if before.get(end) != view}
        for end in touched | set(self.released_in(loop.body)):
            self.views.pop(end, None)
        yield f"for {variable} in range_({loop.times}):"
        yield from indented(body or ["pass"])

    def released_in(self, body: Sequence[Step]) -> list[End]:
        """Ends that a body gives objects back at."""
        found: dict[End, None] = {}
        for step in body:
            if isinstance(step, Release):
                found[self.end(step.fifo, step.side)] = None
            elif isinstance(step, Loop):
                found |= dict.fromkeys(self.released_in(step.body))
        return list(found)

    def end(self, fifo: str, side: Side) -> End:
        return fifo, side_of(self.scene.parts.fifo(fifo), self.worker.name, side)

    def handle(self, end: End) -> str:
        fifo = self.scene.parts.fifo(end[0])
        index = -1
        if end[1] == "consume":
            index = next(i for i, c in enumerate(fifo.consumers) if c.kind == "worker" and c.actor == self.worker.name)
        variable = self.scene.handles[fifo.name, index]
        self.arguments[variable] = None
        return variable

    def move(self, step: Acquire | Release) -> str:
        end = self.end(step.fifo, step.side)
        handle = self.handle(end)
        if isinstance(step, Release):
            view = self.views.get(end)
            if view is not None:
                self.views[end] = View(view.variable, view.count, view.released + step.count, view.loop)
            return f"{handle}.release({step.count})"
        self.views[end] = View(f"{handle}_objects", step.count, 0, self.current)
        return f"{handle}_objects = {handle}.acquire({step.count})"

    def call(self, call: Call, counters: Mapping[str, str]) -> str:
        source = self.scene.sources[call.kernel]
        given = self.by_parameter(call)
        kernel = self.scene.kernels[call.kernel]
        scalars = dict(call.scalars)
        values = [self.value(scalars.get(name, 0), counters) for name in source.scalars]
        self.arguments[kernel] = None
        return text.call(kernel, *(given[p.name] for p in source.parameters), *values)

    def by_parameter(self, call: Call) -> dict[str, str]:
        """Text of every argument by the name of its parameter; rows of a window at their places."""
        use = Use(worker=self.worker.name, call=call)
        row = self.scene.parts.rows[call.kernel]
        arguments = list(call.arguments)
        names = [p.name for p in row.parameters]
        found: dict[str, str] = {}
        if row.parameters and row.parameters[0].name == "row0":
            held = window_arguments(use, self.scene.parts)
            extent = extent_of(row.attributes)
            top = dict(call.scalars).get("pad_top", 0)
            found |= self.window(held, extent, top if isinstance(top, int) else 0)
            arguments, names = arguments[len(held) :], names[extent:]
        for name, argument in zip(names, arguments, strict=True):
            found[name] = self.argument(argument)
        return found

    def window(self, held: Sequence[Argument], extent: int, top: int) -> dict[str, str]:
        """Held rows at their places; outside the image stands the nearest one, which the kernel does not read."""
        texts = [self.argument(a) for a in held]
        return {f"row{i}": texts[min(max(i - top, 0), len(texts) - 1)] for i in range(extent)}

    def argument(self, argument: Argument) -> str:
        if argument.kind == "buffer":
            variable = self.scene.buffers[argument.name]
            self.arguments[variable] = None
            return variable
        if argument.kind != "fifo":
            return ""
        end = self.end(argument.name, argument.side)
        view = self.views.get(end)
        if view is None or view.released + argument.index >= view.count:
            what = f"a call uses object {argument.index} of fifo {argument.name!r} that no acquire in front of it gives"
            where = f"worker {self.worker.name!r}"
            remedy = "acquire the objects in the same loop body as the call"
            raise RefusedError((Problem(code="EMIT-VIEW", where=where, what=what, remedy=remedy),))
        return view.variable if view.count == 1 else f"{view.variable}[{view.released + argument.index}]"

    def value(self, value: int | str, counters: Mapping[str, str]) -> str:
        if isinstance(value, int):
            return str(value)
        found = variable_of(value)
        if found is None or found[0] not in counters:
            what = f"a scalar {value!r} that is no counter of an enclosing loop"
            raise RefusedError((Problem(code="EMIT-SCALAR", where=f"worker {self.worker.name!r}", what=what),))
        name, factor, offset = found
        product = counters[name] if factor == 1 else f"{counters[name]} * {factor}"
        return product if not offset else f"{product} {'+' if offset > 0 else '-'} {abs(offset)}"
