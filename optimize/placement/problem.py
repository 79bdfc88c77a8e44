"""A placement problem: blocks on a grid, edges between their faces. Frozen values; no search, no rule of legality.

Coordinates: column 0 to `columns` - 1, row 0 to `rows` - 1, row 0 beside the memory tiles. A block at (x, y) covers
the columns x to x + width - 1 and the rows y to y + height - 1.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, cast

from manifest.errors import Problem as Refusal
from manifest.errors import RefusedError

Side = Literal["left", "right", "top", "bottom"]
SIDES: Final = ("left", "right", "top", "bottom")
MAX_BYTES: Final = 64 << 20
MAX_SIDE: Final = 1024
MAX_BLOCKS: Final = 1024
MAX_PRICE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """Where edges leave or enter a block.

    Attributes:
        side: left = the first column, right = the last one, over rows; top = the first row, bottom = the last one,
            over columns.
        start: first row or column of the span, inside the block.
        end: last one.
    """

    side: Side
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepout:
    """Tiles beside a block that it takes as well: columns left and right, rows before `top` and after `bottom`."""

    left: int = 0
    right: int = 0
    top: int = 0
    bottom: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A rectangle of tiles; `anchor` = (column, row) where it has to be, None = anywhere."""

    name: str
    width: int
    height: int
    input_face: Face
    output_face: Face
    keepout: Keepout = Keepout()
    anchor: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Data from one block to another.

    Attributes:
        source: name of a block.
        target: likewise.
        direct: without a memory tile.
        exclusive: nobody else reads what the source sends here.
    """

    source: str
    target: str
    direct: bool = False
    exclusive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The grid and the objective: columns between faces + `row_step` * rows between them + `height` * row of a block.

    Attributes:
        columns: of the grid.
        rows: likewise.
        row_step: price of a row between two faces, in columns.
        height: price of a row that a block lies above row 0.
    """

    columns: int
    rows: int
    row_step: Fraction = Fraction(1)
    height: Fraction = Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem; names of blocks are unique, edges name blocks, faces lie inside their block."""

    name: str
    rules: Rules
    blocks: tuple[Block, ...]
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        faults = [*_size_faults(self), *_name_faults(self)]
        faults += [fault for block in self.blocks for fault in _block_faults(block)]
        if faults:
            where = f"placement problem {self.name!r}"
            raise RefusedError(tuple(Refusal(code="PLACEMENT-PROBLEM", where=where, what=what) for what in faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """(column, row) of every block, in the order of the problem."""

    spots: tuple[tuple[int, int], ...]


def _size_faults(problem: Problem) -> list[str]:
    rules = problem.rules
    found = []
    if not (1 <= rules.columns <= MAX_SIDE and 1 <= rules.rows <= MAX_SIDE):
        found.append(f"grid of {rules.columns} by {rules.rows}: expected 1 to {MAX_SIDE} each")
    if rules.row_step < 0 or rules.height < 0:
        found.append("prices of rows: expected 0 or more")
    if not 1 <= len(problem.blocks) <= MAX_BLOCKS:
        found.append(f"{len(problem.blocks)} blocks: expected 1 to {MAX_BLOCKS}")
    return found


def _name_faults(problem: Problem) -> list[str]:
    names = [block.name for block in problem.blocks]
    found = [f"two blocks called {name!r}" for name in sorted(set(names)) if names.count(name) > 1]
    known = set(names)
    ends = dict.fromkeys(end for edge in problem.edges for end in (edge.source, edge.target))
    return found + [f"an edge names {end!r}, no block is called so" for end in ends if end not in known]


def _block_faults(block: Block) -> list[str]:
    found = []
    if block.width < 1 or block.height < 1:
        found.append(f"block {block.name!r} of {block.width} by {block.height}: expected 1 or more each")
    for face in (block.input_face, block.output_face):
        length = block.height if face.side in ("left", "right") else block.width
        if not 0 <= face.start <= face.end < length:
            found.append(f"block {block.name!r}: face {face.start} to {face.end}, expected inside 0 to {length - 1}")
    keepout = block.keepout
    if min(keepout.left, keepout.right, keepout.top, keepout.bottom) < 0:
        found.append(f"block {block.name!r}: keepout below 0")
    return found


def read_problems(path: Path) -> tuple[Problem, ...]:
    """The problems of a benchmark file.

    Raises:
        RefusedError: the file is too large, no JSON, or not of that form; names the problem.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _unreadable(path, f"larger than {MAX_BYTES} bytes")
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, f"not readable as JSON: {error}") from None
    found = value.get("problems") if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise _unreadable(path, "no list `problems`")
    return tuple(problem_from_json(one) for one in found)


def problem_from_json(value: Mapping[str, Any]) -> Problem:
    """One problem of a benchmark file; what other placers reached in it is not read.

    Raises:
        RefusedError: not of that form.
    """
    name = value.get("id") if isinstance(value, dict) else None
    try:
        grid, objective = value["grid"], value["objective"]
        return Problem(
            name=_text(value["id"]),
            rules=Rules(
                columns=_count(grid["W"]),
                rows=_count(grid["H"]),
                row_step=_price(objective["lam"]),
                height=_price(objective["mu"]),
            ),
            blocks=tuple(_block(one) for one in value["nodes"]),
            edges=tuple(_edge(one) for one in value["edges"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"not of the form of the benchmark: {type(error).__name__} {error}"
        raise RefusedError((Refusal(code="PLACEMENT-PROBLEM", where=f"problem {name!r}", what=what),)) from None


def _unreadable(path: Path, what: str) -> RefusedError:
    return RefusedError((Refusal(code="PLACEMENT-FILE", where=path.name, what=what),))


def _block(value: Mapping[str, Any]) -> Block:
    anchor = value["anchor"]
    if anchor is not None:
        column, row = anchor
        anchor = (_count(column), _count(row))
    keepout = value["keepout"]
    return Block(
        name=_text(value["name"]),
        width=_count(value["w"]),
        height=_count(value["h"]),
        input_face=_face(value["input_face"]),
        output_face=_face(value["output_face"]),
        keepout=Keepout(**{side: _count(keepout[side]) for side in SIDES}),
        anchor=anchor,
    )


def _face(value: Mapping[str, Any]) -> Face:
    if value["side"] not in SIDES:
        msg = f"side {value['side']!r}"
        raise ValueError(msg)
    return Face(side=cast("Side", value["side"]), start=_count(value["start"]), end=_count(value["end"]))


def _edge(value: Mapping[str, Any]) -> Edge:
    return Edge(
        source=_text(value["src"]),
        target=_text(value["dst"]),
        direct=_flag(value["direct"]),
        exclusive=_flag(value["producer_exclusive"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        msg = f"expected a name, got {value!r}"
        raise TypeError(msg)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        msg = f"expected true or false, got {value!r}"
        raise TypeError(msg)
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIDE:
        msg = f"expected an integer of 0 to {MAX_SIDE}, got {value!r}"
        raise ValueError(msg)
    return value


def _price(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"expected a price, got {value!r}"
        raise TypeError(msg)
    price = Fraction(repr(value))
    if not 0 <= price <= MAX_PRICE or price.denominator > MAX_PRICE:
        msg = f"expected a price of 0 to {MAX_PRICE} in steps of 1/{MAX_PRICE} or more, got {value!r}"
        raise ValueError(msg)
    return price
