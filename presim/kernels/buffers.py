"""Buffers of every kernel type: their shapes, and their values from the manifest's arrays.

Keys are `<kind>:<op name>:<part>`, several parts of streamed weights separated by commas. Kinds, by kernel type in the
order in which the kernel takes them:

- `weights`: conv (O, I/group, KH, KW), gemm (K, N), gemm_rows (H, W * C, N) with the channel fastest; of the part, in
  storage dtype.
- `constant`: the constant operand of add and mul, one per constant operand of concat: (1 or objects, *object shape)
  with extents of 1 that are broadcast along W; of matmul: as stored. `lut`: (entries,).
- `acc`: scratch of global_average_pool (C/8, 8) and gemm_rows (N,), shared with the kernel that finishes it.
- `bias`: (O,) shifted to the accumulator's unit, int32 or int64 as the accumulator.
- `requant`: int32 (int64 where a multiplier needs it): (2, 1 or O) multipliers and shifts; average_pool (2, counts);
  concat (2, operands); add (3,) both multipliers and the shift.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.model import Manifest, Op, Tensor
from oracle.fixedpoint import wrap
from presim.blocks import blocks_of, object_count, to_objects
from presim.kernels.part import BufferSpec, Part, StreamSpec, parse_part
from presim.kernels.scene import Scene, channel_count, scene
from presim.kernels.units import Forms, integer, refuse

Array = NDArray[Any]
Arrays = Mapping[str, Array]


def buffers_of(op: Op, manifest: Manifest | Forms, part: Part | None = None) -> tuple[BufferSpec, ...]:
    """Buffers of the kernel of a part of an op, in the order of its arguments.

    Args:
        op: an op of the manifest, on the array.
        manifest: the manifest, or its `Forms` where many ops are asked for.
        part: which piece and which kernel; None = all of it by its own kernel.

    Raises:
        RefusedError: no kernel computes it.
    """
    s = scene(op, manifest, part or Part())
    kinds = _KINDS.get(s.kernel, ("requant",))
    return tuple(spec for kind in kinds for spec in _SPECS[kind](s))


def stream_of(op: Op, manifest: Manifest | Forms, part: Part | None, chunk: int) -> StreamSpec:
    """Weights of a part as objects of `chunk` output channels, for a fifo (the `weights` buffer is not used then).

    Args:
        op: Conv or Gemm (conv, gemm).
        manifest: as in `buffers_of`.
        part: as in `buffers_of`.
        chunk: output channels of an object; of a Conv with groups a multiple of the channels of a group.
    """
    whole = scene(op, manifest, part or Part())
    first, count = whole.part.out_first, whole.count
    parts = [
        Part(
            kernel=whole.part.kernel,
            out_first=at,
            out_count=min(chunk, first + count - at),
            in_first=whole.part.in_first,
            in_count=whole.part.in_count,
            x_first=whole.part.x_first,
        )
        for at in range(first, first + count, chunk)
    ]
    spec = _weights(scene(op, whole.forms, parts[0]))[0]
    text = ",".join(p.text() for p in parts)
    return StreamSpec(
        shape=spec.shape, dtype=spec.dtype, count=len(parts), array=f"weights:{op.name}:{text}", chunk=chunk
    )


def constant_of(key: str, manifest: Manifest | Forms, arrays: Arrays) -> Array:
    """The values of a buffer, or of the objects of a stream (objects, *shape).

    Args:
        key: `BufferSpec.array` or `StreamSpec.array`.
        manifest: the manifest that it was made from.
        arrays: constants by their key in the manifest.

    Raises:
        KeyError: the key names no op.
        ValueError: it is none of these keys.
    """
    forms = manifest if isinstance(manifest, Forms) else Forms(manifest)
    kind, _, rest = key.partition(":")
    name, _, text = rest.rpartition(":")
    kind, _, index = kind.partition("@")
    if kind not in _VALUES:
        msg = f"buffer key {key!r}: expected one of {', '.join(_VALUES)}"
        raise ValueError(msg)
    op = forms.ops[name]
    values = [_VALUES[kind](scene(op, forms, parse_part(t)), arrays, int(index or 0)) for t in text.split(",")]
    if len(values) == 1:
        return values[0]
    stacked = np.zeros((len(values), *values[0].shape), values[0].dtype)
    for row, value in zip(stacked, values, strict=True):
        row[tuple(slice(n) for n in value.shape)] = value
    return stacked


def _key(kind: str, s: Scene) -> str:
    return f"{kind}:{s.op.name}:{s.part.text()}"


def _weights(s: Scene) -> tuple[BufferSpec, ...]:
    tensor = s.forms.tensors[s.op.inputs[1]]
    if s.kernel == "gemm_rows":
        _, channels, height, width = s.row_source().shape
        shape: tuple[int, ...] = (height, width * channels, s.count)
    elif s.op.type == "Conv":
        shape = (s.count, s.reduction()[1], *tensor.shape[2:])
    else:
        shape = (s.reduction()[1], s.count)
    return (BufferSpec(kind="weights", shape=shape, dtype=tensor.dtype, array=_key("weights", s)),)


def _weight_values(s: Scene, arrays: Arrays, _: int) -> Array:
    stored = _stored(s.forms.tensors[s.op.inputs[1]], arrays)
    outputs = slice(s.part.out_first, s.part.out_first + s.count)
    first, count, _total = s.reduction()
    if s.op.type == "Conv":
        return np.ascontiguousarray(stored[outputs, first : first + count])
    matrix = stored.T if integer(s.op, "transB") else stored
    if s.kernel != "gemm_rows":
        return np.ascontiguousarray(matrix[first : first + count, outputs])
    _, channels, height, width = s.row_source().shape
    rows = matrix[:, outputs].reshape(channels, height, width, -1).transpose(1, 2, 0, 3)
    return np.ascontiguousarray(rows.reshape(height, width * channels, -1))


def _stored(tensor: Tensor, arrays: Arrays) -> Array:
    if tensor.array is None:
        msg = f"tensor {tensor.name!r}: expected a constant"
        raise ValueError(msg)
    return arrays[tensor.array]


def _constants(s: Scene) -> tuple[BufferSpec, ...]:
    specs = []
    for index, name in enumerate(s.op.inputs if s.kernel == "concat" else s.op.inputs[:2]):
        tensor = s.forms.tensors[name]
        if tensor.array is None:
            continue
        shape = tensor.shape if s.kernel == "matmul" else _object_extents(s, tensor)
        specs.append(BufferSpec(kind="constant", shape=shape, dtype=tensor.dtype, array=_key(f"constant@{index}", s)))
    return tuple(specs)


def _object_extents(s: Scene, tensor: Tensor) -> tuple[int, ...]:
    shape = s.aligned(tensor)
    count = channel_count(shape) if s.kernel == "concat" else min(channel_count(shape), s.count)
    if len(shape) == 4:
        return object_count(shape), blocks_of(count), shape[3], 8
    return object_count(shape), blocks_of(count) * 8


def _constant_values(s: Scene, arrays: Arrays, index: int) -> Array:
    tensor = s.forms.tensors[s.op.inputs[index]]
    stored = _stored(tensor, arrays)
    if s.kernel == "matmul":
        return stored.copy()
    array = stored.reshape(s.aligned(tensor))
    axis = 1 if array.ndim == 4 else array.ndim - 1
    if s.kernel != "concat" and array.ndim and array.shape[axis] > 1:
        array = np.take(array, np.arange(s.part.out_first, s.part.out_first + s.count), axis)
    return to_objects(array)


def _tables(s: Scene) -> tuple[BufferSpec, ...]:
    entries = 1 << (16 if s.x.dtype.endswith("16") else 8)
    return (BufferSpec(kind="lut", shape=(entries,), dtype=s.y.dtype, array=_key("lut", s)),)


def _table_values(s: Scene, arrays: Arrays, _: int) -> Array:
    key = s.requant.lut
    if key is None:
        msg = f"{s.op.name}: expected a table"
        raise ValueError(msg)
    return arrays[key].astype(s.y.dtype)


def _accumulators(s: Scene) -> tuple[BufferSpec, ...]:
    shape = (blocks_of(s.count), 8) if s.op.type == "GlobalAveragePool" else (s.count,)
    return (BufferSpec(kind="acc", shape=shape, dtype=f"int{s.accumulator_bits()}", array=None),)


def _is_last(s: Scene) -> bool:
    """Whether no cascade goes out."""
    if s.kernel not in ("conv", "gemm"):
        return True
    first, count, total = s.reduction()
    return first + count == total


def _biases(s: Scene) -> tuple[BufferSpec, ...]:
    if s.op.bias is None or not _is_last(s):
        return ()
    dtype = f"int{s.accumulator_bits()}"
    return (BufferSpec(kind="bias", shape=(s.count,), dtype=dtype, array=_key("bias", s)),)


def _bias_values(s: Scene, arrays: Arrays, _: int) -> Array:
    bias = s.op.bias
    if bias is None:
        msg = f"{s.op.name}: expected a bias"
        raise ValueError(msg)
    if bias.kind == "rescaled":
        codes = arrays[bias.target_array or ""].ravel()
    else:
        codes = _stored(s.forms.tensors[s.op.inputs[2]], arrays).ravel()
    shifts = s.bias_shifts()
    addends = [int(c) << shifts[i % len(shifts)] for i, c in enumerate(codes)]
    wanted = [addends[c % len(addends)] for c in range(s.part.out_first, s.part.out_first + s.count)]
    bits = s.accumulator_bits()
    return wrap(np.array(wanted, dtype=object), bits).astype(f"int{bits}")


def _requants(s: Scene) -> tuple[BufferSpec, ...]:
    if s.finish != "round" or not _is_last(s):
        return ()
    values = _pairs(s)
    return (BufferSpec(kind="requant", shape=values.shape, dtype=str(values.dtype), array=_key("requant", s)),)


def _pairs(s: Scene) -> Array:
    multipliers, shifts = s.pairs()
    numbers = [*multipliers, *shifts]
    if max(map(abs, numbers)) >= 1 << 63:
        raise refuse(s.op, "operands whose scales are too far apart to be aligned", got=str(max(numbers)))
    dtype = np.int32 if all(-(1 << 31) <= n < 1 << 31 for n in numbers) else np.int64
    if s.kernel == "add":
        return np.array(numbers, dtype)
    return np.array([multipliers, shifts], dtype)


def _requant_values(s: Scene, _arrays: Arrays, _: int) -> Array:
    return _pairs(s)


Specs = Callable[[Scene], Sequence[BufferSpec]]

_SPECS: Final[Mapping[str, Specs]] = {
    "weights": _weights,
    "constant": _constants,
    "lut": _tables,
    "acc": _accumulators,
    "bias": _biases,
    "requant": _requants,
}
_VALUES: Final[Mapping[str, Callable[[Scene, Arrays, int], Array]]] = {
    "weights": _weight_values,
    "constant": _constant_values,
    "lut": _table_values,
    "bias": _bias_values,
    "requant": _requant_values,
}
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "conv": ("weights", "bias", "requant"),
    "gemm": ("weights", "bias", "requant"),
    "gemm_rows": ("weights", "acc"),
    "gemm_finish": ("acc", "bias", "requant"),
    "matmul": ("constant", "bias", "requant"),
    "add": ("constant", "requant"),
    "mul": ("constant", "requant"),
    "concat": ("constant", "requant"),
    "lut": ("lut",),
    "copy": (),
    "global_average_pool": ("acc",),
    "global_average_pool_finish": ("acc", "requant"),
}
"""Buffers by kernel type, in the order of the arguments; the others have `requant` alone."""
