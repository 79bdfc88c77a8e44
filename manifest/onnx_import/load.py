"""Read an ONNX file that may be damaged or hostile into a self-contained, sorted model.

What comes out has its external data inside, producers before users, payloads that fit their dims and valid UTF-8 in
every name; whether the graph means anything is the business of `validate`.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from manifest.errors import Problem, RefusedError
from manifest.model import Note
from manifest.onnx_import.external import embed
from manifest.onnx_import.order import sort_nodes, topological_order
from manifest.onnx_import.validate import validate
from manifest.onnx_import.validate_names import encoding_problems
from manifest.onnx_import.validate_tensors import tensor_problems
from manifest.onnx_import.validate_text import capped
from manifest.onnx_import.validate_wire import too_many_records

MAX_MODEL_BYTES: Final = 2**31 - 1
"""Largest file, and largest model with its external data inside (the limit of protobuf)."""

COUNT_ABOVE_BYTES: Final = 4 * 2**20
"""Files above this size have their records counted before they are parsed."""

_MICROSOFT: Final = "com.microsoft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model and what had to be put right to read it."""

    model: onnx.ModelProto
    notes: tuple[Note, ...]


def load_model(path: Path, *, max_bytes: int = MAX_MODEL_BYTES) -> onnx.ModelProto:
    """The model of `read_model` without its notes."""
    return read_model(path, max_bytes=max_bytes).model


def load_bytes(data: bytes, *, max_bytes: int = MAX_MODEL_BYTES) -> onnx.ModelProto:
    """The model of `read_bytes` without its notes."""
    return read_bytes(data, max_bytes=max_bytes).model


def read_model(path: Path, *, max_bytes: int = MAX_MODEL_BYTES) -> Loaded:
    """Read a model file and the external data beside it.

    Args:
        path: an ONNX file; a link to one is followed, since the person named it.
        max_bytes: limit for the file, and for file and external data together.

    Raises:
        RefusedError: the file is missing, no regular file, too large, no ONNX model, or its tensors or external
            data do not hold what they claim; then with every other problem of the model.
    """
    return read_bytes(_file_bytes(path, max_bytes), where=str(path), folder=path.parent, max_bytes=max_bytes)


def read_bytes(
    data: bytes, *, where: str = "model", folder: Path | None = None, max_bytes: int = MAX_MODEL_BYTES
) -> Loaded:
    """As `read_model`, from memory.

    Args:
        data: a serialised `ModelProto`.
        where: what messages about the whole file call it.
        folder: where external data may be read, or None: then there may be none.
        max_bytes: limit for `data` and external data together.
    """
    if len(data) > max_bytes:
        raise RefusedError((_too_large(where, len(data), max_bytes),))
    model = _parse(data, where)
    notes = _normalise(model)
    problems = encoding_problems(model)
    if problems:
        raise RefusedError(tuple(capped(problems)))
    problems = embed(model, folder, max_bytes=max_bytes - len(data))
    problems += tensor_problems(model.graph)
    _, cycle = topological_order(model.graph.node)
    if problems or cycle:
        raise RefusedError(tuple(capped([*problems, *_others(model, problems)])))
    if sort_nodes(model.graph):
        text = "nodes stood behind their users and were sorted"
        notes.append(Note(code="ONNX-NODES-SORTED", where="graph", text=text))
    return Loaded(model=model, notes=tuple(notes))


def _file_bytes(path: Path, max_bytes: int) -> bytes:
    """Content of a regular file of at most `max_bytes` bytes."""
    where = str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise RefusedError((Problem(code="FILE-KIND", where=where, what="is not a model file", got=kind),))
        if status.st_size > max_bytes:
            raise RefusedError((_too_large(where, status.st_size, max_bytes),))
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            return file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
        problem = Problem(code="FILE-UNREADABLE", where=where, what="cannot be read", got=reason)
        raise RefusedError((problem,)) from error


def _too_large(where: str, size: int, limit: int) -> Problem:
    return Problem(
        code="FILE-SIZE", where=where, what="is too large", expected=f"at most {limit} bytes", got=f"{size} bytes"
    )


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    """The protobuf message; a file that is none, or none with a graph, is refused."""
    remedy = "export or copy the file again"
    if len(data) > COUNT_ABOVE_BYTES and too_many_records(data):
        what = "does not parse as an ONNX model of sane structure: too many records"
        raise RefusedError((Problem(code="ONNX-PARSE", where=where, what=what, remedy=remedy),))
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        what = "does not parse as an ONNX model (damaged, truncated or another format)"
        problem = Problem(code="ONNX-PARSE", where=where, what=what, got=f"{len(data)} bytes", remedy=remedy)
        raise RefusedError((problem,)) from error
    if not model.HasField("graph"):
        what = "does not parse as an ONNX model: there is no graph in it"
        problem = Problem(code="ONNX-PARSE", where=where, what=what, got=f"{len(data)} bytes", remedy=remedy)
        raise RefusedError((problem,))
    return model


def _normalise(model: onnx.ModelProto) -> list[Note]:
    """Settle in place what onnxruntime takes in its stride: domain spelling, parts that inference ignores.

    `ai.onnx` is the default domain; `com.microsoft` has one version and may go without import; a dim of -1 is an
    open one; training information and functions that no node calls mean nothing for inference.
    """
    notes: list[Note] = []
    for entry in (*model.opset_import, *model.graph.node):
        if entry.domain == "ai.onnx":
            entry.domain = ""
    if any(node.domain == _MICROSOFT for node in model.graph.node) and not _imports(model, _MICROSOFT):
        model.opset_import.append(onnx.OperatorSetIdProto(domain=_MICROSOFT, version=1))
        notes.append(Note(code="ONNX-IMPORT-ADDED", where="model", text=f"{_MICROSOFT} is used without opset import"))
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.ClearField("dim_value")
    if model.training_info:
        model.ClearField("training_info")
        text = "training information is not part of inference and was left out"
        notes.append(Note(code="ONNX-TRAINING-DROPPED", where="model", text=text))
    called = {(node.domain, node.op_type) for node in model.graph.node}
    if model.functions and not any((function.domain, function.name) in called for function in model.functions):
        model.ClearField("functions")
        notes.append(Note(code="ONNX-FUNCTIONS-DROPPED", where="model", text="no node calls the model's functions"))
    read = {name for node in model.graph.node for name in node.input}
    if model.graph.sparse_initializer and not any(s.values.name in read for s in model.graph.sparse_initializer):
        model.graph.ClearField("sparse_initializer")
        notes.append(Note(code="ONNX-SPARSE-DROPPED", where="model", text="no node reads the sparse initializers"))
    return notes


def _imports(model: onnx.ModelProto, domain: str) -> bool:
    return any(entry.domain == domain for entry in model.opset_import)


def _others(model: onnx.ModelProto, known: list[Problem]) -> list[Problem]:
    """What `validate` has to say beside `known`, so that one run names everything."""
    return [problem for problem in validate(model) if problem not in known]
