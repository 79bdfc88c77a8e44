"""Designs broken on purpose, one fault each, and the gate item that has to notice with the right place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from presim.design import Acquire, Buffer, Call, Design, Loop, Release, Step
from presim.steps import steps_of

Example = Literal["digits", "branching", "joined", "resnet"]
Breaks = Callable[[Design], Design]
Change = Callable[[Step], list[Step]]
Packed = Mapping[str, Any]

CONV: Final = "/f/f.1/f.1.0/Conv"
ADD: Final = "/f/f.1/Add"
TAKEN: Final = "/f/f.0/f.0.2/Relu_output_0_quantized"
"""What `CONV` reads."""

MADE: Final = "/f/f.1/f.1.2/Relu_output_0_quantized"
"""What `CONV` makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A fault.

    Attributes:
        id: short name.
        what: in words.
        example: whose design is broken.
        breaks: the design without the fault -> with it.
        items: codes of which each has to be FAIL.
        place: what has to stand in the summary of the first of them: fifo, worker, kernel, link or figure.
        stale: the packed constants -> what the tiles hold instead, or None.
    """

    id: str
    what: str
    example: Example = "digits"
    breaks: Breaks = lambda design: design
    items: tuple[str, ...]
    place: str
    stale: Callable[[Packed], Packed] | None = None


def edit(worker: str, change: Change) -> Breaks:
    """The first step of a worker that `change` does not give back as [step] is replaced by what it gives."""

    def breaks(design: Design) -> Design:
        done = False

        def walk(steps: tuple[Step, ...]) -> tuple[Step, ...]:
            nonlocal done
            found: list[Step] = []
            for step in steps:
                made = [step] if done else change(step)
                done = done or made != [step]
                inner = len(made) == 1 and made[0] is step and isinstance(step, Loop)
                found += [replace(step, body=walk(step.body))] if inner and isinstance(step, Loop) else made
            return tuple(found)

        workers = tuple(replace(w, program=walk(w.program)) if w.name == worker else w for w in design.workers)
        return _changed(design, replace(design, workers=workers))

    return breaks


def _changed(before: Design, after: Design) -> Design:
    if before == after:
        msg = "the fault changes nothing"
        raise ValueError(msg)
    return after


def fifo(name: str, **fields: Any) -> Breaks:
    """Other fields of a fifo."""
    return lambda d: _changed(
        d, replace(d, fifos=tuple(replace(f, **fields) if f.name == name else f for f in d.fifos))
    )


def kernel(**fields: Any) -> Breaks:
    """Other fields of the kernel of `CONV`."""
    return lambda d: _changed(
        d, replace(d, kernels=tuple(replace(k, **fields) if k.op == CONV else k for k in d.kernels))
    )


def attribute(name: str, change: Callable[[Any], Any]) -> Breaks:
    """Another value of an attribute of the kernel of `CONV`."""

    def breaks(design: Design) -> Design:
        row = next(k for k in design.kernels if k.op == CONV)
        pairs = tuple((key, change(value) if key == name else value) for key, value in row.attributes)
        return kernel(attributes=pairs)(design)

    return breaks


def sequence(direction: str, **fields: Any) -> Breaks:
    """Other fields of the first transfer of a direction; `objects`: one less."""

    def breaks(design: Design) -> Design:
        index = next(i for i, t in enumerate(design.sequence) if t.direction == direction)
        row = design.sequence[index]
        given: dict[str, Any] = {k: row.objects - 1 if k == "objects" else v for k, v in fields.items()}
        rows = [replace(t, **given) if i == index else t for i, t in enumerate(design.sequence)]
        return _changed(design, replace(design, sequence=tuple(rows)))

    return breaks


def is_release(step: Step, name: str) -> bool:
    """Whether a step gives back objects of a fifo."""
    return isinstance(step, Release) and step.fifo == name


def longer(by: int) -> Change:
    """The first loop runs `by` times more."""
    return lambda s: [replace(s, times=s.times + by)] if isinstance(s, Loop) and s.times > 1 else [s]


def use_after_release(design: Design) -> Design:
    """`CONV` gives its oldest row back before it computes on it."""

    def reorder(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        made = [replace(s, body=reorder(s.body)) if isinstance(s, Loop) else s for s in steps]
        calls = [i for i, s in enumerate(made) if isinstance(s, Call)]
        gives = [i for i, s in enumerate(made) if is_release(s, TAKEN)]
        if calls and gives and gives[-1] > calls[0]:
            made.insert(calls[0], made.pop(gives[-1]))
        return tuple(made)

    rows = tuple(replace(w, program=reorder(w.program)) if w.name == CONV else w for w in design.workers)
    return _changed(design, replace(design, workers=rows))


def swapped_fifos(design: Design) -> Design:
    """What the two branches made in their first layers goes into the other branch."""
    other = {"b1_fc1_out_q": "b2_fc1_out_q", "b2_fc1_out_q": "b1_fc1_out_q"}
    ends = {f.name: f.consumers for f in design.fifos}
    fifos = tuple(
        replace(f, consumers=ends[other[f.name]], via_dma=True, literal=True) if f.name in other else f
        for f in design.fifos
    )
    links = tuple(replace(x, sources=tuple(other.get(n, n) for n in x.sources)) for x in design.links)

    def swap(step: Step) -> Step:
        if isinstance(step, Loop):
            return replace(step, body=tuple(swap(s) for s in step.body))
        if isinstance(step, Call):
            return replace(step, arguments=tuple(replace(a, name=other.get(a.name, a.name)) for a in step.arguments))
        return replace(step, fifo=other.get(step.fifo, step.fifo))

    workers = tuple(
        replace(w, program=tuple(swap(s) for s in w.program)) if w.name == "b2_fc2" else w for w in design.workers
    )
    return replace(design, fifos=fifos, links=links, workers=workers)


def swapped_arguments(step: Step) -> list[Step]:
    """The first two arguments of a call."""
    if not isinstance(step, Call):
        return [step]
    first, second, *rest = step.arguments
    return [replace(step, arguments=(second, first, *rest))]


def offsets(*values: int) -> Breaks:
    """Other offsets of the join."""

    def breaks(design: Design) -> Design:
        links = tuple(replace(link, offsets=values) if link.kind == "join" else link for link in design.links)
        return _changed(design, replace(design, links=links))

    return breaks


def shallow_skip(design: Design) -> Design:
    """The skip of the first block holds one row less than the window needs."""
    row = next(f for f in design.fifos if f.name == TAKEN)
    ends = tuple(replace(c, depth=1) if c.actor == ADD else c for c in row.consumers)
    return fifo(TAKEN, consumers=ends, literal=True)(design)


def shallow_window(design: Design) -> Design:
    """The fifo of a window is one object shallower than its acquire."""
    program = next(w.program for w in design.workers if w.name == CONV)
    need = max(s.count for s in steps_of(program) if isinstance(s, Acquire) and s.fifo == TAKEN)
    row = next(f for f in design.fifos if f.name == TAKEN)
    ends = tuple(replace(c, depth=need - 1) for c in row.consumers)
    return fifo(TAKEN, consumers=ends, producer=replace(row.producer, depth=2), literal=True, via_dma=True)(design)


def one_tile(design: Design) -> Design:
    """A second worker on the first one's tile."""
    first, second, *rest = design.workers
    return replace(design, workers=(first, replace(second, tile=first.tile), *rest))


def with_buffer(design: Design) -> Design:
    """A scratch buffer as large as a core's memory, which `CONV` uses."""
    worker = next(w for w in design.workers if w.name == CONV)
    extra = Buffer(name="scratch", tile=worker.tile, shape=(65536,), dtype="int8")
    return replace(design, buffers=(*design.buffers, extra))


def stale(kind: str, change: Callable[[Any], Any]) -> Callable[[Packed], Packed]:
    """The constants of `CONV` of a kind, changed."""

    def made(packed: Packed) -> Packed:
        keys = [k for k in packed if k.startswith(f"{kind}:{CONV}:")]
        return {k: change(v.copy()) if k in keys else v for k, v in packed.items()}

    return made


def first_channel_later(array: Any) -> Any:
    """Weights of another training: output channels shifted by one."""
    return array[[*range(1, len(array)), 0]]


def one_more(array: Any) -> Any:
    """Shifts one larger."""
    array[1] += 1
    return array


FAULTS: Final = (
    Broken(
        id="dropped-release",
        what="a worker keeps an output object that it should hand on",
        breaks=edit(CONV, lambda s: [] if is_release(s, MADE) else [s]),
        items=("PS001", "PS006"),
        place=MADE,
    ),
    Broken(
        id="doubled-release",
        what="a worker gives an output object back twice",
        breaks=edit(CONV, lambda s: [s, s] if is_release(s, MADE) else [s]),
        items=("PS001", "PS005", "PS006"),
        place=CONV,
    ),
    Broken(
        id="loop-one-less",
        what="a loop ends one round early",
        breaks=edit(CONV, longer(-1)),
        items=("PS001", "PS003"),
        place=MADE,
    ),
    Broken(
        id="loop-one-more",
        what="a loop runs one round too long",
        breaks=edit(CONV, longer(1)),
        items=("PS001", "PS004"),
        place=CONV,
    ),
    Broken(
        id="window-too-shallow",
        what="a fifo is one object shallower than the window that its worker holds",
        breaks=shallow_window,
        items=("PS001", "PS004", "PS006"),
        place=TAKEN,
    ),
    Broken(
        id="skip-too-shallow",
        what="the skip of a residual holds less than the main path takes before its first output",
        example="resnet",
        breaks=shallow_skip,
        items=("PS002", "PS004"),
        place=TAKEN,
    ),
    Broken(
        id="use-after-release",
        what="a worker computes on a row that it gave back",
        breaks=use_after_release,
        items=("PS001", "PS005"),
        place=TAKEN,
    ),
    Broken(
        id="call-left-out",
        what="a worker hands on an object that it never wrote",
        breaks=edit(CONV, lambda s: [] if isinstance(s, Call) else [s]),
        items=("PS001",),
        place=MADE,
    ),
    Broken(
        id="border-flag",
        what="a window takes the row above the image for one that is there",
        breaks=edit(
            CONV,
            lambda s: (
                [replace(s, scalars=tuple((k, 0 if k == "pad_top" else v) for k, v in s.scalars))]
                if isinstance(s, Call)
                else [s]
            ),
        ),
        items=("PS001",),
        place=CONV,
    ),
    Broken(
        id="shift-off-by-one",
        what="the shifts on a tile are one larger than the manifest's",
        items=("PS001", "PS003"),
        place=MADE,
        stale=stale("requant", one_more),
    ),
    Broken(
        id="stale-weights",
        what="a tile holds weights whose output channels are shifted by one",
        items=("PS001", "PS003"),
        place=MADE,
        stale=stale("weights", first_channel_later),
    ),
    Broken(
        id="wrong-rounding",
        what="a kernel rounds down instead of half to even",
        breaks=kernel(rounding="floor"),
        items=("PS001", "PS003"),
        place=MADE,
    ),
    Broken(
        id="mode-not-set",
        what="a kernel does not set its rounding mode at entry",
        breaks=kernel(rounding=""),
        items=("PS008", "PS001"),
        place=CONV,
    ),
    Broken(
        id="zero-point",
        what="a kernel has another zero point of its input",
        breaks=attribute("x_zero_point", lambda v: v + 1),
        items=("PS001", "PS003"),
        place=MADE,
    ),
    Broken(
        id="padding-side",
        what="a kernel pads the columns one to the right",
        breaks=attribute("pads_lr", lambda v: (v[0] - 1, v[1] + 1)),
        items=("PS001", "PS003"),
        place=MADE,
    ),
    Broken(
        id="swapped-fifos",
        what="two fifos go to each other's reader",
        example="branching",
        breaks=swapped_fifos,
        items=("PS001", "PS003"),
        place="b1_fc1_out_q>b1_permute",
    ),
    Broken(
        id="swapped-rows",
        what="a kernel gets the rows of its window in the wrong order",
        breaks=edit(CONV, swapped_arguments),
        items=("PS001", "PS003"),
        place=MADE,
    ),
    Broken(
        id="swapped-offsets",
        what="the offsets of a join's halves are exchanged",
        example="joined",
        breaks=offsets(32, 0),
        items=("PS006",),
        place="trunk_fc_out_q#n0",
    ),
    Broken(
        id="swapped-halves",
        what="the halves of a join come in the wrong order",
        example="joined",
        breaks=lambda d: replace(d, links=tuple(replace(x, sources=x.sources[::-1]) for x in d.links)),
        items=("PS001", "PS003"),
        place="trunk_fc_out_q",
    ),
    Broken(
        id="overlapping-offset",
        what="the halves of a join overlap",
        example="joined",
        breaks=offsets(0, 16),
        items=("PS006", "PS001"),
        place="trunk_fc_out_q",
    ),
    Broken(
        id="fill-one-short",
        what="the host sends one object too few",
        breaks=sequence("fill", objects=-1),
        items=("PS004", "PS006"),
        place="x_quantized",
    ),
    Broken(
        id="fill-left-out",
        what="nothing fills a fifo at a shim",
        breaks=lambda d: replace(d, sequence=tuple(t for t in d.sequence if t.direction != "fill")),
        items=("PS004", "PS006"),
        place="x_quantized",
    ),
    Broken(
        id="drain-one-short",
        what="the host takes one object too few",
        breaks=sequence("drain", objects=-1),
        items=("PS003",),
        place="branch1_q",
        example="branching",
    ),
    Broken(
        id="drain-not-awaited",
        what="the host does not wait for one of two outputs",
        example="branching",
        breaks=sequence("drain", wait=False),
        items=("PS006",),
        place="branch1_q",
    ),
    Broken(
        id="two-on-a-tile",
        what="two workers stand on one tile",
        breaks=one_tile,
        items=("PS006",),
        place="(0, 2)",
    ),
    Broken(
        id="other-device",
        what="the design is for another device",
        breaks=lambda d: replace(d, device="npu1"),
        items=("PS009",),
        place="npu1",
    ),
    Broken(
        id="program-too-large",
        what="a kernel's code does not fit",
        breaks=kernel(program_bytes=20000),
        items=("PS007",),
        place="core tile (0, 3)",
    ),
    Broken(
        id="buffer-too-large",
        what="a buffer does not fit beside the rest of its tile",
        breaks=with_buffer,
        items=("PS007",),
        place="core tile (0, 3)",
    ),
)
