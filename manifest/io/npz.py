"""The one reader and the one writer of `.npz` archives: no pickle, bounded memory, the same bytes for the same arrays.

An archive member `<name>.npy` is the array `<name>`: exactly one `.npy` is taken off, so that `a` and `a.npy` are two
arrays. Names are only names, never paths or keyword arguments. A member's size is known from the archive's directory
and is compared with the declared shape before it is read.
"""

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.io import npy

DEFAULT_MAX_BYTES: Final = 2 << 30
"""2 GiB of arrays from a person's file, unless the caller says otherwise."""
MAX_STORED_BYTES: Final = 64 << 30
MAX_DIRECTORY_BYTES: Final = 64 << 20
"""Archive directory read at most: about half a million members."""
MAX_NAME_BYTES: Final = 65535 - len(".npy")
_DEFLATE_LIMIT: Final = 1040
"""Deflate cannot expand by more than 1032 to 1; an archive that claims more lies about a size."""
_CHUNK: Final = 1 << 24
_BROKEN: Final = (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError, struct.error, ValueError)


def read_npz(path: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, NDArray[Any]]:
    """All arrays of a person's `.npz` file, by name, in the archive's order.

    Args:
        path: the file.
        max_bytes: the members' uncompressed sizes may sum to this.

    Returns:
        Arrays in C order and native byte order; bool, integer, float, complex or text types.

    Raises:
        RefusedError: missing, not an `.npz`, too large, a repeated name, or a member that is no plain array.
    """
    where = str(path)
    try:
        if not Path(path).is_file():
            raise _refused(where, "NPZ-MISSING", "no such file", expected="an .npz file")
        with Path(path).open("rb") as file:
            return dict(_members(file, where, max_bytes))
    except OSError as error:
        raise _refused(where, "NPZ-UNREADABLE", f"cannot be read ({error.strerror or error})") from error


def load_arrays(
    source: str | os.PathLike[str] | bytes, *, max_bytes: int = MAX_STORED_BYTES
) -> dict[str, NDArray[Any]]:
    """The arrays of an archive that `save_arrays` or `arrays_to_bytes` wrote; same checks as `read_npz`."""
    if isinstance(source, bytes):
        return dict(_members(io.BytesIO(source), "archive", max_bytes))
    return read_npz(source, max_bytes=max_bytes)


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The archive as bytes: members sorted by name, uncompressed, fixed times and flags.

    Raises:
        RefusedError: a name or a type that cannot be carried.
    """
    out = io.BytesIO()
    _write(out, arrays, "archive")
    return out.getvalue()


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the archive of `arrays_to_bytes` to exactly `path`, replacing it in one step.

    Raises:
        RefusedError: a name or a type that cannot be carried, or the file cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            _write(file, arrays, str(path))
        temporary.replace(target)
    except OSError as error:
        raise _refused(str(path), "NPZ-UNWRITABLE", f"cannot be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


write_npz = save_arrays


def _refused(where: str, code: str, what: str, *, expected: str = "", got: str = "", remedy: str = "") -> RefusedError:
    return RefusedError((Problem(code=code, where=where, what=what, expected=expected, got=got, remedy=remedy),))


# Reading


@contextmanager
def _archive_errors(where: str) -> Iterator[None]:
    try:
        yield
    except RefusedError:
        raise
    except _BROKEN as error:
        reason = " ".join(str(error).split())[:200]
        raise _refused(where, "NPZ-BROKEN", f"the archive is damaged or of an unknown kind ({reason})") from error


def _members(file: IO[bytes], where: str, max_bytes: int) -> Iterator[tuple[str, NDArray[Any]]]:
    with _archive_errors(where):
        _check_start(file, where)
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check_directory(infos, where, max_bytes, _size(file))
            for info in infos:
                yield info.orig_filename.removesuffix(".npy"), _read_member(archive, info, where)


def _size(file: IO[bytes]) -> int:
    return file.seek(0, os.SEEK_END)


def _check_start(file: IO[bytes], where: str) -> None:
    start = file.read(8)
    if start.startswith(npy.MAGIC):
        remedy = "numpy.savez(FILE.npz, **{input_name: array}) keeps arrays with their names"
        raise _refused(where, "NPZ-IS-NPY", "a single .npy array", expected="an .npz archive", remedy=remedy)
    if not start.startswith(b"PK"):
        remedy = "write it with numpy.savez"
        raise _refused(where, "NPZ-NOT-ZIP", "not an .npz archive", expected="a zip file of arrays", remedy=remedy)
    if (claimed := _directory_bytes(file)) > MAX_DIRECTORY_BYTES:
        expected = f"a directory of at most {MAX_DIRECTORY_BYTES} bytes"
        raise _refused(where, "NPZ-DIRECTORY", "too many members", expected=expected, got=str(claimed))


def _directory_bytes(file: IO[bytes]) -> int:
    """Size of the archive's directory as its end record claims it (0 where there is none: zipfile refuses it then)."""
    size = _size(file)
    file.seek(max(0, size - 65557 - 76))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        return 0
    claimed: int = struct.unpack_from("<I", tail, at + 12)[0]
    if at >= 76 and tail[at - 20 : at - 16] == b"PK\x06\x07" and tail[at - 76 : at - 72] == b"PK\x06\x06":
        claimed = struct.unpack_from("<Q", tail, at - 76 + 40)[0]
    return claimed


def _check_directory(infos: list[zipfile.ZipInfo], where: str, max_bytes: int, archive_bytes: int) -> None:
    """Names are unique arrays and sizes are believable and within `max_bytes`, all from the directory alone."""
    seen: set[str] = set()
    total = 0
    for info in infos:
        name = info.orig_filename
        at = f"{where}: member {name[:80]!r}"
        if not name.endswith(".npy"):
            raise _refused(at, "NPZ-MEMBER", "not an array", expected="a name that ends in .npy")
        if name in seen:
            raise _refused(at, "NPZ-REPEATED", "the name occurs twice")
        seen.add(name)
        stored = info.compress_type == zipfile.ZIP_STORED
        limit = info.compress_size if stored else info.compress_size * _DEFLATE_LIMIT + 64
        if info.compress_size > archive_bytes or info.file_size > limit or (stored and info.file_size != limit):
            raise _refused(at, "NPZ-SIZE", "its size cannot be true", got=f"{info.file_size} bytes")
        total += info.file_size
        if total > max_bytes:
            expected, remedy = f"at most {max_bytes} bytes", "give fewer samples"
            raise _refused(at, "NPZ-LARGE", "the arrays are too large", expected=expected, remedy=remedy)


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> NDArray[Any]:
    at = f"{where}: array {info.orig_filename.removesuffix('.npy')[:80]!r}"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _refused(at, "NPZ-BROKEN", f"unknown compression {info.compress_type}", expected="stored or deflated")
    try:
        with archive.open(info) as member:
            header, data = _header_and_data(member, info.file_size)
    except npy.NpyError as error:
        code = "NPZ-OBJECT" if "pickle" in str(error) else "NPZ-ARRAY"
        raise _refused(at, code, str(error), expected="an array of numbers, bools or text") from error
    return npy.to_array(header, data)


def _header_and_data(member: IO[bytes], size: int) -> tuple[npy.NpyHeader, bytearray]:
    start = member.read(12)
    offset, length = npy.header_length(start)
    start += member.read(max(0, offset + length - len(start)))
    header = npy.parse_header(start[offset : offset + length])
    npy.check_size(header, size - offset - length)
    data = bytearray(start[offset + length :])
    while chunk := member.read(_CHUNK):
        data += chunk
    npy.check_size(header, len(data))
    return header, data


# Writing


def _write(file: IO[bytes], arrays: Mapping[str, NDArray[Any]], where: str) -> None:
    problems = [p for name, array in arrays.items() if (p := _problem(name, array, where)) is not None]
    if problems:
        raise RefusedError(tuple(problems))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            array = npy.storable(np.asarray(arrays[name]))
            info = zipfile.ZipInfo("member", date_time=(1980, 1, 1, 0, 0, 0))
            info.filename = f"{name}.npy"
            info.create_system = 3
            info.external_attr = 0o644 << 16
            header = npy.header_bytes(array)
            info.file_size = len(header) + array.nbytes
            with archive.open(info, "w", force_zip64=info.file_size >= 1 << 31) as member:
                member.write(header)
                for chunk in _chunks(array):
                    member.write(chunk)


def _chunks(array: NDArray[Any]) -> Iterator[bytes]:
    flat = array.reshape(-1)
    step = max(1, _CHUNK // array.dtype.itemsize)
    for i in range(0, flat.size, step):
        yield flat[i : i + step].tobytes()


def _problem(name: str, array: NDArray[Any], where: str) -> Problem | None:
    at = f"{where}: array {name[:80]!r}"
    try:
        length = len(f"{name}".encode())
    except UnicodeEncodeError:
        return Problem(code="NPZ-NAME", where=at, what="the name is no valid Unicode text and cannot be carried")
    if "\0" in name:
        return Problem(code="NPZ-NAME", where=at, what="the name holds a NUL character and cannot be carried")
    if length > MAX_NAME_BYTES:
        expected, got = f"at most {MAX_NAME_BYTES} bytes", str(length)
        return Problem(
            code="NPZ-NAME", where=at, what="the name is too long for an archive", expected=expected, got=got
        )
    try:
        npy.storable(np.asarray(array))
    except npy.NpyError as error:
        code = "NPZ-OBJECT" if "pickle" in str(error) else "NPZ-ARRAY"
        return Problem(code=code, where=at, what=str(error))
    return None
