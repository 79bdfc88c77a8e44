"""Kernels in Python that a person gives for those of a design file.

Loading one runs the person's code in this process; a file inside a port is refused.
"""

import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path

from manifest.errors import Problem, RefusedError
from presim.iron.run import design_path
from presim.iron.traced import Function


def split_pairs(values: Sequence[str]) -> dict[str, str]:
    """`symbol=file` options by symbol.

    Raises:
        RefusedError: one is not of that form, or a symbol comes twice.
    """
    found: dict[str, str] = {}
    for value in values:
        symbol, equals, file = value.partition("=")
        if not equals or not symbol or not file or symbol in found:
            what = "a symbol comes twice" if symbol in found else "no option of this form"
            where = f"--kernel {value}"
            raise _refused(where, what, "SYMBOL=FILE.cc or SYMBOL=FILE.py:FUNCTION")
        found[symbol] = file
    return found


def load_twins(files: Mapping[str, str]) -> dict[str, Function]:
    """Functions by symbol.

    Args:
        files: `FILE.py` or `FILE.py:FUNCTION` by symbol; the function's name is the symbol's where none is given. It
            is called with a `KernelContext`, whose `scalars` are `s0`, `s1`, ..., and the arrays of the pointers.

    Raises:
        RefusedError: a file is absent, inside a port or fails, or has no such function.
    """
    modules: dict[Path, Mapping[str, object]] = {}
    found: dict[str, Function] = {}
    for symbol, text in files.items():
        name, _, function = text.partition(".py:")
        path = design_path(Path(f"{name}.py" if function else text))
        if path not in modules:
            modules[path] = _run(path)
        given = modules[path].get(function or symbol)
        if not callable(given):
            where = f"--kernel {symbol}={text}"
            raise _refused(where, f"there is no function {function or symbol!r} in it", "")
        found[symbol] = given
    return found


def _run(path: Path) -> Mapping[str, object]:
    try:
        return runpy.run_path(str(path))
    except Exception as error:
        # The person's code raises what it likes.
        raise _refused(str(path), f"fails: {type(error).__name__}: {error}".splitlines()[0], "") from error


def _refused(where: str, what: str, expected: str) -> RefusedError:
    return RefusedError((Problem(code="IRON-KERNEL", where=where, what=what, expected=expected),))
