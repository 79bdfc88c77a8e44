"""Designs as JSON: canonical `design.json` of a port, and the files of probes that a person writes.

Why its own codec beside `manifest.io`: a program is a tree of four kinds of steps of which two have the same fields,
so every step says which it is. In a file of a person absent fields have their defaults; a file of ours has all.
"""

import dataclasses
import functools
import json
import math
import operator
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin

from jsonschema import Draft202012Validator

from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import canonical_json, parse_canonical
from presim.design import Acquire, Call, Design, Loop, Release

SCHEMA: Final = Path(__file__).resolve().parent / "schema" / "design-1.json"
DESIGN_FILE: Final = "design.json"
TAG: Final = "step"
STEPS: Final[Mapping[str, type]] = {"acquire": Acquire, "release": Release, "call": Call, "loop": Loop}
TAGS: Final = {cls: tag for tag, cls in STEPS.items()}
MAX_ERRORS: Final = 50
MAX_DEPTH: Final = 64
"""Loops inside loops; a hostile file could nest until the stack ends."""


def design_to_json(designs: Sequence[Design]) -> bytes:
    """The bytes of `design.json`: a list of dispatch designs in their order."""
    return canonical_json([_encode(design) for design in designs])


def design_from_json(data: bytes, where: str = DESIGN_FILE) -> tuple[Design, ...]:
    """Read `design.json` back.

    Raises:
        UpstreamError: not canonical, against the schema, or not exactly what `design_to_json` writes.
    """
    value = parse_canonical(data, where)
    if errors := design_errors(value):
        msg = f"{where}: tampered: {errors[0]}"
        raise UpstreamError(msg)
    try:
        designs = tuple(_decode(v, Design, f"{where}[{i}]") for i, v in enumerate(value))
    except ValueError as error:
        msg = f"{where}: tampered: {error}"
        raise UpstreamError(msg) from error
    if design_to_json(designs) != data:
        msg = f"{where}: tampered: a field is missing"
        raise UpstreamError(msg)
    return designs


def design_from_value(value: object, where: str) -> Design:
    """One design from JSON that a person wrote; absent fields have their defaults.

    Raises:
        RefusedError: one problem per fault.
    """
    errors: tuple[str, ...] = (f"nested deeper than {MAX_DEPTH}",)
    if _depth(value) <= MAX_DEPTH:
        try:
            design = typing.cast(Design, _decode(value, Design, "design"))
        except ValueError as error:
            errors = (str(error),)
        else:
            errors = design_errors([value])
            if not errors:
                return design
    raise RefusedError(tuple(Problem(code="DESIGN-SCHEMA", where=where, what=text) for text in errors))


def design_errors(value: object) -> tuple[str, ...]:
    """What is wrong with a list of designs by the schema, one line each, at most 50."""
    if _depth(value) > MAX_DEPTH:
        return (f"(top): nested deeper than {MAX_DEPTH}",)
    found = []
    for error in _validator().iter_errors(value):
        path = "/".join(str(p) for p in error.absolute_path) or "(top)"
        text = " ".join(error.message.split())
        found.append(f"{path}: {text if len(text) <= 200 else text[:200] + ' ...'}")
        if len(found) == MAX_ERRORS:
            break
    return tuple(sorted(found))


@functools.cache
def _validator() -> Draft202012Validator:
    rules = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(rules)
    return Draft202012Validator(rules)


def _depth(value: object) -> int:
    """Nesting of lists and objects, found without recursion."""
    deepest = 0
    stack: list[tuple[object, int]] = [(value, 1)]
    while stack and deepest <= MAX_DEPTH:
        here, depth = stack.pop()
        deepest = max(deepest, depth)
        inner = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        stack += [(item, depth + 1) for item in inner]
    return deepest


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f: _encode(getattr(value, f)) for f in _hints(type(value))}
        tag = TAGS.get(type(value))
        return fields if tag is None else {TAG: tag, **fields}
    if isinstance(value, tuple | list):
        return [_encode(v) for v in value]
    if hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    msg = f"design: expected a value that JSON holds, got {value!r}"
    raise TypeError(msg)


def _decode(value: Any, hint: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _decode_class(value, typing.cast(type, hint), where)
    origin = get_origin(hint)
    if origin is Literal and value in get_args(hint):
        return value
    if origin is tuple and isinstance(value, list):
        return _decode_tuple(value, get_args(hint), where)
    if origin in (Union, types.UnionType):
        return _decode_union(value, get_args(hint), where)
    if type(value) is hint:
        return value
    msg = f"{where}: expected {getattr(hint, '__name__', hint)}, got {value!r}"
    raise ValueError(msg)


def _decode_tuple(value: list[Any], args: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_decode(v, args[0], f"{where}[{i}]") for i, v in enumerate(value))
    if len(value) != len(args):
        msg = f"{where}: expected {len(args)} values, got {len(value)}"
        raise ValueError(msg)
    return tuple(_decode(v, hint, f"{where}[{i}]") for i, (v, hint) in enumerate(zip(value, args, strict=True)))


def _decode_class(value: Any, cls: type, where: str) -> Any:
    hints = _hints(cls)
    if not isinstance(value, dict):
        msg = f"{where}: expected the fields of {cls.__name__}, got {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004  (what is wrong with a file is one kind of error here)
    given = {k: v for k, v in value.items() if k != TAG or cls not in TAGS}
    unknown = sorted(set(given) - set(hints))
    absent = [f.name for f in dataclasses.fields(cls) if _is_required(f) and f.name not in given]
    if unknown or absent:
        msg = f"{where}: {cls.__name__}: unknown fields {unknown}, missing fields {absent}"
        raise ValueError(msg)
    return cls(**{k: _decode(v, hints[k], f"{where}.{k}") for k, v in given.items()})


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _decode_union(value: Any, options: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in options:
        return None
    if set(options) == set(STEPS.values()):
        cls = STEPS.get(str(value.get(TAG, ""))) if isinstance(value, dict) else None
        if cls is None:
            msg = f"{where}: expected a step ({', '.join(STEPS)})"
            raise ValueError(msg)
        return _decode_class(value, cls, where)
    for option in options:
        try:
            return _decode(value, option, where)
        except ValueError as error:
            last = error
    raise last
