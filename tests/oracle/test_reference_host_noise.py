"""Host functions: what float32 may be off by is explained and counted apart, one beyond it is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manifest.onnx_import import Imported
from oracle.evidence import Comparison
from oracle.ops import host_float
from oracle.reference import compare_random
from tests.qdq_models import Sketch

FUNCTIONS = (
    *("Sigmoid", "Tanh", "Erf", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Exp", "Log", "Sqrt"),
    *("Gelu", "Softplus", "ReduceMean", "ReduceSum", "Softmax", "LogSoftmax"),
)


def chain(*ops: str, scale: float, zero_point: int, factor: float = 1.0, codes: float | None = None) -> Imported:
    """x -> Q/DQ -> ops -> [* factor] -> [Q/DQ at `codes`] -> y."""
    s = Sketch(21)
    value = s.qdq(s.input("x", (1, 8)), scale, zero_point, np.uint8, out="a")
    for i, op in enumerate(ops):
        value = s.node(op, [value], f"t{i}", name=f"f{i}")
    if factor != 1.0:
        value = s.node("Mul", [value, s.const(factor)], "scaled", name="scaled")
    if codes is not None:
        value = s.qdq(value, codes, 0, np.uint8, out="y")
    s.output(value, (1, 1) if ops[0].startswith("Reduce") else (1, 8))
    return s.load(host_ops=True)


def compared(imported: Imported) -> Comparison:
    return compare_random(imported.model_bytes, imported.manifest, imported.arrays)


@pytest.mark.parametrize("codes", [None, 1e-3, 1e-7])
@pytest.mark.parametrize(("scale", "zero_point"), [(1e-7, 128), (0.03, 255), (1.0, 128), (1.0, 255), (20.0, 255)])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_small_results_are_no_difference(op: str, scale: float, zero_point: int, codes: float | None) -> None:
    found = compared(chain(op, scale=scale, zero_point=zero_point, codes=codes))
    assert (found.unexplained, found.why_not) == (0, ""), found.tensors


def test_they_are_counted_apart_from_ties() -> None:
    found = compared(chain("Sigmoid", scale=1.0, zero_point=255))
    assert found.within_tolerance > 0
    assert (found.near_ties, found.unexplained) == (0, 0)
    assert found.mismatches == found.within_tolerance


def test_errors_are_carried_through_what_follows() -> None:
    """1e-14 that came out as 0 is 1e-8 behind a product with 1e6: explained, since the product stretches the error."""
    assert compared(chain("Sigmoid", scale=1.0, zero_point=255, factor=1e6)).unexplained == 0
    assert compared(chain("Sigmoid", "Sqrt", scale=1.0, zero_point=255)).unexplained == 0
    assert compared(chain("Sigmoid", "Exp", "Log", scale=1.0, zero_point=128)).unexplained == 0


def off_by(monkeypatch: pytest.MonkeyPatch, error: float) -> None:
    """Every Sigmoid of the oracle is off by `error`."""
    known = host_float.prepare

    def wrong(op: Any, scope: Any) -> Any:
        plan = known(op, scope)
        if op.type != "Sigmoid":
            return plan
        return replace(plan, run=lambda values, finish: plan.run(values, finish) + np.float32(error))

    monkeypatch.setattr("oracle.registry.host_float.prepare", wrong)


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6])
def test_one_beyond_the_tolerance_is_a_difference(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """2e-5 is twice the tolerance of a Sigmoid, wherever its result lies and whatever it is multiplied with."""
    off_by(monkeypatch, 2e-5)
    assert compared(chain("Sigmoid", scale=1.0, zero_point=255, factor=factor)).unexplained > 0


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6])
def test_one_within_the_tolerance_is_none(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    off_by(monkeypatch, 0.9e-5)
    found = compared(chain("Sigmoid", scale=1.0, zero_point=255, factor=factor))
    assert found.unexplained == 0
    assert found.within_tolerance > 0


@pytest.mark.parametrize(("error", "differs"), [(0.5e-6, False), (4e-6, True)])
def test_codes_made_of_a_host_function_have_a_tolerance_too(
    monkeypatch: pytest.MonkeyPatch, error: float, *, differs: bool
) -> None:
    off_by(monkeypatch, error)
    found = compared(chain("Sigmoid", scale=1.0, zero_point=255, codes=1e-7))
    assert bool(found.unexplained) is differs
    assert bool(found.within_tolerance) is not differs


def test_the_same_error_of_a_function_without_a_constant_inside_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Tanh of 1e-5 has no term of 1 inside: half of it is no noise."""
    known = host_float.prepare

    def wrong(op: Any, scope: Any) -> Any:
        plan = known(op, scope)
        return replace(plan, run=lambda values, finish: plan.run(values, finish) / 2) if op.type == "Tanh" else plan

    monkeypatch.setattr("oracle.registry.host_float.prepare", wrong)
    assert compared(chain("Tanh", scale=1e-7, zero_point=128)).unexplained > 0
