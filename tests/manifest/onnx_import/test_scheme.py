from typing import Any

import numpy as np
import pytest

from tests.qdq_models import Sketch, linear


def depthwise(largest: list[int], *, scale: Any = 0.5, zero: int = 0, dtype: type = np.int8) -> Sketch:
    s = Sketch()
    x = s.qdq(s.input("x", (1, len(largest), 3, 3)), 0.5)
    w = np.array(largest).reshape(-1, 1, 1, 1) + zero
    attributes = {"axis": 0} if np.ndim(scale) else {}
    conv = s.node("Conv", [x, s.weight(w, scale, zero, dtype, name="w", **attributes)], name="dw", group=len(largest))
    s.output(s.qdq(conv, 0.5, out="y"), (1, len(largest), 3, 3))
    return s


@pytest.mark.parametrize("zero", [0, 100])
def test_channels_below_four_levels_are_named(zero: int) -> None:
    manifest = depthwise([120, 3, 4, -3, 0], zero=zero, dtype=np.int8 if zero == 0 else np.uint8).load().manifest
    (note,) = [n for n in manifest.notes if n.code == "WEIGHT-CLIFF"]
    assert note.where == "dw"
    assert "channel 1, 3, 4 uses fewer than 4 levels" in note.text


def test_four_levels_or_one_scale_per_channel_are_no_cliff() -> None:
    assert not [n for n in depthwise([120, 4, -4]).load().manifest.notes if n.code == "WEIGHT-CLIFF"]
    assert not [n for n in depthwise([120, 1], scale=[0.5, 0.25]).load().manifest.notes if n.code == "WEIGHT-CLIFF"]


def test_the_scheme_in_words() -> None:
    s = Sketch()
    bias = s.weight([1, 2], 0.125, dtype=np.int32, name="b")
    scheme = linear(np.eye(2) * 7, x_scale=0.5, w_scale=[0.25, 0.25], bias=bias, sketch=s).load().manifest.scheme
    assert scheme.activations == "int8 per tensor, symmetric"
    assert scheme.weights == "int8 per channel, symmetric"
    assert scheme.bias == "int32 at the accumulator's scale"
    assert (scheme.power_of_two, scheme.not_power_of_two) == (True, ())


def test_exceptions_to_the_powers_of_two_are_listed_by_name() -> None:
    scheme = linear(np.eye(2) * 7, w_scale=[0.25, 0.3], y_scale=0.1).load().manifest.scheme
    assert not scheme.power_of_two
    assert scheme.not_power_of_two == ("w", "y.q")


@pytest.mark.parametrize(
    ("dtype", "zero", "word"), [(np.uint8, 128, "symmetric"), (np.uint8, 127, "asymmetric"), (np.int8, 1, "asymmetric")]
)
def test_symmetric_means_the_middle_of_the_type(dtype: type, zero: int, word: str) -> None:
    s = Sketch()
    s.output(s.qdq(s.input("x", (1, 2)), 0.5, zero, dtype, out="y"), (1, 2))
    assert s.load().manifest.scheme.activations == f"{np.dtype(dtype).name} per tensor, {word}"


def test_a_float_bias_is_called_rescaled() -> None:
    s = Sketch()
    scheme = linear(np.eye(2) * 7, bias=s.const([0.3, 0.4], np.float32, "b"), sketch=s).load().manifest.scheme
    assert scheme.bias == "float32 own scale, rescaled"
