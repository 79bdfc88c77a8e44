"""Dispatches: both sides of the limit, cuts, host ops, oversized ops, unknown figures, and the graph they rest on."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.device import Device, Figure, load_device
from manifest.errors import RefusedError
from manifest.io import manifest_errors
from manifest.model import Manifest
from phases.baseline.budget import BudgetPlan, plan_dispatches
from phases.baseline.capacity import capacity_of, exceeds
from tests.budget_graphs import Build

NPU1 = load_device("npu1")


HOST = {
    "where": "host", "need_bytes": 0, "weights_bytes": 0, "window_bytes": 0, "skip_bytes": 0, "cores_needed": 0,
    "kernel_bodies": 0, "bodies_per_core": 0.0, "program_bytes": 0, "shim_channels_need": 0, "have_bytes": None,
    "cores_have": None, "program_have_bytes": None, "shim_channels_have": None, "oversized_ops": (),
}  # fmt: skip
"""Nothing of the array is needed or asked for by a host dispatch."""


def small(total_bytes: int, core_bytes: int = 256) -> Device:
    """npu1 with eight cores of `core_bytes` and as much memory tile as makes the budget `total_bytes`."""
    l1 = core_bytes * 5 // 4
    memtile = -(-total_bytes * 5 // 4) - 8 * l1
    known = {"l1_bytes": 1024 + l1, "memtile_bytes": memtile, "memtiles": 1, "core_tiles": 8}
    device = replace(NPU1, **{k: Figure(value=v, source="test") for k, v in known.items()})  # type: ignore[arg-type]
    assert capacity_of(device).total_bytes == total_bytes
    return device


def check(manifest: Manifest, plan: BudgetPlan) -> None:
    """What has to hold of any plan: every op once, in an order that has its inputs, hand-offs complete and counted."""
    placed = replace(manifest, dispatches=plan.dispatches)
    assert manifest_errors(placed) == ()
    assert [b.name for b in plan.budgets] == [d.name for d in plan.dispatches]
    ops = {op.name: op for op in manifest.ops}
    by_name = manifest.by_name()
    constants = {t.name for t in manifest.tensors if t.array is not None}
    handed = set(manifest.model.inputs)
    for d in plan.dispatches:
        assert {ops[n].where for n in d.ops} == {d.where}
        assert set(d.inputs) <= handed
        known = set(d.inputs) | constants | {""}
        for name in d.ops:
            assert set(ops[name].inputs) <= known
            known |= set(ops[name].outputs)
        assert set(d.outputs) <= known
        handed |= set(d.outputs)
        readers = {n for other in plan.dispatches if other is not d for n in other.inputs}
        bytes_out = sum(_bytes(by_name[n].shape, by_name[n].dtype) for n in d.outputs if n in readers)
        assert d.cut_bytes == bytes_out
        assert all(n in readers or n in manifest.model.outputs for n in d.outputs)
    assert set(manifest.model.outputs) <= handed


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    size = {"int8": 1, "float32": 4, "exact": 4}[dtype]
    for d in shape:
        size *= d
    return size


def chain(layers: int, width: int, device: str = "npu1") -> Manifest:
    b = Build()
    y = b.quantize(b.input("x", (1, width), "float32"))
    for _ in range(layers):
        y = b.dense(y, width)
    return b.manifest(b.dequantize(y), device=device)


def test_a_small_model_is_one_dispatch_between_its_host_edges() -> None:
    m = chain(3, 64)
    plan = plan_dispatches(m, NPU1)
    check(m, plan)
    assert [(d.name, d.where, len(d.ops)) for d in plan.dispatches] == [
        ("h0", "host", 1),
        ("d0", "npu", 3),
        ("h1", "host", 1),
    ]
    assert [d.reason for d in plan.dispatches] == [
        "the next ops run on the array",
        "the next ops run on the host",
        "end of the graph",
    ]
    assert [d.cut_bytes for d in plan.dispatches] == [64, 64, 0]
    host, budget, _ = plan.budgets
    assert {f: getattr(host, f) for f in HOST} == HOST
    assert budget.need_bytes == 3 * (64 * 64 + 128) == budget.weights_bytes + budget.window_bytes + budget.skip_bytes
    assert budget.have_bytes == 4 * ((65536 - 1024) * 16 + 4 * 524288) // 5
    assert (budget.cores_needed, budget.cores_have, budget.kernel_bodies) == (3, 16, 1)
    assert plan.unknown == ()


def test_forty_dense_layers_of_512_are_cut_on_npu1_and_on_npu2() -> None:
    for name, least in (("npu1", 5), ("npu2", 3)):
        m = chain(40, 512, name)
        started = time.monotonic()
        plan = plan_dispatches(m, load_device(name))
        assert time.monotonic() - started < 5
        check(m, plan)
        array = [b for b in plan.budgets if b.where == "npu"]
        assert len(array) == least
        assert all(exceeds(b) == "" for b in array)
        assert array[0].have_bytes is not None
        # One dispatch less cannot hold the bytes.
        assert sum(b.need_bytes for b in array) > (least - 1) * array[0].have_bytes
        cuts = [d for d in plan.dispatches if d.where == "npu"][:-1]
        assert all(d.reason.startswith("budget: with the next dispatch bytes need ") for d in cuts)
        assert all(len(d.outputs) == 1 and d.cut_bytes == 512 for d in cuts)


def test_the_limit_is_exact() -> None:
    m = chain(2, 64)
    need = plan_dispatches(m, NPU1).budgets[1].need_bytes
    assert [d.name for d in plan_dispatches(m, small(need)).dispatches] == ["h0", "d0", "h1"]
    plan = plan_dispatches(m, small(need - 1))
    check(m, plan)
    assert [d.name for d in plan.dispatches] == ["h0", "d0", "d1", "h1"]
    assert plan.dispatches[1].reason.startswith(f"budget: with the next dispatch bytes need {need}, have {need - 1}")


def bottleneck() -> tuple[Manifest, list[str]]:
    """Two residual blocks with a narrow tensor between them; the cheap cut is that tensor."""
    b = Build()
    x = b.input("x", (1, 64, 8, 8))
    y = b.op("Add", (b.conv(b.conv(x, 64), 64), x), (1, 64, 8, 8), "add1")
    narrow = b.conv(y, 8, 1)
    y = b.conv(narrow, 64, 1)
    z = b.op("Add", (b.conv(b.conv(y, 64), 64), y), (1, 64, 8, 8), "add2")
    return b.manifest(z), [narrow]


def test_the_cut_is_at_the_one_small_live_tensor() -> None:
    m, narrow = bottleneck()
    whole = plan_dispatches(m, NPU1).budgets[0]
    plan = plan_dispatches(m, small(whole.need_bytes - 1, 16384))
    check(m, plan)
    assert len(plan.dispatches) == 2
    assert list(plan.dispatches[0].outputs) == narrow
    assert plan.dispatches[0].cut_bytes == 8 * 8 * 8


def test_skip_rows_are_part_of_the_need() -> None:
    m, _ = bottleneck()
    budget = plan_dispatches(m, NPU1).budgets[0]
    assert budget.skip_bytes == 2 * (2 * 64 * 8)
    assert budget.need_bytes == budget.weights_bytes + budget.window_bytes + budget.skip_bytes


def test_an_unrounded_value_is_never_handed_from_array_to_array() -> None:
    b = Build()
    y = b.dense(b.input("x", (1, 64)), 64, dtype="exact")
    y = b.op("Relu", (y,), (1, 64))
    m = b.manifest(b.dense(y, 64))
    plan = plan_dispatches(m, small(8000))
    check(m, plan)
    assert [d.ops for d in plan.dispatches] == [("n0", "n1"), ("n2",)]
    with pytest.raises(RefusedError, match=r"\[OPTION-CUT\] --cut n0_out: an unrounded value .* got n0_out"):
        plan_dispatches(m, NPU1, ("n0_out",))


def test_an_unrounded_value_may_go_to_the_host() -> None:
    b = Build()
    m = b.manifest(b.dequantize(b.dense(b.input("x", (1, 64)), 64, dtype="exact")))
    plan = plan_dispatches(m, NPU1)
    check(m, plan)
    assert [d.cut_bytes for d in plan.dispatches] == [64 * 4, 0]


def test_asked_cuts_are_made() -> None:
    m = chain(4, 64)
    plan = plan_dispatches(m, NPU1, ("n2_out", "n1_out"))
    check(m, plan)
    assert [d.ops for d in plan.dispatches if d.where == "npu"] == [("n1",), ("n2",), ("n3", "n4")]
    assert plan.dispatches[1].reason == "cut asked for at 'n1_out'"
    assert plan.dispatches[1].outputs == ("n1_out",)


@pytest.mark.parametrize(
    ("cut", "match"),
    [
        ("nope", "the manifest has no such tensor"),
        ("x", "it does not lie between two ops"),
        ("n1_w", "it does not lie between two ops"),
        ("dequant_out", "it does not lie between two ops"),
    ],
)
def test_a_cut_that_cannot_be_made_is_refused(cut: str, match: str) -> None:
    with pytest.raises(RefusedError, match=rf"\[OPTION-CUT\] --cut {cut}: {match}"):
        plan_dispatches(chain(2, 64), NPU1, (cut,))


def test_all_wrong_cuts_are_reported_at_once() -> None:
    with pytest.raises(RefusedError) as caught:
        plan_dispatches(chain(2, 64), NPU1, ("nope", "n1_out", "x"))
    assert [p.where for p in caught.value.problems] == ["--cut nope", "--cut x"]


def test_a_cut_at_a_hand_off_that_exists_anyway_changes_nothing() -> None:
    m = chain(2, 64)
    assert plan_dispatches(m, NPU1, ("quant_out", "n2_out")).dispatches == plan_dispatches(m, NPU1).dispatches


def test_host_ops_form_their_own_dispatches_when_asked_for() -> None:
    b = Build()
    y = b.dequantize(b.dense(b.quantize(b.input("x", (1, 8), "float32")), 8))
    soft = b.op("Softmax", (y,), (1, 8), "soft", dtype="float32", where="host", axis=-1)
    m = b.manifest(soft)
    plan = plan_dispatches(m, NPU1, host_ops=True)
    check(m, plan)
    assert [d.ops for d in plan.dispatches] == [("quant",), ("n1",), ("dequant", "soft")]
    with pytest.raises(RefusedError, match=r"\[OPTION-HOST-OPS\] op 'soft' \(Softmax\).*--host-ops"):
        plan_dispatches(m, NPU1)


def test_a_model_on_the_host_alone_needs_nothing_of_the_device() -> None:
    b = Build()
    m = b.manifest(b.dequantize(b.quantize(b.input("x", (1, 8), "float32"))))
    plan = plan_dispatches(m, load_device("vek385"))
    check(m, plan)
    assert [d.name for d in plan.dispatches] == ["h0"]
    assert plan.unknown == ()


@pytest.mark.parametrize(("total", "pieces"), [(65536 + 1088, 1), (65536 + 1087, 2), (32768 + 1088, 2), (33855, 3)])
def test_an_op_that_exceeds_alone_is_named_with_its_split(total: int, pieces: int) -> None:
    b = Build()
    m = b.manifest(b.dense(b.dense(b.dense(b.input("x", (1, 64)), 64), 1024), 8))
    plan = plan_dispatches(m, small(total))
    check(m, plan)
    named = {name: split for b in plan.budgets for name, split in b.oversized_ops}
    assert named == ({} if pieces == 1 else {"n1": f"output channels into {pieces}"})
    if pieces > 1:
        assert ("n1",) in [d.ops for d in plan.dispatches]


def test_splits_of_other_ops() -> None:
    b = Build()
    m = b.manifest(b.dense(b.input("x", (1, 60_000)), 2))  # one block of 8 channels, 480,000 bytes
    (budget,) = plan_dispatches(m, small(150_000)).budgets
    assert budget.oversized_ops == (("n0", "the reduction into 6"),)
    b = Build()
    m = b.manifest(b.dense(b.input("x", (1, 60_000)), 16))
    (budget,) = plan_dispatches(m, small(150_000)).budgets
    assert budget.oversized_ops == (("n0", "output channels into 2 and the reduction into 6"),)
    b = Build()
    m = b.manifest(b.dense(b.input("x", (1, 1000)), 32))  # four blocks of 8,000 bytes, 1,032 bytes of window
    (budget,) = plan_dispatches(m, small(8000 + 1032)).budgets
    assert budget.oversized_ops == (("n0", "output channels into 4"),)
    (budget,) = plan_dispatches(m, small(15_999 + 1032)).budgets
    assert budget.oversized_ops == (("n0", "output channels into 4"),)
    (budget,) = plan_dispatches(m, small(16_000 + 1032)).budgets
    assert budget.oversized_ops == (("n0", "output channels into 2"),)
    (budget,) = plan_dispatches(m, small(8000 + 1031)).budgets
    assert budget.oversized_ops == (("n0", "output channels into 4 and the reduction into 2"),)
    (budget,) = plan_dispatches(m, small(1032 + 1, 32)).budgets
    assert budget.oversized_ops == (("n0", "output channels into 4 and the reduction into 1000"),)
    (budget,) = plan_dispatches(m, small(1032, 32)).budgets
    assert budget.oversized_ops == (("n0", "rows into 33 pieces, with the halo of the window"),)
    b = Build()
    x = b.input("x", (1, 64, 40, 1000))
    m = b.manifest(b.op("MaxPool", (x,), (1, 64, 20, 500), kernel_shape=(2, 2), strides=(2, 2), pads=(0,) * 4))
    (budget,) = plan_dispatches(m, small(50_000)).budgets
    assert budget.oversized_ops[0][0] == "n0"
    assert budget.oversized_ops[0][1] == "rows into 4 pieces, with the halo of the window"


def test_null_figures_are_listed_and_compared_with_nothing() -> None:
    m = chain(2, 64, "vek385")
    plan = plan_dispatches(m, load_device("vek385"))
    assert plan.unknown == ("shim_dma_columns", "shim_mm2s", "shim_s2mm")
    assert plan.budgets[1].shim_channels_have is None
    assert plan.budgets[1].have_bytes is not None
    nothing = replace(NPU1, l1_bytes=Figure(value=None, source="none"))
    plan = plan_dispatches(chain(40, 512), nothing)
    assert (plan.unknown, [d.name for d in plan.dispatches]) == (("l1_bytes",), ["h0", "d0", "h1"])
    assert plan.budgets[1].have_bytes is None
    assert plan.budgets[1].oversized_ops == ()


def test_too_many_outputs_for_the_shim_are_cut_apart() -> None:
    b = Build()
    x = b.input("x", (1, 64))
    outs = [b.dense(x, 8) for _ in range(9)]
    m = b.manifest(*outs)
    plan = plan_dispatches(m, NPU1)
    check(m, plan)
    assert sorted(budget.shim_channels_need for budget in plan.budgets) == [2, 8]
    assert plan.dispatches[0].reason == "budget: with the next dispatch shim channels need 9, have 8"


def test_too_many_inputs_for_the_shim_are_cut_apart() -> None:
    b = Build()
    y = b.dense(b.input("x0", (1, 64)), 64)
    for i in range(1, 12):
        y = b.op("Add", (y, b.dense(b.input(f"x{i}", (1, 64)), 64)), (1, 64))
    m = b.manifest(y)
    plan = plan_dispatches(m, NPU1)
    check(m, plan)
    assert len(plan.dispatches) == 2
    assert all(exceeds(budget) == "" for budget in plan.budgets)
    assert max(budget.shim_channels_need for budget in plan.budgets) <= 8


def test_planning_is_deterministic_and_replaces_old_dispatches() -> None:
    m = chain(40, 512)
    plan = plan_dispatches(m, NPU1)
    assert plan_dispatches(replace(m, dispatches=plan.dispatches), NPU1) == plan


@st.composite
def random_graphs(draw: st.DrawFn) -> Manifest:
    """Dense graphs with branches, residual sums, host ops and unrounded values."""
    b = Build()
    ends = [b.input("x", (1, 16)), b.input("y", (1, 16))]
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["dense", "dense", "add", "host", "exact"]))
        x, y = draw(st.sampled_from(ends)), draw(st.sampled_from(ends))
        if kind == "dense":
            ends.append(b.dense(x, 16))
        elif kind == "add":
            ends.append(b.op("Add", (x, y), (1, 16)))
        elif kind == "exact":
            ends.append(b.op("Relu", (b.dense(x, 16, dtype="exact"),), (1, 16)))
        else:
            ends.append(b.op("QuantizeLinear", (x,), (1, 16), where="host"))
    read = {n for op in b.ops for n in op.inputs}
    return b.manifest(*(n for n in ends[2:] if n not in read))


@settings(max_examples=60)
@given(random_graphs(), st.integers(300, 3000))
def test_any_graph_gives_a_valid_plan_and_no_more_dispatches_than_needed(m: Manifest, total: int) -> None:
    device = small(total, 32)
    plan = plan_dispatches(m, device)
    check(m, plan)
    array = [(d, b) for d, b in zip(plan.dispatches, plan.budgets, strict=True) if d.where == "npu"]
    if all(exceeds(b) for _, b in array):
        return
    for d, budget in array:
        if exceeds(budget):
            inside = {n for op in m.ops if op.name in d.ops for n in op.outputs if m.tensor(n).dtype == "exact"}
            assert len(d.ops) == 1 or inside
