"""Payload of tensors against their dimensions, before anything is allocated."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Final

import numpy as np
import onnx

from manifest.errors import Problem
from manifest.onnx_import.validate_text import node_label, quoted, type_name

MAX_ELEMENTS: Final = 2**31
"""Elements of one tensor, constant or activation."""

MAX_RANK: Final = 32

_T: Final = onnx.TensorProto

BITS: Final[dict[int, int]] = {
    _T.FLOAT: 32,
    _T.UINT8: 8,
    _T.INT8: 8,
    _T.UINT16: 16,
    _T.INT16: 16,
    _T.INT32: 32,
    _T.INT64: 64,
    _T.BOOL: 8,
    _T.FLOAT16: 16,
    _T.DOUBLE: 64,
    _T.UINT32: 32,
    _T.UINT64: 64,
    _T.COMPLEX64: 64,
    _T.COMPLEX128: 128,
    _T.BFLOAT16: 16,
    _T.FLOAT8E4M3FN: 8,
    _T.FLOAT8E4M3FNUZ: 8,
    _T.FLOAT8E5M2: 8,
    _T.FLOAT8E5M2FNUZ: 8,
    _T.UINT4: 4,
    _T.INT4: 4,
    **{number: bits for number, bits in ((23, 4), (24, 8), (25, 2), (26, 2)) if number in _T.DataType.values()},
}
"""Element type -> bits of one element in `raw_data`; the last four are younger than the oldest onnx supported."""

_FIELD_OF: Final[dict[int, str]] = {
    _T.FLOAT: "float_data",
    _T.COMPLEX64: "float_data",
    _T.DOUBLE: "double_data",
    _T.COMPLEX128: "double_data",
    _T.INT64: "int64_data",
    _T.UINT32: "uint64_data",
    _T.UINT64: "uint64_data",
}
_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_INT_RANGE: Final[dict[int, tuple[int, int]]] = {
    _T.UINT8: (0, 255),
    _T.INT8: (-128, 127),
    _T.UINT16: (0, 65535),
    _T.INT16: (-32768, 32767),
    _T.BOOL: (0, 1),
}


def element_count(dims: Iterable[int]) -> int:
    """Product of `dims`; `MAX_ELEMENTS + 1` as soon as it is above `MAX_ELEMENTS` (0 where a dim is 0)."""
    sizes = sorted(dims)
    count = 1
    for size in sizes:
        count *= size
        if count > MAX_ELEMENTS:
            return MAX_ELEMENTS + 1
    return count


def payload_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes that `tensor`'s dims and type ask for (type in `BITS`, dims checked)."""
    return (int(prod(tensor.dims)) * BITS[tensor.data_type] + 7) // 8


def tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """(label, tensor) of initializers and of tensor attributes; subgraphs are left out, they are refused."""
    for tensor in graph.initializer:
        yield f"initializer {quoted(tensor.name)}", tensor
    for node in graph.node:
        for attribute in node.attribute:
            for tensor in [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]:
                yield f"{node_label(node)} attribute {quoted(attribute.name)}", tensor


def header_problem(label: str, tensor: onnx.TensorProto) -> Problem | None:
    """What is wrong with type and dims of a tensor, before its payload is looked at."""
    if tensor.data_type == _T.STRING:
        return Problem(
            code="ONNX-TENSOR-STRING",
            where=label,
            what="is a string tensor",
            expected="numbers",
            remedy="remove the text processing from the model",
        )
    if tensor.data_type not in BITS:
        return Problem(
            code="ONNX-TENSOR-TYPE", where=label, what=f"has the unknown element {type_name(tensor.data_type)}"
        )
    dims = list(tensor.dims)
    if len(dims) > MAX_RANK or any(size < 0 for size in dims):
        shown = dims if len(dims) <= MAX_RANK else f"{len(dims)} dims"
        return Problem(
            code="ONNX-TENSOR-DIMS",
            where=label,
            what="has impossible dims",
            expected=f"at most {MAX_RANK} dims, none negative",
            got=str(shown),
        )
    if element_count(dims) > MAX_ELEMENTS:
        return Problem(
            code="ONNX-TENSOR-SIZE",
            where=label,
            what="is too large",
            expected=f"at most {MAX_ELEMENTS} elements",
            got=f"dims {dims}",
        )
    if tensor.HasField("segment"):
        return Problem(code="ONNX-TENSOR-SEGMENT", where=label, what="is stored in segments, which ONNX never defined")
    return None


def payload_problem(label: str, tensor: onnx.TensorProto) -> Problem | None:
    """What is wrong with the payload of an embedded tensor whose header is right."""
    filled = [name for name in _FIELDS if len(getattr(tensor, name))]
    if tensor.HasField("raw_data"):
        return _raw_problem(label, tensor, filled)
    field = _FIELD_OF.get(tensor.data_type, "int32_data")
    if any(name != field for name in filled):
        return Problem(
            code="ONNX-TENSOR-DATA",
            where=label,
            what=f"is {type_name(tensor.data_type)} but its data is in the wrong field",
            expected=field,
            got=", ".join(filled),
        )
    want, have = _typed_length(tensor), len(getattr(tensor, field))
    if want != have:
        return _length_problem(label, tensor, f"{want} values in {field}", f"{have} values")
    return _range_problem(label, tensor)


def _raw_problem(label: str, tensor: onnx.TensorProto, filled: list[str]) -> Problem | None:
    """Length of `raw_data`, which has to be the only payload."""
    if filled:
        return Problem(
            code="ONNX-TENSOR-DATA", where=label, what="carries its data twice", got=", ".join(["raw_data", *filled])
        )
    want, have = payload_bytes(tensor), len(tensor.raw_data)
    if want != have:
        return _length_problem(label, tensor, f"{want} bytes", f"{have} bytes")
    return None


def _length_problem(label: str, tensor: onnx.TensorProto, expected: str, got: str) -> Problem:
    """Data and dims do not agree."""
    shape = f"{type_name(tensor.data_type)} {list(tensor.dims)}"
    return Problem(code="ONNX-TENSOR-DATA", where=label, what=f"data does not fill {shape}", expected=expected, got=got)


def _typed_length(tensor: onnx.TensorProto) -> int:
    """Values that the typed field of `tensor` has to hold."""
    count = int(prod(tensor.dims))
    if tensor.data_type in (_T.COMPLEX64, _T.COMPLEX128):
        return 2 * count
    bits = BITS[tensor.data_type]
    return (count * bits + 7) // 8 if bits < 8 else count


def _range_problem(label: str, tensor: onnx.TensorProto) -> Problem | None:
    """A value of `int32_data` that the element type cannot hold (onnxruntime and numpy would wrap it)."""
    limits = _INT_RANGE.get(tensor.data_type)
    if limits is None or not tensor.int32_data:
        return None
    values = np.asarray(tensor.int32_data, dtype=np.int64)
    bad = np.flatnonzero((values < limits[0]) | (values > limits[1]))
    if bad.size == 0:
        return None
    return Problem(
        code="ONNX-TENSOR-RANGE",
        where=label,
        what=f"element {bad[0]} does not fit {type_name(tensor.data_type)}",
        expected=f"{limits[0]} to {limits[1]}",
        got=str(values[bad[0]]),
    )


def tensor_problems(graph: onnx.GraphProto) -> list[Problem]:
    """Header and payload problems of every embedded tensor; external ones are the loader's."""
    found: list[Problem] = []
    for label, tensor in tensors(graph):
        problem = header_problem(label, tensor)
        if problem is None and tensor.data_location != _T.EXTERNAL:
            problem = payload_problem(label, tensor)
        if problem is not None:
            found.append(problem)
    return found
