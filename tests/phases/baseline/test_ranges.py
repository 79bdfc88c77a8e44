"""Ranges on real data, both sides of what a scale can represent."""

from typing import Any

import numpy as np
import pytest

from manifest.model import (
    DType,
    Manifest,
    ModelInfo,
    Observed,
    Op,
    Quantization,
    Scheme,
    Target,
    Tensor,
)
from phases.baseline.preprocessing import Preprocessing
from phases.baseline.ranges import input_ranges, merged, observed_ranges, real_values, with_observed


def tensor(name: str, dtype: DType, shape: tuple[int, ...] = (1, 4), **quant: Any) -> Tensor:
    scheme = Quantization(**quant) if quant else None
    return Tensor(name=name, shape=shape, dtype=dtype, onnx_dtype=dtype, role="activation", quant=scheme)


def manifest(*tensors: Tensor, ops: tuple[Op, ...] = (), inputs: tuple[str, ...] = ("x",)) -> Manifest:
    info = ModelInfo(sha256="", format="qdq", opset=17, ir_version=8, producer="", inputs=inputs, outputs=("q",))
    scheme = Scheme(activations="int8", weights="int8", bias="int32", power_of_two=True, not_power_of_two=())
    return Manifest(model=info, target=Target(device="npu2"), scheme=scheme, tensors=tensors, ops=ops)


def quantised_input(dtype: DType = "int8", scale: float = 0.5, zero: int = 0, through: bool = False) -> Manifest:
    q = tensor("q", dtype, scales=(scale,), zero_points=(zero,))
    if not through:
        direct = (Op(name="Q", type="QuantizeLinear", inputs=("x",), outputs=("q",)),)
        return manifest(tensor("x", "float32"), q, ops=direct)
    ops = (
        Op(name="r", type="Reshape", inputs=("x",), outputs=("m",)),
        Op(name="Q", type="QuantizeLinear", inputs=("m",), outputs=("q",)),
    )
    return manifest(tensor("x", "float32"), tensor("m", "float32"), q, ops=ops)


def test_real_values_per_tensor_and_per_channel() -> None:
    per_tensor = tensor("q", "uint8", scales=(0.5,), zero_points=(128,))
    assert real_values(per_tensor, np.array([[[0, 255]]], np.uint8)).tolist() == [[[-64.0, 63.5]]]
    per_channel = tensor("q", "int8", (2, 3), scales=(1.0, 2.0), zero_points=(0, 1), axis=0)
    got = real_values(per_channel, np.array([[[1, 1, 1], [2, 2, 2]]], np.int8))
    assert got.tolist() == [[[1, 1, 1], [2, 2, 2]]]


def test_observed_range_and_saturated_codes() -> None:
    m = manifest(tensor("q", "int8", scales=(0.5,), zero_points=(0,)), tensor("f", "float32"))
    codes = np.array([[[-128, 3, 127, 127]], [[0, 1, 2, 3]]], np.int8)
    found = observed_ranges(m, {"q": codes, "f": np.zeros((2, 1, 4), np.float32), "unknown": codes})
    assert found == {"q": Observed(minimum=-64.0, maximum=63.5, samples=2, saturated=3)}
    filled = with_observed(m, found)
    assert filled.tensor("q").observed == found["q"]
    assert filled.tensor("f").observed is None


def test_merging_is_the_range_over_all_feeds() -> None:
    m = manifest(tensor("q", "int8", scales=(0.25,), zero_points=(0,)))
    codes = np.random.default_rng(1).integers(-128, 128, (6, 1, 4)).astype(np.int8)
    whole = observed_ranges(m, {"q": codes})
    assert merged(observed_ranges(m, {"q": codes[:2]}), observed_ranges(m, {"q": codes[2:]})) == whole
    assert merged(whole, {}) == whole


@pytest.mark.parametrize("through", [False, True])
def test_input_at_the_limit_is_not_clipped_and_one_step_beyond_is(through: bool) -> None:
    m = quantised_input(through=through)
    edge = np.array([[[-64.0, 63.5, 63.75, 0.0]]], np.float32)
    (row,) = input_ranges(m, {"x": edge})
    assert (row.representable_minimum, row.representable_maximum, row.clipped) == (-64.0, 63.5, 0)
    assert row.used_codes_fraction == 1.0
    (beyond,) = input_ranges(m, {"x": np.array([[[-64.5, 64.0, 0.0, 0.0]]], np.float32)})
    assert beyond.clipped == 2
    assert beyond.elements == 4


def test_bytes_against_one_show_as_clipping_and_one_against_bytes_as_unused_codes() -> None:
    clipped = input_ranges(quantised_input(scale=2**-7), {"x": np.array([[[0, 50, 100, 255]]], np.float32)})[0]
    assert clipped.clipped == 3
    unused = input_ranges(quantised_input("uint8", 1.0), {"x": np.array([[[0, 0.5, 0.25, 1.0]]], np.float32)})[0]
    assert unused.used_codes_fraction == pytest.approx(1 / 255)
    assert unused.codes == 256


def test_data_wholly_outside_uses_no_codes() -> None:
    row = input_ranges(quantised_input(), {"x": np.full((1, 1, 4), 1000, np.float32)})[0]
    assert row.used_codes_fraction == 0.0
    assert row.clipped == 4


def test_declared_range_comes_from_the_preprocessing() -> None:
    declared = {"x": Preprocessing(scale=(1 / 255,))}
    row = input_ranges(quantised_input(), {"x": np.ones((2, 1, 4), np.float32)}, declared)[0]
    assert (row.declared_minimum, row.declared_maximum) == (0.0, 1.0)
    assert row.samples == 2


def test_integer_input_and_input_without_a_scale() -> None:
    codes = np.array([[[-512, 511, 0, 0]]], np.int16)
    whole = manifest(tensor("x", "int16", scales=(2.0**-9,), zero_points=(0,)))
    row = input_ranges(whole, {"x": codes})[0]
    assert (row.minimum, row.maximum, row.codes) == (-1.0, 511 / 512, 65536)
    bare = input_ranges(manifest(tensor("x", "float32")), {"x": codes})[0]
    assert bare.representable_minimum is None
    assert input_ranges(manifest(tensor("x", "float32")), {}) == ()
