"""What the constant parameters of kernels hold, read from the emitted designs: which call passes which stored array."""

import ast
import io
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DESIGN: Final = "design.py"
MAX_BYTES: Final = 1 << 28


def arrays_of(files: Mapping[str, bytes], rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, list[Array]]]:
    """Arrays by symbol and parameter; what cannot be read is left out.

    Args:
        files: of the generated folder.
        rows: kernels of `generated.json`.
    """
    found: dict[str, dict[str, list[Array]]] = {}
    seen: set[tuple[str, str, str]] = set()
    for name in sorted(files):
        folder, _, last = name.rpartition("/")
        if last != DESIGN or "/steps/" in name:
            continue
        for symbol, number, path in _passed(files[name]):
            full = f"{folder}/{path}"
            parameters = rows.get(symbol, {}).get("parameters", ())
            if number >= len(parameters) or (symbol, parameters[number]["name"], full) in seen:
                continue
            seen.add((symbol, parameters[number]["name"], full))
            array = _array(files.get(full))
            if array is not None:
                found.setdefault(symbol, {}).setdefault(parameters[number]["name"], []).append(array)
    return found


def _passed(data: bytes) -> list[tuple[str, int, str]]:
    """(symbol, number of the argument, path of the array) of every call of a design file."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return []
    kernels: dict[str, str] = {}
    buffers: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            given = {k.arg: k.value for k in node.value.keywords}
            name, made = node.targets[0].id, _called(node.value)
            if made == "Kernel":
                kernels[name] = str(_literal(given.get("name")))
            elif made == "Buffer" and isinstance(value := given.get("initial_value"), ast.Call) and value.args:
                buffers[name] = str(_literal(value.args[0]))
    return [
        (kernels[_called(call)], number, buffers[argument.id])
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _called(call) in kernels
        for number, argument in enumerate(call.args)
        if isinstance(argument, ast.Name) and argument.id in buffers
    ]


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _literal(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else ""


def _array(data: bytes | None) -> Array | None:
    if data is None or len(data) > MAX_BYTES:
        return None
    try:
        return np.asarray(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))
    except (ValueError, EOFError, OSError):
        return None
