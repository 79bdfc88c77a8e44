"""The surface of `aie` 1.4 as data: `api-1.4.json` lists every name and parameter with the page it was read on.

Why a decorator checks calls: Python's own message for a wrong keyword does not say what there is instead.
"""

import functools
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from presim.iron.errors import VERSION, MissingNameError, WrongCallError

FILE: Final = Path(__file__).resolve().parent / "api-1.4.json"
F = TypeVar("F", bound=Callable[..., Any])
ROW: Final = "__iron_row__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: `kind` as in `inspect` in lower case, `default` as Python text, None = required."""

    name: str
    kind: str
    default: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A name of `aie`.

    Attributes:
        name: dotted, as a design file imports it; methods behind their class.
        kind: module, class, function, method, property, constant; object = handed out, not imported.
        page: key of the page that it was read on.
        parameters: without `self`; () for what is not called.
        note: what the stand-in does with it, where that is not plain.
    """

    name: str
    kind: str
    page: str
    parameters: tuple[Parameter, ...]
    note: str


@functools.cache
def load() -> tuple[Mapping[str, Row], Mapping[str, str]]:
    """Rows by name, and pages by key."""
    value = json.loads(FILE.read_text(encoding="utf-8"))
    rows = {
        r["name"]: Row(
            name=r["name"],
            kind=r["kind"],
            page=r["page"],
            parameters=tuple(
                Parameter(name=p["name"], kind=p["kind"], default=p.get("default")) for p in r.get("parameters", ())
            ),
            note=r.get("note", ""),
        )
        for r in value["rows"]
    }
    return rows, value["pages"]


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Parameters of a function or class of the stand-in, `self` left out."""
    found = inspect.signature(function).parameters.values()
    return tuple(
        Parameter(
            name=p.name,
            kind=p.kind.name.lower(),
            default=None if p.default is inspect.Parameter.empty else _text(p.default),
        )
        for p in found
        if p.name not in {"self", "cls"}
    )


def _text(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def row(name: str) -> Callable[[F], F]:
    """Mark a function or method as the row `name` and refuse calls that it does not take, in one line."""

    def wrap(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise WrongCallError(_refusal(name, function, str(error))) from None
            return function(*args, **kwargs)

        setattr(checked, ROW, name)
        return cast(F, checked)

    return wrap


def _refusal(name: str, function: Callable[..., Any], text: str) -> str:
    short = name.removesuffix(".__init__")
    has = ", ".join(_shown(p) for p in parameters_of(function))
    return f"{short}(): {text}; {VERSION} takes ({has})"


def _shown(parameter: Parameter) -> str:
    stars = {"var_positional": "*", "var_keyword": "**"}.get(parameter.kind, "")
    return f"{stars}{parameter.name}" + ("" if parameter.default is None else f"={parameter.default}")


def _imported(name: str, row: Row, prefix: str) -> bool:
    """Whether a row is a name of the module with this prefix."""
    return name.startswith(prefix) and "." not in name.removeprefix(prefix) and row.kind != "object"


def absent(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: names that 1.4 has not are refused, with those that there are."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = load()[0].get(f"{module}.{name}")
        if found is not None and found.kind == "module":
            return importlib.import_module(found.name)
        prefix = f"{module}."
        have = sorted(n.removeprefix(prefix) for n, r in load()[0].items() if _imported(n, r, prefix))
        text = f"{module} has no {name!r} in {VERSION} as far as the stand-in knows; it has {', '.join(have)}"
        raise MissingNameError(text)

    return get
