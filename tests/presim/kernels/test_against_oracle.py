"""Every op of real models, object by object, against the oracle's `target` arithmetic: whole and split."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manifest.model import Op
from presim.kernels.attributes import Part, kernel_of
from tests.presim.kernels.models import FEEDS, Real, real

Array = NDArray[Any]
MODELS = [
    ("digits_cnn.quark_xint8", "digits_cnn"),
    ("digits_cnn.qdq_s8s8_pt", "digits_cnn"),
    ("digits_cnn.qdq_s16s8_pc", "digits_cnn"),
    ("digits_cnn.qop_u8u8_pt", "digits_cnn"),
    ("digits_mlp.quark_xint8", "digits_mlp"),
    ("digits_mlp.qdq_s16s8_pc", "digits_mlp"),
    ("mnist_resnet.quark_xint8", "mnist_resnet"),
    ("mnist_resnet.qdq_s8s8_pt", "mnist_resnet"),
    ("mnist_resnet.qop_u8s8_pt", "mnist_resnet"),
    ("cntk_mnist.qdq_s8s8_sym", "cntk_mnist"),
    ("cntk_mnist.qdq_s16s8_pc", "cntk_mnist"),
    ("qat_digits_mlp_pot8_qcdq", "qat_digits_mlp_pot8"),
    ("qat_mnist_cnn_w8a8_qcdq", "qat_mnist_cnn_w8a8"),
]
SPLIT = [("digits_cnn.quark_xint8", "digits_cnn"), ("digits_cnn.qdq_s16s8_pc", "digits_cnn")]


def check(model: Real, op: Op, feed: int = 0, part: Part | None = None) -> None:
    got = model.bench().run(op, model.inputs(op, feed), part)
    np.testing.assert_array_equal(got, channels(model.wanted(op, feed), part), err_msg=op.name)
    assert got.dtype == model.bench().forms.of(op.outputs[0]).dtype


def channels(array: Array, part: Part | None) -> Array:
    if part is None or not part.out_count:
        return array
    axis = 1 if array.ndim == 4 else array.ndim - 1
    return np.take(array, np.arange(part.out_first, part.out_first + part.out_count), axis)


@pytest.mark.parametrize(("name", "feeds"), MODELS)
def test_every_op_of_a_real_model(name: str, feeds: str, shared: Path) -> None:
    assert shared.is_dir()
    model = real(name, feeds)
    ops = list(model.ops())
    assert ops
    for feed in range(FEEDS):
        for op in ops:
            check(model, op, feed)


def test_every_op_of_the_branching_example() -> None:
    model = real("examples/branching/branching", "examples/branching/branching")
    assert {op.type for op in model.ops()} == {"MatMul", "Transpose"}
    for feed in range(FEEDS):
        for op in model.ops():
            check(model, op, feed)


@pytest.mark.parametrize(("name", "feeds"), SPLIT)
def test_output_channels_in_parts(name: str, feeds: str, shared: Path) -> None:
    """Also channels that are no whole block, and kernels that keep their channels."""
    assert shared.is_dir()
    model = real(name, feeds)
    kinds = set()
    for op in model.ops():
        shape = model.manifest.tensor(op.outputs[0]).shape
        total = shape[1] if len(shape) == 4 else shape[-1]
        if op.type == "Flatten":
            continue
        kinds.add(op.type)
        for first, count in ((0, 5), (5, total - 5), (total - 1, 1)):
            check(model, op, part=Part(out_first=first, out_count=count))
    assert {"Conv", "MaxPool", "Gemm"} <= kinds


@pytest.mark.parametrize(("name", "feeds"), SPLIT)
@pytest.mark.parametrize("narrow", [False, True])
def test_reductions_over_a_cascade(name: str, feeds: str, narrow: bool, shared: Path) -> None:
    """Two and three cores, the input whole or only what the core sums over; also a slice of the output channels."""
    assert shared.is_dir()
    model = real(name, feeds)
    done = 0
    for op in model.ops():
        if op.type not in ("Conv", "Gemm") or model.manifest.tensor(op.inputs[0]).shape[1] < 16:
            continue
        total = model.manifest.tensor(op.inputs[0]).shape[1]
        for cuts in ((0, 8, total), (0, 5, 11, total)):
            if narrow and any(c % 8 for c in cuts[:-1]):
                continue
            parts = [
                Part(out_first=2, out_count=7, in_first=a, in_count=b - a, x_first=a if narrow else 0)
                for a, b in pairwise(cuts)
            ]
            got = model.bench().cascade(op, model.inputs(op, 0), parts)
            np.testing.assert_array_equal(got, channels(model.wanted(op, 0), parts[0]))
            done += 1
    assert done


@pytest.mark.parametrize(("name", "feeds"), SPLIT)
def test_streamed_weights(name: str, feeds: str, shared: Path) -> None:
    assert shared.is_dir()
    model = real(name, feeds)
    for op in model.ops():
        if op.type in ("Conv", "Gemm"):
            for part, chunk in ((Part(), 8), (Part(), 3), (Part(out_first=1, out_count=6), 4), (Part(), 99)):
                got = model.bench().streamed(op, model.inputs(op, 0), part, chunk)
                np.testing.assert_array_equal(got, channels(model.wanted(op, 0), part))


@pytest.mark.parametrize(("name", "feeds"), [*SPLIT, ("qat_mnist_cnn_w8a8_qcdq", "qat_mnist_cnn_w8a8")])
def test_a_flattened_image_row_by_row(name: str, feeds: str, shared: Path) -> None:
    assert shared.is_dir()
    model = real(name, feeds)
    (flat,) = (op for op in model.ops() if op.type == "Flatten")
    gemm = next(op for op in model.ops() if op.inputs[0] == flat.outputs[0])
    for feed in range(FEEDS):
        inputs = {flat.inputs[0]: model.tensors[flat.inputs[0]][feed]}
        for part in (Part(kernel="gemm_rows"), Part(kernel="gemm_rows", out_first=3, out_count=4)):
            got = model.bench().run(gemm, inputs, part)
            np.testing.assert_array_equal(got, channels(model.wanted(gemm, feed), part))


def test_whole_operands_lie_together_or_apart(shared: Path) -> None:
    assert shared.is_dir()
    model = real("cntk_mnist.qdq_s8s8_sym", "cntk_mnist")
    found = set()
    for op in model.ops():
        kind = kernel_of(op, model.manifest)
        if kind in ("reshape", "matmul", "gemm"):
            part = Part(kernel="matmul") if kind == "gemm" else Part()
            got = model.bench(changes={"bundled": 1}).run(op, model.inputs(op, 0), part)
            np.testing.assert_array_equal(got, model.wanted(op, 0))
            check(model, op, part=part)
            found.add(kind)
    assert "reshape" in found
    assert found & {"matmul", "gemm"}
