"""A small design for each kernel type: one worker, objects from and to the host, its constants in buffers.

Figures are made up; what counts is that every type has a design that its emitter and the design file are printed from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from presim.design import (
    Acquire,
    Argument,
    AttributeValue,
    Buffer,
    Call,
    Design,
    Endpoint,
    Fifo,
    Kernel,
    Loop,
    Release,
    Tile,
    Transfer,
    Worker,
)

Array = NDArray[Any]
Attributes = Mapping[str, AttributeValue]
Shape = tuple[int, ...]

ROUND: Attributes = {
    "finish": "round",
    "out_dtype": "int8",
    "out_channels": 16,
    "y_zero_point": 3,
    "qmin": -128,
    "qmax": 127,
    "zero_point_inside": 0,
}
CLAMP: Attributes = {**ROUND, "finish": "clamp", "y_zero_point": 0}
SUMS: Attributes = {"acc_bits": 32, "acc_shift": (0,), "has_bias": 1}
REDUCES: Attributes = {"in_first": 0, "in_count": 16, "x_first": 0, "cascade_in": 0, "cascade_out": 0}
WEIGHED: Attributes = {"x_zero_point": 1, "w_zero_points": (0,)}
WINDOW: Attributes = {"kernel": (3, 3), "strides": (1, 1), "dilations": (1, 1), "pads_lr": (1, 1)}
GROUPS: Attributes = {"group": 1, "group_outputs": 16, "out_first": 0}
ROW: Shape = (2, 8, 8)
VECTOR: Shape = (16,)
UNIFORM = ("requant", (2, 1), "int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a kernel of a type is called with.

    Attributes:
        type: of the kernel.
        attributes: its figures.
        inputs: objects that it reads, one fifo each; of a window the shape of a row.
        buffers: (kind of the key or "" for scratch, shape, dtype).
        out: object that it writes, () = none.
        scalars: of the call.
        rows: of the window, 0 = it has none.
    """

    type: str
    attributes: Attributes
    inputs: tuple[Shape, ...]
    buffers: tuple[tuple[str, Shape, str], ...] = ()
    out: Shape = VECTOR
    scalars: Mapping[str, int | str] = field(default_factory=dict)
    rows: int = 0


BIAS = ("bias", (16,), "int32")
KINDS = {
    k.type: k
    for k in (
        Kind(
            type="conv",
            attributes={
                **ROUND,
                **SUMS,
                **REDUCES,
                **WEIGHED,
                **WINDOW,
                "group": 1,
                "group_outputs": 16,
                "out_first": 0,
            },
            inputs=(ROW,),
            buffers=(("weights", (16, 16, 3, 3), "int8"), BIAS, UNIFORM),
            out=ROW,
            rows=3,
        ),
        Kind(
            type="gemm",
            attributes={**ROUND, **SUMS, **REDUCES, **WEIGHED},
            inputs=(VECTOR,),
            buffers=(("weights", (16, 16), "int8"), BIAS, UNIFORM),
        ),
        Kind(
            type="gemm_rows",
            attributes={"acc_bits": 32, "in_channels": 16, "out_channels": 16, **WEIGHED},
            inputs=(ROW,),
            buffers=(("weights", (4, 128, 16), "int8"), ("", (16,), "int32")),
            out=(),
            scalars={"row": "@i"},
        ),
        Kind(
            type="gemm_finish",
            attributes={**ROUND, **SUMS},
            inputs=(),
            buffers=(("", (16,), "int32"), BIAS, UNIFORM),
        ),
        Kind(
            type="matmul",
            attributes={
                **ROUND,
                **SUMS,
                "a_shape": (1, 16),
                "b_shape": (16, 16),
                "y_shape": (1, 16),
                "transpose_a": 0,
                "transpose_b": 0,
                "constant": 1,
                "a_zero_points": (1,),
                "b_zero_points": (0,),
            },
            inputs=(VECTOR,),
            buffers=(("constant", (16, 16), "int8"), BIAS, UNIFORM),
        ),
        Kind(
            type="add",
            attributes={
                **ROUND,
                "a_zero_point": 1,
                "b_zero_point": 2,
                "a_channels": 16,
                "b_channels": 16,
                "constant": -1,
                "factors": (),
            },
            inputs=(ROW, ROW),
            buffers=(("requant", (3,), "int32"),),
            out=ROW,
        ),
        Kind(
            type="mul",
            attributes={**ROUND, "x_zero_point": 1, "c_zero_point": 0, "x_channels": 16, "c_channels": 16, "along": ""},
            inputs=(ROW,),
            buffers=(("constant", (1, 2, 1, 8), "int8"), UNIFORM),
            out=ROW,
        ),
        Kind(
            type="concat",
            attributes={
                **ROUND,
                "along": "channel",
                "channels": (8, 8),
                "constants": (0, 0),
                "zero_points": (0, 0),
                "factors": (),
            },
            inputs=((1, 8, 8), (1, 8, 8)),
            buffers=(("requant", (2, 2), "int32"),),
            out=ROW,
        ),
        *(
            Kind(
                type=kind,
                attributes={**ROUND, "along": "", "x_zero_point": 1, "minimum": (), "maximum": ()},
                inputs=(ROW,),
                buffers=(UNIFORM,),
                out=ROW,
            )
            for kind in ("relu", "clip", "requantize")
        ),
        Kind(
            type="lut",
            attributes={**CLAMP, "lowest": -128},
            inputs=(ROW,),
            buffers=(("lut", (256,), "int8"),),
            out=ROW,
        ),
        Kind(type="copy", attributes={"out_channels": 16}, inputs=(ROW,), out=ROW),
        *(
            Kind(
                type=kind,
                attributes={
                    **CLAMP,
                    "x_shape": (1, 16),
                    "y_shape": (16, 1) if kind == "transpose" else (1, 16),
                    "perm": (1, 0) if kind == "transpose" else (),
                    "axis": -1,
                    "x_zero_point": 0,
                    "bundled": 1,
                },
                inputs=((16,),),
                out=(128,) if kind == "transpose" else (16,),
            )
            for kind in ("transpose", "reshape", "flatten")
        ),
        Kind(
            type="max_pool",
            attributes={**CLAMP, **WINDOW, "x_zero_point": 0, "along": ""},
            inputs=(ROW,),
            out=ROW,
            rows=3,
        ),
        Kind(
            type="average_pool",
            attributes={
                **ROUND,
                **WINDOW,
                "acc_bits": 32,
                "counts": (4, 6, 9),
                "count_include_pad": 0,
                "in_width": 8,
                "pads": (1, 1, 1, 1),
                "x_zero_point": 1,
            },
            inputs=(ROW,),
            buffers=(("requant", (2, 3), "int32"),),
            out=ROW,
            rows=3,
        ),
        Kind(
            type="global_average_pool",
            attributes={"acc_bits": 32, "out_channels": 16, "x_zero_point": 1},
            inputs=(ROW,),
            buffers=(("", (2, 8), "int32"),),
            out=(),
            scalars={"row": "@i"},
        ),
        Kind(
            type="global_average_pool_finish",
            attributes={**ROUND, "along": ""},
            inputs=(),
            buffers=(("", (2, 8), "int32"), UNIFORM),
        ),
    )
}
"""By type of the kernel."""

CORE = Tile(column=0, row=2)
SHIM = Tile(column=0, row=0, kind="shim")


def design_of(kind: Kind, device: str = "npu2") -> Design:
    """The design: inputs from the host, the output to it."""
    name = f"op/{kind.type}"
    inputs = [f"x{i}" for i in range(len(kind.inputs))]
    depth = kind.rows + 1 if kind.rows else 2
    fifos = [_fifo(n, s, depth, name, into="worker") for n, s in zip(inputs, kind.inputs, strict=True)]
    fifos += [_fifo("y", kind.out, 2, name, into="shim")] if kind.out else []
    buffers = tuple(
        Buffer(name=f"{name}:{i}", tile=None, shape=s, dtype=d, array=f"{k}:op:all" if k else None)
        for i, (k, s, d) in enumerate(kind.buffers)
    )
    attributes = tuple(kind.attributes.items())
    return Design(
        dispatch="d0",
        device=device,
        workers=(Worker(name=name, tile=CORE, program=_program(kind, name, inputs, buffers)),),
        fifos=tuple(fifos),
        kernels=(Kernel(name=f"{name}:{kind.type}", op="op", type=kind.type, attributes=attributes),),
        buffers=buffers,
        sequence=tuple(
            Transfer(
                fifo=f.name,
                direction="fill" if f.producer.kind == "shim" else "drain",
                tensor=f.name,
                objects=4,
                wait=f.producer.kind != "shim",
            )
            for f in fifos
        ),
    )


def _fifo(name: str, shape: Shape, depth: int, actor: str, *, into: str) -> Fifo:
    worker, shim = Endpoint(actor=actor, tile=CORE), Endpoint(actor=f"shim:{name}", kind="shim", tile=SHIM)
    ends = (shim, worker) if into == "worker" else (worker, shim)
    return Fifo(name=name, shape=shape, dtype="int8", producer=ends[0], consumers=(ends[1],), depth=depth)


def _program(kind: Kind, worker: str, inputs: list[str], buffers: tuple[Buffer, ...]) -> tuple[Any, ...]:
    arguments = [Argument(kind="fifo", name=n, index=i) for n in inputs for i in range(kind.rows or 1)]
    arguments += [Argument(kind="buffer", name=b.name) for b in buffers]
    arguments += [Argument(kind="fifo", name="y")] if kind.out else []
    ends = [(n, kind.rows or 1) for n in inputs] + ([("y", 1)] if kind.out else [])
    call = Call(kernel=f"{worker}:{kind.type}", arguments=tuple(arguments), scalars=tuple(kind.scalars.items()))
    acquires = [Acquire(fifo=n, count=c) for n, c in ends]
    return (Loop(times=4, body=(*acquires, call, *(Release(fifo=n, count=c) for n, c in ends)), counter="i"),)


def constants_of(kind: Kind) -> dict[str, Array]:
    """Made-up contents of the buffers, by key."""
    found: dict[str, Array] = {}
    for which, shape, dtype in kind.buffers:
        if which:
            count = int(np.prod(shape))
            values = (np.arange(count) % 7 - 3).reshape(shape)
            if which == "requant":
                values = np.full(shape, 1 << 30)
                values[1:2] = 36
            found[f"{which}:op:all"] = values.astype(dtype)
    return found
