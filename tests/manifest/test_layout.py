"""Layout transforms: exact inverses for every shape, and every element where the kernel looks for it."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from manifest.device import load_device
from manifest.layout import (
    IDENTITY,
    TRANSFORMS,
    choose_activation,
    choose_weight,
    default_layouts,
    kernel_pair,
    pack,
    packed_shape,
    padding,
    unpack,
)
from manifest.model import Op, Quantization, Tensor

RANKS = {"conv_blocks": 4, "grouped_conv_blocks": 4, "depthwise_blocks": 4, "dense_kn_blocks": 2, "dense_nk_blocks": 2,
         "row_blocks": 4, "identity": 3}  # fmt: skip


def numbered(shape: tuple[int, ...]) -> NDArray[Any]:
    """Every element different and none zero, so that a mixed-up element or a lost one shows."""
    return np.arange(1, math.prod(shape) + 1, dtype=np.int32).reshape(shape)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    name = draw(st.sampled_from(sorted(TRANSFORMS)))
    shape = draw(st.tuples(*[st.integers(1, 19)] * RANKS[name]))
    cuts = draw(st.tuples(*[st.integers(1, 9)] * len(TRANSFORMS[name].blocked)))
    if TRANSFORMS[name].grouped:
        group = draw(st.integers(1, 4))
        return name, (shape[0] * group, *shape[1:]), (group, *cuts)
    return name, shape, cuts


def test_every_transform_has_a_case() -> None:
    assert RANKS.keys() == TRANSFORMS.keys()


@given(cases())
@example(("conv_blocks", (13, 7, 3, 5), (8, 8)))
@example(("dense_nk_blocks", (17, 13), (8, 4)))
@example(("row_blocks", (1, 11, 7, 13), (8,)))
def test_unpack_is_the_exact_inverse(case: tuple[str, tuple[int, ...], tuple[int, ...]]) -> None:
    name, shape, block = case
    array = numbered(shape)
    packed = pack(name, array, block)
    assert packed.shape == packed_shape(name, shape, block)
    assert packed.flags.c_contiguous
    assert packed.size == array.size + padding(name, shape, block)
    assert np.count_nonzero(packed) == array.size
    np.testing.assert_array_equal(unpack(name, packed, block, shape), array)
    assert sorted(packed[packed != 0].tolist()) == list(range(1, array.size + 1))


def test_conv_blocks_put_each_weight_where_the_kernel_reads_it() -> None:
    w = numbered((10, 9, 3, 2))
    p = pack("conv_blocks", w, (4, 8))
    assert p.shape == (3, 2, 3, 2, 8, 4)
    for o, i, y, x in itertools.product(*map(range, w.shape)):
        assert p[o // 4, i // 8, y, x, i % 8, o % 4] == w[o, i, y, x]


def test_grouped_blocks_never_cross_a_group() -> None:
    w = numbered((6, 5, 1, 1))
    p = pack("grouped_conv_blocks", w, (2, 4, 8))
    assert p.shape == (2, 1, 1, 1, 1, 8, 4)
    for o, i in itertools.product(range(6), range(5)):
        assert p[o // 3, 0, 0, 0, 0, i, o % 3] == w[o, i, 0, 0]


def test_dense_blocks_are_s_by_t_row_major_from_either_storage() -> None:
    w = numbered((11, 6))
    p = pack("dense_kn_blocks", w, (8, 4))
    assert p.shape == (2, 2, 8, 4)
    for k, n in itertools.product(range(11), range(6)):
        assert p[k // 8, n // 4, k % 8, n % 4] == w[k, n]
    np.testing.assert_array_equal(pack("dense_nk_blocks", np.ascontiguousarray(w.T), (4, 8)), p)


def test_rows_keep_eight_channels_together() -> None:
    x = numbered((1, 10, 3, 5))
    p = pack("row_blocks", x, (8,))
    assert p.shape == (1, 3, 2, 5, 8)
    for c, y, w in itertools.product(range(10), range(3), range(5)):
        assert p[0, y, c // 8, w, c % 8] == x[0, c, y, w]


def test_depthwise_blocks() -> None:
    w = numbered((9, 1, 3, 3))
    p = pack("depthwise_blocks", w, (8,))
    assert p.shape == (2, 1, 3, 3, 8)
    assert p[1, 0, 2, 1, 0] == w[8, 0, 2, 1]


@pytest.mark.parametrize(
    ("name", "shape", "block"),
    [
        ("magic", (2, 2), ()),
        ("conv_blocks", (2, 2), (8, 8)),
        ("conv_blocks", (2, 2, 2, 2), (8,)),
        ("conv_blocks", (2, 2, 2, 2), (0, 8)),
        ("grouped_conv_blocks", (5, 2, 1, 1), (2, 8, 8)),
    ],
)
def test_what_does_not_fit_is_an_error(name: str, shape: tuple[int, ...], block: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="layout"):
        pack(name, numbered(shape), block)


def test_unpack_checks_the_packed_shape() -> None:
    packed = pack("dense_kn_blocks", numbered((8, 8)), (8, 8))
    assert unpack("dense_kn_blocks", packed, (8, 8), (7, 8)).shape == (7, 8)
    with pytest.raises(ValueError, match="expected a packed shape"):
        unpack("dense_kn_blocks", packed, (8, 8), (9, 8))


def test_choice_follows_the_device() -> None:
    npu1, npu2, vek385 = (load_device(n).mmul for n in ("npu1", "npu2", "vek385"))
    assert choose_weight("Conv", (16, 3, 3, 3), "int8xint8", npu1) == ("OIHW", "conv_blocks", (8, 8))
    assert choose_weight("Conv", (16, 3, 3, 3), "int16xint8", npu1) == ("OIHW", "conv_blocks", (4, 8))
    assert choose_weight("Conv", (16, 4, 3, 3), "int8xint8", npu2, group=4)[1:] == ("grouped_conv_blocks", (4, 8, 8))
    assert choose_weight("Conv", (16, 1, 3, 3), "int8xint8", npu2, group=16)[1:] == ("depthwise_blocks", (8,))
    assert choose_weight("Conv", (16, 1, 3, 3), "int8xint8", npu2, group=8)[1:] == ("grouped_conv_blocks", (8, 8, 8))
    assert choose_weight("Conv", (16, 3, 3), "int8xint8", npu2)[1] == IDENTITY
    assert choose_weight("Gemm", (64, 10), "int16xint8", npu2) == ("KN", "dense_kn_blocks", (4, 8))
    assert choose_weight("Gemm", (10, 64), "int16xint8", npu2, trans_b=True) == ("NK", "dense_nk_blocks", (8, 4))
    assert choose_weight("Gemm", (64, 10), "int8xint8", vek385) == ("KN", IDENTITY, ())
    assert choose_weight("MatMul", (2, 64, 10), "int8xint8", npu2)[1] == IDENTITY
    assert choose_activation((1, 3, 8, 8)) == ("NCHW", "row_blocks", (8,))
    assert choose_activation((1, 64)) == ("", IDENTITY, ())
    assert kernel_pair("uint8", "int8") == "int8xint8"
    assert kernel_pair("uint16", "uint8") == "int16xint8"


def test_default_layouts_cover_weights_and_quantised_activations() -> None:
    q = Quantization(scales=(1.0,), zero_points=(0,))
    tensors = [
        Tensor(name="x", shape=(1, 3, 8, 8), dtype="float32", onnx_dtype="float32", role="input"),
        Tensor(name="xq", shape=(1, 3, 8, 8), dtype="int8", onnx_dtype="int8", role="activation", quant=q),
        Tensor(name="w", shape=(5, 3, 3, 3), dtype="int8", onnx_dtype="int8", role="weight", quant=q, array="t000001"),
        Tensor(name="b", shape=(5,), dtype="int32", onnx_dtype="int32", role="bias", quant=q, array="t000002"),
        Tensor(name="y", shape=(1, 5, 6, 6), dtype="int8", onnx_dtype="int8", role="output", quant=q),
    ]
    ops = [Op(name="c", type="Conv", inputs=("xq", "w", "b"), outputs=("y",), attributes={"group": 1})]
    got = {
        lay.tensor: (lay.logical, lay.packed, lay.block) for lay in default_layouts(tensors, ops, load_device("npu2"))
    }
    assert got == {
        "w": ("OIHW", "conv_blocks", (8, 8)),
        "xq": ("NCHW", "row_blocks", (8,)),
        "y": ("NCHW", "row_blocks", (8,)),
    }


def test_a_product_of_two_activations_has_no_weight_layout() -> None:
    q = Quantization(scales=(1.0,), zero_points=(0,))
    tensors = [
        Tensor(name=n, shape=(4, 4), dtype="int8", onnx_dtype="int8", role="activation", quant=q)
        for n in ("a", "b", "y")
    ]
    ops = [Op(name="m", type="MatMul", inputs=("a", "b"), outputs=("y",))]
    assert {lay.packed for lay in default_layouts(tensors, ops, load_device("npu2"))} == {IDENTITY}
