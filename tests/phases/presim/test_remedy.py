"""What would make a refused dispatch fit: every printed way is one that fits, and where there is none it is said."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from manifest.device import Device, load_device
from manifest.errors import Problem, RefusedError
from manifest.model import Manifest
from phases.baseline.budget import plan_dispatches
from phases.baseline.placeable import planner
from phases.presim.remedy import Helper, Remedy, asked_cuts
from presim.directives import Directives, directives_of
from presim.plan import design_of
from tests.presim.plan.harness import whole, with_figures
from tests.presim.plan.models import Net

NPU1 = load_device("npu1")
PORT = Path("a port")


def helper(
    manifest: Manifest, device: Device, directives: Directives | None = None, cuts: tuple[str, ...] = ()
) -> Helper:
    return Helper(manifest, device, directives or Directives(), cuts, PORT)


def cuts_in(text: str) -> tuple[str, ...]:
    """The cuts of the printed command."""
    (command,) = re.findall(r"`(.*?)`", text)
    words = shlex.split(command)
    assert words[:4] == ["python", "-m", "phases.baseline", str(PORT)]
    assert set(words[4::2]) == {"--cut"}
    return tuple(words[5::2])


def deep(layers: int = 9) -> Manifest:
    net = Net((1, 512))
    x = net.x
    for _ in range(layers):
        x = net.dense(x, 512, 512)
    made = net.done(x).manifest
    return replace(made, dispatches=(whole(made),))


def test_a_cut_is_found_and_what_it_makes_fits() -> None:
    made = deep()
    (dispatch,) = made.dispatches
    refused = planner(made, NPU1)(dispatch.ops, dispatch.inputs, dispatch.outputs)
    assert {p.code for p in refused} & {"PLAN-MEMTILE", "PLAN-CORES", "PLAN-CHANNELS"}
    remedy = helper(made, NPU1).remedy(dispatch)
    assert remedy.helps
    cuts = cuts_in(remedy.text)
    plan = plan_dispatches(made, NPU1, cuts, host_ops=True)
    assert f"into {sum(d.where == 'npu' for d in plan.dispatches)} dispatches" in remedy.text
    for d in plan.dispatches:
        if d.where == "npu":
            design_of(made, NPU1, Directives(), d)


def test_cuts_that_were_asked_for_before_stay() -> None:
    made = deep()
    before = made.ops[7].outputs[0]
    cuts = cuts_in(helper(made, NPU1, cuts=(before,)).remedy(made.dispatches[0]).text)
    assert cuts[0] == before
    assert len(cuts) >= 2


def test_a_directive_that_is_in_the_way_is_named() -> None:
    made = deep(4)
    (dispatch,) = made.dispatches
    first = made.ops[1].name
    asked = directives_of({first: {"parallelism": {"cas_num": 4, "cas_length": 4}}}, made, "test")
    with pytest.raises(RefusedError, match="PLAN-CORES"):
        design_of(made, NPU1, asked, dispatch)
    remedy = helper(made, NPU1, asked).remedy(dispatch)
    assert f"it fits without the directives of op {first!r}" in remedy.text
    assert cuts_in(remedy.text)


def test_where_nothing_helps_it_says_so_and_names_the_op() -> None:
    net = Net((1, 8, 3, 8192))
    made = net.done(net.rounded("GlobalAveragePool", [net.rounded("Relu", [net.x])])).manifest
    device = with_figures(NPU1, core_tiles=4, l1_bytes=6_000)
    (dispatch,) = (whole(made),)
    made = replace(made, dispatches=(dispatch,))
    assert planner(made, device)(dispatch.ops, dispatch.inputs, dispatch.outputs)
    remedy = helper(made, device).remedy(dispatch)
    assert not remedy.helps
    assert "no split and no cut between layers lets it fit npu1" in remedy.text
    assert any(repr(name) in remedy.text for name in dispatch.ops)


def test_only_budgets_get_a_remedy_and_own_advice_stays_where_nothing_helps() -> None:
    budget = Problem(code="PLAN-L1", where="op 'a'", what="too large", remedy="make it smaller")
    pin = Problem(code="PLACE-PIN", where="op 'a'", what="outside")
    helps, not_ = Remedy(text="do this", helps=True), Remedy(text="nothing helps", helps=False)
    assert helps.applied(budget).remedy == "do this"
    assert not_.applied(budget).remedy == "nothing helps; make it smaller"
    assert not_.applied(replace(budget, remedy="cut it (--cut)")).remedy == "nothing helps"
    assert helps.applied(pin) == pin


def test_cuts_of_the_last_run_are_read_from_the_port() -> None:
    assert asked_cuts({"options": {"cuts": ["a", "b c"]}}) == ("a", "b c")
    assert asked_cuts({"options": {}}) == asked_cuts({}) == ()
