"""Plans of real models: legal on every device, and direct wherever a fifo between two cores may be."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from manifest.device import load_device
from manifest.model import Manifest
from manifest.onnx_import import import_model
from phases.baseline.budget import plan_dispatches
from presim.design import Design
from presim.directives import Directive, Directives, Parallelism, Placement
from presim.place import place
from presim.place.grid import grid_of
from presim.plan import design_of
from presim.pools import may_share, shares_memory
from presim.routes import routes
from presim.simulate import simulate
from tests.presim.place.legal import require_legal
from tests.presim.place.webs import pinned

MODELS = (
    "digits_mlp.qdq_u8s8_pc",
    "digits_mlp.quark_xint8",
    "digits_cnn.qdq_u8s8_pc",
    "digits_cnn.quark_xint8",
    "cntk_mnist.qdq_u8s8_pc",
    "mnist_resnet.qdq_u8s8_pc",
    "mnist_resnet.quark_xint8",
    "resblock.quark_xint8",
    "light_squeezenet.quark_xint8",
)
BRANCHING = Path(__file__).resolve().parents[3] / "examples" / "branching" / "branching.onnx"


@cache
def imported(path: Path, device: str) -> Manifest:
    shapes = {"x": (1, 64)} if path.name.startswith("digits_mlp") else {}
    manifest = import_model(path, device=device, shapes=shapes, host_ops=True).manifest
    return replace(manifest, dispatches=plan_dispatches(manifest, load_device(device), (), True).dispatches)


def planned(path: Path, device: str, directives: Directives | None = None, dispatch: str = "d0") -> Design:
    """The first dispatch of a model on the array, planned and placed."""
    asked = directives or Directives()
    return place(design_of(imported(path, device), load_device(device), asked, dispatch), load_device(device), asked)


def between_cores(design: Design) -> list[bool]:
    """Of every fifo that could be direct, whether it is."""
    return [shares_memory(f) for f in design.fifos if may_share(f) and f.producer.actor != f.consumers[0].actor]


@pytest.mark.parametrize("device", ["npu1", "npu2", "vek280", "vek385"])
@pytest.mark.parametrize("model", MODELS)
def test_plans_of_the_corpus_are_direct_where_they_may_be(model: str, device: str, shared: Path) -> None:
    design = planned(shared / "corpus" / "models" / f"{model}.onnx", device)
    require_legal(design, load_device(device))
    assert between_cores(design)
    assert all(between_cores(design))


@pytest.mark.parametrize("device", ["npu1", "npu2", "vek280", "vek385"])
def test_the_branching_example_needs_no_pins(device: str) -> None:
    design = planned(BRANCHING, device)
    require_legal(design, load_device(device))
    assert all(between_cores(design))
    assert routes(design)["direct"] >= 2


@pytest.mark.parametrize(("columns", "direct"), [((7, 8, 9), (True, True)), ((7, 9, 11), (False, False))])
def test_pins_of_the_branching_example(columns: tuple[int, int, int], direct: tuple[bool, bool]) -> None:
    """Consecutive layers side by side hand over in a shared memory, without DMA and memory tile; with a gap not."""
    names = ("b2_fc1", "b2_fc2", "b2_fc3")
    design = planned(BRANCHING, "vek280", pinned(**{n: (1, c) for n, c in zip(names, columns, strict=True)}))
    require_legal(design, load_device("vek280"))
    at = {w.name: (w.tile.column, w.tile.row) for w in design.workers if w.tile}
    assert [at[n] for n in names] == [(c, 4) for c in columns]
    fifos = {(f.producer.actor, f.consumers[0].actor): f for f in design.fifos}
    assert (shares_memory(fifos["b2_fc1", "b2_fc2"]), shares_memory(fifos["b2_fc2", "b2_fc3"])) == direct


@pytest.mark.parametrize("device", ["npu1", "npu2", "vek280"])
def test_ops_over_several_cores_are_blocks_and_cascades(device: str) -> None:
    """Two cascades of two side by side where they are pinned, and one of three somewhere."""
    asked = Directives(
        by_op={
            "b2_fc1": Directive(parallelism=Parallelism(cas_num=2, cas_length=2), placement=Placement(row=1, col=1)),
            "b2_fc3": Directive(parallelism=Parallelism(cas_length=3)),
        }
    )
    design = planned(BRANCHING, device, asked)
    figure = load_device(device)
    require_legal(design, figure)
    first = grid_of(figure).core_row
    block = [(w.tile.column, w.tile.row - first) for w in design.workers if w.tile and w.name.startswith("b2_fc1#")]
    assert block == [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert len(design.cascades) == 4
    assert simulate(design).verdict == "completes"
