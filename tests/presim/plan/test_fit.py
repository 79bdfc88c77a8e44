"""Cores that are too few: ops share them, down to one, or the dispatch is refused."""

import pytest

from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from presim.simulate.run import simulate
from tests.presim.plan.harness import GOOD, assert_exact, plan_of, with_figures
from tests.presim.plan.models import Net, residual


def chain() -> Imported:
    """Convolutions, pools, a dense layer: seven ops."""
    net = Net((1, 8, 12, 12))
    x = net.conv(net.x, (8, 16))
    x = net.rounded("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = net.conv(x, (16, 16), strides=[2, 2])
    x = net.rounded("AveragePool", [x], kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    x = net.rounded("Add", [x, net.weight(net.random(16, 1, 1), 2.0**-5)])
    x = net.rounded("GlobalAveragePool", [x])
    return net.done(net.dense(net.node("Flatten", [x], axis=1), 16, 10))


@pytest.mark.parametrize("cores", [7, 6, 5, 4, 3, 2, 1])
def test_a_chain_runs_on_any_number_of_cores(cores: int) -> None:
    imported = chain()
    device = with_figures(core_tiles=cores, program_memory_bytes=32768)
    design = assert_exact(imported.manifest, imported.arrays, device)
    assert len(design.workers) == cores
    made = {n for op in imported.manifest.ops if op.where == "npu" for n in op.outputs}
    assert made <= {f.tensor for f in design.fifos} | {view for view, _ in design.views}


def test_enough_cores_are_not_shared() -> None:
    design = plan_of(chain().manifest, with_figures(core_tiles=7))
    assert all("+" not in w.name for w in design.workers)


def test_what_multiplies_nothing_joins_first() -> None:
    design = plan_of(chain().manifest, with_figures(core_tiles=5))
    types = {k.name: k.type for k in design.kernels}
    for worker in design.workers:
        kernels = [types[n] for n in types if n.startswith(tuple(worker.name.split(" + ")))]
        assert sum(t in ("conv", "gemm", "gemm_rows") for t in kernels) <= 1


def test_paths_that_part_keep_cores_of_their_own() -> None:
    imported = residual(2)
    design = assert_exact(imported.manifest, imported.arrays, with_figures(core_tiles=3))
    assert len(design.workers) == 3
    with pytest.raises(RefusedError, match=r"PLAN-CORES.*at most 2 cores; got 3 cores.*--cut"):
        plan_of(imported.manifest, with_figures(core_tiles=2))


def test_program_memory_is_not_shared_beyond_its_size() -> None:
    imported = chain()
    need = 2048 + 5120 + 1536
    enough, less = (with_figures(core_tiles=6, program_memory_bytes=n) for n in (need, need - 1))
    names = [" + " in w.name for w in plan_of(imported.manifest, enough).workers]
    assert sum(names) == 1
    both = {w.name for w in plan_of(imported.manifest, less).workers if " + " in w.name}
    assert not any("Conv" in n or "conv" in n for n in both)


def test_several_workers_become_one_with_streamed_weights() -> None:
    net = Net((4, 64))
    imported = net.done(net.dense(net.dense(net.x, 64, 96), 96, 64))
    split = plan_of(imported.manifest, with_figures(l1_bytes=6000))
    assert len(split.workers) > 2
    design = assert_exact(imported.manifest, imported.arrays, with_figures(l1_bytes=6000, core_tiles=2))
    assert len(design.workers) == 2
    assert any(f.init_array is not None for f in design.fifos)
    assert simulate(design).verdict in GOOD
