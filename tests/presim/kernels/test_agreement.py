"""Kernels against the manifest, figure by figure: what agrees is silent, one unit beyond is named."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from manifest.model import Manifest
from presim.design import AttributeValue, Design, Kernel
from presim.kernels.agreement import disagreements
from tests.presim.plan.harness import plan_of
from tests.presim.plan.models import CORPUS, FIVE, Net, real, residual


def changed(design: Design, kind: str, change: Callable[[Kernel], Kernel]) -> Design:
    kernels = tuple(change(k) if k.type == kind else k for k in design.kernels)
    assert kernels != design.kernels
    return replace(design, kernels=kernels)


def with_attribute(name: str, value: AttributeValue) -> Callable[[Kernel], Kernel]:
    return lambda k: replace(k, attributes=tuple((n, value if n == name else v) for n, v in k.attributes))


@pytest.fixture(scope="module")
def model() -> Manifest:
    return residual(2).manifest


@pytest.fixture(scope="module")
def design(model: Manifest) -> Design:
    return plan_of(model)


def test_a_plan_agrees(model: Manifest, design: Design) -> None:
    assert len(design.kernels) >= 4
    assert disagreements(design, model) == ()


@pytest.mark.parametrize("name", FIVE)
def test_plans_of_whole_models_agree(name: str) -> None:
    if "/" not in name and not CORPUS.is_dir():
        pytest.skip("no corpus beside the project")
    made = real(name).manifest
    assert disagreements(plan_of(made), made) == ()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("qmax", 126, "qmax is 126, expected 127"),
        ("qmin", -127, "qmin is -127, expected -128"),
        ("y_zero_point", 1, "y_zero_point is 1, expected 0"),
        ("out_dtype", "uint8", "out_dtype is 'uint8', expected 'int8'"),
        ("finish", "clamp", "finish is 'clamp', expected 'round'"),
        ("zero_point_inside", 1, "zero_point_inside is 1, expected 0"),
    ],
)
def test_one_figure_that_differs_is_named(
    model: Manifest, design: Design, name: str, value: AttributeValue, words: str
) -> None:
    found = disagreements(changed(design, "conv", with_attribute(name, value)), model)
    assert {text for _, text in found} == {words}
    assert {kernel for kernel, _ in found} == {k.name for k in design.kernels if k.type == "conv"}


def test_modes_are_those_of_the_manifest_or_left_to_another_item(model: Manifest, design: Design) -> None:
    other = changed(design, "add", lambda k: replace(k, rounding="pos_inf", saturation="none"))
    assert [text for _, text in disagreements(other, model)] == [
        "rounding is 'pos_inf', expected 'conv_even'",
        "saturation is 'none', expected 'saturate'",
    ]
    unset = changed(design, "add", lambda k: replace(k, rounding="", saturation=""))
    assert disagreements(unset, model) == ()


def test_a_kernel_of_another_op_or_type_is_named(model: Manifest, design: Design) -> None:
    (lost, *_) = disagreements(changed(design, "add", lambda k: replace(k, op="gone")), model)
    assert lost[1] == "the manifest has no op 'gone'"
    (wrong, *_) = disagreements(changed(design, "add", lambda k: replace(k, type="magic")), model)
    assert "is not computed by a kernel 'magic'" in wrong[1]


def test_parts_of_ops_agree_too() -> None:
    net = Net((1, 512))
    made = net.done(net.dense(net.x, 512, 512)).manifest
    design = plan_of(made)
    assert len(design.workers) > 1
    assert disagreements(design, made) == ()
