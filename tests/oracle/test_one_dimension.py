"""One-dimensional Conv and pools equal the two-dimensional op with a row axis of size one."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.model import Requantization
from oracle.run import Oracle
from oracle.sketch import Sketch, quantization, requantization
from oracle.value import Array

RNG = np.random.default_rng(5)
X: Array = RNG.integers(-128, 128, (3, 2, 2, 9)).astype(np.int8)
W: Array = RNG.integers(-128, 128, (4, 2, 3)).astype(np.int8)


def _run(op_type: str, *, flat: bool, requant: Requantization, outputs: int, attributes: dict[str, Any]) -> Array:
    def shaped(array: Array) -> Array:
        return array if flat else np.expand_dims(array, -2)

    sketch = Sketch()
    quant = quantization([0.5], [3])
    sketch.activation("x", shaped(X).shape[1:], "int8", quant, role="input")
    channels = len(W) if op_type == "Conv" else 2
    shape = (2, channels, outputs) if flat else (2, channels, 1, outputs)
    sketch.activation("y", shape, "int8", quantization([7.0], [-4]), role="output")
    inputs = ["x"]
    if op_type == "Conv":
        sketch.constant("w", shaped(W), quantization([0.25], [1]))
        inputs.append("w")
    both: dict[str, Any] = {}
    for name, value in attributes.items():
        one = {"pads": 0}.get(name, 1)
        if flat or not isinstance(value, tuple):
            both[name] = value
        else:
            both[name] = (one, value[0], one, value[1]) if name == "pads" else (one, *value)
    sketch.op(op_type, inputs, "y", requant=requant, attributes=both)
    got = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays).run({"x": shaped(X)})["y"]
    return got.reshape(3, 2, channels, outputs)


@pytest.mark.parametrize("op_type", ["Conv", "MaxPool", "AveragePool"])
def test_one_axis_equals_two(op_type: str) -> None:
    attributes: dict[str, Any] = {"kernel_shape": (3,), "strides": (2,), "pads": (1, 2), "dilations": (1,)}
    if op_type == "Conv":
        attributes["group"] = 1
    requant = requantization([Fraction(1, 56)] if op_type == "Conv" else [Fraction(1, 14)], "int8")
    one, two = (_run(op_type, flat=flat, requant=requant, outputs=5, attributes=attributes) for flat in (True, False))
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) > 5
