"""QOperator nodes and shifted biases against onnxruntime, right and broken on purpose."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from manifest.model import Manifest
from manifest.onnx_import import Imported
from oracle import contraction, requantize
from oracle.evidence import Comparison
from oracle.reference import compare_model, compare_random
from tests.qdq_models import Sketch

FEEDS = 16


def qlinear_conv(bias: int) -> Imported:
    """x -> QuantizeLinear -> QLinearConv `conv` with a bias of any size -> y uint8."""
    rng = np.random.default_rng(0)
    s = Sketch()
    q = s.q(s.input("x", (1, 2, 5, 4)), 0.05, 7, np.uint8, out="a")
    w = s.const(rng.integers(-128, 128, (3, 2, 3, 3)), np.int8)
    scales = [q, s.const(0.05), s.const(7, np.uint8), w, s.const([0.02, 0.03, 0.01]), s.const([0, 0, 0], np.int8)]
    out = [s.const(2.0e5 if abs(bias) > 2**24 else 0.3), s.const(9, np.uint8)]
    b = s.const(np.array([bias, bias, -bias], np.int64), np.int32)
    s.node("QLinearConv", [*scales, *out, b], "y", name="conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    s.output("y", (1, 3, 5, 4), TensorProto.UINT8)
    return s.load()


def qlinear_add() -> Imported:
    """x -> QuantizeLinear -> QLinearAdd `sum` with a constant, odd zero points -> y uint8."""
    s = Sketch()
    q = s.q(s.input("x", (1, 64)), 0.0625, 7, np.uint8, out="a")
    const = [s.const(np.arange(64) * 3, np.uint8), s.const(0.125), s.const(5, np.uint8)]
    s.node(
        "QLinearAdd",
        [q, s.const(0.0625), s.const(7, np.uint8), *const, s.const(0.25), s.const(3, np.uint8)],
        "y",
        name="sum",
        domain="com.microsoft",
    )
    s.output("y", (1, 64), TensorProto.UINT8)
    return s.load()


def xint8() -> Imported:
    """x -> Q/DQ -> Conv with an int8 bias of scale 2^-7 -> Q/DQ, as Quark writes it."""
    rng = np.random.default_rng(0)
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 5, 4)), 2.0**-4, 128, np.uint8, out="a")
    w = s.weight(rng.integers(-128, 128, (3, 2, 3, 3)), 2.0**-8)
    b = s.dq(s.const([90, -70, 50], np.int8), 2.0**-7, out="b")
    c = s.node("Conv", [x, w, b], "c", name="conv", kernel_shape=[3, 3])
    s.qdq(c, 2.0**-4, 128, np.uint8, out="y")
    s.output("y", (1, 3, 3, 2))
    return s.load()


def compared(imported: Imported, manifest: Manifest | None = None) -> tuple[Comparison, ...]:
    """Comparison (a) and every op alone."""
    manifest = manifest or imported.manifest
    shape = manifest.tensor("x").shape
    data = {"x": np.random.default_rng(1).normal(0, 4, (FEEDS, *shape)).astype(np.float32)}
    on_feeds = compare_model(imported.model_bytes, manifest, imported.arrays, data)
    assert [c.kind for c in on_feeds] == ["disable_all"]
    return (*on_feeds, compare_random(imported.model_bytes, manifest, imported.arrays))


def causes(comparisons: tuple[Comparison, ...]) -> dict[str, set[str]]:
    """Causes of unexplained differences by op."""
    found: dict[str, set[str]] = {}
    for row in (row for c in comparisons for row in c.tensors if row.unexplained):
        assert row.first is not None
        found.setdefault(row.op, set()).add(row.first.cause)
    return found


@pytest.mark.parametrize("imported", [qlinear_conv(900), qlinear_conv(2**31 - 900), qlinear_add(), xint8()])
def test_right_ones_have_no_mismatch(imported: Imported) -> None:
    for c in compared(imported):
        assert (c.mismatches, c.why_not) == (0, "")
        assert len(c.tensors) == c.tensors_expected


def test_int32_wrap_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    build = requantize.FloatFinish

    def unwrapped(output: requantize.Output, *args: Any) -> requantize.FloatFinish:
        return build(replace(output, wrap_bits=0), *args)

    monkeypatch.setattr(requantize, "FloatFinish", unwrapped)
    assert not causes(compared(qlinear_conv(900)))
    found = causes(compared(qlinear_conv(2**31 - 900)))
    assert set(found) == {"conv"}
    assert all("the accumulator wraps at int32 in onnxruntime" in cause for cause in found["conv"])


def test_qlinear_add_with_the_meaning_of_a_qdq_add_is_no_near_tie() -> None:
    imported = qlinear_add()
    op = next(o for o in imported.manifest.ops if o.name == "sum")
    assert op.requant is not None
    wrong = replace(op, requant=replace(op.requant, reference="rational", zero_point_inside=False))
    ops = tuple(wrong if o is op else o for o in imported.manifest.ops)
    found = causes(compared(imported, replace(imported.manifest, ops=ops)))
    assert set(found) == {"sum"}
    assert all("the zero point is inside the rounding in onnxruntime" in cause for cause in found["sum"])


def test_bias_shift_dropped_in_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    known = contraction._bias

    def dropped(op: Any, scope: Any, units: Any, channels: int) -> Any:
        plain = replace(op, bias=replace(op.bias, kind="accumulator"))
        return known(plain, scope, units, channels)

    monkeypatch.setattr(contraction, "_bias", dropped)
    found = causes(compared(xint8()))
    assert set(found) == {"conv"}
    assert all("the bias pre-shift is missing in the oracle" in cause for cause in found["conv"])


def test_bias_shift_dropped_in_the_manifest() -> None:
    imported = xint8()
    op = next(o for o in imported.manifest.ops if o.type == "Conv")
    assert op.bias is not None
    wrong = replace(op, bias=replace(op.bias, kind="accumulator", shifts=()))
    ops = tuple(wrong if o is op else o for o in imported.manifest.ops)
    assert set(causes(compared(imported, replace(imported.manifest, ops=ops)))) == {"conv"}
