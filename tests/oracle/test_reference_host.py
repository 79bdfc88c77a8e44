"""Models whose stages hang together: host functions, unrounded tensors read twice, stages that are large."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracle.ops import host_float
from oracle.reference import compare_model, compare_random, random_ops
from oracle.reference.compare import has_host_functions, quantised_part
from oracle.reference.graph import graph_of
from oracle.reference.stagewise import chunks, units
from oracle.stages import stages
from tests.qdq_models import Sketch
from tests.reference_models import FEEDS, cnn, feeds


def with_tail(unit: float, *, quantised: bool) -> Sketch:
    """The small net with a Softmax behind it, its result quantised or not."""
    s = cnn(unit)
    s.outputs.clear()
    p = s.node("Softmax", ["y"], "soft", name="soft", axis=1)
    if quantised:
        s.qdq(p, 1 / 256, 0, np.uint8, out="z")
    s.output("z" if quantised else "soft", (1, 3))
    return s


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("unit", [2.0**-4, 0.0613])
def test_a_host_function_behind_the_net(unit: float, quantised: bool) -> None:
    imported = with_tail(unit, quantised=quantised).load(host_ops=True)
    assert has_host_functions(imported.manifest)
    result = compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds())
    random = compare_random(imported.model_bytes, imported.manifest, imported.arrays)
    for c in (*result, random):
        assert (c.unexplained, c.why_not) == (0, ""), c.kind
        assert len(c.tensors) == c.tensors_expected
    by_kind = {c.kind: c for c in result}
    if "dump" in by_kind:
        assert "in front of host functions" in by_kind["dump"].reference
        assert by_kind["dump"].elements > 0
        assert by_kind["dump"].mismatches == 0


def test_a_wrong_host_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = with_tail(2.0**-4, quantised=False).load(host_ops=True)
    known = host_float.prepare

    def squared(op: Any, scope: Any) -> Any:
        plan = known(op, scope)
        return replace(plan, run=lambda values, finish: plan.run(values, finish) ** 2) if op.name == "soft" else plan

    monkeypatch.setattr("oracle.registry.host_float.prepare", squared)
    (result,) = [
        c
        for c in compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds())
        if c.kind in ("disable_all", "file_op")
    ]
    assert [row.op for row in result.tensors if row.unexplained] == ["soft"]


def test_nothing_lies_in_front_of_a_host_function_on_the_input() -> None:
    s = Sketch()
    e = s.node("Sigmoid", [s.input("x", (1, 3))], "e", name="first")
    s.qdq(e, 0.01, 0, np.uint8, out="y")
    s.output("y", (1, 3))
    imported = s.load(host_ops=True)
    graph = graph_of(imported.model_bytes, imported.manifest, imported.arrays, fma=True)
    assert quantised_part(graph, floats=True) is None


def test_a_float_product_that_onnxruntime_computes_its_own_way_is_left_to_the_file() -> None:
    s = Sketch(21)
    x = s.qdq(s.input("x", (1, 2, 4)), 0.0613, 3, np.uint8, out="a")
    r = s.qdq(s.node("Relu", [x], "r"), 0.05, 3, np.uint8, out="b")
    flat = s.node("Flatten", [r], "flat", axis=1)
    s.node("MatMul", [flat, s.weight(np.arange(24).reshape(8, 3), 0.013)], "y", name="mat")
    s.output("y", (1, 3))
    imported = s.load()
    data = {"x": np.random.default_rng(0).uniform(0, 9, (FEEDS, 1, 2, 4)).astype(np.float32)}
    dump, file_op = compare_model(imported.model_bytes, imported.manifest, imported.arrays, data)
    assert "without float outputs" in dump.reference
    assert (dump.why_not, dump.mismatches) == ("", 0)
    assert dump.elements > 0
    assert "y" in {row.tensor for row in file_op.tensors}
    assert file_op.unexplained == 0


def knotted() -> Sketch:
    """c = Conv(x) unrounded; q = Q(c); y = Q(c + DQ(q)): one stage that reads its own integer tensor."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 4, 4)), 0.11, 3, np.uint8, out="a")
    c = s.node("Conv", [x, s.weight([[[[3]]]], 0.013)], "c", name="conv")
    q = s.qdq(c, 0.07, 1, np.int8, out="q")
    s.qdq(s.node("Add", [c, q], "s", name="add"), 0.09, 1, np.int8, out="y")
    s.output("y", (1, 1, 4, 4))
    return s


def test_a_knotted_stage_is_compared_in_parts() -> None:
    imported = knotted().load()
    stage = next(st for st in stages(imported.manifest) if len(st.ops) > 2)
    visible = {"q.q", "y.q"}
    first, second = units(imported.manifest, stage, visible)
    assert (first.outputs, second.outputs) == (("q.q",), ("y.q",))
    assert set(first.inputs) == {"a.q"}
    assert set(second.inputs) == {"a.q", "q.q"}
    assert "add" not in first.ops
    (whole,) = units(imported.manifest, stage, ())
    assert whole.ops == stage.ops
    data = {"x": np.random.default_rng(0).uniform(0, 20, (FEEDS, 1, 1, 4, 4)).astype(np.float32)}
    for c in (
        *compare_model(imported.model_bytes, imported.manifest, imported.arrays, data),
        compare_random(imported.model_bytes, imported.manifest, imported.arrays),
    ):
        assert (c.unexplained, c.why_not) == (0, ""), c.kind
        assert len(c.tensors) == c.tensors_expected


def test_large_stages_take_fewer_cases_but_all_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = cnn().load()
    full = compare_random(imported.model_bytes, imported.manifest, imported.arrays)
    monkeypatch.setattr(random_ops, "STAGE_ELEMENTS", 0)
    few = compare_random(imported.model_bytes, imported.manifest, imported.arrays)
    assert few.samples < full.samples
    assert len(few.tensors) == len(full.tensors)
    assert all(row.elements > 0 for row in few.tensors)
    count = len(stages(imported.manifest))
    assert few.samples >= random_ops.MIN_CASES * (count - 1)


def test_chunks_hold_all_feeds_in_order_and_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = cnn().load().manifest
    data = {"x": np.arange(10 * 60, dtype=np.float32).reshape(10, 1, 2, 6, 5)}
    monkeypatch.setattr("oracle.reference.stagewise.CHUNK_BYTES", 1)
    pieces = list(chunks(manifest, data))
    assert [offset for offset, _ in pieces] == list(range(10))
    np.testing.assert_array_equal(np.concatenate([piece["x"] for _, piece in pieces]), data["x"])
    monkeypatch.undo()
    assert len(list(chunks(manifest, data))) == 1
    assert list(chunks(manifest, {})) == []


def test_floats_side_by_side_on_the_host() -> None:
    """A Concat of floats has no codes and no clamp."""
    s = Sketch()
    x = s.input("x", (1, 3))
    both = s.node("Concat", [x, s.node("Sigmoid", [x], "e")], "both", name="both", axis=1)
    s.qdq(both, 0.01, 0, np.uint8, out="y")
    s.output("y", (1, 6))
    s.output("both", (1, 6))
    imported = s.load(host_ops=True)
    data = {"x": np.random.default_rng(0).normal(size=(5, 1, 3)).astype(np.float32)}
    for c in (
        *compare_model(imported.model_bytes, imported.manifest, imported.arrays, data),
        compare_random(imported.model_bytes, imported.manifest, imported.arrays),
    ):
        assert c.unexplained == 0, c.tensors
    assert "both" in {row.tensor for row in c.tensors}


def test_a_maximum_of_floats_is_not_tried_on_nan() -> None:
    s = Sketch()
    x = s.input("x", (1, 1, 8, 8))
    pooled = s.node("MaxPool", [x], "m", name="pool", kernel_shape=[1, 2], strides=[1, 1])
    s.qdq(pooled, 0.01, 0, np.int8, out="y")
    s.output("y", (1, 1, 8, 7))
    imported = s.load(host_ops=True)
    for seed in range(10):
        found = compare_random(imported.model_bytes, imported.manifest, imported.arrays, seed=seed)
        assert (found.unexplained, found.why_not) == (0, ""), found.tensors
