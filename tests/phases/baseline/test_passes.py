"""Dispatches run one after the other: what is not handed on is named and counted."""

from dataclasses import replace

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.model import Dispatch, Manifest
from oracle.run import Oracle
from phases.baseline.passes import HandOff, Pass, lost_tensors, run_dispatches
from tests.qdq_models import Sketch, feeds_for


def two_layers() -> tuple[Manifest, Oracle]:
    """x -> Q -> fc1 -> fc2 -> DQ -> y in three dispatches."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="xd")
    a = s.qdq(s.node("Gemm", [x, s.weight(np.eye(4), 0.5)], name="fc1"), 0.5, out="a")
    s.qdq(s.node("Gemm", [a, s.weight(np.eye(4), 0.5)], name="fc2"), 0.5, out="y")
    s.output("y", (1, 4))
    imported = s.load()
    names = [op.name for op in imported.manifest.ops]
    parts, handed = (names[:1], names[1:2], names[2:]), ("x", "xd.q", "a.q", "y")
    dispatches = tuple(
        Dispatch(name=f"d{i}", where="npu", ops=tuple(p), inputs=(a,), outputs=(b,), cut_bytes=0, reason="")
        for i, (p, a, b) in enumerate(zip(parts, handed[:-1], handed[1:], strict=True))
    )
    manifest = replace(imported.manifest, dispatches=dispatches)
    return manifest, Oracle(manifest, imported.arrays)


def test_every_dispatch_gets_what_it_reads() -> None:
    manifest, oracle = two_layers()
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(2, 1, 4)}
    left = run_dispatches(oracle, manifest, feeds)
    assert set(left) == {"xd.q", "a.q", "y"}
    assert np.array_equal(left["y"], oracle.run(feeds)["y"])
    assert lost_tensors(manifest) == ()


def test_a_tensor_that_is_not_handed_on_is_named_and_what_lies_behind_it_differs_whole() -> None:
    manifest, oracle = two_layers()
    first, second, third = manifest.dispatches
    broken = replace(manifest, dispatches=(first, replace(second, outputs=()), third))
    feeds = {"x": np.zeros((2, 1, 4), np.float32)}
    assert lost_tensors(broken) == ("a.q",)
    left = run_dispatches(oracle, broken, feeds)
    assert set(left) == {"xd.q"}
    hand_off = HandOff()
    hand_off.add({"y": oracle.run(feeds)["y"]}, left, ["y"])
    assert (hand_off.elements, hand_off.mismatches) == (8, 8)


def test_the_first_deviating_tensor_is_the_first_of_the_graph() -> None:
    manifest, _ = two_layers()
    found = Pass(samples=1, elements=12, deviating={"a.q": (4, 1), "xd.q": (3, 2)}).target(manifest)
    assert found is not None
    assert [row[0] for row in found.tensors] == ["xd.q", "a.q"]
    assert found.deviating == 7


def test_exact_values_beyond_int64_are_handed_on_too() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.1, out="xd")
    m = s.node("MatMul", [x, s.weight(np.eye(4) * 9, 0.3)])
    a = s.node("Add", [m, s.const(np.array([[0.7], [-0.3]], np.float32))], "a")
    factors = s.const([[0.1234567], [0.7654321]])
    s.output(s.node("Mul", [s.node("Add", [a, x]), factors], "y"), (2, 4))
    imported = s.load()
    manifest = imported.manifest
    names = [op.name for op in manifest.ops]
    exact = next(op.inputs[0] for op in manifest.ops if op.outputs == ("y",))
    assert manifest.tensor(exact).dtype == "exact"
    parts, handed = (names[:1], names[1:-1], names[-1:]), ("x", "xd.q", exact, "y")
    dispatches = tuple(
        Dispatch(name=f"d{i}", where="npu", ops=tuple(p), inputs=(a,), outputs=(b,), cut_bytes=0, reason="")
        for i, (p, a, b) in enumerate(zip(parts, handed[:-1], handed[1:], strict=True))
    )
    manifest = replace(manifest, dispatches=dispatches)
    oracle = Oracle(manifest, imported.arrays)
    feeds = feeds_for(imported, 5)
    with pytest.raises(RefusedError, match="ORACLE-INPUT-EXACT"):
        oracle.run(feeds, keep="stored")
    whole, left = oracle.run(feeds, keep="carried"), run_dispatches(oracle, manifest, feeds)
    assert (left[exact].dtype, whole[exact].dtype) == (np.dtype(object), np.dtype(object))
    hand_off = HandOff()
    hand_off.add(whole, left, ["xd.q", exact, "y"])
    assert (hand_off.elements, hand_off.mismatches) == (5 * (4 + 8 + 8), 0)
    left[exact][3, 1, 2] += 1
    hand_off.add(whole, left, [exact])
    assert hand_off.mismatches == 1
