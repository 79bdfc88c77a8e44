"""Changes of a design: each takes a sound one and gives one with a fault in it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from presim.design import Acquire, Call, Design, Loop, Release, Step

Array = NDArray[Any]
Edit = Callable[[Design], Design]
Packed = Mapping[str, Array]
Repack = Callable[[Packed], Packed]
Steps = tuple[Step, ...]


class EditError(AssertionError):
    """The edit does not fit the design: what it changes is not there."""


def changed(before: Design, after: Design) -> Design:
    """`after`, where it differs.

    Raises:
        EditError: it does not.
    """
    if before == after:
        msg = "the edit changes nothing"
        raise EditError(msg)
    return after


def rows(part: str, chosen: Callable[[Any], bool], **fields: Any) -> Edit:
    """Other fields of the rows of a part of the design; a callable field is applied to the old value."""

    def edit(design: Design) -> Design:
        made = tuple(_with(row, fields) if chosen(row) else row for row in getattr(design, part))
        whole: Any = {part: made}
        return changed(design, replace(design, **whole))

    return edit


def _with(row: Any, fields: Mapping[str, Any]) -> Any:
    return replace(row, **{k: v(getattr(row, k)) if callable(v) else v for k, v in fields.items()})


def fifo(name: str, **fields: Any) -> Edit:
    """Other fields of a fifo."""
    return rows("fifos", lambda f: bool(f.name == name), **fields)


def worker(name: str, **fields: Any) -> Edit:
    """Other fields of a worker."""
    return rows("workers", lambda w: bool(w.name == name), **fields)


def kernel(name: str, **fields: Any) -> Edit:
    """Other fields of a kernel."""
    return rows("kernels", lambda k: bool(k.name == name), **fields)


def attribute(name: str, key: str, change: Callable[[Any], Any]) -> Edit:
    """Another value of an attribute of a kernel."""
    return kernel(name, attributes=lambda pairs: tuple((k, change(v) if k == key else v) for k, v in pairs))


def transfer(name: str, **fields: Any) -> Edit:
    """Other fields of the host's transfer of a fifo."""
    return rows("sequence", lambda t: bool(t.fifo == name), **fields)


def without_transfer(name: str) -> Edit:
    """The host does not know of a fifo."""
    return lambda d: changed(d, replace(d, sequence=tuple(t for t in d.sequence if t.fifo != name)))


def step(name: str, chosen: Callable[[Step], bool], change: Callable[[Step], Steps], *, every: bool = False) -> Edit:
    """The first (or every) chosen step of a worker's program becomes what `change` gives."""

    def edit(design: Design) -> Design:
        return worker(name, program=lambda program: _walk(program, chosen, change, [True], every=every))(design)

    return edit


def _walk(
    steps: Steps, chosen: Callable[[Step], bool], change: Callable[[Step], Steps], left: list[bool], *, every: bool
) -> Steps:
    made: list[Step] = []
    for row in steps:
        if left[0] and chosen(row):
            left[0] = every
            made += change(row)
        elif isinstance(row, Loop):
            made.append(replace(row, body=_walk(row.body, chosen, change, left, every=every)))
        else:
            made.append(row)
    return tuple(made)


def body(name: str, change: Callable[[Steps], Steps]) -> Edit:
    """The body of a worker's first loop becomes what `change` gives."""

    def made(s: Step) -> Steps:
        assert isinstance(s, Loop)
        return (replace(s, body=change(s.body)),)

    return step(name, lambda s: isinstance(s, Loop), made)


def acquires(name: str) -> Callable[[Step], bool]:
    """Chooses an acquire of a fifo."""
    return lambda s: isinstance(s, Acquire) and s.fifo == name


def releases(name: str) -> Callable[[Step], bool]:
    """Chooses a release of a fifo."""
    return lambda s: isinstance(s, Release) and s.fifo == name


def calls(s: Step) -> bool:
    """Chooses a call."""
    return isinstance(s, Call)


def loops(s: Step) -> bool:
    """Chooses a loop of more than one round."""
    return isinstance(s, Loop) and s.times > 1


def arguments(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Step], Steps]:
    """A call with other arguments."""

    def made(s: Step) -> Steps:
        assert isinstance(s, Call)
        return (replace(s, arguments=change(s.arguments)),)

    return made


def scalar(key: str, value: int) -> Callable[[Step], Steps]:
    """A call with another value of a scalar."""

    def made(s: Step) -> Steps:
        assert isinstance(s, Call)
        return (replace(s, scalars=tuple((k, value if k == key else v) for k, v in s.scalars)),)

    return made


def both(*edits: Edit) -> Edit:
    """One after another."""

    def edit(design: Design) -> Design:
        for one in edits:
            design = one(design)
        return design

    return edit


def constants(key: str, change: Callable[[Array], Array]) -> Repack:
    """Other constants on the tile than the manifest's: `change` of a copy of the array under `key`."""

    def repack(packed: Packed) -> Packed:
        if key not in packed:
            msg = f"no constants {key!r}"
            raise EditError(msg)
        return {k: change(v.copy()) if k == key else v for k, v in packed.items()}

    return repack


def taken_from(key: str, other: str) -> Repack:
    """The constants of another op under `key`."""

    def repack(packed: Packed) -> Packed:
        shapes = [packed[k].shape if k in packed else None for k in (key, other)]
        if None in shapes or shapes[0] != shapes[1]:
            msg = f"{key!r} and {other!r} are not of one shape: {shapes}, there are {', '.join(packed)}"
            raise EditError(msg)
        return {**packed, key: packed[other]}

    return repack
