"""The check of multipliers and shifts finds one that is off by one, and a shift that rounds otherwise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manifest.model import Manifest, Op, Requantization
from manifest.onnx_import import Imported
from oracle import fixedpoint
from oracle.evidence import KernelEvidence
from oracle.reference import kernel_steps
from oracle.reference.kernel_numbers import kernel_numbers
from oracle.requantize import finish_for
from tests.qdq_models import Sketch, linear, op_of

Change = Callable[[Requantization], Requantization]


def changed(manifest: Manifest, op_type: str, change: Change) -> Manifest:
    """The manifest with other kernel numbers for one op."""
    op = op_of(manifest, op_type)
    assert op.requant is not None
    other: Op = replace(op, requant=change(op.requant))
    return replace(manifest, ops=tuple(other if o.name == op.name else o for o in manifest.ops))


def check(imported: Imported, op_type: str = "", change: Change | None = None) -> KernelEvidence:
    manifest = imported.manifest if change is None else changed(imported.manifest, op_type, change)
    return kernel_numbers(manifest, imported.arrays)


def fault(evidence: KernelEvidence) -> str:
    assert len(evidence.faults) == 1
    return evidence.faults[0].what


def off_by(step: int, place: int = 0) -> Change:
    """One multiplier changed."""
    return lambda r: replace(
        r, multipliers=tuple(m + step * (i == place) for i, m in enumerate(r.multipliers)), proof=r.proof
    )


def gemm(scale: float = 0.3) -> Imported:
    return linear(np.arange(-8, 8).reshape(4, 4), x_scale=scale, w_scale=[0.25, 0.125, 0.7, 0.01]).load()


def add() -> Imported:
    s = Sketch()
    a, b = (s.qdq(s.input(n, (1, 8)), scale, out=f"{n}d") for n, scale in (("a", 0.3), ("b", 0.07)))
    s.qdq(s.node("Add", [a, b], name="add"), 0.31, 3, out="y")
    s.output("y", (1, 8))
    return s.load()


def average(scale: float = 0.03, y_scale: float = 0.011) -> Imported:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 3, 3)), scale, 5, out="xd")
    s.qdq(s.node("GlobalAveragePool", [x], name="gap"), y_scale, -3, out="y")
    s.output("y", (1, 2, 1, 1))
    return s.load()


@pytest.mark.parametrize("imported", [gemm(), gemm(0.5), add(), average(), average(0.125, 0.25)])
def test_sound_manifests_have_no_fault(imported: Imported) -> None:
    evidence = check(imported)
    assert evidence.faults == ()
    assert evidence.ops == 1
    assert evidence.accumulators > 100


def test_nothing_is_rescaled() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="xd")
    s.qdq(s.node("Reshape", [x, s.const([2, 2], np.int64)]), 0.5, out="y")
    s.output("y", (2, 2))
    assert check(s.load()) == KernelEvidence(ops=0, accumulators=0, faults=())


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("place", [0, 3])
def test_a_multiplier_off_by_one_is_found_in_any_channel(step: int, place: int) -> None:
    what = fault(check(gemm(), "Gemm", off_by(step, place)))
    assert f"(number {place})" in what
    assert "not what the scales say" in what


@pytest.mark.parametrize("place", [0, 1])
def test_a_multiplier_of_an_add_off_by_one_is_found(place: int) -> None:
    assert f"(number {place})" in fault(check(add(), "Add", off_by(1, place)))


def test_a_shift_off_by_one_is_found() -> None:
    assert check(gemm(0.5), "Gemm", lambda r: replace(r, shifts=(r.shifts[0] + 1, *r.shifts[1:]))).faults


def test_a_multiplier_that_wastes_precision_is_found() -> None:
    def coarse(r: Requantization) -> Requantization:
        return replace(r, multipliers=tuple((m + 8) >> 4 for m in r.multipliers), shifts=tuple(s - 4 for s in r.shifts))

    assert check(gemm(), "Gemm", coarse).faults


def test_a_proof_that_does_not_hold_is_found() -> None:
    imported = average()
    requant = op_of(imported.manifest, "GlobalAveragePool").requant
    assert requant is not None
    assert requant.proof
    assert "stated as proved equal" in fault(check(imported, "GlobalAveragePool", off_by(1)))


def test_a_shift_primitive_that_rounds_half_up_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def half_up(acc: Any, shift: Any, rounding: str) -> Any:
        del rounding
        return fixedpoint.srs(acc, shift, "pos_inf")

    monkeypatch.setattr(kernel_steps, "srs", half_up)
    what = fault(check(gemm(0.5)))
    assert what.startswith("the shift primitive")
    assert "(tie)" in what


def odd_zero_point() -> Imported:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="xd")
    s.qdq(s.node("Gemm", [x, s.weight(np.arange(16).reshape(4, 4), 0.25)], name="g"), 0.5, 3, out="y")
    s.output("y", (1, 4))
    return s.load()


def test_a_target_that_adds_the_zero_point_in_front_of_the_rounding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def inside(op: Op, scope: Any, plan: Any) -> Any:
        assert op.requant is not None
        return finish_for(replace(op, requant=replace(op.requant, zero_point_inside=True)), scope, plan)

    assert check(odd_zero_point()).faults == ()
    monkeypatch.setattr("oracle.reference.kernel_numbers.finish_for", inside)
    what = fault(check(odd_zero_point()))
    assert what.startswith("the oracle's target")
    assert "(tie)" in what


def test_a_proof_is_about_the_codes_that_the_input_can_have() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 2, 2)), 0.007810480426996946, 128, np.uint8)
    clipped = s.qdq(s.node("Clip", [x, "", s.const(-0.2925)]), 0.007749461103230715, 128, np.uint8)
    pooled = s.node("MaxPool", [clipped], kernel_shape=[2, 2])
    s.output(s.qdq(pooled, 0.00417744368314743, 128, np.uint8, out="y"), (1, 1, 1, 1))
    imported = s.load()
    requant = op_of(imported.manifest, "MaxPool").requant
    assert requant is not None
    assert requant.proof
    assert check(imported).faults == ()
