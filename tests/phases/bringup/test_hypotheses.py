"""Causes are named for tensors that were made wrong by hand, with arithmetic written down here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from manifest.onnx_import import Imported
from oracle.run import Oracle
from phases.bringup.hypotheses import Cause, causes_of, part_of, tensor_causes
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


def swapped_blocks(weights: Codes) -> Codes:
    """The first two blocks of 8 outputs."""
    return weights[:, [*range(8, 16), *range(8)]]


RIGHT = clamped(rounded(accumulators()))
FLOOR_AND_WRAP = np.floor(accumulators() / 2.0**SHIFT).astype(np.int64).astype(np.int8)

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
    "negated": ("weight_order", "weights with the other sign", clamped(rounded(accumulators(weights=-WEIGHTS)))),
    "no sign bit": ("weight_order", "without their sign bit", clamped(rounded(accumulators(weights=WEIGHTS & 127)))),
    "blocks": (
        "weight_order",
        "blocks of 8 outputs exchanged, from output 0 on",
        clamped(rounded(accumulators(weights=swapped_blocks(WEIGHTS)))),
    ),
    "late bias": ("bias", "bias added behind the shift", clamped(rounded(accumulators(bias=0 * BIAS)) + BIAS)),
    "no modes": ("rounding", "modes never set: rounding floor and no saturation", FLOOR_AND_WRAP),
    "zero point": ("zero_point", "zero point of 'y.q' is 1 instead of 0", clamped(rounded(accumulators()) + 1)),
    "offset": ("zero_point", "every code is -7 off", np.clip(RIGHT.astype(np.int64) - 7, -128, 127).astype(np.int8)),
    "not written": ("uniform", "what differs is 90 in 12 places", np.where(np.arange(N) < 12, RIGHT, 90)),
    "ends early": ("clamp", "codes end at 50 instead of 127", np.minimum(RIGHT, 50)),
    "begins late": ("clamp", "codes begin at -50 instead of -128", np.maximum(RIGHT, -50)),
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


def test_a_guess_that_explains_little_is_not_named() -> None:
    got: Codes = np.random.default_rng(9).integers(-128, 128, RIGHT.shape, np.int8)
    assert causes(got) == ()


def test_the_one_place_that_all_differences_share_is_told() -> None:
    got = RIGHT.copy()
    got[:, 0, 5] ^= 1
    assert part_of(RIGHT, got) == "index 5 of axis 1 alone differs, in 3 of 48 elements"
    got[0, 0, 6] ^= 1
    assert part_of(RIGHT, got) == "indices 5 to 6 of axis 1 alone differ, in 4 of 48 elements"
    got[0, 0, 8] ^= 1
    assert part_of(RIGHT, got) == ""


SCALES = {"first": 8.0, "second": 64.0}


def two_layers() -> Imported:
    """Two layers of one form behind each other."""
    sketch = Sketch()
    x = sketch.qdq(sketch.input("x", (1, K)), 0.5, out="xd")
    rng = np.random.default_rng(8)
    for name in ("first", "second"):
        weights = sketch.weight(rng.integers(-100, 101, (K, N)), 0.25, name=f"w.{name}")
        scale = 0.125 if name == "first" else 2.0
        bias = sketch.weight(rng.integers(-3000, 3001, N), scale, 0, np.int32, name=f"b.{name}")
        x = sketch.qdq(sketch.node("Gemm", [x, weights, bias], name=name), SCALES[name], out=f"{name}.y")
    sketch.output(x)
    return sketch.load()


@pytest.mark.parametrize(("kind", "axis"), [("weights", 1), ("bias", 2)])
@pytest.mark.parametrize("broken", ["first", "second"])
def test_constants_of_another_op_are_named_where_the_first_wrong_tensor_is(kind: str, axis: int, broken: str) -> None:
    """Only what comes last is seen, as of a chain whose inner tensors are not drained."""
    imported = two_layers()
    manifest, arrays = imported.manifest, imported.arrays
    ops = {op.name: op for op in manifest.ops if op.type == "Gemm"}
    keys = {name: manifest.tensor(op.inputs[axis]).array or "" for name, op in ops.items()}
    other = next(name for name in ops if name != broken)
    stale = {**arrays, keys[broken]: arrays[keys[other]]}
    want, got = (
        Oracle(manifest, constants).run_ops(ops, {"xd.q": X}, arithmetic="target", keep="stored")
        for constants in (arrays, stale)
    )
    found = causes_of(
        manifest,
        arrays,
        tuple(ops),
        {"xd.q": X},
        tensor="second.y.q",
        want=want["second.y.q"],
        got=got["second.y.q"],
        suspect=f"{broken}.y.q",
    )
    assert found[0].certain
    assert found[0].text == f"op {broken!r}: the {kind} of op {other!r}"


def convolution() -> Imported:
    sketch = Sketch()
    x = sketch.qdq(sketch.input("x", (1, 8, 5, 5)), 0.5, -9, out="xd")
    weights = sketch.weight(np.random.default_rng(2).integers(-90, 91, (8, 8, 3, 3)), 0.25, name="w")
    sketch.output(sketch.qdq(sketch.node("Conv", [x, weights], name="conv", pads=[1, 1, 1, 1]), 128.0, 5, out="y"))
    return sketch.load()


IMAGES = np.random.default_rng(1).integers(-128, 128, (2, 1, 8, 5, 5)).astype(np.int8)


def convolved(weights: Codes, padding: int, *, left: int = 1) -> Codes:
    """Written down: zero points -9 and 5, shift 10."""
    around = np.pad(
        IMAGES.astype(np.int64), ((0, 0), (0, 0), (0, 0), (1, 1), (left, 2 - left)), constant_values=padding
    )
    acc = np.zeros(IMAGES.shape, np.int64)
    for row in range(3):
        for column in range(3):
            part = around[..., row : row + 5, column : column + 5] + 9
            acc += np.einsum("oc,fnchw->fnohw", weights[:, :, row, column].astype(np.int64), part)
    codes: Codes = np.clip(np.rint(acc / 2.0**10) + 5, -128, 127).astype(np.int8)
    return codes


IMAGE_CASES: dict[str, tuple[str, Callable[[Codes], Codes]]] = {
    "rows reversed": ("kernel rows in reverse order", lambda w: convolved(w[:, :, ::-1], -9)),
    "columns reversed": ("kernel columns in reverse order", lambda w: convolved(w[:, :, :, ::-1], -9)),
    "border": ("the padding holds code 0, not the zero point of 'xd.q'", lambda w: convolved(w, 0)),
    "one side": ("padding [1, 0, 1, 2] instead of [1, 1, 1, 1]", lambda w: convolved(w, -9, left=0)),
    "no zero point": (
        "zero point of 'y.q' left out",
        lambda w: (convolved(w, -9).astype(np.int64) - 5).astype(np.int8),
    ),
}


@pytest.mark.parametrize("case", IMAGE_CASES)
def test_causes_in_a_convolution_with_zero_points(case: str) -> None:
    words, wrong = IMAGE_CASES[case]
    imported = convolution()
    weights = imported.arrays[imported.manifest.tensor("w").array or ""]
    want, got = convolved(weights, -9), wrong(weights)
    assert int(np.abs(want.astype(int)).max()) < 120  # nothing is clamped
    found = causes_of(imported.manifest, imported.arrays, ("conv",), {"xd.q": IMAGES}, tensor="y.q", want=want, got=got)
    assert any(words in c.text for c in found if c.certain), found


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
