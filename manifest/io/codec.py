"""Frozen dataclasses to JSON values and back, driven by their type hints.

Why generic: one rule for every class of `manifest.model`, so that a new field needs no second edit here; types
are checked strictly when a file is read (a bool is no int, an int is no float).
"""

import dataclasses
import functools
import math
import operator
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")


def encode(value: object) -> Any:
    """The JSON value of a frozen dataclass: dicts, lists, str, int, float, bool, None.

    Raises:
        TypeError: a field holds something else than its hint says; names class and field.
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        msg = f"expected a dataclass instance, got {type(value).__name__}"
        raise TypeError(msg)
    hints = _hints(type(value))
    return {f: _encode(getattr(value, f), hint, f"{type(value).__name__}.{f}") for f, hint in hints.items()}


def decode(cls: type[T], value: object, where: str = "") -> T:
    """The dataclass `cls` from a JSON value; every field has to be there and no other.

    Raises:
        ValueError: a missing or unknown field or a value of the wrong type; the text says where.
    """
    decoded = _decode(value, cls, where or cls.__name__)
    return typing.cast(T, decoded)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _encode(value: Any, hint: Any, where: str) -> Any:
    if isinstance(value, str | bool | None):
        return value
    if dataclasses.is_dataclass(value):
        return encode(value)
    if isinstance(value, Mapping):
        return {k: _encode(v, hint, f"{where}[{k!r}]") for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_encode(v, hint, where) for v in value]
    return _number(value, hint, where)


def _number(value: Any, hint: Any, where: str) -> int | float:
    """`value` as int where the hint allows one and it is one, else as a finite float where the hint allows one."""
    allowed = _number_types(hint)
    if int in allowed and hasattr(value, "__index__"):
        return operator.index(value)
    if float in allowed and hasattr(value, "__float__"):
        number = float(value)
        if math.isfinite(number):
            return number
    msg = f"{where}: expected {hint}, got {value!r}"
    raise TypeError(msg)


def _number_types(hint: Any) -> frozenset[type]:
    """int, float or both: what occurs anywhere in the hint."""
    if hint in (int, float):
        return frozenset({hint})
    return frozenset().union(*(_number_types(a) for a in get_args(hint)))


def _decode(value: Any, hint: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _decode_class(value, typing.cast(type, hint), where)
    origin = get_origin(hint)
    if origin is Literal:
        if value in get_args(hint):
            return value
    elif origin is tuple:
        if isinstance(value, list):
            inner = get_args(hint)[0]
            return tuple(_decode(v, inner, f"{where}[{i}]") for i, v in enumerate(value))
    elif origin in (Union, types.UnionType):
        return _decode_union(value, get_args(hint), where)
    elif origin is not None and issubclass(origin, Mapping):
        if isinstance(value, dict):
            inner = get_args(hint)[1]
            return {k: _decode(v, inner, f"{where}[{k!r}]") for k, v in value.items()}
    elif type(value) is hint:
        return value
    msg = f"{where}: expected {getattr(hint, '__name__', hint)}, got {type(value).__name__}"
    raise ValueError(msg)


def _decode_class(value: Any, cls: type, where: str) -> Any:
    hints = _hints(cls)
    if not isinstance(value, dict) or value.keys() != hints.keys():
        got = sorted(value.keys() ^ hints.keys()) if isinstance(value, dict) else type(value).__name__
        msg = f"{where}: expected the fields of {cls.__name__}, got a difference in {got}"
        raise ValueError(msg)
    return cls(**{f: _decode(value[f], hint, f"{where}.{f}") for f, hint in hints.items()})


def _decode_union(value: Any, options: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in options:
        return None
    last: ValueError | None = None
    for option in options:
        if option is type(None):
            continue
        try:
            return _decode(value, option, where)
        except ValueError as error:
            last = error
    raise last or ValueError(f"{where}: expected one of {options}, got {type(value).__name__}")
