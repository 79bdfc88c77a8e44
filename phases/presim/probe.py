"""A probe: the smallest design that uses one mechanism, and what the simulator has to say of it.

The file::

    {"name": "split in a memory tile",          one of the mechanisms that designs are searched for, or a new one
     "design": {...},                           as in design.json; fields with a default may be left out
     "expect": {"verdict": "completes"},        or a list of verdicts; "fix": {"fifo": "x", "depth": 3} of a deadlock
     "arrays": {"weights": [1, 2]},             values of buffers and of fifos with initial values, by their key
     "inputs": [{"x": [1, 2, 3]}, ...],         host tensors of each inference; without them objects have no values
     "outputs": [{"y": [1, 2, 3]}, ...]}        what the host has to get

Kernels are those of the simulator, by `type`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from phases.presim.person_json import check_keys, read_object
from presim.design import Design
from presim.design_io import design_from_value
from presim.kernels import KERNELS
from presim.simulate import SimData, SimOptions, SimResult, simulate
from presim.simulate.result import Verdict

CODE: Final = "PROBE-FILE"
REQUIRED: Final = ("name", "design", "expect")
OPTIONAL: Final = ("arrays", "inputs", "outputs", "text")
VERDICTS: Final = get_args(Verdict)
SCHEDULES: Final = 3
INFERENCES: Final = 3
MAX_STEPS: Final = 5_000_000

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A file of a person, checked.

    Attributes:
        name: of the mechanism.
        design: that uses it.
        verdicts: of which one is expected.
        fix: fifo and depth of the smallest change that is expected, None = not asked.
        data: values, None = objects without any.
    """

    name: str
    design: Design
    verdicts: tuple[str, ...]
    fix: tuple[str, int] | None
    data: SimData | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a probe found; `why` says what is other than expected, "" = nothing."""

    probe: Probe
    result: SimResult
    why: str

    @property
    def passed(self) -> bool:
        """Whether it found what it expected."""
        return not self.why

    def record(self, file_sha256: str) -> dict[str, Any]:
        """What the port keeps."""
        return {
            "file_sha256": file_sha256,
            "expected": list(self.probe.verdicts),
            "verdict": self.result.verdict,
            "text": self.result.text,
            "passed": self.passed,
            "inferences": self.result.inferences,
            "schedules": self.result.schedules,
            "elements": sum(self.result.compared.values()),
        }


def read_probe(path: Path) -> Probe:
    """Read and check a file.

    Raises:
        RefusedError: all problems.
    """
    value = read_object(path, CODE)
    where = str(path)
    problems = check_keys(value, REQUIRED, OPTIONAL, where, CODE)
    if problems:
        raise RefusedError(tuple(problems))
    if not isinstance(value["name"], str) or not value["name"].strip():
        problems.append(Problem(code=CODE, where=where, what="name: expected a few words"))
    verdicts, fix = _expected(value["expect"], where, problems)
    try:
        design = design_from_value(value["design"], f"{where}: design")
    except RefusedError as error:
        raise RefusedError((*problems, *error.problems)) from error
    if fix is not None and fix[0] not in {f.name for f in design.fifos}:
        names = ", ".join(repr(f.name) for f in design.fifos)
        what = f"the design has no fifo {fix[0]!r}"
        problems.append(Problem(code=CODE, where=f"{where}: expect: fix", what=what, expected=names))
    data = _data(value, design, where, problems)
    if problems:
        raise RefusedError(tuple(problems))
    return Probe(name=value["name"].strip(), design=design, verdicts=verdicts, fix=fix, data=data)


def run_probe(probe: Probe) -> Outcome:
    """Simulate a probe under round-robin and three seeds.

    Raises:
        RefusedError: its structure makes no sense, or values are missing.
    """
    options = SimOptions(inferences=INFERENCES, schedules=SCHEDULES, max_steps=MAX_STEPS)
    result = simulate(probe.design, data=probe.data, options=options)
    return Outcome(probe=probe, result=result, why=_difference(probe, result))


def _difference(probe: Probe, result: SimResult) -> str:
    if result.verdict not in probe.verdicts:
        return f"expected {' or '.join(probe.verdicts)}, got {result.verdict}"
    if result.verdict == "completes_leaving" and not result.sound:
        return "what is left grows with every inference"
    if probe.fix is None or probe.fix in {(f.fifo, f.after) for f in result.fixes}:
        return ""
    got = ", ".join(f"{f.what} {f.after} of fifo {f.fifo!r}" for f in result.fixes) or "none"
    return f"expected depth {probe.fix[1]} of fifo {probe.fix[0]!r} as the fix, got {got}"


def _expected(value: Any, where: str, problems: list[Problem]) -> tuple[tuple[str, ...], tuple[str, int] | None]:
    at = f"{where}: expect"
    if not isinstance(value, dict):
        problems.append(Problem(code=CODE, where=at, what="expected an object"))
        return (), None
    problems += check_keys(value, ("verdict",), ("fix",), at, CODE)
    asked = value.get("verdict", [])
    verdicts = tuple(asked) if isinstance(asked, list) else (asked,)
    if not verdicts or any(v not in VERDICTS for v in verdicts):
        problems.append(
            Problem(code=CODE, where=at, what="no such verdict", expected=", ".join(VERDICTS), got=repr(asked)[:80])
        )
    fix = _fix(value.get("fix"), at, problems)
    if fix is not None and "deadlock" not in verdicts:
        problems.append(Problem(code=CODE, where=f"{at}: fix", what="only a deadlock has a fix", expected="deadlock"))
    return verdicts, fix


def _fix(value: Any, where: str, problems: list[Problem]) -> tuple[str, int] | None:
    if value is None:
        return None
    named = isinstance(value, dict) and set(value) == {"fifo", "depth"} and isinstance(value["fifo"], str)
    if not named or type(value["depth"]) is not int or value["depth"] < 1:
        what, expected = "it is no fix", '{"fifo": name, "depth": number from 1}'
        problems.append(Problem(code=CODE, where=f"{where}: fix", what=what, expected=expected, got=repr(value)[:80]))
        return None
    return value["fifo"], value["depth"]


def _data(value: Mapping[str, Any], design: Design, where: str, problems: list[Problem]) -> SimData | None:
    if "inputs" not in value:
        lonely = [key for key in ("arrays", "outputs") if key in value]
        problems += [Problem(code=CODE, where=where, what=f"{key} without inputs") for key in lonely]
        return None
    fifos = {f.name: f.dtype for f in design.fifos}
    types = {t.tensor: fifos.get(t.fifo, "int8") for t in design.sequence}
    keyed = {b.array: b.dtype for b in design.buffers} | {f.init_array: f.dtype for f in design.fifos}
    arrays = {k: str(v) for k, v in keyed.items() if k is not None}
    unknown = sorted({k.type for k in design.kernels} - set(KERNELS))
    if unknown:
        what, expected = f"no such kernel type: {', '.join(unknown)}", ", ".join(KERNELS)
        problems.append(Problem(code=CODE, where=f"{where}: design", what=what, expected=expected))
        return None
    rows = [_row(value, key, where, problems) for key in ("inputs", "outputs")]
    return SimData(
        kernels={k.name: KERNELS[k.type] for k in design.kernels},
        arrays=_values(value.get("arrays", {}), arrays, f"{where}: arrays", problems),
        inputs=[_values(row, types, f"{where}: inputs", problems) for row in rows[0]],
        outputs=[_values(row, types, f"{where}: outputs", problems) for row in rows[1]],
    )


def _row(value: Mapping[str, Any], key: str, where: str, problems: list[Problem]) -> list[Any]:
    rows = value.get(key, [])
    if isinstance(rows, list):
        return rows
    problems.append(Problem(code=CODE, where=f"{where}: {key}", what="expected a list, one object per inference"))
    return []


def _values(row: Any, types: Mapping[str, str], where: str, problems: list[Problem]) -> dict[str, Array]:
    if not isinstance(row, dict):
        problems.append(Problem(code=CODE, where=where, what="expected an object of numbers by name"))
        return {}
    found: dict[str, Array] = {}
    for name, numbers in row.items():
        if name not in types:
            names = ", ".join(map(repr, types))
            problems.append(Problem(code=CODE, where=where, what=f"the design has no {name!r}", expected=names))
            continue
        try:
            found[name] = _array(numbers, np.dtype(types[name]))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            what = f"{name!r}: no numbers of {types[name]}: {' '.join(str(error).split())[:120]}"
            problems.append(Problem(code=CODE, where=where, what=what))
    return found


def _array(numbers: Any, dtype: np.dtype[Any]) -> Array:
    """Numbers as an array; nothing is rounded to a whole number, wrapped or taken for one.

    Raises:
        ValueError: a value that the type does not hold; of a float type: that is no finite number.
        TypeError: something that is no number.
    """
    leaves = list(_leaves(numbers))
    if any(type(leaf) not in (int, float) for leaf in leaves):
        wrong = next(leaf for leaf in leaves if type(leaf) not in (int, float))
        msg = f"expected numbers, got {wrong!r}"
        raise TypeError(msg)
    for leaf in leaves:
        if not math.isfinite(leaf) or (dtype.kind in "iu" and not _holds(dtype, leaf)):
            msg = f"got {leaf!r}"
            raise ValueError(msg)
    array: Array = np.array(numbers, dtype=object).astype(dtype)
    if dtype.kind == "f" and not np.isfinite(array).all():
        msg = "a number beyond the range of the type"
        raise ValueError(msg)
    return array


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    info = np.iinfo(dtype)
    return value == int(value) and info.min <= value <= info.max


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from _leaves(part)
    else:
        yield value
