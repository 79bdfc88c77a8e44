"""Random kernels of convolutions and products: rows as planned, with arrays for their calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bringup.kernels.model import Parameter, Role, Row
from presim.blocks import blocks_of, object_count, object_shape, to_objects
from presim.design import AttributeValue
from tests.bringup.kernels.heavy import MMUL, SCALARS
from tests.bringup.kernels.objects import codes

Array = NDArray[Any]


@dataclass(kw_only=True)
class Finish:
    """How sums of products leave."""

    kind: str = "round"
    dtype: str = "int8"
    zero_point: int = 0
    bounds: tuple[int, int] | None = None
    inside: bool = False
    acc_bits: int = 32
    acc_shift: tuple[int, ...] = (0,)
    bias: bool = True
    uniform: bool = False
    shift: tuple[int, int] = (36, 40)
    """Lowest and highest shift."""
    multiplier: tuple[int, int] = (1 << 30, (1 << 31) - 1)

    def attributes(self, channels: int) -> dict[str, AttributeValue]:
        info = np.iinfo(self.dtype)
        low, high = self.bounds or (int(info.min), int(info.max))
        return {
            "finish": self.kind,
            "out_dtype": self.dtype,
            "out_channels": channels,
            "y_zero_point": self.zero_point if self.kind == "round" else 0,
            "qmin": low if self.kind == "round" else -(1 << 63),
            "qmax": high if self.kind == "round" else (1 << 63) - 1,
            "zero_point_inside": int(self.inside),
            "acc_bits": self.acc_bits,
            "acc_shift": self.acc_shift,
        }

    def arrays(self, channels: int, rng: np.random.Generator) -> dict[str, Array]:
        """Bias and requant."""
        found: dict[str, Array] = {}
        if self.bias:
            size = 12 if self.acc_bits == 32 else 36
            drawn = rng.integers(-(1 << size), 1 << size, channels)
            found["bias"] = drawn.astype(f"int{self.acc_bits}")
        if self.kind == "round":
            count = 1 if self.uniform else channels
            factors = rng.integers(*self.multiplier, count, endpoint=True)
            found["requant"] = np.array([factors, rng.integers(*self.shift, count, endpoint=True)], np.int32)
        return found


@dataclass(kw_only=True)
class Drawn:
    """A row and arrays of one call."""

    row: Row
    arrays: dict[str, Array]
    scalars: dict[str, int] = field(default_factory=dict)


def row_of(
    kind: str,
    attributes: Mapping[str, AttributeValue],
    parameters: list[Parameter],
    *,
    arch: Literal["aie2", "aie2p"] = "aie2",
    modes: tuple[str, str] = ("conv_even", "saturate"),
) -> Row:
    """A row of a type."""
    return Row(
        name=f"{kind}_0",
        op="op",
        type=kind,
        attributes=attributes,
        rounding=modes[0],
        saturation=modes[1],
        arch=arch,
        mmul=MMUL[arch],
        parameters=tuple(parameters),
        scalars=SCALARS.get(kind, ()),
    )


def parameter(name: str, role: Role, array: Array, *, writes: bool = False) -> Parameter:
    """A parameter as planned, of an array of its shape."""
    return Parameter(name=name, role=role, dtype=array.dtype.name, shape=array.shape, writes=writes)


def cascade(name: str, role: Role, bits: int) -> Parameter:
    """An end of a cascade."""
    return Parameter(name=name, role=role, dtype=f"int{bits}", shape=(), writes=False)


@dataclass(kw_only=True)
class Window:
    """Figures of a convolution."""

    channels: int = 8
    outputs: int = 8
    width: int = 8
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads_lr: tuple[int, int] = (0, 0)
    group: int = 1
    x: str = "int8"
    w: str = "int8"
    x_zero_point: int = 0
    w_zero_points: tuple[int, ...] = (0,)
    in_first: int = 0
    in_count: int = 0
    x_first: int = 0
    out_first: int = 0
    group_outputs: int = 0
    cascade_in: bool = False
    cascade_out: bool = False
    x_bits: int = 0
    w_bits: int = 0

    @property
    def out_width(self) -> int:
        """Width of the output row."""
        padded = self.width + sum(self.pads_lr) - (self.kernel[1] - 1) * self.dilations[1] - 1
        return padded // self.strides[1] + 1

    @property
    def rows(self) -> int:
        """Rows of the window."""
        return (self.kernel[0] - 1) * self.dilations[0] + 1


def conv(
    window: Window,
    finish: Finish,
    seed: int,
    *,
    pads: tuple[int, int] = (0, 0),
    arch: Literal["aie2", "aie2p"] = "aie2",
    modes: tuple[str, str] = ("conv_even", "saturate"),
) -> Drawn:
    """A convolution's row and one call."""
    rng = np.random.default_rng(seed)
    inputs = window.in_count or window.channels // window.group
    attributes: dict[str, AttributeValue] = {
        **finish.attributes(window.outputs),
        "kernel": window.kernel,
        "strides": window.strides,
        "dilations": window.dilations,
        "pads_lr": window.pads_lr,
        "group": window.group,
        "group_outputs": window.group_outputs or window.outputs // window.group,
        "out_first": window.out_first,
        "in_first": window.in_first,
        "in_count": inputs,
        "x_first": window.x_first,
        "x_zero_point": window.x_zero_point,
        "w_zero_points": window.w_zero_points,
        "has_bias": int(finish.bias and not window.cascade_out),
        "cascade_in": int(window.cascade_in),
        "cascade_out": int(window.cascade_out),
    }
    shape = blocks_of(window.channels), window.width, 8
    arrays = {f"row{i}": codes(shape, window.x, seed + i, bits=window.x_bits) for i in range(window.rows)}
    parameters = [parameter(n, "object_in", a) for n, a in arrays.items()]
    if window.cascade_in:
        parameters.append(cascade("before", "cascade_in", finish.acc_bits))
    arrays["weights"] = codes((window.outputs, inputs, *window.kernel), window.w, seed + 97, bits=window.w_bits)
    parameters.append(parameter("weights", "weights", arrays["weights"]))
    if window.cascade_out:
        parameters.append(cascade("after", "cascade_out", finish.acc_bits))
    else:
        parameters += _tail(finish, window.outputs, arrays, rng)
        arrays["out"] = np.full((blocks_of(window.outputs), window.out_width, 8), 85, finish.dtype)
        parameters.append(parameter("out", "object_out", arrays["out"], writes=True))
    return Drawn(
        row=row_of("conv", attributes, parameters, arch=arch, modes=modes),
        arrays=arrays,
        scalars={"pad_top": pads[0], "pad_bottom": pads[1], "out_offset": 0},
    )


def _tail(finish: Finish, channels: int, arrays: dict[str, Array], rng: np.random.Generator) -> list[Parameter]:
    made = finish.arrays(channels, rng)
    arrays |= made
    roles: dict[str, Role] = {"bias": "bias", "requant": "requant"}
    return [parameter(n, roles[n], a) for n, a in made.items()]


@dataclass(kw_only=True)
class Vector:
    """Figures of a Gemm."""

    inputs: int = 16
    outputs: int = 16
    x: str = "int8"
    w: str = "int8"
    x_zero_point: int = 0
    w_zero_points: tuple[int, ...] = (0,)
    in_first: int = 0
    in_count: int = 0
    x_first: int = 0
    cascade_in: bool = False
    cascade_out: bool = False
    x_bits: int = 0
    w_bits: int = 0


def gemm(
    vector: Vector,
    finish: Finish,
    seed: int,
    *,
    arch: Literal["aie2", "aie2p"] = "aie2",
    modes: tuple[str, str] = ("conv_even", "saturate"),
) -> Drawn:
    """A Gemm's row and one call."""
    rng = np.random.default_rng(seed)
    count = vector.in_count or vector.inputs
    attributes: dict[str, AttributeValue] = {
        **finish.attributes(vector.outputs),
        "in_first": vector.in_first,
        "in_count": count,
        "x_first": vector.x_first,
        "x_zero_point": vector.x_zero_point,
        "w_zero_points": vector.w_zero_points,
        "has_bias": int(finish.bias and not vector.cascade_out),
        "cascade_in": int(vector.cascade_in),
        "cascade_out": int(vector.cascade_out),
    }
    arrays = {"x": codes((blocks_of(vector.inputs) * 8,), vector.x, seed, bits=vector.x_bits)}
    parameters = [parameter("x", "object_in", arrays["x"])]
    if vector.cascade_in:
        parameters.append(cascade("before", "cascade_in", finish.acc_bits))
    arrays["weights"] = codes((count, vector.outputs), vector.w, seed + 97, bits=vector.w_bits)
    parameters.append(parameter("weights", "weights", arrays["weights"]))
    if vector.cascade_out:
        parameters.append(cascade("after", "cascade_out", finish.acc_bits))
    else:
        parameters += _tail(finish, vector.outputs, arrays, rng)
        arrays["out"] = np.full(blocks_of(vector.outputs) * 8, 85, finish.dtype)
        parameters.append(parameter("out", "object_out", arrays["out"], writes=True))
    row = row_of("gemm", attributes, parameters, arch=arch, modes=modes)
    return Drawn(row=row, arrays=arrays, scalars={"out_offset": 0})


def gemm_rows(
    image: tuple[int, int, int],
    vector: Vector,
    finish: Finish,
    seed: int,
    *,
    arch: Literal["aie2", "aie2p"] = "aie2",
    modes: tuple[str, str] = ("conv_even", "saturate"),
) -> tuple[Drawn, Drawn, list[Array]]:
    """Rows of `gemm_rows` and `gemm_finish` for an image (C, H, W), and the objects of the calls of the first."""
    channels, height, width = image
    rng = np.random.default_rng(seed)
    shape = (blocks_of(channels), width, 8)
    objects = [codes(shape, vector.x, seed + i, bits=vector.x_bits) for i in range(height)]
    weights = codes((height, width * channels, vector.outputs), vector.w, seed + 97, bits=vector.w_bits)
    acc = np.zeros(vector.outputs, f"int{finish.acc_bits}")
    attributes: dict[str, AttributeValue] = {
        "acc_bits": finish.acc_bits,
        "in_channels": channels,
        "out_channels": vector.outputs,
        "x_zero_point": vector.x_zero_point,
        "w_zero_points": vector.w_zero_points,
    }
    parameters = [
        parameter("x", "object_in", objects[0]),
        parameter("weights", "weights", weights),
        parameter("acc", "acc", acc, writes=True),
    ]
    sums = Drawn(row=row_of("gemm_rows", attributes, parameters, arch=arch, modes=modes), arrays={"weights": weights})
    arrays: dict[str, Array] = {}
    tail = _tail(finish, vector.outputs, arrays, rng)
    arrays["out"] = np.full(blocks_of(vector.outputs) * 8, 85, finish.dtype)
    found = {**finish.attributes(vector.outputs), "has_bias": int(finish.bias)}
    ends = [parameter("acc", "acc", acc), *tail, parameter("out", "object_out", arrays["out"], writes=True)]
    return sums, Drawn(row=row_of("gemm_finish", found, ends, arch=arch, modes=modes), arrays=arrays), objects


@dataclass(kw_only=True)
class Operands:
    """Figures of a product of whole operands."""

    a: tuple[int, ...] = (4, 8)
    b: tuple[int, ...] = (8, 8)
    y: tuple[int, ...] = (4, 8)
    transpose_a: bool = False
    transpose_b: bool = False
    constant: int = -1
    bundled: bool = False
    dtypes: tuple[str, str] = ("int8", "int8")
    a_zero_points: tuple[int, ...] = (0,)
    b_zero_points: tuple[int, ...] = (0,)
    bits: int = 0


def matmul(
    operands: Operands,
    finish: Finish,
    seed: int,
    *,
    arch: Literal["aie2", "aie2p"] = "aie2",
    modes: tuple[str, str] = ("conv_even", "saturate"),
) -> Drawn:
    """A product's row and one call; `finish` is along the last axis of the result."""
    rng = np.random.default_rng(seed)
    last = operands.y[-1] if operands.y else 1
    attributes: dict[str, AttributeValue] = {
        **finish.attributes(last),
        "a_shape": operands.a,
        "b_shape": operands.b,
        "y_shape": operands.y,
        "transpose_a": int(operands.transpose_a),
        "transpose_b": int(operands.transpose_b),
        "constant": operands.constant,
        "a_zero_points": operands.a_zero_points,
        "b_zero_points": operands.b_zero_points,
        "has_bias": int(finish.bias),
    }
    if operands.bundled:
        attributes["bundled"] = 1
    arrays: dict[str, Array] = {}
    parameters: list[Parameter] = []
    for position, name in enumerate("ab"):
        shape, dtype = (operands.a, operands.b)[position], operands.dtypes[position]
        if position != operands.constant:
            whole = to_objects(codes(shape, dtype, seed + 10 * position, bits=operands.bits))
            arrays |= {name: whole} if operands.bundled else {f"{name}{i}": block for i, block in enumerate(whole)}
            parameters += [parameter(n, "object_in", a) for n, a in arrays.items() if n[0] == name]
    if operands.constant >= 0:
        shape, dtype = (operands.a, operands.b)[operands.constant], operands.dtypes[operands.constant]
        arrays["constant"] = codes(shape, dtype, seed + 55, bits=operands.bits)
        parameters.append(parameter("constant", "constant", arrays["constant"]))
    parameters += _tail(finish, last, arrays, rng)
    count = object_count(operands.y)
    outs = {"out": (count, *object_shape(operands.y))} if operands.bundled else {}
    outs = outs or {f"out{i}": object_shape(operands.y) for i in range(count)}
    for name, shape in outs.items():
        arrays[name] = np.full(shape, 85, finish.dtype)
        parameters.append(parameter(name, "object_out", arrays[name], writes=True))
    return Drawn(row=row_of("matmul", attributes, parameters, arch=arch, modes=modes), arrays=arrays)
