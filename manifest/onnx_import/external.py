"""External tensor data: read from regular files inside the model's folder, and from nowhere else.

Why not onnx's own loader: the location comes from the file. Each path component is opened relative to the
descriptor of the one above it and without following links, so there is no moment at which a path could be swapped,
and nothing is opened before `stat` has said that it is a regular file with one name.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx

from manifest.errors import Problem
from manifest.onnx_import.validate_tensors import header_problem, payload_bytes, tensors
from manifest.onnx_import.validate_text import quoted

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_DIGITS: Final = 19


class _BadExternalError(Exception):
    """(what, expected, got) of one tensor's external data."""

    def __init__(self, what: str, expected: str, got: str) -> None:
        super().__init__(what)
        self.what, self.expected, self.got = what, expected, got


def _bad(*, what: str, expected: str = "", got: str = "") -> _BadExternalError:
    return _BadExternalError(what, expected, got)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """Where a tensor's bytes are; `length` None = what the dims ask for."""

    location: str
    offset: int
    length: int | None


def embed(model: onnx.ModelProto, folder: Path | None, *, max_bytes: int) -> list[Problem]:
    """Put the external data of `model` into its tensors' `raw_data`, in place.

    Args:
        model: parsed model; tensors in subgraphs and functions are left alone (both are refused elsewhere).
        folder: the model's folder, or None for a model that came as bytes and has none.
        max_bytes: limit for all external data together.

    Returns:
        One problem per tensor that could not be read; such a tensor stays external.
    """
    problems: list[Problem] = []
    left = max_bytes
    for label, tensor in tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL or header_problem(label, tensor) is not None:
            continue
        try:
            payload = _payload(tensor, folder, left)
        except _BadExternalError as bad:
            problems.append(_problem(label, bad))
            continue
        left -= len(payload)
        tensor.raw_data = payload
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    return problems


def external_files(path: Path) -> tuple[Path, ...]:
    """Files that hold external data of a model, in the order of use; entries that the importer refuses are left out."""
    graph = onnx.ModelProto.FromString(path.read_bytes()).graph
    found: dict[Path, None] = {}
    for _, tensor in tensors(graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            with suppress(_BadExternalError):
                found[path.parent.joinpath(*_components(_reference(tensor).location))] = None
    return tuple(found)


def _problem(label: str, bad: _BadExternalError) -> Problem:
    return Problem(
        code="ONNX-EXTERNAL",
        where=label,
        what=f"external data {bad.what}",
        expected=bad.expected,
        got=bad.got,
        remedy="put the data file itself (no link) beside the model, or save the model with the data inside",
    )


def _payload(tensor: onnx.TensorProto, folder: Path | None, left: int) -> bytes:
    """The bytes of one external tensor, exactly as many as its dims ask for."""
    reference = _reference(tensor)
    want = payload_bytes(tensor)
    if reference.length is not None and reference.length != want:
        raise _bad(
            what="length does not fit the tensor's dims", expected=f"{want} bytes", got=f"{reference.length} bytes"
        )
    if want > left:
        raise _bad(what="is too large together with the rest", expected=f"at most {left} bytes", got=f"{want} bytes")
    if folder is None:
        raise _bad(
            what="needs the model's folder", expected="a model with its data inside", got=quoted(reference.location)
        )
    descriptor = _open(folder, _components(reference.location), reference.location)
    try:
        return _read(descriptor, reference, want)
    finally:
        os.close(descriptor)


def _reference(tensor: onnx.TensorProto) -> _Reference:
    """Location, offset and length out of the key/value list; unknown keys are ignored, repeated ones refused."""
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if not isinstance(entry.key, str) or not isinstance(entry.value, str):
            raise _bad(what="entry is not valid UTF-8")
        if entry.key in entries:
            raise _bad(what="entry is given twice", got=quoted(entry.key))
        entries[entry.key] = entry.value
    if "location" not in entries:
        raise _bad(what="has no location")
    offset = _number("offset", entries.get("offset", "0"))
    length = _number("length", entries["length"]) if "length" in entries else None
    return _Reference(location=entries["location"], offset=offset, length=length)


def _number(key: str, text: str) -> int:
    """A non-negative decimal integer."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise _bad(what=f"{key} is not a number of bytes", expected="decimal digits", got=quoted(text))
    return int(text)


def _components(location: str) -> list[str]:
    """Path components below the model's folder."""
    parts = location.split("/")
    if not location or "\0" in location or location.startswith("/") or ".." in parts or "\\" in location:
        raise _bad(what="leaves the model's folder", expected="a relative path without '..'", got=quoted(location))
    kept = [part for part in parts if part not in ("", ".")]
    if not kept or parts[-1] in ("", "."):
        raise _bad(what="location is no file", expected="a file in the model's folder", got=quoted(location))
    return kept


def _open(folder: Path, components: list[str], location: str) -> int:
    """Descriptor of a regular file with one name, reached without following any link below `folder`."""
    try:
        current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _bad(what="folder cannot be opened", got=_reason(error)) from error
    try:
        for part in components[:-1]:
            below = os.open(part, _DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        _check_file(os.stat(components[-1], dir_fd=current, follow_symlinks=False), location)
        descriptor = os.open(components[-1], _FILE, dir_fd=current)
    except OSError as error:
        raise _bad(what=f"file {quoted(location)} cannot be opened", got=_reason(error)) from error
    finally:
        os.close(current)
    try:
        _check_file(os.fstat(descriptor), location)
    except _BadExternalError:
        os.close(descriptor)
        raise
    return descriptor


def _check_file(status: os.stat_result, location: str) -> None:
    """A regular file that has no second name (a hard link may belong to a file elsewhere)."""
    if stat.S_ISLNK(status.st_mode):
        raise _bad(what="is a symbolic link", expected="a regular file in the model's folder", got=quoted(location))
    if not stat.S_ISREG(status.st_mode):
        raise _bad(what="is not a regular file", expected="a regular file in the model's folder", got=quoted(location))
    if status.st_nlink != 1:
        raise _bad(
            what="has more than one name (hard link)",
            expected="a file of its own in the model's folder",
            got=quoted(location),
        )


def _read(descriptor: int, reference: _Reference, want: int) -> bytes:
    """`want` bytes from `offset`; the size is checked before the bytes are asked for."""
    size = os.fstat(descriptor).st_size
    if reference.offset + want > size:
        raise _bad(
            what=f"file {quoted(reference.location)} is too short",
            expected=f"{want} bytes from offset {reference.offset}",
            got=f"{size} bytes in the file",
        )
    chunks: list[bytes] = []
    position = reference.offset
    while position < reference.offset + want:
        chunk = os.pread(descriptor, min(reference.offset + want - position, 1 << 30), position)
        if not chunk:
            raise _bad(what=f"file {quoted(reference.location)} shrank while it was read")
        chunks.append(chunk)
        position += len(chunk)
    return b"".join(chunks)


def _reason(error: OSError) -> str:
    """The system's reason; a link in the way is named as one."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a symbolic link or no folder on the way"
    return error.strerror or type(error).__name__
