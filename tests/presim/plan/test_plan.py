"""The way in: only with the baseline gate, only for what it judged; pure; refusals of the whole array."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manifest.clearance import Clearance
from manifest.errors import RefusedError, UpstreamError
from manifest.io import manifest_to_json
from manifest.model import Manifest
from manifest.onnx_import import Imported
from presim.design_io import design_from_json, design_to_json
from presim.directives import Directives, directives_of
from presim.plan import design_of, plan
from tests.presim.plan.harness import NPU2, plan_of, whole, with_figures
from tests.presim.plan.models import Net, residual


class Open(Clearance):
    """A gate that is open, and remembers what it was asked."""

    asked: list[tuple[bytes, bytes | None]] = []  # noqa: RUF012

    def verify(self, manifest_bytes: bytes, design_bytes: bytes | None = None, **_: Any) -> None:
        self.asked.append((manifest_bytes, design_bytes))


def clearance(cls: type[Clearance] = Open) -> Clearance:
    return cls(port=Path("absent"), manifest_sha256="0" * 64, design_sha256=None, gates=(("baseline", "0" * 64),))


@pytest.fixture(scope="module")
def imported() -> Imported:
    made = residual(2)
    return replace(made, manifest=replace(made.manifest, dispatches=(whole(made.manifest),)))


def test_a_plan_needs_the_baseline_gate(imported: Imported) -> None:
    data = manifest_to_json(imported.manifest)
    with pytest.raises(UpstreamError):
        plan(imported.manifest, NPU2, Directives(), clearance(Clearance), manifest_bytes=data, dispatch="d0")


def test_the_gate_is_asked_about_exactly_these_bytes(imported: Imported) -> None:
    data = manifest_to_json(imported.manifest)
    Open.asked.clear()
    design = plan(imported.manifest, NPU2, Directives(), clearance(), manifest_bytes=data, dispatch="d0")
    assert Open.asked == [(data, None)]
    assert design.dispatch == "d0"


def test_another_manifest_than_the_judged_one_is_refused(imported: Imported) -> None:
    other = replace(imported.manifest, dispatches=())
    with pytest.raises(RefusedError, match="PLAN-MANIFEST"):
        plan(other, NPU2, Directives(), clearance(), manifest_bytes=manifest_to_json(imported.manifest), dispatch="d0")


def test_an_unknown_dispatch_is_refused(imported: Imported) -> None:
    with pytest.raises(RefusedError, match=r"PLAN-DISPATCH.*'d7'.*expected d0"):
        design_of(imported.manifest, NPU2, Directives(), "d7")


def test_ops_of_one_stage_are_planned_by_themselves(imported: Imported) -> None:
    (op,) = [o for o in imported.manifest.ops if o.type == "Add"]
    alone = replace(whole(imported.manifest), name="add", ops=(op.name,), inputs=op.inputs, outputs=op.outputs)
    design = plan_of(imported.manifest, dispatch=alone)
    assert [w.stage for w in design.workers] == [op.name]
    assert [t.direction for t in design.sequence] == ["fill", "fill", "drain"]


def test_plans_are_pure_and_survive_their_file(imported: Imported) -> None:
    one, other = (plan_of(imported.manifest) for _ in range(2))
    assert one == other
    assert design_from_json(design_to_json([one])) == (one,)


def test_nothing_is_placed(imported: Imported) -> None:
    design = plan_of(imported.manifest)
    assert all(w.tile is None for w in design.workers)
    assert all(e.tile is None for f in design.fifos for e in (f.producer, *f.consumers))


def test_more_ways_to_the_host_than_the_array_has(imported: Imported) -> None:
    net = Net((1, 8))
    outputs = [net.dense(net.x, 8, 8) for _ in range(3)]
    made = net.done(*outputs)
    columns = replace(NPU2, shim_dma_columns=replace(NPU2.shim_dma_columns, value=(0,)))
    wide = replace(columns, shim_s2mm=replace(columns.shim_s2mm, value=3))
    assert len(plan_of(made.manifest, wide).sequence) == 4
    with pytest.raises(RefusedError, match=r"PLAN-SHIM.*streams to the host.*need 3, have 2"):
        plan_of(made.manifest, columns)
    del imported


def test_memory_tiles_that_are_too_small_for_what_they_keep() -> None:
    net = Net((1, 16, 64))
    made = net.done(net.node("Transpose", [net.rounded("Relu", [net.x])], perm=[0, 2, 1]))
    need = 16 * 64
    assert plan_of(made.manifest, with_figures(memtile_bytes=need)).links
    with pytest.raises(RefusedError, match=rf"PLAN-MEMTILE.*need {need}, have {need - 1}"):
        plan_of(made.manifest, with_figures(memtile_bytes=need - 1))


def test_all_problems_at_once() -> None:
    net = Net((1, 8, 3, 8192))
    made = net.done(*(net.rounded("GlobalAveragePool", [net.rounded("Relu", [net.x], 2.0**-k)]) for k in (3, 4)))
    with pytest.raises(RefusedError) as caught:
        plan_of(made.manifest)
    assert [p.code for p in caught.value.problems] == ["PLAN-L1"] * 4


def test_unknown_figures_are_said_and_limit_nothing() -> None:
    unknown = replace(NPU2, core_bds=replace(NPU2.core_bds, value=None), l1_bytes=replace(NPU2.l1_bytes, value=None))
    design = plan_of(residual(2).manifest, unknown)
    assert [n for n in design.notes if "not published" in n] == [
        f"figure {name} of the device is not published: its budget was not checked" for name in ("core_bds", "l1_bytes")
    ]


def flattened() -> Manifest:
    """A Conv, a Flatten that is a view, and a dense layer."""
    net = Net((1, 8, 4, 4))
    flat = net.node("Flatten", [net.conv(net.x, (8, 8))], axis=1)
    return net.done(net.dense(flat, 128, 16)).manifest


@pytest.mark.parametrize(
    ("directive", "keys"),
    [
        ({"parallelism": {"cas_num": 2}}, ["parallelism"]),
        ({"layout": "identity"}, ["layout"]),
        ({"parallelism": {"cas_length": 2}, "layout": "identity"}, ["parallelism", "layout"]),
        ({}, []),
    ],
)
def test_directives_of_an_op_without_a_core_are_said_to_do_nothing(
    directive: dict[str, object], keys: list[str]
) -> None:
    manifest = flattened()
    (flat, dense) = (op for op in manifest.ops if op.type in ("Flatten", "MatMul"))
    design = plan_of(manifest, directives=directives_of({flat.name: directive}, manifest, "test"))
    said = [note for note in design.notes if "not used" in note]
    assert said == [f"{key} of {flat.name!r} not used: it has no core in this dispatch" for key in keys]
    used = plan_of(manifest, directives=directives_of({dense.name: {"parallelism": {"cas_num": 2}}}, manifest, "test"))
    assert not [note for note in used.notes if "not used" in note]
