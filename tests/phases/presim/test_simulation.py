"""Which fifos count as compared: those whose objects were, and those that lie in a memory tile between their pieces."""

from dataclasses import replace

import pytest

from manifest.device import load_device
from phases.presim.simulation import Bench, bench_of, run_whole, uncompared
from phases.presim.source import Source, different_inputs, target_tensors
from presim.design import Design
from presim.directives import Directives
from presim.place import place
from presim.plan import design_of
from presim.simulate import SimResult
from tests.presim.plan.harness import whole
from tests.presim.plan.models import Net

DEVICE = load_device("npu2")


@pytest.fixture(scope="module")
def joined_and_split() -> tuple[Bench, Design, SimResult]:
    """A Conv over several cores, joined in a memory tile, and split again for the cores of an average."""
    net = Net((1, 8, 2, 1000))
    made = net.done(net.rounded("GlobalAveragePool", [net.conv(net.x, (8, 40))]))
    manifest = replace(made.manifest, dispatches=(whole(made.manifest),))
    source = Source(files={}, manifest=manifest, arrays=made.arrays, canary={})
    design = place(design_of(manifest, DEVICE, Directives(), "d0"), DEVICE)
    inputs = different_inputs(source, 1)
    tensors = target_tensors(source, inputs.feeds)
    bench = bench_of(design, manifest, made.arrays, tensors, inputs)
    handed = [{name: array[0] for name, array in tensors.items()}]
    run = run_whole(bench, handed, schedules=0)
    assert run.result.sound, run.result.text
    return bench, design, run.result


def test_what_is_joined_and_split_is_compared_in_its_pieces(
    joined_and_split: tuple[Bench, Design, SimResult],
) -> None:
    bench, design, result = joined_and_split
    joined = {k.targets[0] for k in design.links if k.kind == "join"}
    between = [k for k in design.links if k.kind == "split" and set(k.sources) & joined]
    assert between, "the model has no tensor that is joined and split"
    assert uncompared(bench, design, result) == ()
    (source,) = between[0].sources
    assert not result.compared.get(source)
    for piece in between[0].targets:
        fewer = {name: count for name, count in result.compared.items() if name != piece}
        assert set(uncompared(bench, design, replace(result, compared=fewer))) == {source, piece}
