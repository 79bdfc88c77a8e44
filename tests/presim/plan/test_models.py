"""Every model on every device: planned, run three times, and one of each kind held against the oracle."""

from pathlib import Path

import pytest

from manifest.device import load_device
from phases.baseline.budget import plan_dispatches
from presim.design import Design
from presim.directives import Directives
from presim.plan import design_of
from presim.simulate.run import simulate
from presim.static import check_design
from tests.presim.plan.harness import GOOD, random_inputs, run_with_data, stored, unbalanced
from tests.presim.plan.models import FIVE, real


def designs(name: str, device: str) -> list[Design]:
    imported = real(name, device)
    plan = plan_dispatches(imported.manifest, load_device(device), host_ops=True)
    chosen = [d for d in plan.dispatches if d.where == "npu"]
    return [design_of(imported.manifest, load_device(device), Directives(), d) for d in chosen]


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("device", ["npu1", "npu2", "vek280", "vek385"])
@pytest.mark.parametrize("name", FIVE)
def test_plans_run_three_inferences(name: str, device: str) -> None:
    (design,) = designs(name, device)
    assert unbalanced(design) == []
    result = simulate(design)
    assert result.verdict == "completes", result.text
    assert result.inferences == 3
    faults = [f.line() for c in check_design(design, load_device(device)) for f in c.findings if f.severity == "error"]
    assert faults == []


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("name", FIVE)
def test_every_tensor_is_carried_and_equal_to_the_oracle(name: str) -> None:
    imported = real(name)
    (design,) = designs(name, "npu2")
    tensors = stored(imported.manifest, imported.arrays, random_inputs(imported.manifest, 3))
    carried = {f.tensor for f in design.fifos} | {view for view, _ in design.views}
    made = {n for op in imported.manifest.ops if op.where == "npu" for n in op.outputs}
    assert made <= carried
    result = run_with_data(design, imported.manifest, imported.arrays, tensors)
    assert result.verdict == "completes", result.text
    assert {f.name for f in design.fifos if f.init_array is None} <= set(result.compared)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    "name", ["mnist_resnet.qdq_s8s8_sym", "cntk_mnist.qdq_s16s8_pc", "digits_cnn.qop_u8u8_pt", "resblock.quark_xint8"]
)
def test_other_schemes_run(name: str) -> None:
    for design in designs(name, "npu1"):
        assert unbalanced(design) == []
        assert simulate(design).verdict in GOOD


@pytest.mark.usefixtures("shared")
def test_a_network_with_more_ops_than_cores() -> None:
    for design in designs("light_squeezenet.quark_xint8", "npu2"):
        assert len(design.workers) <= 32
        assert unbalanced(design) == []


@pytest.mark.usefixtures("shared")
def test_planning_is_quick_and_the_same_every_time(tmp_path: Path) -> None:
    del tmp_path
    assert designs("mnist_resnet.quark_xint8", "npu2") == designs("mnist_resnet.quark_xint8", "npu2")
