"""Pieces of Python text: types, calls, comments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from presim.design import Tile

INDENT: Final = "    "
WIDTH: Final = 110
_CONTROL: Final = re.compile(r"[^\x20-\x7e]")


def type_name(dtype: str, shape: Sequence[int]) -> str:
    """Name of a type in design.py, `int8_1x8x8`."""
    return f"{dtype}_{'x'.join(map(str, shape))}"


def type_text(dtype: str, shape: Sequence[int]) -> str:
    """The type itself."""
    return f"np.ndarray[{tuple(shape)!r}, np.dtype[np.{dtype}]]"


def call(function: str, *positional: str, **keywords: str | None) -> str:
    """A call; keywords that are None are left out. On several lines where it is long."""
    parts = [*positional, *(f"{k}={v}" for k, v in keywords.items() if v is not None)]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{function}(", *indented(f"{part}," for part in parts), ")"])


def listing(items: Iterable[str]) -> str:
    """A list, on several lines where it is long."""
    parts = list(items)
    line = f"[{', '.join(parts)}]"
    if len(line) <= WIDTH - 20:
        return line
    return "\n".join(["[", *(f"{INDENT}{part}," for part in parts), "]"])


def pairs(dims: Iterable[tuple[int, int]]) -> str:
    """(size, stride) outer to inner."""
    return f"[{', '.join(f'({size}, {stride})' for size, stride in dims)}]"


def comment(text: str) -> str:
    """A comment on one line, whatever the names in it."""
    return "# " + _CONTROL.sub(lambda c: c.group().encode("unicode_escape").decode("ascii"), text)


def quoted(text: str) -> str:
    """A string literal in plain ASCII with double quotes."""
    return '"' + text.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'


def indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Every line of a text further in; texts of several lines are split."""
    return [f"{INDENT * depth}{line}" if line else "" for text in lines for line in text.split("\n")]


def tile_name(tile: Tile) -> str:
    """Variable of a tile."""
    return f"tile_{tile.column}_{tile.row}"


def tile_or_none(tile: Tile | None) -> str | None:
    """Variable of a tile, None where it is not placed."""
    return None if tile is None else tile_name(tile)


def numbered(prefix: str, names: Iterable[str]) -> Mapping[str, str]:
    """Variable of every name: the prefix and a number."""
    return {name: f"{prefix}{number}" for number, name in enumerate(names)}
