"""Graph outputs behind a layout op: their codes have no tensor of their own in the file."""

import numpy as np

from oracle.reference import compare_model, compare_random
from tests.qdq_models import Sketch


def flattened() -> Sketch:
    """Q -> DQ -> MaxPool -> Q -> DQ -> Flatten -> graph output."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 4, 4)), 2**-4, 3, out="xd")
    pooled = s.qdq(s.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), 2**-4, 3, out="m")
    s.node("Flatten", [pooled], "y", name="flat")
    s.output("y", (1, 8))
    return s


def test_the_float_output_is_compared_and_its_nameless_codes_are_not_asked_for() -> None:
    imported = flattened().load()
    data = (imported.model_bytes, imported.manifest, imported.arrays)
    feeds = {"x": np.random.default_rng(0).normal(0, 2, (5, 1, 2, 4, 4)).astype(np.float32)}
    (whole,) = compare_model(*data, feeds)
    alone = compare_random(*data)
    for comparison in (whole, alone):
        assert comparison.why_not == ""
        assert {row.tensor for row in comparison.tensors} == {"xd.q", "m.q", "y"}
        assert comparison.tensors_expected == 3
        assert comparison.unexplained == 0
    assert next(row for row in alone.tensors if row.tensor == "y").op_type == "DequantizeLinear"
