"""Models whose generated files faults are put into."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from manifest.io import canonical_json, write_npz
from tests.qdq_models import Sketch

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
CHANNELS: Final = 8
SIZE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A model, its data, device and directives.

    Attributes:
        name: of the model's file.
        folder: of the examples, "" = the model is made by `make`.
        data: its file there.
        make: makes the model; its input `x` gets uniform data.
        device: of the port.
        directives: of phase 2.
    """

    name: str
    folder: str = ""
    data: str = ""
    make: Callable[[], onnx.ModelProto] | None = None
    device: str = "npu2"
    directives: Mapping[str, Any] = field(default_factory=dict)

    @property
    def directives_bytes(self) -> bytes:
        """Content of the file of directives."""
        return canonical_json(dict(self.directives))


def zero_points() -> onnx.ModelProto:
    """Two convolutions, 3x3 and 1x1, whose activations are asymmetric."""
    sketch = Sketch()
    rng = np.random.default_rng(4)
    shape = (CHANNELS, CHANNELS, 3, 3)
    x = sketch.qdq(sketch.input("x", (1, CHANNELS, 6, 6)), 2.0**-6, -32, out="xd")
    bias = sketch.weight(rng.integers(-900, 900, CHANNELS), 2.0**-13, 0, np.int32, name="b")
    weights = sketch.weight(rng.integers(-60, 61, shape), 2.0**-7, name="w")
    first = sketch.node("Conv", [x, weights, bias], "first", name="first", pads=[1, 1, 1, 1])
    middle = sketch.qdq(first, 2.0**-5, -20, out="middle")
    small = sketch.weight(rng.integers(-60, 61, (CHANNELS, CHANNELS, 1, 1)), 2.0**-7, name="v")
    second = sketch.node("Conv", [middle, small], "second", name="second")
    sketch.output(sketch.qdq(second, 2.0**-5, 12, out="y"))
    return sketch.proto()


def matmul(dtype: type[np.generic] = np.int8) -> onnx.ModelProto:
    """16x16x16, activations of int8 or int16 that use their range."""
    small = dtype is np.int8
    sketch = Sketch(opset=13 if small else 21)
    weights = np.random.default_rng(6).integers(-60, 61, (SIZE, SIZE))
    x = sketch.qdq(sketch.input("x", (SIZE, SIZE)), 2.0**-6 if small else 2.0**-14, dtype=dtype, out="xd")
    product = sketch.node("MatMul", [x, sketch.weight(weights, 2.0**-7, name="w")], "product", name="matmul")
    sketch.output(sketch.qdq(product, 2.0**-5 if small else 2.0**-12, dtype=dtype, out="y"))
    return sketch.proto(ir_version=8 if small else 10)


BASES: Final[Mapping[str, Base]] = {
    "digits_cnn": Base(name="digits_cnn", folder="digits", data="digits.npz"),
    "branching": Base(name="branching", folder="branching", data="branching.npz"),
    "branching, two halves": Base(
        name="branching",
        folder="branching",
        data="branching.npz",
        directives={"trunk_fc": {"parallelism": {"cas_num": 2}}},
    ),
    "zero points": Base(name="zero_points", make=zero_points),
}


def files_of(row: Base, scratch: Path) -> tuple[Path, Path]:
    """Model and data."""
    if row.make is None:
        return EXAMPLES / row.folder / f"{row.name}.onnx", EXAMPLES / row.folder / row.data
    model, data = scratch / f"{row.name}.onnx", scratch / f"{row.name}.npz"
    proto = row.make()
    onnx.save(proto, model)
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    feeds = np.random.default_rng(5).uniform(-1.5, 1.8, (12, *shape)).astype(np.float32)
    write_npz(data, {"x": feeds})
    return model, data
