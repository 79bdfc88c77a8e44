"""Faults of programs: what workers acquire, give back, call and repeat."""

from dataclasses import replace
from typing import Final

from presim.design import Acquire, Call, Design, Loop, Release, Step
from tests.presim_faults import edits
from tests.presim_faults.harness import Fault

CONV: Final = "/f/f.1/f.1.0/Conv"
TAKEN: Final = "/f/f.0/f.0.2/Relu_output_0_quantized"
"""What `CONV` reads."""
MADE: Final = "/f/f.1/f.1.2/Relu_output_0_quantized"
"""What `CONV` writes."""
DIGITS: Final = "digits_cnn"


def _longer(by: int) -> edits.Edit:
    return edits.step(CONV, edits.loops, lambda s: (replace(s, times=s.times + by),) if isinstance(s, Loop) else (s,))


def _shallow(design: Design) -> Design:
    """The window of three rows gets a pool of two."""
    row = next(f for f in design.fifos if f.name == TAKEN)
    ends = tuple(replace(c, depth=2) for c in row.consumers)
    deep = replace(row.producer, depth=2)
    return edits.fifo(TAKEN, consumers=ends, producer=deep, literal=True, via_dma=True, depth=2)(design)


def _early(name: str) -> edits.Edit:
    """The release of a fifo goes in front of the call of the same body."""

    def change(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        given = [s for s in steps if isinstance(s, Release) and s.fifo == name]
        rest = [s for s in steps if s not in given]
        at = next(i for i, s in enumerate(rest) if isinstance(s, Call))
        return (*rest[:at], *given, *rest[at:])

    return edits.body(CONV, change)


def _counts_swapped(design: Design) -> Design:
    """The first row waits for three rows, the inner ones for two."""
    swap = {2: 3, 3: 2}

    def change(s: Step) -> tuple[Step, ...]:
        return (replace(s, count=swap.get(s.count, s.count)),) if isinstance(s, Acquire) else (s,)

    return edits.step(CONV, edits.acquires(TAKEN), change, every=True)(design)


def _late(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The acquire of the output goes behind the call that writes it."""
    late = [s for s in steps if isinstance(s, Acquire) and s.fifo == "b2_fc2_out_q"]
    rest = [s for s in steps if s not in late]
    at = next(i for i, s in enumerate(rest) if isinstance(s, Call))
    return (*rest[: at + 1], *late, *rest[at + 1 :])


def _acquires_swapped(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return (steps[1], steps[0], *steps[2:])


PROGRAMS: Final = (
    Fault(
        id="depth-one-less",
        breaks="the pool of a window of three rows holds two",
        base=DIGITS,
        edit=_shallow,
        items=("PS004", "PS006"),
        words=(TAKEN, CONV),
    ),
    Fault(
        id="dropped-release-out",
        breaks="an output row is never handed on",
        base=DIGITS,
        edit=edits.step(CONV, edits.releases(MADE), lambda _: ()),
        items=("PS001", "PS003"),
        words=(MADE, CONV),
    ),
    Fault(
        id="dropped-release-in",
        breaks="an input row is never given back",
        base=DIGITS,
        edit=edits.step("/f/f.2/MaxPool", edits.releases(MADE), lambda _: ()),
        items=("PS001", "PS003"),
        words=("written by /f/f.2/MaxPool", "/f/f.2/MaxPool_output_0_quantized"),
    ),
    Fault(
        id="doubled-release-out",
        breaks="an output row is handed on twice",
        base=DIGITS,
        edit=edits.step(CONV, edits.releases(MADE), lambda s: (s, s)),
        items=("PS001", "PS005", "PS006"),
        words=(MADE, CONV),
    ),
    Fault(
        id="doubled-release-in",
        breaks="an input vector is given back twice",
        edit=edits.step("b2_fc2", edits.releases("b2_fc1_out_q"), lambda s: (s, s)),
        items=("PS001", "PS005", "PS006"),
        words=("b2_fc1_out_q", "b2_fc2"),
    ),
    Fault(
        id="loop-one-less",
        breaks="the loop over the inner rows ends one round early",
        base=DIGITS,
        edit=_longer(-1),
        items=("PS001", "PS003"),
        words=(MADE, CONV),
    ),
    Fault(
        id="loop-one-more",
        breaks="the loop over the inner rows runs one round too long",
        base=DIGITS,
        edit=_longer(1),
        items=("PS001",),
        words=(CONV, TAKEN),
    ),
    Fault(
        id="use-after-release",
        breaks="the oldest row of the window is given back before the kernel reads it",
        base=DIGITS,
        edit=_early(TAKEN),
        items=("PS001", "PS005"),
        words=(TAKEN, CONV),
    ),
    Fault(
        id="write-after-release",
        breaks="the output row is handed on before the kernel writes it",
        base=DIGITS,
        edit=_early(MADE),
        items=("PS001", "PS003"),
        words=(MADE, CONV),
    ),
    Fault(
        id="call-left-out",
        breaks="the kernel is not called for the first row",
        base=DIGITS,
        edit=edits.step(CONV, edits.calls, lambda _: ()),
        items=("PS001", "PS003"),
        words=(MADE, CONV),
    ),
    Fault(
        id="window-row-swapped",
        breaks="the kernel gets the first two rows of its window in the wrong order",
        base=DIGITS,
        edit=edits.step(CONV, edits.calls, edits.arguments(lambda a: (a[1], a[0], *a[2:]))),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="pad-top-not-set",
        breaks="the first row of the image is computed without the padding row above it",
        base=DIGITS,
        edit=edits.step(CONV, edits.calls, edits.scalar("pad_top", 0)),
        items=("PS001",),
        words=(CONV,),
    ),
    Fault(
        id="pad-moved-down",
        breaks="the padding row above the image is taken for one below it",
        base=DIGITS,
        edit=edits.both(
            edits.step(CONV, edits.calls, edits.scalar("pad_top", 0)),
            edits.step(CONV, edits.calls, edits.scalar("pad_bottom", 1)),
        ),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="acquires-swapped-in-window",
        breaks="the acquires of the first row and of the inner rows are exchanged",
        base=DIGITS,
        edit=_counts_swapped,
        items=("PS001", "PS005"),
        words=(TAKEN, CONV),
    ),
    Fault(
        id="acquire-after-call",
        breaks="the acquire of the output comes behind the call that writes it",
        edit=edits.body("b2_fc2", _late),
        items=("PS001", "PS005"),
        words=("b2_fc2_out_q", "b2_fc2"),
    ),
    Fault(
        id="acquires-swapped-in-body",
        breaks="input and output are acquired in the other order, both before the call",
        edit=edits.body("b2_fc2", _acquires_swapped),
        words=(),
        survives="no fault in a chain: both are needed before the call, and nobody waits for the one that is held",
    ),
)
