"""`port.json`: what phase 1 was given: tool version, model and data by relative path and sha256, device, options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical
from phases.state import sha256_file

PORT_JSON: Final = "port.json"
PORT_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of the person outside the port.

    Attributes:
        path: relative to the port, `/` between the parts.
        sha256: of its bytes when phase 1 read it.
    """

    path: str
    sha256: str

    @classmethod
    def of(cls, file: Path, *, port: Path, sha256: str | None = None) -> "Source":
        """The record of `file` for a port at `port`; hashes it unless the hash of what was read is given."""
        relative = os.path.relpath(file.resolve(), port.resolve())
        return cls(path=Path(relative).as_posix(), sha256=sha256 or sha256_file(file.resolve()))

    def locate(self, port: Path) -> Path:
        """Where the file is expected for a port at `port`."""
        return Path(os.path.normpath(port.resolve() / self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class PortInfo:
    """Content of `port.json`.

    Attributes:
        tool_version: version that wrote it.
        model: the model file.
        external: files of the model's external data.
        data: the real data, None where none was given.
        device: the device that the port is for.
        options: what the command line asked for, as given (None, [] or {} = not given); a rerun takes these up.
    """

    tool_version: str
    model: Source
    device: str
    data: Source | None = None
    external: tuple[Source, ...] = ()
    options: Mapping[str, Any]

    @property
    def sources(self) -> tuple[tuple[str, Source], ...]:
        """(role, file) of everything outside the port."""
        data = (("data", self.data),) if self.data is not None else ()
        return (("model", self.model), *(("model data", s) for s in self.external), *data)

    def to_bytes(self) -> bytes:
        """The bytes of `port.json`."""
        return canonical_json(
            {
                "schema_version": PORT_SCHEMA_VERSION,
                "tool_version": self.tool_version,
                "model": _source(self.model),
                "external": [_source(s) for s in self.external],
                "data": None if self.data is None else _source(self.data),
                "device": self.device,
                "options": dict(self.options),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "PortInfo":
        """Read `port.json`.

        Raises:
            UpstreamError: not canonical, or not a record of this version.
        """
        value = parse_canonical(data, PORT_JSON)
        if not isinstance(value, dict) or value.get("schema_version") != PORT_SCHEMA_VERSION:
            msg = f"{PORT_JSON}: tampered: expected an object of schema_version {PORT_SCHEMA_VERSION}"
            raise UpstreamError(msg)
        try:
            return cls(
                tool_version=str(value["tool_version"]),
                model=Source(**value["model"]),
                external=tuple(Source(**s) for s in value["external"]),
                data=None if value["data"] is None else Source(**value["data"]),
                device=str(value["device"]),
                options=dict(value["options"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{PORT_JSON}: tampered: {error}"
            raise UpstreamError(msg) from error


def _source(source: Source) -> dict[str, str]:
    return {"path": source.path, "sha256": source.sha256}
