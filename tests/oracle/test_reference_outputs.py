"""Graph outputs behind a layout op: their codes have no tensor of their own in the file."""

from dataclasses import replace

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


def clipped_codes() -> Sketch:
    """Q -> integer Clip -> integer MaxPool -> DQ: codes that no QuantizeLinear writes."""
    s = Sketch()
    codes = s.q(s.input("x", (1, 2, 4, 4)), 2**-4, 3, out="codes")
    narrow = s.node("Clip", [codes, s.const(-8, np.int8), s.const(7, np.int8)], "narrow", name="clip")
    pooled = s.node("MaxPool", [narrow], "pooled", name="max", kernel_shape=[2, 2])
    s.dq(pooled, 2**-4, 3, out="y")
    s.output("y", (1, 2, 3, 3))
    return s


def test_codes_of_ops_on_the_integer_side_are_compared_under_their_own_op() -> None:
    imported = clipped_codes().load()
    data = (imported.model_bytes, imported.manifest, imported.arrays)
    feeds = {"x": np.random.default_rng(0).normal(0, 2, (5, 1, 2, 4, 4)).astype(np.float32)}
    (whole,) = compare_model(*data, feeds)
    for comparison in (whole, compare_random(*data)):
        assert [row.tensor for row in comparison.tensors] == ["codes", "narrow", "pooled", "y"]
        assert comparison.tensors_expected == 4
        assert comparison.unexplained == 0


def test_a_clip_that_the_manifest_lost_is_named() -> None:
    imported = clipped_codes().load()
    ops = tuple(
        replace(op, requant=replace(op.requant, qmin=-128, qmax=127), attributes={"qmin": -128, "qmax": 127})
        if op.type == "Clip" and op.requant is not None
        else op
        for op in imported.manifest.ops
    )
    broken = replace(imported.manifest, ops=ops)
    alone = compare_random(imported.model_bytes, broken, imported.arrays)
    assert {row.tensor for row in alone.tensors if row.unexplained} == {"narrow"}
