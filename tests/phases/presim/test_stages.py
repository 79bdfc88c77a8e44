from dataclasses import replace

import pytest

from manifest.device import load_device
from phases.presim.flow import carries_activation
from phases.presim.simulation import Bench, bench_of, run_piece
from phases.presim.source import Source, different_inputs, target_tensors
from phases.presim.stages import cut, units_of
from presim.design import Call, Design
from presim.directives import directives_of
from presim.place import place
from presim.plan import design_of
from presim.static import structure
from presim.steps import steps_of


def designed(source: Source, **asked: object) -> Design:
    device = load_device("npu2")
    directives = directives_of(asked, source.manifest)
    return place(design_of(source.manifest, device, directives, "d0"), device, directives)


def benched(source: Source, design: Design) -> Bench:
    inputs = different_inputs(source, 1)
    return bench_of(design, source.manifest, source.arrays, target_tensors(source, inputs.feeds), inputs)


def test_units_are_the_stages_with_work_in_order(digits: Source) -> None:
    design = designed(digits)
    units = units_of(design, digits.manifest)
    assert [unit.name.rsplit("/", 1)[1] for unit in units] == ["Conv", "Conv", "MaxPool", "Conv", "MaxPool", "Gemm"]
    assert [sorted(unit.workers) for unit in units] == [[w.name] for w in design.workers]


def test_stages_on_one_worker_are_one_unit(digits: Source) -> None:
    design = designed(digits)
    first, second, *rest = design.workers
    both = replace(first, program=(*first.program, *second.program))
    units = units_of(replace(design, workers=(both, *rest)), digits.manifest)
    assert units[0].name == f"{first.stage} + {second.stage}"
    assert units[0].workers == {both.name}
    assert len(units) == 5


def test_an_op_that_no_worker_computes_and_nothing_carries_stays_a_unit(digits: Source) -> None:
    design = designed(digits)
    lost = design.workers[2]
    made = next(f for f in design.fifos if f.producer.actor == lost.name)
    without = replace(
        design,
        workers=tuple(w for w in design.workers if w is not lost),
        fifos=tuple(f for f in design.fifos if f is not made),
    )
    units = units_of(without, digits.manifest)
    assert [unit.workers for unit in units if unit.name == lost.stage] == [frozenset()]


def test_every_unit_runs_alone_and_is_compared_at_all_its_ends(branching: Source) -> None:
    design = designed(branching, trunk_fc={"parallelism": {"cas_num": 2}})
    bench = benched(branching, design)
    for unit in units_of(design, branching.manifest):
        piece = cut(design, unit.workers, branching.manifest, bench.counts)
        assert structure(piece.design) == ()
        assert piece.unknown == ()
        assert {w.name for w in piece.design.workers} == unit.workers
        run = run_piece(bench, piece)
        assert run.result.sound, run.result.text
        assert run.uncompared == ()
        made = [f for f in piece.design.fifos if f.producer.kind != "shim"]
        carried = {f.name for f in made if carries_activation(f, branching.manifest)}
        assert carried <= {name for name, count in run.result.compared.items() if count}


def test_a_piece_keeps_its_links_buffers_kernels_and_nothing_else(branching: Source) -> None:
    design = designed(branching, trunk_fc={"parallelism": {"cas_num": 2}})
    trunk = next(u for u in units_of(design, branching.manifest) if u.name == "trunk_fc")
    piece = cut(design, trunk.workers, branching.manifest, benched(branching, design).counts).design
    assert [link.kind for link in piece.links] == ["join"]
    called = {s.kernel for w in piece.workers for s in steps_of(w.program) if isinstance(s, Call)}
    assert {k.name for k in piece.kernels} == called
    assert piece.buffers
    assert all(b.name.startswith("trunk_fc") for b in piece.buffers)
    assert {(t.fifo, t.direction) for t in piece.sequence} == {("in_real_q", "fill"), ("trunk_fc_out_q", "drain")}


def test_all_workers_together_are_the_whole(digits: Source) -> None:
    design = designed(digits)
    bench = benched(digits, design)
    piece = cut(design, {w.name for w in design.workers}, digits.manifest, bench.counts)
    assert piece.design.workers == design.workers
    assert [f.name for f in piece.design.fifos] == [f.name for f in design.fifos]
    assert run_piece(bench, piece).result.sound


def test_a_cut_through_objects_that_are_not_known_is_inconclusive(digits: Source) -> None:
    design = designed(digits)
    bench = benched(digits, design)
    unit = units_of(design, digits.manifest)[1]
    counts = dict(bench.counts)
    name = next(f.name for f in design.fifos if any(c.actor in unit.workers for c in f.consumers))
    del counts[name]
    piece = cut(design, unit.workers, digits.manifest, counts)
    assert piece.unknown == (name,)
    run = run_piece(bench, piece)
    assert run.result.verdict == "inconclusive"
    assert name in run.result.text


@pytest.mark.parametrize("parts", [{"cas_num": 2}, {"cas_num": 2, "contract": "outer"}, {"cas_length": 2}])
def test_spread_ops_are_cut_with_all_their_workers(branching: Source, parts: dict[str, object]) -> None:
    design = designed(branching, b2_fc2={"parallelism": parts})
    bench = benched(branching, design)
    unit = next(u for u in units_of(design, branching.manifest) if u.name == "b2_fc2")
    assert len(unit.workers) == 2
    run = run_piece(bench, cut(design, unit.workers, branching.manifest, bench.counts))
    assert run.result.sound, run.result.text
    assert run.uncompared == ()
