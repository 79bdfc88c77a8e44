"""Evidence of phase 2: what only the chain shows, what a host-only dispatch is, what a refused design is."""

import io
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from checklists.evaluate import evaluate
from checklists.items.presim import ITEMS
from checklists.model import GateReport, Verdict
from manifest.device import load_device
from phases.baseline.__main__ import main as baseline
from phases.port import open_port
from phases.presim import collect as module
from phases.presim.collect import BUDGETS, budget_evidence, collect, static_evidence
from phases.presim.options import PresimOptions
from phases.presim.predicting import predict
from phases.presim.source import Source, source_of
from presim.design import Design
from presim.directives import Directives
from presim.evidence import PresimEvidence
from presim.place import place
from presim.plan import design_of
from presim.static import CHECKS
from tests.presim_designs import copy_design

DEVICE = load_device("npu2")
TODAY = date(2026, 3, 1)


def designed(source: Source) -> tuple[Design, ...]:
    names = [d.name for d in source.manifest.dispatches if d.where == "npu"]
    return tuple(place(design_of(source.manifest, DEVICE, Directives(), n), DEVICE) for n in names)


def evidence(source: Source, designs: tuple[Design, ...], sound: tuple[Design, ...] | None = None) -> PresimEvidence:
    predicted = predict(designs if sound is None else sound, DEVICE, batch=8)
    options = PresimOptions(out=Path("none"), today=TODAY)
    return collect(
        source,
        designs,
        designs,
        options,
        device=DEVICE,
        records={},
        predicted=predicted,
        progress=lambda _: None,
    ).evidence


def judged(found: PresimEvidence) -> GateReport:
    return evaluate(ITEMS, found, (), TODAY, phase="presim")


def failed(report: GateReport) -> dict[str, str]:
    return {i.code: i.summary for i in report.items if i.verdict is Verdict.FAIL}


@pytest.fixture(scope="module")
def resnet(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Source:
    port = tmp_path_factory.mktemp("resnet") / "r.port"
    corpus = shared / "corpus"
    given = [corpus / "models/mnist_resnet.onnx", "--data", corpus / "feeds/mnist_resnet.npz", "--out", port]
    with redirect_stdout(io.StringIO()):
        assert baseline([str(a) for a in given]) == 0
    return source_of(open_port(port))


def test_a_residual_passes_with_every_stage_once(resnet: Source) -> None:
    found = evidence(resnet, designed(resnet))
    assert [run.name for run in found.stages] == list(found.stages_expected)
    assert [run.added for run in found.chain] == list(found.stages_expected)
    assert [run.order for run in (*found.stages, *found.chain, *found.full)] == list(range(2 * len(found.stages) + 1))
    assert judged(found).passed


def test_a_skip_that_is_too_shallow_shows_in_the_chain_and_names_the_stage(resnet: Source) -> None:
    (design,) = designed(resnet)
    adder = next(w.name for w in design.workers if w.name.endswith("Add"))
    skip = next(f for f in design.fifos if len(f.consumers) > 1 and any(c.actor == adder for c in f.consumers))
    ends = tuple(replace(c, depth=1) if c.actor == adder else c for c in skip.consumers)
    fifos = tuple(replace(f, consumers=ends, literal=True) if f.name == skip.name else f for f in design.fifos)
    told = failed(judged(evidence(resnet, (replace(design, fifos=fifos),), (design,))))
    assert set(told) == {"PS002", "PS004"}
    assert f"chain after adding '{adder}'" in told["PS002"]
    assert skip.name in told["PS004"]
    assert "lets it run" in told["PS004"]


def test_a_design_that_the_simulator_refuses_is_a_fault_and_no_traceback(digits: Source) -> None:
    (design,) = designed(digits)
    lost = replace(design, kernels=design.kernels[1:])
    report = judged(evidence(digits, (lost,), (design,)))
    told = failed(report)
    assert {"PS005", "PS006"} <= set(told)
    assert report.items[0].verdict is Verdict.NOT_RUN
    assert report.items[0].subjects == (design.workers[0].stage,)
    assert "there is no kernel" in told["PS006"]


def test_a_design_of_nothing_leaves_its_stages_not_run(digits: Source) -> None:
    found = evidence(digits, (), designed(digits))
    assert found.dispatches == ("d0",)
    verdicts = {i.code: i.verdict for i in judged(found).items}
    assert verdicts["PS003"] is Verdict.NOT_RUN
    assert verdicts["PS004"] is Verdict.NOT_RUN
    assert not judged(found).passed


def test_static_evidence_has_every_check_that_is_no_budget() -> None:
    names = {row.check for row in static_evidence(copy_design(), DEVICE)}
    budgets = {"dma_channels", "buffer_descriptors", "locks", "data_memory", "program_memory"}
    assert names == {"structure", *(check.__name__ for check in CHECKS)} - budgets


def test_static_evidence_of_a_broken_structure_is_the_structure_alone() -> None:
    broken = replace(copy_design(), kernels=())
    (row,) = static_evidence(broken, DEVICE)
    assert row.check == "structure"
    assert row.findings
    assert budget_evidence(broken, DEVICE) == ()


def test_a_dispatch_that_only_moves_data_needs_nothing_of_cores() -> None:
    design = copy_design()
    through = replace(design.fifos[0], consumers=design.fifos[1].consumers)
    sequence = tuple(replace(t, fifo="x") for t in design.sequence)
    bare = replace(design, workers=(), kernels=(), fifos=(through,), sequence=sequence, splits=())
    rows = {row.what: (row.need, row.have) for row in budget_evidence(bare, DEVICE)}
    assert set(BUDGETS) <= set(rows)
    assert rows["bytes of program memory"] == (0, 0)


def test_margins_are_found_within_their_bound_and_judge_nothing(
    digits: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    designs = designed(digits)
    found = evidence(digits, designs)
    pools = {name for name, _, _ in found.margins}
    assert {f.name for d in designs for f in d.fifos} <= {n.split(": ", 1)[1].rsplit(" at ", 1)[0] for n in pools}
    assert all(1 <= least <= depth for _, depth, least in found.margins)
    assert any(least < depth for _, depth, least in found.margins)
    figures = {i.code: i.figures for i in judged(found).items}["PS004"]
    assert figures["fifos_with_known_margin"] == len(found.margins)
    monkeypatch.setattr(module, "MARGIN_STEPS", 1)
    bare = evidence(digits, designs)
    assert bare.margins == ()
    assert [i.verdict for i in judged(bare).items] == [i.verdict for i in judged(found).items]
