"""Recordings of jobs: what a board showed, with enough to judge where it comes from.

One folder for each job, named as the folder of its design file; in it `recording.json` and one `.npy` for each drained
tensor and inference. Fields of `recording.json`, all required:

- `schema_version`: 1
- `generated_sha256`, `manifest_sha256`, `design_sha256`: of `generated.json` and of what it was made from
- `device_target`: catalogue name that the files are for
- `device_reported`: what the driver says of the device, word for word
- `device_architecture`: `aie_architecture_version` of the platform report, "" where the driver does not have it
- `status`: state that the driver gave for the last run, word for word
- `repeats`, `repeats_equal`: times each inference was run, and whether every time gave the same bytes
- `artifacts`: name -> sha256 of what was executed (`final.xclbin`, `insts.bin`)
- `sources`: generated file -> sha256, as they were when it was built
- `inputs`: list of {`inference`, `tensor`, `sha256` of the bytes that the host buffer was filled with}
- `outputs`: list of {`inference`, `tensor`, `file`, `sha256` of the file}
"""

import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.io import canonical_json, sha256_hex

Array = NDArray[Any]

FILE: Final = "recording.json"
VERSION: Final = 1
MAX_RECORDING_BYTES: Final = 16 << 20
MAX_ARRAY_BYTES: Final = 1 << 30
_TEXTS: Final = (
    "generated_sha256",
    "manifest_sha256",
    "design_sha256",
    "device_target",
    "device_reported",
    "device_architecture",
    "status",
)


class RecordingError(Exception):
    """A recording that is not in its form, or whose files are not its own; its text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording, read; fields as in the module's text."""

    generated_sha256: str
    manifest_sha256: str
    design_sha256: str
    device_target: str
    device_reported: str
    device_architecture: str
    status: str
    repeats: int
    repeats_equal: bool
    artifacts: Mapping[str, str]
    sources: Mapping[str, str]
    inputs: Mapping[tuple[int, str], str]
    outputs: Sequence[Mapping[str, Array]] = field(default=(), compare=False)


def write_recording(folder: Path, recording: Recording) -> None:
    """Write a recording; the JSON last, so that it is there only when all of it is."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for inference, named in enumerate(recording.outputs):
        for number, (name, array) in enumerate(sorted(named.items())):
            file = f"{inference:03}_{number:03}.npy"
            with (folder / file).open("wb") as out:
                np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
            digest = sha256_hex((folder / file).read_bytes())
            rows.append({"inference": inference, "tensor": name, "file": file, "sha256": digest})
    value = {
        "schema_version": VERSION,
        **{name: getattr(recording, name) for name in _TEXTS},
        "repeats": recording.repeats,
        "repeats_equal": recording.repeats_equal,
        "artifacts": dict(recording.artifacts),
        "sources": dict(recording.sources),
        "inputs": [{"inference": i, "tensor": n, "sha256": h} for (i, n), h in sorted(recording.inputs.items())],
        "outputs": rows,
    }
    (folder / FILE).write_bytes(canonical_json(value))


def read_recording(folder: Path) -> Recording | None:
    """Read a recording; None where there is none.

    Raises:
        RecordingError: it is there, and not as it was written.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_RECORDING_BYTES:
        msg = f"{FILE}: larger than {MAX_RECORDING_BYTES} bytes"
        raise RecordingError(msg)
    try:
        return _recording(folder, json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        msg = f"{FILE}: not in the form of a recording ({type(error).__name__}: {error})"
        raise RecordingError(msg) from error


def input_sha256(array: Array) -> str:
    """Of the bytes of a host tensor in the order in which the buffer holds them."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _recording(folder: Path, value: Any) -> Recording:
    if value["schema_version"] != VERSION:
        msg = f"schema_version {VERSION} expected, got {value['schema_version']!r}"
        raise ValueError(msg)
    for name in _TEXTS:
        if not isinstance(value[name], str):
            msg = f"{name}: expected words"
            raise TypeError(msg)
    if type(value["repeats"]) is not int or type(value["repeats_equal"]) is not bool:
        msg = "repeats: expected a number and a truth"
        raise TypeError(msg)
    return Recording(
        **{name: value[name] for name in _TEXTS},
        repeats=value["repeats"],
        repeats_equal=value["repeats_equal"],
        artifacts=_words(value["artifacts"]),
        sources=_words(value["sources"]),
        inputs={(int(r["inference"]), str(r["tensor"])): str(r["sha256"]) for r in value["inputs"]},
        outputs=_outputs(folder, value["outputs"]),
    )


def _array(file: str, data: bytes) -> Array:
    """A plain array that the file really holds; a header that promises more memory than it has is refused first."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.kind not in "iuf" or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        msg = f"{file}: expected numbers, as many as its header says; got {dtype} {list(shape)}"
        raise ValueError(msg)
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _words(value: Mapping[str, Any]) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()}


def _outputs(folder: Path, rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Array], ...]:
    found: dict[int, dict[str, Array]] = {}
    for row in rows:
        name, file = str(row["tensor"]), str(row["file"])
        inference = int(row["inference"])
        if PurePosixPath(file).name != file or not file.endswith(".npy"):
            msg = f"file {file!r}: expected a .npy beside the recording"
            raise ValueError(msg)
        path = folder / file
        if not path.is_file() or path.stat().st_size > MAX_ARRAY_BYTES:
            msg = f"{file}: absent or too large"
            raise RecordingError(msg)
        data = path.read_bytes()
        if sha256_hex(data) != row["sha256"]:
            msg = f"{file}: not the file that was recorded (its sha256 differs)"
            raise RecordingError(msg)
        found.setdefault(inference, {})[name] = _array(file, data)
    if sorted(found) != list(range(len(found))):
        msg = f"outputs of inferences {sorted(found)}: expected 0, 1, ... without a gap"
        raise ValueError(msg)
    return tuple(found[i] for i in range(len(found)))
