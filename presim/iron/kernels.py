"""`aie.iron.kernels`: a part of the library's factories; each gives an `ExternalFunction` with the C signature.

The C++ of the library is not part of the stand-in: who runs the design gives the kernel by its symbol.
"""

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from presim.iron.api import row
from presim.iron.buffer import ExternalFunction
from presim.iron.device import get_current_device
from presim.iron.errors import UnsupportedError, WrongValueError

FIXED_TILE = 1024
SHORT = {"int8": "i8", "int16": "i16", "int32": "i32", "bfloat16": "bf16", "float32": "f32"}


def _array(elements: int, dtype: Any) -> Any:
    return np.ndarray[(elements,), np.dtype[dtype]]  # type: ignore[misc]


def _external(name: str, source: str, types: list[Any]) -> ExternalFunction:
    return ExternalFunction(name, source_file=f"aie_kernels/{source}", arg_types=types)


def _short(dtype: Any, what: str) -> str:
    name = np.dtype(dtype).name
    if name not in SHORT:
        msg = f"{what}: no variant for {name}"
        raise WrongValueError(msg)
    return SHORT[name]


@row("aie.iron.kernels.passthrough")
def passthrough(tile_size: int = 4096, dtype: Any = np.uint8) -> ExternalFunction:
    """Copy: (in, out, n)."""
    tile = _array(tile_size, dtype)
    return _external("passThroughLine", "generic/passThrough.cc", [tile, tile, np.int32])


@row("aie.iron.kernels.scale")
def scale(tile_size: int = 1024, dtype: Any = np.int16, vectorized: bool = True) -> ExternalFunction:
    """Times a factor in memory: (in, out, factor, n)."""
    tile = _array(tile_size, dtype)
    kind = "vector" if vectorized else "scalar"
    types = [tile, tile, _array(1, np.int32), np.int32]
    return _external(f"vector_scalar_mul_{kind}", "aie2/scale.cc", types)


@row("aie.iron.kernels.add")
def add(tile_size: int = 1024, dtype: Any = bfloat16, vectorized: bool = True) -> ExternalFunction:
    """Sum of two tiles of bfloat16: (in, in, out)."""
    return _binary("add", tile_size, dtype, vectorized=vectorized)


@row("aie.iron.kernels.mul")
def mul(tile_size: int = 1024, dtype: Any = bfloat16, vectorized: bool = True) -> ExternalFunction:
    """Product of two tiles of bfloat16: (in, in, out)."""
    return _binary("mul", tile_size, dtype, vectorized=vectorized)


@row("aie.iron.kernels.relu")
def relu(tile_size: int = 1024) -> ExternalFunction:
    """Values of bfloat16, 0 for those below: (in, out)."""
    _fixed("relu", tile_size, bfloat16)
    tile = _array(tile_size, bfloat16)
    return _external("bf16_relu", "aie2/relu.cc", [tile, tile])


def _binary(kind: str, tile_size: int, dtype: Any, *, vectorized: bool) -> ExternalFunction:
    _fixed(kind, tile_size, dtype)
    tile = _array(tile_size, dtype)
    return _external(f"eltwise_{kind}_bf16_{'vector' if vectorized else 'scalar'}", f"aie2/{kind}.cc", [tile] * 3)


def _fixed(kind: str, tile_size: int, dtype: Any) -> None:
    """The library's loops have 1024 elements of bfloat16."""
    name = np.dtype(dtype).name
    if tile_size != FIXED_TILE or name != "bfloat16":
        msg = f"kernels.{kind}: {tile_size} elements of {name}, the library has {FIXED_TILE} of bfloat16"
        raise WrongValueError(msg)


@row("aie.iron.kernels.mm")
def mm(  # noqa: PLR0917 (the parameters are those of IRON)
    dim_m: int = 64,
    dim_k: int = 64,
    dim_n: int = 64,
    input_dtype: Any = np.int16,
    output_dtype: Any = np.int32,
    vectorized: bool = True,
) -> ExternalFunction:
    """C += A * B on blocks of `mac_dims`, with `zero` beside it."""
    kind = "matmul" if vectorized else "matmul_scalar"
    name = f"{kind}_{_short(input_dtype, 'kernels.mm')}_{_short(output_dtype, 'kernels.mm')}"
    out = _array(dim_m * dim_n, output_dtype)
    types = [_array(dim_m * dim_k, input_dtype), _array(dim_k * dim_n, input_dtype), out]
    made = _external(name, "mm.cc", types)
    zero_kind = "zero" if vectorized else "zero_scalar"
    made.zero = _external(f"{zero_kind}_{_short(output_dtype, 'kernels.mm')}", "mm.cc", [out])
    made.mac_dims = _mac_dims(np.dtype(input_dtype).name) if vectorized else (1, 1, 1)
    return made


def _mac_dims(dtype: str) -> tuple[int, int, int]:
    """Block of the multiplication that the library compiles, where it is known here."""
    table = {
        ("npu1", "int16"): (4, 4, 4),
        ("npu1", "int8"): (4, 8, 8),
        ("npu2", "int16"): (4, 4, 8),
        ("npu2", "int8"): (8, 8, 8),
        ("npu1", "bfloat16"): (4, 8, 4),
        ("npu2", "bfloat16"): (4, 8, 8),
    }
    key = (get_current_device().name, dtype)
    if key not in table:
        msg = f"kernels.mm: the block shape for {dtype} on {key[0]} is not known to the stand-in"
        raise UnsupportedError(msg)
    return table[key]


@row("aie.iron.kernels.mv")
def mv(dim_m: int = 32, dim_k: int = 32, vectorized: bool = True) -> ExternalFunction:
    """C += A * b of int16 into int32, with `zero` beside it."""
    kind = "vectorized" if vectorized else "scalar"
    out = _array(dim_m, np.int32)
    types = [_array(dim_m * dim_k, np.int16), _array(dim_k, np.int16), out]
    made = _external(f"matvec_{kind}_i16_i32", "aie2/mv.cc", types)
    made.zero = _external(f"zero_{kind}_i32", "aie2/mv.cc", [out])
    return made


def _bottleneck(name: str, source: str, memories: list[Any], scalars: int) -> ExternalFunction:
    return _external(name, f"aie2/bottleneck/{source}.cc", [*memories, *[np.int32] * scalars])


@row("aie.iron.kernels.bn_conv2dk1_relu")
def bn_conv2dk1_relu(input_width: int = 32, input_channels: int = 64, output_channels: int = 64) -> ExternalFunction:
    """1x1 convolution and ReLU: int8 in, uint8 out."""
    memories = [
        _array(input_width * input_channels, np.int8),
        _array(input_channels * output_channels, np.int8),
        _array(input_width * output_channels, np.uint8),
    ]
    return _bottleneck("conv2dk1_relu_i8_ui8", "bn_conv2dk1_relu", memories, 4)


@row("aie.iron.kernels.bn_conv2dk3_dw")
def bn_conv2dk3_dw(
    input_width: int = 32, input_channels: int = 64, output_channels: int = 64, stride: int = 1
) -> ExternalFunction:
    """Depthwise 3x3 convolution and ReLU on three rows: uint8."""
    if stride not in {1, 2}:
        msg = f"bn_conv2dk3_dw(): stride must be 1 or 2, got {stride}"
        raise WrongValueError(msg)
    line = _array(input_width * input_channels, np.uint8)
    out = _array(input_width // stride * output_channels, np.uint8)
    memories = [line, line, line, _array(9 * input_channels, np.int8), out]
    return _bottleneck(f"conv2dk3_dw_stride{stride}_relu_ui8_ui8", "bn_conv2dk3_dw", memories, 8)


@row("aie.iron.kernels.bn_conv2dk1_i8")
def bn_conv2dk1_i8(input_width: int = 32, input_channels: int = 64, output_channels: int = 64) -> ExternalFunction:
    """1x1 convolution: uint8 in, int8 out."""
    memories = [
        _array(input_width * input_channels, np.uint8),
        _array(input_channels * output_channels, np.int8),
        _array(input_width * output_channels, np.int8),
    ]
    return _bottleneck("conv2dk1_ui8_i8", "bn_conv2dk1_i8", memories, 4)


@row("aie.iron.kernels.bn_conv2dk1_skip")
def bn_conv2dk1_skip(
    input_width: int = 32, input_channels: int = 64, output_channels: int = 64, skip_dtype: Any = np.uint8
) -> ExternalFunction:
    """1x1 convolution and addition of a skip: uint8 in, int8 out."""
    names = {"uint8": "conv2dk1_skip_ui8_ui8_i8", "int8": "conv2dk1_skip_ui8_i8_i8"}
    name = names.get(np.dtype(skip_dtype).name)
    if name is None:
        msg = f"bn_conv2dk1_skip(): skip_dtype must be np.uint8 or np.int8, got {skip_dtype}"
        raise WrongValueError(msg)
    memories = [
        _array(input_width * input_channels, np.uint8),
        _array(input_channels * output_channels, np.int8),
        _array(input_width * output_channels, np.int8),
        _array(input_width * output_channels, skip_dtype),
    ]
    return _bottleneck(name, "bn_conv2dk1_skip", memories, 5)
