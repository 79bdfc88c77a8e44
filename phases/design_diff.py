"""What moved between the designs of two ports: workers, tiles, fifos and their depths, buffers, transfers, splits.

Designs are matched by dispatch, their parts by name (links, cascades and transfers by their ends).
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from checklists.items.words import counted
from presim.design import Design, Tile, Transfer

ABSENT: Final = "absent"
_MAX_TEXT: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One value that moved: `where` names dispatch and part, `what` the field; `absent` where there is none."""

    where: str
    what: str
    before: str
    after: str


def design_diff(a: Sequence[Design], b: Sequence[Design]) -> tuple[Moved, ...]:
    """Everything that differs, dispatch by dispatch; empty when equal.

    Args:
        a: the dispatch designs of the first port.
        b: those of the second.
    """
    before, after = {d.dispatch: d for d in a}, {d.dispatch: d for d in b}
    found: list[Moved] = []
    for name in _union(before, after):
        old, new = before.get(name), after.get(name)
        where = f"design {name!r}"
        if old is None or new is None:
            texts = [ABSENT if d is None else _size(d) for d in (old, new)]
            found.append(Moved(where=where, what="dispatch", before=texts[0], after=texts[1]))
        else:
            found += _design(where, old, new)
    if not found and tuple(before) != tuple(after):
        found.append(Moved(where="designs", what="order", before=_short(tuple(before)), after=_short(tuple(after))))
    return tuple(found)


def _design(where: str, old: Design, new: Design) -> Iterator[Moved]:
    for field in (f.name for f in dataclasses.fields(Design)):
        left, right = getattr(old, field), getattr(new, field)
        if field not in _PARTS:
            yield from _value(where, field, left, right)
            continue
        kind, key = _PARTS[field]
        parts = _keyed(left, key), _keyed(right, key)
        for name in _union(*parts):
            yield from _part(f"{where}, {kind} {name}", parts[0].get(name), parts[1].get(name))
        if tuple(parts[0]) != tuple(parts[1]) and parts[0].keys() == parts[1].keys():
            yield from _value(where, f"order of {field}", tuple(parts[0]), tuple(parts[1]))


def _size(design: Design) -> str:
    return f"{counted(len(design.workers), 'worker')}, {counted(len(design.fifos), 'fifo')}"


def _part(where: str, old: Any, new: Any) -> Iterator[Moved]:
    """One worker, fifo, ...: absent on one side, or field by field."""
    if old is None or new is None:
        texts = [ABSENT if part is None else _presence(part) for part in (old, new)]
        yield Moved(where=where, what="added" if old is None else "removed", before=texts[0], after=texts[1])
        return
    for field in (f.name for f in dataclasses.fields(old)):
        yield from _value(where, field, getattr(old, field), getattr(new, field))


def _presence(part: Any) -> str:
    """Where a part that only one side has stands there."""
    tile = getattr(part, "tile", None)
    return f"on tile {_text(tile)}" if tile is not None else "there"


def _value(where: str, what: str, old: object, new: object) -> Iterator[Moved]:
    """Nothing where the values are equal; of sequences of one length the first element that moved."""
    if repr(old) == repr(new):
        return
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new) > 0:
        moved = [i for i, (x, y) in enumerate(zip(old, new, strict=True)) if repr(x) != repr(y)]
        what = f"{what}[{moved[0]}] ({len(moved)} of {len(old)} moved)"
        old, new = old[moved[0]], new[moved[0]]
    if dataclasses.is_dataclass(old) and type(old) is type(new) and not isinstance(old, Tile):
        for field in (f.name for f in dataclasses.fields(old)):
            yield from _value(where, f"{what}.{field}", getattr(old, field), getattr(new, field))
        return
    yield Moved(where=where, what=what, before=_short(old), after=_short(new))


def _union(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [*a, *(name for name in b if name not in a)]


def _keyed(parts: Sequence[Any], key: Callable[[Any], str]) -> dict[str, Any]:
    """Parts by their key; a key that stands there again is numbered."""
    seen: Counter[str] = Counter()
    keyed = {}
    for part in parts:
        name = key(part)
        seen[name] += 1
        keyed[name if seen[name] == 1 else f"{name} ({seen[name]})"] = part
    return keyed


def _by_name(part: Any) -> str:
    return repr(part.name)


def _by_ends(part: Any) -> str:
    return f"{'+'.join(_list(part, 'source'))} -> {'+'.join(_list(part, 'target'))}"


def _list(part: Any, end: str) -> tuple[str, ...]:
    found: Any = getattr(part, f"{end}s", None)
    return (getattr(part, end),) if found is None else found


def _by_transfer(part: Transfer) -> str:
    return f"{part.direction} {part.fifo!r}"


_PARTS: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "workers": ("worker", _by_name),
    "fifos": ("fifo", _by_name),
    "kernels": ("kernel", _by_name),
    "buffers": ("buffer", _by_name),
    "links": ("link", _by_ends),
    "cascades": ("cascade", _by_ends),
    "sequence": ("transfer", _by_transfer),
    "splits": ("split", lambda part: repr(part.op)),
}
"""Fields of a design that are lists of parts: what one is called, and by what it is matched."""


def _text(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, Tile):
        return f"({value.column}, {value.row})"
    return value if isinstance(value, str) else repr(value)


def _short(value: object) -> str:
    text = _text(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 20]} ... ({len(text)} characters)"
