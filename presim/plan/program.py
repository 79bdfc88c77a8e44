"""The program of a worker: its jobs fired in turn, what they hold, and when they give it back."""

from collections.abc import Sequence
from dataclasses import dataclass

from presim.design import Acquire, Argument, Call, Release, Side, Step
from presim.plan.access import Firing, Window, windows
from presim.plan.loops import Turn, program_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """An input of a job.

    Attributes:
        fifo: that it reads.
        total: objects of one inference.
        internal: another job of the same worker fills it.
    """

    fifo: str
    total: int
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights that come through a fifo, object after object, for every firing anew.

    Attributes:
        fifo: that brings them.
        objects: of one firing.
        chunk: output channels of one, passed on as scalar `out_offset`.
    """

    fifo: str
    objects: int
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A kernel with what it gets beside its objects.

    Attributes:
        kernel: name in `Design.kernels`.
        buffers: in the order of the kernel, without weights of a stream.
        weights: weights that come through a fifo, in front of the buffers.
        cascade_in: it adds to what comes over the cascade.
        cascade_out: what it makes goes over the cascade.
        macs: of one firing.
    """

    kernel: str
    buffers: tuple[str, ...] = ()
    weights: Weights | None = None
    cascade_in: bool = False
    cascade_out: bool = False
    macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An op, or a part of one, on a worker.

    Attributes:
        name: for messages.
        fired: its firings.
        feeds: its inputs, in the order of `Firing.needs`.
        operands: which of them the arguments of the kernel are, in order.
        output: fifo that it fills; "" = it ends in a cascade.
        internal: another job of the same worker empties that fifo.
        bodies: its kernels, by `Firing.kernel`.
    """

    name: str
    fired: tuple[Firing, ...]
    feeds: tuple[Feed, ...]
    operands: tuple[int, ...]
    output: str
    bodies: tuple[Body, ...]
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Programmed:
    """A program and the depth that each internal fifo needs for it."""

    steps: tuple[Step, ...]
    depths: dict[str, int]


def write_program(jobs: Sequence[Job]) -> Programmed:
    """The program of one inference on a worker with these jobs, upstream first.

    The job furthest downstream that has its objects goes first, so that little is kept between them.
    """
    held = [tuple(windows(job.fired, port, feed.total) for port, feed in enumerate(job.feeds)) for job in jobs]
    turns: list[Turn] = []
    depths: dict[str, int] = {}
    made = {job.output: 0 for job in jobs if job.internal}
    freed = dict(made)
    done = [0] * len(jobs)
    while True:
        ready = [i for i, job in enumerate(jobs) if _ready(job, held[i], done[i], made)]
        if not ready:
            break
        index = ready[-1]
        job, number = jobs[index], done[index]
        now = tuple(port[number] for port in held[index])
        turns.append(_turn(job, now, number))
        done[index] += 1
        if job.internal and job.fired[number].gives:
            made[job.output] += job.fired[number].gives
            depths[job.output] = max(depths.get(job.output, 1), made[job.output] - freed[job.output])
        freed.update({f.fifo: w.keep for f, w in zip(job.feeds, now, strict=True) if f.internal})
    if any(n < len(job.fired) for n, job in zip(done, jobs, strict=True)):
        msg = f"jobs {[job.name for job in jobs]}: they wait for each other"
        raise ValueError(msg)
    return Programmed(steps=program_of(turns), depths=depths)


def _ready(job: Job, held: Sequence[Sequence[Window]], number: int, made: dict[str, int]) -> bool:
    if number == len(job.fired):
        return False
    ports = zip(job.feeds, held, strict=True)
    return all(made[f.fifo] >= max(w[number].last + 1, w[number].keep) for f, w in ports if f.internal)


def _turn(job: Job, now: Sequence[Window], number: int) -> Turn:
    """Steps of one firing."""
    firing = job.fired[number]
    steps: list[Step] = []
    for feed, window in zip(job.feeds, now, strict=True):
        side: Side = "consume" if feed.internal else ""
        if number == 0:
            steps += _skip(feed.fifo, window.first, side)
        if window.last >= window.first and window.last >= 0:
            steps.append(Acquire(fifo=feed.fifo, count=window.last - window.first + 1, side=side))
    out: Side = "produce" if job.internal else ""
    gives = firing.gives if job.output else 0
    if gives:
        steps.append(Acquire(fifo=job.output, count=gives, side=out))
    steps += _calls(job, firing, now)
    for feed, window in zip(job.feeds, now, strict=True):
        side = "consume" if feed.internal else ""
        count = min(window.keep, window.last + 1) - window.first
        if count > 0:
            steps.append(Release(fifo=feed.fifo, count=count, side=side))
        steps += _skip(feed.fifo, window.skip, side)
    if gives:
        steps.append(Release(fifo=job.output, count=gives, side=out))
    return tuple(steps)


def _skip(fifo: str, count: int, side: Side) -> list[Step]:
    """Objects that nobody needs are taken and given back."""
    return [Acquire(fifo=fifo, count=1, side=side), Release(fifo=fifo, count=1, side=side)] * count


def _calls(job: Job, firing: Firing, now: Sequence[Window]) -> list[Step]:
    """The kernel of a firing, once or once per object of streamed weights.

    Arguments: objects read, cascade in, buffers, objects written or cascade out.
    """
    body = job.bodies[firing.kernel]
    objects = [
        [
            Argument(kind="fifo", name=feed.fifo, index=n - window.first, side="consume" if feed.internal else "")
            for n in needs
        ]
        for feed, window, needs in zip(job.feeds, now, firing.needs, strict=True)
    ]
    before = [argument for operand in job.operands for argument in objects[operand]]
    before += [Argument(kind="cascade_in")] * body.cascade_in
    behind = [Argument(kind="buffer", name=name) for name in body.buffers]
    side: Side = "produce" if job.internal else ""
    if job.output:
        behind += [Argument(kind="fifo", name=job.output, index=i, side=side) for i in range(firing.gives)]
    behind += [Argument(kind="cascade_out")] * body.cascade_out
    if body.weights is None:
        return [Call(kernel=body.kernel, arguments=(*before, *behind), scalars=firing.scalars, macs=body.macs)]
    stream = body.weights
    steps: list[Step] = []
    for number in range(stream.objects):
        scalars = (*firing.scalars, ("out_offset", number * stream.chunk))
        arguments = (*before, Argument(kind="fifo", name=stream.fifo), *behind)
        macs = body.macs // stream.objects
        steps.append(Acquire(fifo=stream.fifo, count=1))
        steps.append(Call(kernel=body.kernel, arguments=arguments, scalars=scalars, macs=macs))
        steps.append(Release(fifo=stream.fifo, count=1))
    return steps
