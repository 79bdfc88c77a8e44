"""The planner's word about runs of ops: taken, refused with the reason, and what phase 1 cuts by it."""

from dataclasses import replace

import pytest

from manifest.device import load_device
from manifest.onnx_import import Imported
from phases.baseline.budget import plan_dispatches
from phases.baseline.placeable import planner
from presim.directives import Directives
from presim.place import place
from presim.plan import design_of
from tests.presim.plan.harness import whole, with_figures
from tests.presim.plan.models import Net

NPU1 = load_device("npu1")


@pytest.fixture(scope="module")
def dense() -> Imported:
    """Six layers of 64 x 64, each with 4 KiB of weights."""
    net = Net((1, 64))
    x = net.x
    for _ in range(6):
        x = net.dense(x, 64, 64)
    return net.done(x)


def test_a_run_that_fits_has_no_refusal_and_one_beyond_says_why(dense: Imported) -> None:
    run = whole(dense.manifest)
    for cores, codes in ((6, []), (1, ["PLAN-CORES"])):
        device = with_figures(NPU1, core_tiles=cores, program_memory_bytes=6000, l1_bytes=12_000)
        assert [p.code for p in planner(dense.manifest, device)(run.ops, run.inputs, run.outputs)] == codes


def test_every_dispatch_is_one_that_the_planner_places() -> None:
    device, net = NPU1, Net((1, 512))
    x = net.x
    for _ in range(9):
        x = net.dense(x, 512, 512)
    made = net.done(x).manifest
    quick, plan = plan_dispatches(made, device), plan_dispatches(made, device, refusal=planner(made, device))
    on_array = [d for d in plan.dispatches if d.where == "npu"]
    assert len(on_array) > len([d for d in quick.dispatches if d.where == "npu"])
    placed = replace(made, dispatches=plan.dispatches)
    for dispatch in on_array:
        place(design_of(placed, device, Directives(), dispatch), device)
    assert any("(PLAN-" in d.reason for d in on_array[:-1]), "the reason is the planner's"


def test_where_nobody_asks_the_planner_or_it_agrees_nothing_changes(dense: Imported) -> None:
    device = NPU1
    asked = plan_dispatches(dense.manifest, device, refusal=planner(dense.manifest, device))
    assert asked == plan_dispatches(dense.manifest, device)


def test_an_op_that_fits_no_way_is_left_where_it_is() -> None:
    net = Net((1, 8, 3, 8192))
    parts = [net.rounded("GlobalAveragePool", [net.rounded("Relu", [net.x], 2.0**-k)]) for k in (3, 4)]
    made = net.done(*parts).manifest
    plan = plan_dispatches(made, NPU1, refusal=planner(made, NPU1))
    assert replace(plan, refused=()) == plan_dispatches(made, NPU1)
    (line,) = plan.refused
    assert line.startswith("d0: phase 2 will refuse it: op ")
    assert "does not fit the data memory of a core: need " in line


def test_an_image_that_is_too_wide_beside_others_goes_alone_in_strips() -> None:
    net = Net((1, 8, 6, 4096))
    wide = net.conv(net.rounded("Relu", [net.x]), (8, 8))
    pooled = net.rounded("GlobalAveragePool", [net.rounded("MaxPool", [wide], kernel_shape=[1, 8], strides=[1, 8])])
    made = net.done(pooled).manifest
    run = whole(made)
    assert planner(made, NPU1)(run.ops, run.inputs, run.outputs)
    plan = plan_dispatches(made, NPU1, refusal=planner(made, NPU1))
    on_array = [d for d in plan.dispatches if d.where == "npu"]
    assert len(on_array) >= 2
    placed = replace(made, dispatches=plan.dispatches)
    assert all(design_of(placed, NPU1, Directives(), d).workers for d in on_array)
