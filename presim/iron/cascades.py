"""Kernel calls that read or write a cascade get it as an argument.

IRON says only between which workers a cascade runs; which kernel drives it is inside the C++. The rule here: of the
kernels that a worker calls, those with `cascade` in their symbol, or the only one that it calls.
"""

from dataclasses import replace

from presim.design import Argument, Call, Design, Loop, Step, Worker
from presim.iron.errors import UnsupportedError
from presim.steps import steps_of

IN = Argument(kind="cascade_in")
OUT = Argument(kind="cascade_out")


def with_cascades(design: Design) -> Design:
    """The design whose calls have their cascades."""
    if not design.cascades:
        return design
    sources = {c.source for c in design.cascades}
    targets = {c.target for c in design.cascades}
    external = {k.name for k in design.kernels if k.type == "external"}
    workers = []
    for worker in design.workers:
        ends = ((IN,) if worker.name in targets else ()) + ((OUT,) if worker.name in sources else ())
        workers.append(_with_ends(worker, ends, external) if ends else worker)
    return replace(design, workers=tuple(workers))


def _with_ends(worker: Worker, ends: tuple[Argument, ...], external: set[str]) -> Worker:
    called = {s.kernel for s in steps_of(worker.program) if isinstance(s, Call) and s.kernel in external}
    named = {symbol for symbol in called if "cascade" in symbol}
    driving = named or (called if len(called) == 1 else set())
    if not driving:
        msg = (
            f"worker {worker.name!r} has a cascade and calls {', '.join(sorted(called)) or 'no kernel'}: which of them"
            " drives it? The stand-in takes those with 'cascade' in their symbol, or the only one"
        )
        raise UnsupportedError(msg)
    return replace(worker, program=_body(worker.program, driving, ends))


def _body(program: tuple[Step, ...], driving: set[str], ends: tuple[Argument, ...]) -> tuple[Step, ...]:
    found: list[Step] = []
    for step in program:
        if isinstance(step, Loop):
            found.append(replace(step, body=_body(step.body, driving, ends)))
        elif isinstance(step, Call) and step.kernel in driving:
            found.append(replace(step, arguments=(*step.arguments, *ends)))
        else:
            found.append(step)
    return tuple(found)
