"""Faults of fifos, links, tiles, budgets and the host's sequence."""

from dataclasses import replace
from typing import Any, Final

from presim.design import Buffer, Call, Design, Endpoint, Fifo, Loop, Step, Tile, Transfer
from tests.presim_faults import edits
from tests.presim_faults.harness import Fault

HALVES: Final = "branching, two halves"
CASCADE: Final = "branching, cascade"
VEK280: Final = "branching on vek280"
JOINED: Final = "trunk_fc_out_q"
SWAPPED: Final = {"b1_fc1_out_q": "b2_fc1_out_q", "b2_fc1_out_q": "b1_fc1_out_q"}


def _join(**fields: Any) -> edits.Edit:
    return edits.rows("links", lambda link: bool(link.kind == "join"), **fields)


def _crossed(design: Design) -> Design:
    """Each branch reads what the first layer of the other one made."""
    ends = {f.name: f.consumers for f in design.fifos}
    fifos = tuple(
        replace(f, consumers=ends[SWAPPED[f.name]], via_dma=True, literal=True) if f.name in SWAPPED else f
        for f in design.fifos
    )
    links = tuple(replace(x, sources=tuple(SWAPPED.get(n, n) for n in x.sources)) for x in design.links)
    workers = tuple(
        replace(w, program=tuple(_renamed(s) for s in w.program)) if w.name == "b2_fc2" else w for w in design.workers
    )
    return edits.changed(design, replace(design, fifos=fifos, links=links, workers=workers))


def _renamed(step: Step) -> Step:
    if isinstance(step, Loop):
        return replace(step, body=tuple(_renamed(s) for s in step.body))
    if isinstance(step, Call):
        return replace(step, arguments=tuple(replace(a, name=SWAPPED.get(a.name, a.name)) for a in step.arguments))
    return replace(step, fifo=SWAPPED.get(step.fifo, step.fifo))


def _one_tile(design: Design) -> Design:
    """`b1_fc1` goes where `trunk_fc` is, with its endpoints."""
    home = next(w.tile for w in design.workers if w.name == "trunk_fc")

    def moved(end: Endpoint) -> Endpoint:
        return replace(end, tile=home) if end.actor == "b1_fc1" else end

    fifos = tuple(
        replace(f, producer=moved(f.producer), consumers=tuple(moved(c) for c in f.consumers)) for f in design.fifos
    )
    return edits.worker("b1_fc1", tile=home)(replace(design, fifos=fifos))


def _scratch(elements: int) -> edits.Edit:
    """A buffer beside the others of `trunk_fc`."""

    def edit(design: Design) -> Design:
        tile = next(w.tile for w in design.workers if w.name == "trunk_fc")
        extra = Buffer(name="extra", tile=tile, shape=(elements,), dtype="int8")
        return replace(design, buffers=(*design.buffers, extra))

    return edit


def _far_buffer(design: Design) -> Design:
    return edits.rows("buffers", lambda b: bool(b.name == "trunk_fc:weights"), tile=Tile(column=3, row=5))(design)


def _more_inputs(design: Design) -> Design:
    """Two more fifos from the host into `trunk_fc`."""
    row = next(f for f in design.fifos if f.name == "in_real_q")
    shim = Tile(column=3, row=0, kind="shim")
    more: list[Fifo] = []
    for i in range(2):
        end = Endpoint(actor=f"shim:extra{i}", kind="shim", tile=shim)
        more.append(replace(row, name=f"extra{i}", producer=end))
    sent = tuple(Transfer(fifo=f.name, direction="fill", tensor="in_real_q", objects=16) for f in more)
    return replace(design, fifos=(*design.fifos, *more), sequence=(*sent, *design.sequence))


def _shim(column: int) -> edits.Edit:
    """The input enters through another column."""
    tile = Tile(column=column, row=0, kind="shim")
    return edits.fifo("in_real_q", producer=lambda end: replace(end, tile=tile))


def _single_tasks(design: Design) -> Design:
    """One task per object, and no wait between them."""
    row = next(t for t in design.sequence if t.fifo == "in_real_q")
    each = 64
    tasks = tuple(replace(row, objects=1, offset=i * each, sizes=(each,), strides=(1,)) for i in range(row.objects))
    return replace(design, sequence=(*tasks, *(t for t in design.sequence if t is not row)))


def _wait_first(design: Design) -> Design:
    """The host waits for the first output before it sends the input."""
    fill, first, *rest = design.sequence
    return replace(design, sequence=(replace(first, group="first"), fill, *rest))


class _Unsteady:
    """Every plan says something else."""

    def __init__(self) -> None:
        self.plans = 0

    def __call__(self, design: Design) -> Design:
        self.plans += 1
        return replace(design, notes=(*design.notes, f"plan {self.plans}"))


STRUCTURE: Final = (
    Fault(
        id="offsets-swapped",
        breaks="the offsets of the halves of a join are exchanged",
        base=HALVES,
        edit=_join(offsets=(32, 0)),
        items=("PS006",),
        words=(JOINED,),
    ),
    Fault(
        id="offset-overlaps",
        breaks="the second half of a join begins inside the first",
        base=HALVES,
        edit=_join(offsets=(0, 16)),
        items=("PS006",),
        words=(JOINED,),
    ),
    Fault(
        id="halves-swapped",
        breaks="the channel slices of a join come in the wrong order",
        base=HALVES,
        edit=_join(sources=lambda names: names[::-1]),
        items=("PS001", "PS003"),
        words=(JOINED,),
    ),
    Fault(
        id="first-channel-wrong",
        breaks="the second half of a layer holds the weights of the first",
        base=HALVES,
        repack=edits.taken_from("weights:trunk_fc:o32+32", "weights:trunk_fc:o0+32"),
        items=("PS001", "PS003"),
        words=("trunk_fc_out_q#n1",),
    ),
    Fault(
        id="cascade-range",
        breaks="the second part of a reduction reads its inputs from one element too early on",
        base=CASCADE,
        edit=edits.attribute("trunk_fc#k1:gemm", "in_first", lambda v: v - 1),
        items=("PS001", "PS005"),
        words=("trunk_fc#k1", "k of the weights"),
    ),
    Fault(
        id="cascade-backwards",
        breaks="a cascade runs from the last part of a reduction to the first",
        base=CASCADE,
        edit=edits.rows("cascades", lambda _: True, source="trunk_fc#k1", target="trunk_fc#k0"),
        words=("[DESIGN-STRUCTURE]", "trunk_fc#k0", "trunk_fc#k1", "cascade_out"),
        exit=2,
    ),
    Fault(
        id="fifos-swapped",
        breaks="two fifos of the same shape go to each other's reader",
        edit=_crossed,
        items=("PS003",),
        words=("b2_fc2_out_q", "b2_fc2"),
    ),
    Fault(
        id="two-on-a-tile",
        breaks="two workers stand on one tile",
        edit=_one_tile,
        items=("PS006",),
        words=("(0, 2)", "b1_fc1"),
    ),
    Fault(
        id="buffer-out-of-reach",
        breaks="a weight buffer lies in the memory of a far tile",
        edit=_far_buffer,
        items=("PS006",),
        words=("trunk_fc:weights", "(3, 5)"),
    ),
    Fault(
        id="l1-over-budget",
        breaks="a buffer lies over what else a core's memory holds",
        edit=_scratch(60000),
        items=("PS007",),
        words=("core tile (0, 2)", "bytes of data memory"),
    ),
    Fault(
        id="program-too-large",
        breaks="the code of a kernel does not fit the program memory",
        edit=edits.kernel("b2_fc2:gemm", program_bytes=20000),
        items=("PS007",),
        words=("core tile (1, 3)", "bytes of program memory"),
    ),
    Fault(
        id="too-many-channels",
        breaks="three streams enter a core with two channels",
        edit=_more_inputs,
        items=("PS007",),
        words=("core tile (0, 2)", "channels", "need 3, have 2"),
    ),
    Fault(
        id="shim-without-dma",
        breaks="the input enters through a column without DMA",
        base=VEK280,
        edit=_shim(0),
        items=("PS006",),
        words=("(0, 0)", "column 0 has no DMA to external memory on vek280"),
    ),
    Fault(
        id="fill-missing",
        breaks="the host never fills the input",
        edit=edits.without_transfer("in_real_q"),
        items=("PS004", "PS006"),
        words=("in_real_q",),
    ),
    Fault(
        id="fill-one-less",
        breaks="the host sends one object too few",
        edit=edits.transfer("in_real_q", objects=15),
        items=("PS004",),
        words=("in_real_q", "15 objects"),
    ),
    Fault(
        id="drain-one-less",
        breaks="the host takes one object too few",
        edit=edits.transfer("branch1_q", objects=63),
        items=("PS003",),
        words=("branch1_q", "4032"),
    ),
    Fault(
        id="drain-missing",
        breaks="the host never takes an output",
        edit=edits.without_transfer("branch2_q"),
        items=("PS006",),
        words=("branch2_q",),
    ),
    Fault(
        id="drain-not-awaited",
        breaks="the host does not wait for an output",
        edit=edits.transfer("branch1_q", wait=False),
        items=("PS006",),
        words=("branch1_q",),
    ),
    Fault(
        id="queue-overflow",
        breaks="the host starts one task per object and waits for none",
        edit=_single_tasks,
        items=("PS006",),
        words=("shim channel of fifo 'in_real_q'", "16 tasks are outstanding"),
    ),
    Fault(
        id="waits-swapped",
        breaks="the host waits for the output before it sends the input",
        edit=_wait_first,
        items=("PS004",),
        words=("branch1_q",),
    ),
    Fault(
        id="other-device",
        breaks="the design is for another device",
        edit=lambda d: replace(d, device="npu1"),
        items=("PS009",),
        words=("'npu1'", "'npu2'"),
    ),
    Fault(
        id="unsteady-plan",
        breaks="the second plan of the same bytes says something else",
        edit=_Unsteady(),
        items=("PS009",),
        words=("two plans of one manifest differ",),
    ),
)
