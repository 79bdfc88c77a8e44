"""JSON files that a person writes: read with bounds, one problem per fault."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from manifest.errors import Problem, RefusedError

MAX_BYTES: Final = 16 << 20


def read_object(path: Path, code: str) -> dict[str, Any]:
    """A JSON object from a file of a person.

    Args:
        path: the file.
        code: of the problem.

    Raises:
        RefusedError: no regular file, too large, no JSON, no object, or a key that stands twice.
    """
    try:
        if not path.is_file():
            raise _refused(path, code, "is no file" if path.exists() else "there is no such file")
        if path.stat().st_size > MAX_BYTES:
            raise _refused(path, code, "too large", f"at most {MAX_BYTES} bytes")
        value = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except OSError as error:
        raise _refused(path, code, f"cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise _refused(path, code, f"is no JSON: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(value, dict):
        raise _refused(path, code, "is no JSON object", got=type(value).__name__)
    return value


def check_keys(
    value: Mapping[str, Any], required: Iterable[str], optional: Iterable[str], where: str, code: str
) -> list[Problem]:
    """Missing and unknown keys."""
    needed, allowed = tuple(required), {*required, *optional}
    problems = [Problem(code=code, where=where, what=f"key {k!r} is missing") for k in needed if k not in value]
    problems += [
        Problem(code=code, where=where, what=f"no such key: {k!r}", expected=", ".join(sorted(allowed)))
        for k in value
        if k not in allowed
    ]
    return problems


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            msg = f"key {key!r} stands twice in one object"
            raise ValueError(msg)
        found[key] = value
    return found


def _refused(path: Path, code: str, what: str, expected: str = "", got: str = "") -> RefusedError:
    return RefusedError((Problem(code=code, where=str(path), what=what, expected=expected, got=got),))
