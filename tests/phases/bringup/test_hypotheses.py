"""Causes are named for tensors that were made wrong by hand, with arithmetic written down here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from manifest.onnx_import import Imported
from phases.bringup.hypotheses import Cause, causes_of, tensor_causes
from tests.qdq_models import Sketch, linear

K = N = 16
SHIFT = 5
RNG = np.random.default_rng(3)
WEIGHTS = RNG.integers(-100, 101, (K, N)).astype(np.int8)
BIAS = RNG.integers(-3000, 3001, N).astype(np.int32)
X = RNG.integers(-128, 128, (3, 1, K)).astype(np.int8)

Codes = np.ndarray[Any, Any]


def model() -> Imported:
    sketch = Sketch()
    bias = sketch.weight(BIAS, 0.125, 0, np.int32, name="b")
    return linear(WEIGHTS, x_scale=0.5, w_scale=0.25, y_scale=0.125 * 2**SHIFT, bias=bias, sketch=sketch).load()


def rounded(acc: Codes, shift: int = SHIFT) -> Codes:
    return np.rint(acc / 2.0**shift)


def clamped(codes: Codes) -> Codes:
    return np.clip(codes, -128, 127).astype(np.int8)


def accumulators(weights: Codes = WEIGHTS, bias: Codes = BIAS) -> Codes:
    return X.astype(np.int64) @ weights.astype(np.int64) + bias


RIGHT = clamped(rounded(accumulators()))

WRONG: dict[str, tuple[str, str, Codes]] = {
    "floor": ("rounding", "rounding floor", clamped(np.floor(accumulators() / 2.0**SHIFT))),
    "ceil": ("rounding", "rounding ceil", clamped(np.ceil(accumulators() / 2.0**SHIFT))),
    "shift one more": ("shift", f"shift {SHIFT + 1} instead of {SHIFT}", clamped(rounded(accumulators(), SHIFT + 1))),
    "shift one less": ("shift", f"shift {SHIFT - 1} instead of {SHIFT}", clamped(rounded(accumulators(), SHIFT - 1))),
    "wraps": ("saturation", "no saturation", rounded(accumulators()).astype(np.int64).astype(np.int8)),
    "no bias": ("bias", "bias left out", clamped(rounded(accumulators(bias=0 * BIAS)))),
    "bias twice": ("bias", "bias added twice", clamped(rounded(accumulators(bias=2 * BIAS)))),
    "transposed": ("weight_order", "weights transposed", clamped(rounded(accumulators(weights=WEIGHTS.T)))),
    "zero weights": ("weight_order", "all weights zero", clamped(rounded(accumulators(weights=0 * WEIGHTS)))),
    "reversed": ("layout", "axis 1 reversed", RIGHT[:, :, ::-1]),
    "one inference late": ("stale", "the one before", np.roll(RIGHT, 1, axis=0)),
    "first again": ("stale", "what the first gave", np.broadcast_to(RIGHT[:1], RIGHT.shape)),
    "zeros": ("uniform", "zeros", np.zeros_like(RIGHT)),
    "poison": ("uniform", "poison", np.full_like(RIGHT, -86)),
}


def causes(got: Codes) -> tuple[Cause, ...]:
    imported = model()
    return causes_of(
        imported.manifest, imported.arrays, ("gemm",), {"xd.q": X}, tensor="y.q", want=RIGHT, got=np.asarray(got)
    )


@pytest.mark.parametrize("case", WRONG)
def test_the_cause_is_named_and_predicts_every_element(case: str) -> None:
    kind, words, got = WRONG[case]
    best = causes(got)[0]
    assert best.certain
    found = [c for c in causes(got) if c.certain]
    assert kind in {c.kind for c in found}
    assert any(words in c.text for c in found)
    assert f"{RIGHT.size} of {RIGHT.size} elements" in best.line()


def test_nothing_is_named_where_no_single_change_explains_more_than_the_oracle() -> None:
    got = RIGHT.copy()
    got[0, 0, 0] ^= 1
    assert causes(got) == ()
    assert causes(RIGHT) == ()


def test_a_partial_explanation_is_called_what_it_is() -> None:
    got = WRONG["shift one more"][2].copy()
    got[0, 0, 0] ^= 1
    best = causes(got)[0]
    assert best.kind == "shift"
    assert not best.certain
    assert best.explained == RIGHT.size - 1


ORDERS: dict[str, tuple[str, Callable[[Codes], Codes]]] = {
    "swapped": ("axes 2 and 3 swapped", lambda a: a.swapaxes(3, 4)),
    "blocks": (
        "blocks of 8 channels",
        lambda a: np.ascontiguousarray(a.reshape(1, 1, 2, 8, 4, 4).transpose(0, 1, 4, 2, 5, 3)).reshape(a.shape),
    ),
    "late": ("axis 3 late by one place", lambda a: np.roll(a, 1, 4)),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders_of_an_image_are_named(case: str) -> None:
    words, wrong = ORDERS[case]
    right = np.arange(256, dtype=np.int16).reshape(1, 1, 16, 4, 4)
    found = [c for c in tensor_causes(right, wrong(right)) if c.certain]
    assert any(words in c.text for c in found), found
