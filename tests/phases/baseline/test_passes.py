"""Dispatches run one after the other: what is not handed on is named and counted."""

from dataclasses import replace

import numpy as np

from manifest.model import Dispatch, Manifest
from oracle.run import Oracle
from phases.baseline.passes import HandOff, lost_tensors, run_dispatches
from tests.qdq_models import Sketch


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
