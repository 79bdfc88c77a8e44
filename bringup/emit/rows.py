"""Rows of kernels, as `bringup.kernels` wants them, from a design: what each parameter is, which constants it reads.

Roles come from the calls: an object of a fifo is read or written, a buffer is what its key says. A window that is cut
off at the border of the image has fewer rows in the design's call than the kernel has parameters; the row has them all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from bringup.emit.model import SCALARS, WINDOWS
from bringup.kernels.model import Mmul, Parameter, Role, Row
from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.model import Manifest
from presim.design import Argument, AttributeValue, Buffer, Call, Design, Fifo, Kernel, Worker
from presim.steps import side_of, steps_of

_KINDS: Final[Mapping[str, Role]] = {
    "weights": "weights",
    "bias": "bias",
    "requant": "requant",
    "lut": "lut",
    "constant": "constant",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One call of a kernel."""

    worker: str
    call: Call


@dataclass(frozen=True, slots=True)
class Parts:
    """A design by names; `rows` are its kernels' once they are known."""

    design: Design
    manifest: Manifest
    rows: Mapping[str, Row] = field(default_factory=dict)

    def fifo(self, name: str) -> Fifo:
        """The fifo of a name."""
        return next(f for f in self.design.fifos if f.name == name)

    def buffer(self, name: str) -> Buffer:
        """The buffer of a name."""
        return next(b for b in self.design.buffers if b.name == name)

    def worker(self, name: str) -> Worker:
        """The worker of a name."""
        return next(w for w in self.design.workers if w.name == name)

    def uses(self, kernel: str) -> Iterator[Use]:
        """Calls of a kernel, in the order of workers and programs."""
        for worker in self.design.workers:
            for step in steps_of(worker.program):
                if isinstance(step, Call) and step.kernel == kernel:
                    yield Use(worker=worker.name, call=step)

    def writes(self, use: Use, argument: Argument) -> bool:
        """Whether a fifo argument is an object that the worker produces."""
        return side_of(self.fifo(argument.name), use.worker, argument.side) == "produce"

    def is_constant(self, fifo: Fifo) -> bool:
        """Whether weights flow through a fifo, held by a memory tile or filled by the host."""
        tensor = self.manifest.by_name().get(fifo.tensor)
        return fifo.init_array is not None or (tensor is not None and tensor.array is not None)


def row_of(kernel: Kernel, parts: Parts, device: Device) -> Row:
    """The row of a kernel.

    Args:
        kernel: of the design.
        parts: of the design.
        device: for architecture and catalogue of multiplications.

    Raises:
        RefusedError: its calls pass different kinds of arguments.
    """
    found: list[tuple[Parameter, ...]] = []
    for use in parts.uses(kernel.name):
        parameters = tuple(_parameters(kernel, use, parts))
        if parameters not in found:
            found.append(parameters)
    if len(found) != 1:
        what = "its calls pass arguments of different kinds or shapes"
        raise RefusedError((Problem(code="EMIT-KERNEL", where=f"kernel {kernel.name!r}", what=what),))
    return Row(
        name=kernel.name,
        op=kernel.op,
        type=kernel.type,
        attributes=dict(kernel.attributes),
        rounding=kernel.rounding,
        saturation=kernel.saturation,
        arch=cast(Literal["aie2", "aie2p"], device.arch),
        mmul=catalogue(device),
        parameters=found[0],
        scalars=SCALARS.get(kernel.type, ()),
    )


def catalogue(device: Device) -> Mmul:
    """Multiplications that the device does in one instruction."""
    found = []
    for pair, shapes in sorted(device.mmul.items()):
        a, b = pair.split("x")
        found += [(a, b, (r, s, t)) for r, s, t in shapes.value or ()]
    return tuple(found)


def extent_of(attributes: Mapping[str, AttributeValue]) -> int:
    """Rows that a window spans."""
    kernel, dilations = attributes["kernel"], attributes["dilations"]
    if not isinstance(kernel, tuple) or not isinstance(dilations, tuple):
        msg = f"kernel and dilations: expected tuples, got {kernel!r}, {dilations!r}"
        raise TypeError(msg)
    return (kernel[0] - 1) * dilations[0] + 1


def _parameters(kernel: Kernel, use: Use, parts: Parts) -> Iterator[Parameter]:
    arguments = use.call.arguments
    if kernel.type in WINDOWS:
        rows = window_arguments(use, parts)
        if not rows:
            what, remedy = "a call holds no row of its window", "pad the image by less than the window in the model"
            where = f"worker {use.worker!r}, kernel {kernel.name!r}"
            raise RefusedError((Problem(code="EMIT-WINDOW", where=where, what=what, remedy=remedy),))
        first = _object(parts.fifo(rows[0].name), writes=False, name="")
        for index in range(extent_of(dict(kernel.attributes))):
            yield Parameter(name=f"row{index}", role="object_in", dtype=first.dtype, shape=first.shape, writes=False)
        arguments = arguments[len(rows) :]
    yield from _plain(kernel, use, parts, arguments)


def window_arguments(use: Use, parts: Parts) -> tuple[Argument, ...]:
    """The held rows of a window: the objects in front that the worker reads, of one fifo."""
    rows: list[Argument] = []
    for argument in use.call.arguments:
        if argument.kind != "fifo" or parts.writes(use, argument):
            break
        if rows and argument.name != rows[0].name:
            break
        rows.append(argument)
    return tuple(rows)


def _plain(kernel: Kernel, use: Use, parts: Parts, arguments: tuple[Argument, ...]) -> Iterator[Parameter]:
    """Parameters that stand for one argument each; names number what there is several of."""
    roles = [_role(argument, use, parts) for argument in arguments]
    seen: dict[str, int] = {}
    for argument, role in zip(arguments, roles, strict=True):
        number = seen[role] = seen.get(role, -1) + 1
        base = {"object_in": "in", "object_out": "out"}.get(role, role)
        name = f"{base}{number}" if roles.count(role) > 1 or role == "object_in" else base
        if argument.kind == "fifo":
            plain = _object(parts.fifo(argument.name), writes=parts.writes(use, argument), name=name)
            yield Parameter(name=name, role=role, dtype=plain.dtype, shape=plain.shape, writes=plain.writes)
        elif argument.kind == "buffer":
            buffer = parts.buffer(argument.name)
            writes = role == "acc" and not kernel.type.endswith("_finish")
            yield Parameter(name=name, role=role, dtype=buffer.dtype, shape=buffer.shape, writes=writes)
        else:
            yield Parameter(name=name, role=role, dtype="", shape=(), writes=role == "cascade_out")


def _object(fifo: Fifo, *, writes: bool, name: str) -> Parameter:
    shape = fifo.shape if writes else fifo.consumer_shape or fifo.shape
    role: Role = "object_out" if writes else "object_in"
    return Parameter(name=name, role=role, dtype=fifo.dtype, shape=shape, writes=writes)


def _role(argument: Argument, use: Use, parts: Parts) -> Role:
    if argument.kind == "fifo":
        if parts.writes(use, argument):
            return "object_out"
        return "weights" if parts.is_constant(parts.fifo(argument.name)) else "object_in"
    if argument.kind == "buffer":
        key = parts.buffer(argument.name).array
        if key is None:
            return "acc"
        return _KINDS[key.partition(":")[0].partition("@")[0]]
    return argument.kind
