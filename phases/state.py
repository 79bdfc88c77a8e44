"""Names and sealed JSON of a port: `state.json` (what was committed last) and the seal that the journal shares.

Why a seal: `state.json` holds the hash of every other file, so that nothing holds its own. A sealed file is
canonical JSON with `self_sha256` (of itself with that field empty): a changed byte breaks the form, the hash or
the hash's own text, so each one is noticed.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical, sha256_hex

STATE: Final = "state.json"
JOURNAL: Final = "journal.json"
PORT_TOML: Final = "port.toml"
WAIVERS_TOML: Final = "waivers.toml"
KERNELS: Final = "kernels/"
OWN_NAMES: Final = frozenset(
    [
        STATE, JOURNAL, PORT_TOML, WAIVERS_TOML, "kernels", "port.json", "manifest.json", "tensors.npz",
        "model.qdq.onnx", "data", "evidence", "gates", "options", "design.json", "design-rules.json", "regress",
        "generated", "reports", "optimized",
    ]
)  # fmt: skip
"""Names at the top of a port that mean something."""
STATE_SCHEMA_VERSION: Final = 1
CHUNK_BYTES: Final = 1 << 20
MAX_SEALED_BYTES: Final = 64 << 20
"""`state.json` and the journal are read as a whole; a larger one is none of ours."""


def is_person(name: str) -> bool:
    """Whether a file of the port is the person's own: changed means STALE, not tampered."""
    return name in (PORT_TOML, WAIVERS_TOML) or name.startswith(KERNELS)


def is_taken(name: str) -> bool:
    """Whether a name in a port belongs to it or to the person, also where no file of that name is there yet."""
    return name.split("/", 1)[0] in OWN_NAMES


def check_name(name: str) -> str:
    """Return `name` if it is a plain relative path (`gates/baseline.json`).

    Raises:
        ValueError: absolute, empty, with `.` or `..`, a backslash or a control character, or a name that the
            commit itself uses.
    """
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or any(p in ("", ".", "..") for p in parts):
        msg = f"name in a port: expected a plain relative path, got {name!r}"
        raise ValueError(msg)
    if name in (STATE, JOURNAL) or parts[-1].endswith(".new"):
        msg = f"name in a port: {name!r} is reserved"
        raise ValueError(msg)
    return name


def seal(value: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `value` with `self_sha256` filled in."""
    digest = sha256_hex(canonical_json({**value, "self_sha256": ""}))
    return canonical_json({**value, "self_sha256": digest})


def unseal(data: bytes, where: str) -> dict[str, Any]:
    """The value in a sealed file, without its seal.

    Raises:
        UpstreamError: any byte is not as `seal` wrote it.
    """
    value = parse_canonical(data, where)
    if not isinstance(value, dict) or not isinstance(value.get("self_sha256"), str):
        msg = f"{where}: tampered: expected an object with self_sha256"
        raise UpstreamError(msg)
    digest = value.pop("self_sha256")
    if seal(value) != data:
        msg = f"{where}: tampered: its bytes do not have the sha256 that it records ({digest[:12]}...)"
        raise UpstreamError(msg)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the last commit left.

    Attributes:
        files: name -> sha256 of every file of the port but `state.json`; the person's own as they were read.
        owners: phase -> names that its last commit wrote or read; a rerun of the phase replaces exactly these.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The bytes of `state.json`."""
        owners = {phase: sorted(names) for phase, names in self.owners.items()}
        return seal({"schema_version": STATE_SCHEMA_VERSION, "files": dict(self.files), "owners": owners})

    @classmethod
    def from_bytes(cls, data: bytes) -> "State":
        """Read `state.json`.

        Raises:
            UpstreamError: a byte was changed, or another version of the tool wrote it.
        """
        value = unseal(data, STATE)
        if value.get("schema_version") != STATE_SCHEMA_VERSION:
            msg = f"{STATE}: schema_version: expected {STATE_SCHEMA_VERSION}, got {value.get('schema_version')!r}"
            raise UpstreamError(msg)
        try:
            files = {check_name(k): _sha(v) for k, v in value["files"].items()}
            owners = {str(k): tuple(check_name(n) for n in v) for k, v in value["owners"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"{STATE}: tampered: {error}"
            raise UpstreamError(msg) from error
        return cls(files=files, owners=owners)


def _sha(value: object) -> str:
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        msg = f"expected a sha256, got {value!r}"
        raise ValueError(msg)
    return value


class UnsafePathError(Exception):
    """A path that is no regular file reached through real folders; the text says why."""


def walk_to(root: Path, name: str) -> Path:
    """The path of a file of the port, after a look at every folder on the way.

    Raises:
        UnsafePathError: a symbolic link or something that is no folder stands on the way.
    """
    path = root
    parts = PurePosixPath(name).parts
    for part in parts[:-1]:
        path = path / part
        mode = _mode(path)
        if mode is not None and stat.S_ISLNK(mode):
            msg = f"{path.relative_to(root).as_posix()}/ is a symbolic link"
            raise UnsafePathError(msg)
        if mode is not None and not stat.S_ISDIR(mode):
            msg = f"{path.relative_to(root).as_posix()} is not a folder"
            raise UnsafePathError(msg)
    return path / parts[-1]


def sha256_of(root: Path, name: str) -> str | None:
    """The sha256 of a file of the port, None where there is none; reads in pieces.

    Raises:
        UnsafePathError: a link, a device, a folder, or a file that cannot be read stands there.
    """
    path = walk_to(root, name)
    mode = _mode(path)
    if mode is None:
        return None
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
        msg = f"{name} is {kind}"
        raise UnsafePathError(msg)
    try:
        return sha256_file(path)
    except OSError as error:
        msg = f"{name} cannot be read ({error.strerror})"
        raise UnsafePathError(msg) from error


def sha256_file(path: Path) -> str:
    """The sha256 of any regular file, read in pieces; never follows a link at `path` that appeared meanwhile."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _mode(path: Path) -> int | None:
    """The mode of what stands at `path` (a link itself, not its target), None where nothing does."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"{path.name[:100]} cannot be looked at ({error.strerror})"
        raise UnsafePathError(msg) from error


def read_small(path: Path) -> bytes | None:
    """The content of a small file of ours; None where there is none, a link, no regular file or too large a one."""
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_SEALED_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None
