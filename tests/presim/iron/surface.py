"""Prints the surface of the stand-in as rows: run with the stand-in on the path, by `test_api`."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import aie  # type: ignore[import-not-found]

from presim.iron import api
from presim.iron.jit import JitDesign, Tensor
from presim.iron.sequence import RuntimeData, Task

HANDED_OUT = {"aie.iron.RuntimeData": RuntimeData, "aie.iron.Task": Task, "aie.iron.Tensor": Tensor}


def rows() -> Iterator[dict[str, Any]]:
    for name in ["aie", *(m.name for m in pkgutil.walk_packages(aie.__path__, "aie."))]:
        module = importlib.import_module(name)
        yield {"name": name, "kind": "module"}
        for member in getattr(module, "__all__", ()):
            yield from value_rows(f"{name}.{member}", getattr(module, member))
        unlisted = sorted(n for n in vars(module) if not n.startswith("_") and n not in getattr(module, "__all__", ()))
        for other in unlisted:
            if other != "absent" and not hasattr(vars(module)[other], "__path__") and f"{name}.{other}" not in MODULES:
                yield {"name": f"{name}.{other}", "kind": "not in __all__"}
    for name, cls in HANDED_OUT.items():
        yield {"name": name, "kind": "object"}
        yield from members(name, cls)
    yield from members("aie.iron.jit", JitDesign)


MODULES = {m.name for m in pkgutil.walk_packages(aie.__path__, "aie.")}


def value_rows(name: str, value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, type):
        init = value.__dict__.get("__init__")
        yield callable_row(name, "class", init if hasattr(init, api.ROW) else None)
        yield from members(name, value)
    elif callable(value):
        yield callable_row(name, "function", value)
    else:
        yield {"name": name, "kind": "constant"}


def members(name: str, cls: type) -> Iterator[dict[str, Any]]:
    for member, value in vars(cls).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            yield {"name": f"{name}.{member}", "kind": "property"}
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if hasattr(function, api.ROW):
            yield callable_row(f"{name}.{member}", "method", function)


def callable_row(name: str, kind: str, function: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "kind": kind}
    if function is not None:
        given = [
            {"name": p.name, "kind": p.kind} | ({} if p.default is None else {"default": p.default})
            for p in api.parameters_of(function)
        ]
        if given:
            row["parameters"] = given
    return row


if __name__ == "__main__":
    print(json.dumps(list(rows())))
