"""Bandwidth of the host's channels as data: measured, quoted or assumed, per column; and what follows from it.

A table says of itself what it is. The default one is built from the device catalogue and the calibration; a person
replaces it by measurements with `--bandwidth FILE`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.io import canonical_json, sha256_hex
from presim.timing import Calibration

BASES: Final = ("measured", "quoted", "assumed")
SCHEMA_VERSION: Final = 1
MAX_BYTES: Final = 1 << 20
KEYS: Final = frozenset({"schema_version", "name", "device", "basis", "source", "columns"})
COLUMN_KEYS: Final = frozenset({"fill_bytes_per_cycle", "drain_bytes_per_cycle"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Bytes per array cycle that the host moves through one column, all its channels together, each way."""

    column: int
    fill: float
    drain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Bandwidth of every column that reaches the host.

    Attributes:
        name: of it.
        basis: measured, quoted or assumed.
        source: where the figures come from.
        columns: by number.
        sha256: of its canonical form.
    """

    name: str
    basis: str
    source: str
    columns: tuple[Column, ...]
    sha256: str


def default_table(device: Device, calibration: Calibration) -> Table:
    """The table of the device catalogue, with the derating of the calibration.

    Raises:
        RefusedError: a figure that it needs is not published.
    """
    stream, shims = device.stream_bits.value, device.shim_dma_columns.value
    fills, drains = device.shim_mm2s.value, device.shim_s2mm.value
    figures = {"stream_bits": stream, "shim_dma_columns": shims, "shim_mm2s": fills, "shim_s2mm": drains}
    unknown = [name for name, value in figures.items() if value is None]
    if unknown or stream is None or shims is None or fills is None or drains is None:
        raise RefusedError(
            tuple(
                Problem(code="TIMING-UNKNOWN", where=f"device {device.name}", what=f"{name} is not published")
                for name in unknown
            )
        )
    each = calibration.value("shim_derate") * float(stream) / 8
    columns = tuple(Column(column=c, fill=fills * each, drain=drains * each) for c in shims)
    source = f"{device.stream_bits.source}; shim_derate of calibration {calibration.name}"
    return _sealed("default", "assumed", source, columns)


def read_json(path: Path) -> Any:
    """The JSON value of a person's table, not yet checked.

    Raises:
        RefusedError: it cannot be read, is too large, or no JSON.
    """
    where = f"--bandwidth {path.name}"
    try:
        if path.exists() and not path.is_file():
            raise _refused([(where, "it is no file", "a JSON file", str(path))])
        if path.stat().st_size > MAX_BYTES:
            raise _refused([(where, "the file is too large", f"at most {MAX_BYTES} bytes", "")])
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _refused([(where, "cannot be read", "a JSON file", error.strerror or str(error))]) from error
    except (ValueError, RecursionError) as error:
        raise _refused([(where, "it is no JSON", "a JSON object", str(error)[:120])]) from error


def table_from(value: Any, device: Device, where: str = "--bandwidth") -> Table:
    """A table of a person.

    Args:
        value: schema_version, name, device, basis, source, columns: {column: {fill_bytes_per_cycle,
            drain_bytes_per_cycle}}, bytes per cycle of the array clock.
        device: that it has to be for.
        where: said in problems.

    Raises:
        RefusedError: every problem.
    """
    problems = list(_problems(value, device, where))
    if problems:
        raise _refused(problems)
    columns = tuple(
        Column(column=int(c), fill=float(v["fill_bytes_per_cycle"]), drain=float(v["drain_bytes_per_cycle"]))
        for c, v in sorted(value["columns"].items(), key=lambda item: int(item[0]))
    )
    return _sealed(value["name"], value["basis"], value["source"], columns)


Rows = list[tuple[str, str, str, str]]


def _problems(value: Any, device: Device, where: str) -> Rows:
    """(where, what, expected, got) of everything that is wrong."""
    if not isinstance(value, dict):
        return [(where, "expected an object", "", type(value).__name__)]
    found: Rows = [(where, f"key {key!r} is unknown", ", ".join(sorted(KEYS)), "") for key in sorted(set(value) - KEYS)]
    found += [(where, f"key {key!r} is missing", "", "") for key in sorted(KEYS - set(value))]
    if found:
        return found
    if value["schema_version"] != SCHEMA_VERSION:
        found.append((where, "another schema_version", str(SCHEMA_VERSION), str(value["schema_version"])))
    if value["device"] != device.name:
        found.append((where, "it is for another device", device.name, str(value["device"])))
    if value["basis"] not in BASES:
        found.append((where, "it does not say what it is", ", ".join(BASES), str(value["basis"])))
    for key in ("name", "source"):
        if not isinstance(value[key], str) or not value[key].strip():
            found.append((where, f"{key} is no text", "a few words", str(value[key])))
    return found + _column_problems(value["columns"], device, where)


def _column_problems(columns: Any, device: Device, where: str) -> Rows:
    if not isinstance(columns, dict) or not columns:
        return [(where, "columns is no object with a column in it", "", type(columns).__name__)]
    known = device.shim_dma_columns.value
    found: Rows = []
    for name, row in columns.items():
        at = f"{where}, column {name!r}"
        if not str(name).isdecimal() or (known is not None and int(name) not in known):
            found.append((at, "reaches no external memory on this device", str(list(known or ())), ""))
        if not isinstance(row, dict) or set(row) != COLUMN_KEYS:
            found.append((at, "expected exactly its two figures", ", ".join(sorted(COLUMN_KEYS)), ""))
            continue
        found += [(at, f"{k} is no positive number", "", str(v)) for k, v in row.items() if not _positive(v)]
    return found


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6


def _refused(rows: Rows) -> RefusedError:
    return RefusedError(
        tuple(Problem(code="OPTIMIZE-BANDWIDTH", where=w, what=t, expected=e, got=g) for w, t, e, g in rows)
    )


def _sealed(name: str, basis: str, source: str, columns: tuple[Column, ...]) -> Table:
    rows = {str(c.column): [c.fill, c.drain] for c in columns}
    digest = sha256_hex(canonical_json({"name": name, "basis": basis, "source": source, "columns": rows}))
    return Table(name=name, basis=basis, source=source, columns=columns, sha256=digest)


def boundary_cycles(size: int, table: Table) -> float:
    """Cycles for bytes that go out and come in again, over all columns at once.

    Args:
        size: bytes.
        table: bandwidth.
    """
    return size / sum(c.drain for c in table.columns) + size / sum(c.fill for c in table.columns)


def shares(size: int, table: Table, columns: Sequence[int], *, granule: int = 4) -> Mapping[int, int]:
    """Bytes for each column, in proportion to what it moves, so that all end together.

    Args:
        size: bytes, a multiple of `granule`.
        table: bandwidth.
        columns: that take part; each once.
        granule: bytes that stay together.

    Raises:
        ValueError: a column is not in the table, or the size is no multiple.
    """
    rates = {c.column: Fraction(c.fill) for c in table.columns}
    if size % granule or not set(columns) <= set(rates) or len(set(columns)) != len(columns) or not columns:
        msg = f"shares of {size} bytes over columns {list(columns)}: expected columns of {sorted(rates)}"
        raise ValueError(msg)
    total = sum(rates[c] for c in columns)
    units = size // granule
    exact = {c: units * rates[c] / total for c in columns}
    given = {c: int(exact[c]) for c in columns}
    rest = sorted(columns, key=lambda c: (given[c] - exact[c], c))
    for column in rest[: units - sum(given.values())]:
        given[column] += 1
    return {c: n * granule for c, n in given.items()}


def state_bytes(cached: int, *, layers: int, heads: int, width: int, element_bytes: int = 1) -> int:
    """Bytes of recurrent state (keys and values) that one new token reads, and that grow with the context.

    Args:
        cached: tokens before it.
        layers: with a cache.
        heads: of keys and values.
        width: of a head, in elements.
        element_bytes: of one element.
    """
    return 2 * cached * layers * heads * width * element_bytes
