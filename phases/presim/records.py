"""What probes and equivalences found, kept in the port as evidence: `evidence/probes/`, `evidence/equivalences/`."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical, sha256_hex
from phases.port import open_port, write_phase, writing
from phases.presim.mechanisms import Record
from phases.presim.source import Read
from presim.evidence import EquivalenceEvidence

OWNER: Final = "evidence"
"""Whose files they are in `state.json`: of no phase, so that a rerun of one leaves them."""

PROBES: Final = "evidence/probes/"
EQUIVALENCES: Final = "evidence/equivalences/"
SCHEMA_VERSION: Final = 1


def file_name(folder: str, name: str) -> str:
    """The file of a record: its name as far as a file can have it, and a hash that keeps names apart."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "record"
    return f"{folder}{plain}-{sha256_hex(name.encode())[:8]}.json"


def record(root: Path, folder: str, name: str, value: Mapping[str, Any]) -> str:
    """Put a record into a port; one of the same name is replaced.

    Args:
        root: the port.
        folder: `PROBES` or `EQUIVALENCES`.
        name: of the mechanism or decomposition.
        value: JSON values.

    Returns:
        its name in the port.

    Raises:
        RefusedError: no port there.
        UpstreamError: it is tampered or interrupted.
        LockedError: another run holds it.
    """
    open_port(root)
    with writing(root):
        port = open_port(root)
        files = {n: port.read(n) for n in port.state.owners.get(OWNER, ())}
        files[file_name(folder, name)] = canonical_json({"schema_version": SCHEMA_VERSION, "name": name, **value})
        write_phase(root, OWNER, files, {})
    return file_name(folder, name)


def record_files(read: Read, names: Iterable[str]) -> dict[str, bytes]:
    """All records of a port by file name."""
    return {name: read(name) for name in sorted(names) if name.startswith((PROBES, EQUIVALENCES))}


def probes_of(files: Mapping[str, bytes]) -> dict[str, Record]:
    """Probes by mechanism.

    Raises:
        UpstreamError: a record is not what this version writes.
    """
    found = {}
    for name, data in files.items():
        if name.startswith(PROBES):
            value = _value(name, data)
            found[str(value["name"])] = Record(
                mechanism=str(value["name"]),
                verdict=str(value["text"]),
                passed=value["passed"] is True,
                sha256=sha256_hex(data),
            )
    return found


def equivalences_of(files: Mapping[str, bytes]) -> tuple[EquivalenceEvidence, ...]:
    """Equivalences on record.

    Raises:
        UpstreamError: a record is not what this version writes.
    """
    found = []
    for name, data in files.items():
        if name.startswith(EQUIVALENCES):
            value = _value(name, data)
            found.append(
                EquivalenceEvidence(
                    name=str(value["name"]),
                    decomposition=str(value["decomposition"]),
                    elements=int(value["elements"]),
                    mismatches=int(value["mismatches"]),
                    largest_difference=float(value["largest_difference"]),
                    allowed=float(value["allowed"]),
                )
            )
    return tuple(found)


def _value(name: str, data: bytes) -> dict[str, Any]:
    value = parse_canonical(data, name)
    figures = {"name", "decomposition", "elements", "mismatches", "largest_difference", "allowed"}
    wanted = {"name", "text", "passed"} if name.startswith(PROBES) else figures
    if not isinstance(value, dict) or value.get("schema_version") != SCHEMA_VERSION or not wanted <= set(value):
        msg = f"{name}: tampered: expected a record of schema_version {SCHEMA_VERSION}"
        raise UpstreamError(msg)
    return value
