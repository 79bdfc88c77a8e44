"""The manifest as a file: canonical JSON that has to satisfy the schema and its own cross references."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io.canonical import canonical_json, parse_canonical, schema_errors
from manifest.io.codec import decode, encode
from manifest.io.npz import load_arrays, save_arrays
from manifest.model import Manifest, Op, Tensor

SCHEMA: Final = "manifest-1"
MANIFEST_FILE: Final = "manifest.json"
TENSORS_FILE: Final = "tensors.npz"
MAX_MANIFEST_BYTES: Final = 256 << 20


def manifest_to_json(manifest: Manifest) -> bytes:
    """The manifest as canonical JSON.

    Raises:
        TypeError: a field holds another type than declared, a NaN or an infinity (a defect of the caller).
    """
    return canonical_json(encode(manifest))


def manifest_from_json(data: bytes, where: str = MANIFEST_FILE) -> Manifest:
    """The manifest in `data`.

    Raises:
        UpstreamError: `data` is not its own canonical form (tampered).
        RefusedError: the value breaks the schema or refers to a tensor or op that is not there.
    """
    value = parse_canonical(data, where)
    problems = schema_errors(value, SCHEMA)
    if problems:
        raise _refused(where, problems)
    try:
        manifest = decode(Manifest, value)
    except ValueError as error:
        raise _refused(where, (str(error),)) from error
    if problems := tuple(_reference_errors(manifest)):
        raise _refused(where, problems)
    return manifest


def manifest_errors(manifest: Manifest, arrays: Mapping[str, NDArray[Any]] | None = None) -> tuple[str, ...]:
    """Everything wrong with a manifest, one line each: schema, cross references and, if given, its arrays."""
    found = [*schema_errors(encode(manifest), SCHEMA), *_reference_errors(manifest)]
    if arrays is not None:
        found += _array_errors(manifest, arrays)
    return tuple(found)


def save_manifest(directory: Path, manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `manifest.json` and `tensors.npz` into `directory`, which exists."""
    save_arrays(directory / TENSORS_FILE, arrays)
    (directory / MANIFEST_FILE).write_bytes(manifest_to_json(manifest))


def load_manifest(directory: Path) -> tuple[Manifest, dict[str, NDArray[Any]]]:
    """The manifest of a port and its arrays, checked against each other.

    Raises:
        UpstreamError: a file is missing, not canonical, or an array does not match its tensor.
        RefusedError: the manifest breaks the schema.
    """
    path = directory / MANIFEST_FILE
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            msg = f"{path}: tampered: larger than {MAX_MANIFEST_BYTES} bytes"
            raise UpstreamError(msg)
        manifest = manifest_from_json(path.read_bytes(), str(path))
    except OSError as error:
        msg = f"{path}: missing: {error.strerror or error}"
        raise UpstreamError(msg) from error
    arrays = load_arrays(directory / TENSORS_FILE)
    if errors := _array_errors(manifest, arrays):
        msg = f"{directory / TENSORS_FILE}: tampered: {errors[0]}"
        raise UpstreamError(msg)
    return manifest, arrays


def _refused(where: str, problems: tuple[str, ...]) -> RefusedError:
    return RefusedError(tuple(Problem(code="MANIFEST-SCHEMA", where=where, what=p) for p in problems))


def _reference_errors(manifest: Manifest) -> Iterator[str]:
    """Names that are not unique, missing or used before they are made, and quantizations that do not fit."""
    names = [t.name for t in manifest.tensors]
    if names != sorted(set(names)):
        yield "tensors: names are not unique and sorted"
    known = set(names)
    made = {t.name for t in manifest.tensors if t.array is not None} | set(manifest.model.inputs)
    ops: set[str] = set()
    for op in manifest.ops:
        if op.name in ops:
            yield f"op {op.name!r}: the name occurs twice"
        ops.add(op.name)
        yield from (f"op {op.name!r}: input {n!r} is not made before it" for n in op.inputs if n and n not in made)
        yield from (f"op {op.name!r}: output {n!r} is no tensor" for n in op.outputs if n not in known)
        yield from (f"op {op.name!r}: output {n!r} is made twice" for n in op.outputs if n in made)
        made |= set(op.outputs)
    ends = (*manifest.model.inputs, *manifest.model.outputs)
    yield from (f"graph input or output {n!r}: nothing makes it" for n in ends if n not in made or n not in known)
    yield from (f"layout of {lay.tensor!r}: no such tensor" for lay in manifest.layouts if lay.tensor not in known)
    if len({lay.tensor for lay in manifest.layouts}) != len(manifest.layouts):
        yield "layouts: a tensor has two"
    for tensor in manifest.tensors:
        yield from _quantization_errors(tensor)
    yield from _dispatch_errors(manifest, known, ops)


def _quantization_errors(tensor: Tensor) -> Iterator[str]:
    quant = tensor.quant
    if quant is None:
        return
    count = len(quant.scales)
    if len(quant.zero_points) != count or (quant.exponents is not None and len(quant.exponents) != count):
        yield f"tensor {tensor.name!r}: {count} scales, {len(quant.zero_points)} zero points"
    if quant.axis is None and count != 1:
        yield f"tensor {tensor.name!r}: {count} scales without an axis"
    elif quant.axis is not None and (quant.axis >= len(tensor.shape) or count not in (1, tensor.shape[quant.axis])):
        yield f"tensor {tensor.name!r}: {count} scales on axis {quant.axis} of shape {tensor.shape}"
    if quant.exponents is not None and any(s != 2.0**k for s, k in zip(quant.scales, quant.exponents, strict=False)):
        yield f"tensor {tensor.name!r}: an exponent is not that of its scale"


def _dispatch_errors(manifest: Manifest, known: set[str], ops: set[str]) -> Iterator[str]:
    placed = [name for d in manifest.dispatches for name in d.ops]
    if manifest.dispatches and sorted(placed) != sorted(ops):
        yield "dispatches: they do not hold every op exactly once"
    if len({d.name for d in manifest.dispatches}) != len(manifest.dispatches):
        yield "dispatches: a name occurs twice"
    for dispatch in manifest.dispatches:
        for name in (*dispatch.inputs, *dispatch.outputs):
            if name not in known:
                yield f"dispatch {dispatch.name!r}: {name!r} is no tensor"


def _array_errors(manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """Keys that are missing or unused, shapes and dtypes that differ from what the manifest says."""
    found = []
    used = set()
    for tensor in manifest.tensors:
        if tensor.array is None:
            continue
        used.add(tensor.array)
        array = arrays.get(tensor.array)
        if array is None:
            found.append(f"{tensor.array} ({tensor.name!r}): no such array")
        elif array.shape != tensor.shape or array.dtype.name != tensor.dtype:
            got = f"{array.dtype.name} {array.shape}"
            found.append(f"{tensor.array} ({tensor.name!r}): expected {tensor.dtype} {tensor.shape}, got {got}")
    for op in manifest.ops:
        for key in _op_arrays(op):
            used.add(key)
            if key not in arrays:
                found.append(f"{key} (op {op.name!r}): no such array")
    found += [f"{key}: an array that no tensor uses" for key in sorted(set(arrays) - used)]
    return found


def _op_arrays(op: Op) -> Iterator[str]:
    if op.bias is not None and op.bias.target_array is not None:
        yield op.bias.target_array
    if op.requant is not None and op.requant.lut is not None:
        yield op.requant.lut
