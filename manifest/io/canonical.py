"""Canonical JSON: one byte sequence per value, so that a file can be compared and hashed by its bytes."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from manifest.errors import UpstreamError

SCHEMAS: Final = Path(__file__).resolve().parent.parent / "schema"
MAX_ERRORS: Final = 50
"""Schema errors listed at most: a file with more is wrong as a whole."""


def canonical_json(value: object) -> bytes:
    """The canonical form of a JSON value: sorted keys, indent 1, ASCII, a newline at the end.

    Args:
        value: dict, list, tuple, str, int, float, bool or None, nested; dict keys are str.

    Raises:
        ValueError: NaN or infinity, which JSON cannot hold.
        TypeError: a value of another type.
    """
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def is_canonical(data: bytes) -> bool:
    """Whether `data` is JSON and exactly its own canonical form (a repeated key or a NaN is not)."""
    try:
        return canonical_json(json.loads(data)) == data
    except (ValueError, RecursionError):
        return False


def parse_canonical(data: bytes, where: str) -> Any:
    """The JSON value in `data`.

    Args:
        data: the bytes of a file that only the tool writes.
        where: name of the file, for the message.

    Raises:
        UpstreamError: the bytes are not the canonical form of their own value.
    """
    try:
        value = json.loads(data)
        expected = canonical_json(value)
    except (ValueError, RecursionError) as error:
        msg = f"{where}: tampered: expected canonical JSON, got {_one_line(str(error))}"
        raise UpstreamError(msg) from error
    if expected != data:
        pairs = enumerate(zip(expected, data, strict=False))
        same = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(data)))
        msg = f"{where}: tampered: its bytes are not its own canonical form (first difference at byte {same})"
        raise UpstreamError(msg)
    return value


def sha256_hex(data: bytes) -> str:
    """SHA-256 of `data`, 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def schema_errors(value: object, schema: str) -> tuple[str, ...]:
    """What is wrong with `value` by the JSON Schema `schema` (`manifest-1`, `gate-1`), one line each, at most 50."""
    found = []
    for error in _validator(schema).iter_errors(value):
        path = "/".join(str(p) for p in error.absolute_path) or "(top)"
        found.append(f"{path}: {_one_line(error.message)}")
        if len(found) == MAX_ERRORS:
            break
    return tuple(sorted(found))


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    rules = json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(rules)
    return Draft202012Validator(rules)


def _one_line(text: str, limit: int = 200) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 20]} ... ({len(flat)} characters)"
