"""What a person asks of the planner and the placer, by ONNX node: parallelism, placement, layout, weights, ways in.

The form of the first three is that of aie4ml's layer directives. Every name and key has to be known, so that a typing
error is no silent default.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from manifest.errors import Problem, RefusedError
from manifest.layout import TRANSFORMS
from manifest.model import Manifest

MAX_BYTES: Final = 1 << 20
MAX_CASCADE: Final = 8
MAX_OBJECTS: Final = 63
"""Objects of a pool: the highest value of a lock."""

Contract = Literal["inner", "outer"]
Weights = Literal["resident", "streamed"]
Edges = Literal["direct", "memtile"]

_KEYS: Final = ("parallelism", "placement", "layout", "weights", "depth", "edges", "host_streams")
_PARALLELISM: Final = ("cas_num", "cas_length", "contract")
_PLACEMENT: Final = ("row", "col")
_WEIGHTS: Final[tuple[Weights, ...]] = ("resident", "streamed")
_EDGES: Final[tuple[Edges, ...]] = ("direct", "memtile")
T = TypeVar("T", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How an op is spread over workers.

    Attributes:
        cas_num: workers beside each other: over output channels (N) with `inner`, over rows (M) with `outer`.
        cas_length: workers in a cascade, over the reduction (K), 1 to 8.
        contract: see `cas_num`.
    """

    cas_num: int = 1
    cas_length: int = 1
    contract: Contract = "inner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the first worker of an op goes: `row` counts core rows from 0, `col` is the array column."""

    row: int
    col: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What is asked for one op; None = the planner decides.

    Attributes:
        parallelism: how it is spread.
        placement: where its first worker goes.
        layout: transform of its weights.
        weights: `resident` in the memories of its workers, or `streamed` from a memory tile for every output object.
        depth: objects of every input that its workers have room for, at least.
        edges: `memtile`: its inputs come through a memory tile; `direct`: they do not unless they have to.
        host_streams: streams over which the host brings its input (the slices of a cascade) and takes its output (the
            parts beside each other), where it is the first or last op of a dispatch.
    """

    parallelism: Parallelism | None = None
    placement: Placement | None = None
    layout: str | None = None
    weights: Weights | None = None
    depth: int | None = None
    edges: Edges | None = None
    host_streams: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """All directives, by the name of an op of the manifest."""

    by_op: Mapping[str, Directive] = field(default_factory=dict)

    def of(self, op: str) -> Directive:
        """The directive of an op; an empty one where there is none."""
        return self.by_op.get(op, Directive())


def read_directives(path: Path, manifest: Manifest) -> Directives:
    """The directives of a JSON file.

    Raises:
        RefusedError: the file cannot be read, is no JSON object, or names a node, key or value that is not known; all
            problems.
    """
    where = f"--directives {path.name}"
    try:
        if path.exists() and not path.is_file():
            raise _refused(where, "it is no file", "a JSON file", str(path))
        if path.stat().st_size > MAX_BYTES:
            raise _refused(where, "the file is too large", f"at most {MAX_BYTES} bytes", str(path.stat().st_size))
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except OSError as error:
        raise _refused(where, "the file cannot be read", "a JSON file", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _refused(where, "it is no JSON", "a JSON object of node names", str(error)[:200]) from error
    return directives_of(value, manifest, where)


def directives_of(value: Any, manifest: Manifest, where: str = "directives") -> Directives:
    """The directives of a JSON value, checked against the ops of a manifest.

    Args:
        value: `{node name: {"parallelism": {...}, "placement": {...}, "layout": "..."}}`.
        manifest: whose ops are meant, each by its name or by the name of an ONNX node that went into it.
        where: said in problems.

    Raises:
        RefusedError: all problems.
    """
    problems: list[Problem] = []
    if not isinstance(value, Mapping):
        problems.append(_problem(where, "expected an object of node names", got=type(value).__name__))
        raise RefusedError(tuple(problems))
    owners = {node: op.name for op in manifest.ops for node in op.nodes} | {op.name: op.name for op in manifest.ops}
    on_host = {op.name for op in manifest.ops if op.where == "host"}
    found: dict[str, Directive] = {}
    for node, entry in value.items():
        at = f"{where}, node {node!r}"
        if node not in owners:
            problems.append(_problem(at, "the model has no such node", expected=_some(owners), got=repr(node)))
        elif owners[node] in on_host:
            problems.append(_problem(at, f"op {owners[node]!r} runs on the host: nothing of it is placed or spread"))
        elif owners[node] in found:
            problems.append(_problem(at, f"op {owners[node]!r} has a directive already"))
        else:
            found[owners[node]] = _directive(entry, at, problems)
    if problems:
        raise RefusedError(tuple(problems))
    return Directives(by_op=found)


def _directive(entry: Any, where: str, problems: list[Problem]) -> Directive:
    if not _known(entry, _KEYS, where, problems):
        return Directive()
    layout = entry.get("layout")
    if "layout" in entry and layout not in tuple(TRANSFORMS):
        problems.append(_problem(f"{where}, layout", "no such layout", expected=_some(TRANSFORMS), got=repr(layout)))
        layout = None
    parallelism = _parallelism(entry["parallelism"], where, problems) if "parallelism" in entry else None
    placement = _placement(entry["placement"], where, problems) if "placement" in entry else None
    depth, streams = (_optional(entry, name, low, where, problems) for name, low in (("depth", 2), ("host_streams", 1)))
    return Directive(
        parallelism=parallelism,
        placement=placement,
        layout=layout,
        weights=_one_of(entry, "weights", _WEIGHTS, where, problems),
        depth=depth,
        edges=_one_of(entry, "edges", _EDGES, where, problems),
        host_streams=streams,
    )


def _one_of(entry: Any, key: str, allowed: tuple[T, ...], where: str, problems: list[Problem]) -> T | None:
    """The value of a key that has a few; None where it is not there or none of them."""
    found = next((value for value in allowed if entry.get(key) == value), None)
    if key in entry and found is None:
        expected, got = ", ".join(allowed), repr(entry[key])[:80]
        problems.append(_problem(f"{where}, {key}", "not a value that can be taken", expected=expected, got=got))
    return found


def _optional(entry: Any, key: str, low: int, where: str, problems: list[Problem]) -> int | None:
    """The number of a key; None where it is not there."""
    return _number(entry[key], low, MAX_OBJECTS, f"{where}, {key}", problems) if key in entry else None


def _parallelism(entry: Any, where: str, problems: list[Problem]) -> Parallelism:
    at = f"{where}, parallelism"
    if not _known(entry, _PARALLELISM, at, problems):
        return Parallelism()
    contract = entry.get("contract", "inner")
    if contract not in ("inner", "outer"):
        problems.append(_problem(f"{at}, contract", "no such contract", expected="inner, outer", got=repr(contract)))
        contract = "inner"
    return Parallelism(
        cas_num=_number(entry.get("cas_num", 1), 1, None, f"{at}, cas_num", problems),
        cas_length=_number(entry.get("cas_length", 1), 1, MAX_CASCADE, f"{at}, cas_length", problems),
        contract="outer" if contract == "outer" else "inner",
    )


def _placement(entry: Any, where: str, problems: list[Problem]) -> Placement | None:
    at = f"{where}, placement"
    if not _known(entry, _PLACEMENT, at, problems):
        return None
    missing = [key for key in _PLACEMENT if key not in entry]
    if missing:
        problems.append(_problem(at, "a place needs a row and a column", expected="row, col", got=_some(entry)))
        return None
    row, col = (_number(entry[key], 0, None, f"{at}, {key}", problems) for key in _PLACEMENT)
    return Placement(row=row, col=col)


def _number(value: Any, low: int, high: int | None, where: str, problems: list[Problem]) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= low and (high is None or value <= high)
    if good:
        return int(value)
    expected = f"an integer from {low}" + ("" if high is None else f" to {high}")
    problems.append(_problem(where, "not a number that can be taken", expected=expected, got=repr(value)))
    return low


def _known(entry: Any, keys: tuple[str, ...], where: str, problems: list[Problem]) -> bool:
    if not isinstance(entry, Mapping):
        problems.append(_problem(where, "expected an object", expected=", ".join(keys), got=repr(entry)[:80]))
        return False
    unknown = [key for key in entry if key not in keys]
    problems += [_problem(where, "no such key", expected=", ".join(keys), got=repr(key)) for key in unknown]
    return not unknown


def _some(names: Iterable[str]) -> str:
    given = [str(name) for name in names]
    return ", ".join(given[:12]) + (f" and {len(given) - 12} more" if len(given) > 12 else "")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            msg = f"key {key!r} stands twice"
            raise ValueError(msg)
        result[key] = value
    return result


def _problem(where: str, what: str, *, expected: str = "", got: str = "") -> Problem:
    return Problem(code="PLAN-DIRECTIVE", where=where, what=what, expected=expected, got=got)


def _refused(where: str, what: str, expected: str, got: str) -> RefusedError:
    return RefusedError((_problem(where, what, expected=expected, got=got),))
