"""The runtime sequence: what the host fills and drains, in which order, what it waits for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from bringup.emit.names import identifier
from bringup.emit.text import call, indented, listing, type_name
from manifest.errors import Problem, RefusedError
from presim.design import Design, Fifo, Transfer

MAX_DIMS = 4
"""Sizes of an access pattern of the host's DMAs, the iteration among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTensor:
    """A buffer of the host: its parameter in the sequence, type, and which way it goes."""

    tensor: str
    parameter: str
    dtype: str
    elements: int
    filled: bool
    drained: bool


@dataclass(slots=True)
class Sequence:
    """A printed sequence.

    Attributes:
        lines: the function.
        tensors: of the host, in the order of the parameters.
        handles: variables behind them.
        names: of `aie.iron` that it uses.
    """

    lines: list[str] = field(default_factory=list)
    tensors: list[HostTensor] = field(default_factory=list)
    handles: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def host_tensors(design: Design) -> tuple[HostTensor, ...]:
    """Buffers of the host, in the order in which the sequence first uses them.

    Raises:
        RefusedError: two transfers of one tensor have different types.
    """
    fifos = {f.name: f for f in design.fifos}
    found: dict[str, HostTensor] = {}
    for transfer in design.sequence:
        fifo = fifos[transfer.fifo]
        elements = _end(transfer, fifo)
        fills = transfer.direction == "fill"
        old = found.get(transfer.tensor)
        if old is not None and old.dtype != fifo.dtype:
            what, got = "transfers of one tensor have different types", f"{old.dtype} and {fifo.dtype}"
            raise RefusedError((Problem(code="EMIT-TENSOR", where=f"tensor {transfer.tensor!r}", what=what, got=got),))
        found[transfer.tensor] = HostTensor(
            tensor=transfer.tensor,
            parameter=identifier(transfer.tensor),
            dtype=fifo.dtype,
            elements=max(elements, old.elements if old else 0),
            filled=fills or (old is not None and old.filled),
            drained=not fills or (old is not None and old.drained),
        )
    return tuple(found.values())


def moved(transfer: Transfer, fifo: Fifo) -> int:
    """Elements that a task moves."""
    shape = fifo.shape if transfer.direction == "fill" else fifo.consumer_shape or fifo.shape
    return transfer.objects * math.prod(shape)


def _end(transfer: Transfer, fifo: Fifo) -> int:
    """Elements up to the last one that a task touches."""
    if not transfer.sizes:
        return transfer.offset + moved(transfer, fifo)
    steps = zip(transfer.sizes, transfer.strides, strict=True)
    return transfer.offset + sum((size - 1) * stride for size, stride in steps) + 1


def sequence_of(design: Design, handles: Mapping[tuple[str, int], str]) -> Sequence:
    """Print the sequence.

    Args:
        design: with tasks.
        handles: variable by (fifo, index of the consumer or -1).

    Raises:
        RefusedError: a pattern that the host's DMAs do not take.
    """
    out = Sequence(tensors=list(host_tensors(design)))
    by_name = {t.tensor: t for t in out.tensors}
    fifos = {f.name: f for f in design.fifos}
    taken = {t.parameter for t in out.tensors}
    used: dict[str, str] = {}
    groups = list(dict.fromkeys(t.group for t in design.sequence))
    explicit = any(groups)
    body: list[str] = []
    for index, transfer in enumerate(design.sequence):
        fifo = fifos[transfer.fifo]
        handle = handles[_end_key(transfer, fifo)]
        parameter = used.setdefault(handle, _free(handle, taken))
        group = f"group{groups.index(transfer.group)}" if explicit else None
        if group is not None and all(t.group != transfer.group for t in design.sequence[:index]):
            body.append(f"{group} = TaskGroup()")
            out.names.add("TaskGroup")
        tap = _tap(transfer, fifo, by_name[transfer.tensor])
        out.names |= {"TensorAccessPattern"} if tap else set()
        function = f"{parameter}.{transfer.direction}"
        wait = "True" if transfer.wait else None
        body.append(call(function, by_name[transfer.tensor].parameter, tap=tap, wait=wait, group=group))
        if transfer.group and all(t.group != transfer.group for t in design.sequence[index + 1 :]):
            body.append(f"{group}.finish()")
    if explicit and "" in groups:
        body.append(f"group{groups.index('')}.finish()")
    out.handles = list(used)
    parameters = [t.parameter for t in out.tensors] + list(used.values())
    out.lines = [f"def sequence({', '.join(parameters)}):", *indented(body or ["pass"])]
    return out


def runtime_of(sequence: Sequence) -> str:
    """The Runtime with the types of the host's buffers and the handles behind them."""
    types = [type_name(t.dtype, (t.elements,)) for t in sequence.tensors]
    return call("Runtime", sequence_fn="sequence", fn_args=listing([*types, *sequence.handles]))


def _end_key(transfer: Transfer, fifo: Fifo) -> tuple[str, int]:
    if transfer.direction == "fill":
        return fifo.name, -1
    return fifo.name, next(i for i, c in enumerate(fifo.consumers) if c.kind == "shim")


def _free(handle: str, taken: set[str]) -> str:
    """The name of a handle inside the sequence, other than those of the tensors."""
    name = handle
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _tap(transfer: Transfer, fifo: Fifo, tensor: HostTensor) -> str | None:
    """The access pattern; None where the whole buffer goes from front to back."""
    count = moved(transfer, fifo)
    where = f"transfer of tensor {transfer.tensor!r} through fifo {fifo.name!r}"
    sizes, strides = list(transfer.sizes), list(transfer.strides)
    if not sizes:
        if transfer.offset == 0 and count == tensor.elements:
            return None
        sizes, strides = [count], [1]
    if math.prod(sizes) != count:
        what, expected = "its pattern and its objects differ in elements", str(count)
        got = str(math.prod(sizes))
        raise RefusedError((Problem(code="EMIT-PATTERN", where=where, what=what, expected=expected, got=got),))
    if len(sizes) > MAX_DIMS:
        what, expected = "more sizes than the host's DMAs take", f"at most {MAX_DIMS}"
        raise RefusedError((Problem(code="EMIT-PATTERN", where=where, what=what, expected=expected, got=str(sizes)),))
    ahead = MAX_DIMS - len(sizes)
    return call(
        "TensorAccessPattern",
        tensor_dims=f"({tensor.elements},)",
        offset=str(transfer.offset),
        sizes=repr([1] * ahead + sizes),
        strides=repr([0] * ahead + strides),
    )
