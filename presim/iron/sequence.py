"""The runtime sequence while its body runs: transfers, groups, values written to buffers, barriers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from presim.iron.api import row
from presim.iron.descriptors import ArrayType
from presim.iron.errors import UnsupportedError, WrongCallError, WrongValueError
from presim.iron.taps import TensorAccessPattern
from presim.iron.trace import SEQUENCE, static_int


class RuntimeData:
    """A host tensor of the sequence."""

    def __init__(self, name: str, type_: ArrayType, descriptor: Any) -> None:
        self.name = name
        self.type = type_
        self.descriptor = descriptor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.type.shape

    @property
    def arr_type(self) -> Any:
        """Its type descriptor."""
        return self.descriptor

    @property
    def dtype(self) -> Any:
        """Type of an element."""
        return np.dtype(self.type.dtype).type

    @row("aie.iron.RuntimeData.default_tap")
    def default_tap(self) -> TensorAccessPattern:
        """All of it, in order."""
        return TensorAccessPattern(self.type.shape)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Elements of a host tensor in stream order; `sizes` () = `count` in a row."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    count: int


@dataclass(slots=True)
class Started:
    """A transfer that the sequence starts; `label` names what is awaited together, None = at the end."""

    handle: Any
    data: RuntimeData
    pattern: Pattern
    wait: bool
    group: "TaskGroup | None"
    label: str = ""


@dataclass(slots=True)
class Session:
    """What the body of a sequence did.

    Attributes:
        transfers: in the order of their start.
        written: values that the host wrote to buffers, by name.
        sets: (barrier, value, number of transfers started before).
        notes: what the lowering changes.
    """

    transfers: list[Started] = field(default_factory=list)
    written: dict[str, dict[tuple[int, ...], int | float]] = field(default_factory=dict)
    sets: list[tuple[Any, int, int]] = field(default_factory=list)
    groups: "list[TaskGroup]" = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def session(what: str) -> Session:
    """The sequence whose body runs.

    Raises:
        WrongCallError: none does.
    """
    found = SEQUENCE.get()
    if not isinstance(found, Session):
        msg = f"{what} outside a runtime sequence"
        raise WrongCallError(msg)
    return found


class TaskGroup:
    """Transfers that are awaited together."""

    @row("aie.iron.TaskGroup")
    def __init__(self) -> None:
        current = session("TaskGroup()")
        self.number = len(current.groups)
        self.finished = False
        current.groups.append(self)

    @row("aie.iron.TaskGroup.finish")
    def finish(self) -> None:
        """Wait for the transfers of the group that ask for it."""
        current = session("TaskGroup.finish()")
        if self.finished:
            msg = f"task group {self.number} was finished before"
            raise WrongValueError(msg)
        self.finished = True
        mine = [i for i, t in enumerate(current.transfers) if t.group is self]
        if mine and mine[-1] != len(current.transfers) - 1 and any(current.transfers[i].wait for i in mine):
            current.notes.append(
                f"task group {self.number} is awaited right behind its last transfer, the design waits"
                f" {len(current.transfers) - 1 - mine[-1]} transfers later"
            )
        for i in mine:
            current.transfers[i].label = f"group{self.number}"


class Task:
    """A transfer that was started."""

    def __init__(self, started: Started, *, managed: bool) -> None:
        self.started = started
        self.managed = managed

    @row("aie.iron.Task.await_")
    def await_(self) -> None:
        """Wait for its end."""
        current = session("Task.await_()")
        if not self.started.wait:
            msg = f"await_() of a transfer of fifo {self.started.handle.name!r} that was started without wait=True"
            raise WrongValueError(msg)
        at = current.transfers.index(self.started)
        if at != len(current.transfers) - 1:
            current.notes.append(
                f"the transfer of fifo {self.started.handle.name!r} is awaited at its start, the design waits"
                f" {len(current.transfers) - 1 - at} transfers later"
            )
        self.started.label = f"task{at}"

    @row("aie.iron.Task.free")
    def free(self) -> None:
        """Give its buffer descriptor back."""
        session("Task.free()")


def pattern_of(data: Any, tap: Any, raw: Mapping[str, Any]) -> Pattern:
    """What of a host tensor a transfer moves.

    Args:
        data: the tensor.
        tap: a pattern, or None.
        raw: `offset`, `sizes`, `strides`, `transfer_len`, None where they are not given.
    """
    if not isinstance(data, RuntimeData):
        msg = f"expected a tensor of the sequence, got a {type(data).__name__}"
        raise WrongCallError(msg)
    given = {name: value for name, value in raw.items() if value is not None}
    if tap is None:
        return _raw_pattern(data, given)
    if given:
        msg = f"a transfer takes a tap or {', '.join(raw)}, not both"
        raise WrongValueError(msg)
    if not isinstance(tap, TensorAccessPattern):
        msg = f"tap: expected a TensorAccessPattern, got a {type(tap).__name__}"
        raise WrongCallError(msg)
    return plain(int(tap.offset), tuple(tap.sizes), tuple(tap.strides))


def _raw_pattern(data: RuntimeData, given: Mapping[str, Any]) -> Pattern:
    offset = static_int(given.get("offset", 0), "offset")
    sizes = _ints(given["sizes"]) if "sizes" in given else ()
    count = static_int(given.get("transfer_len", math.prod(sizes) if sizes else data.type.elements), "transfer_len")
    if sizes and count != math.prod(sizes):
        msg = f"transfer_len {count} and sizes {sizes}: the simulator moves what the sizes say"
        raise UnsupportedError(msg)
    if "strides" not in given:
        return plain(offset, (count,), (1,))
    return plain(offset, sizes, _ints(given["strides"]))


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(static_int(v, "a size or stride") for v in values)


def plain(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Pattern:
    """A pattern in its shortest form: no dimension of one, neighbours that follow each other as one."""
    pairs: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if pairs and pairs[-1][1] == size * stride and stride:
            pairs[-1] = (pairs[-1][0] * size, stride)
        else:
            pairs.append((size, stride))
    count = int(np.prod([p[0] for p in pairs], dtype=np.int64))
    if not pairs or pairs == [(count, 1)]:
        return Pattern(offset, (), (), count)
    return Pattern(offset, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs), count)


def start(
    handle: Any, data: RuntimeData, pattern: Pattern, *, wait: bool, group: Any, managed: bool, parameter: Any
) -> Task:
    """Start a transfer."""
    current = session(f"a transfer of fifo {handle.name!r}")
    if parameter is not None:
        msg = f"a transfer of fifo {handle.name!r} whose offset is a parameter of the host"
        raise UnsupportedError(msg)
    if group is not None and not managed:
        msg = f"a transfer of fifo {handle.name!r} with managed=False in a task group"
        raise WrongValueError(msg)
    if group is not None and (not isinstance(group, TaskGroup) or group.finished):
        msg = f"group of a transfer of fifo {handle.name!r}: expected a TaskGroup that is not finished"
        raise WrongValueError(msg)
    handle.bind_host()
    started = Started(handle, data, pattern, bool(wait), group)
    current.transfers.append(started)
    return Task(started, managed=managed)
