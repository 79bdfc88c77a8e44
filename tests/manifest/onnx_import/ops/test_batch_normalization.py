from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, array_of, assert_exact, op_of


def batch_norm(
    *,
    gain: Any = (1.0, 2.0),
    weight: Any = ((10, -20), (30, 40)),
    bias: Any = None,
    kind: str = "Conv",
    **attributes: Any,
) -> Sketch:
    """A layer of two output channels, then BatchNormalization with variance 1 - epsilon, so that gain is the scale."""
    s = Sketch()
    conv = kind == "Conv"
    x = s.qdq(s.input("x", (1, 2, 3, 3) if conv else (3, 2)), 0.5, out="a")
    values = np.asarray(weight).reshape(2, 2, 1, 1) if conv else np.asarray(weight).T
    w = s.weight(values, 0.25, name="w")
    inputs = [x, w] if bias is None else [x, w, s.weight(bias, 0.125, name="b")]
    layer = s.node(kind, inputs, "layer", name="layer_node")
    epsilon = 2.0**-10
    constants = [s.const(gain), s.const([0.5, -0.25]), s.const([2.0, 4.0]), s.const([1 - epsilon] * 2)]
    norm = s.node("BatchNormalization", [layer, *constants], "norm", name="bn", epsilon=epsilon, **attributes)
    s.output(s.qdq(s.node("Relu", [norm]), 2.0, out="y"))
    return s


@pytest.mark.parametrize(
    ("kind", "bias"), [("Conv", None), ("Conv", [8, -16]), ("Gemm", None), ("Gemm", [8, -16]), ("MatMul", None)]
)
def test_it_is_folded_into_the_layer(kind: str, bias: Any) -> None:
    imported = assert_exact(batch_norm(kind=kind, bias=bias), target=False)
    op = op_of(imported.manifest, kind)
    assert op.nodes[:2] == ("layer_node", "bn")
    quant = imported.manifest.tensor(op.inputs[1]).quant
    assert quant is not None
    assert (quant.scales, quant.axis) == ((0.25, 0.5), 0 if kind == "Conv" else 1)
    added = array_of(imported, op.inputs[2])
    assert added.dtype == np.float32
    old = np.zeros(2) if bias is None else np.array(bias) * 0.125
    assert added.tolist() == (old * [1.0, 2.0] + [0.5, -0.25] - np.array([2.0, 4.0]) * [1.0, 2.0]).tolist()
    assert [(n.code, n.where) for n in imported.manifest.notes] == [("BATCHNORM-FOLDED", "bn")]


def test_a_negative_scale_mirrors_the_codes() -> None:
    imported = assert_exact(batch_norm(gain=(-1.0, 2.0)), target=False)
    weight = array_of(imported, op_of(imported.manifest, "Conv").inputs[1])
    assert weight.reshape(2, 2).tolist() == [[-10, 20], [30, 40]]


def test_codes_that_have_no_mirror_are_refused() -> None:
    with pytest.raises(RefusedError, match=r"node 'bn' \(BatchNormalization\): a negative scale mirrors codes of 'w'"):
        batch_norm(gain=(-1.0, 2.0), weight=((-128, 1), (2, 3))).load()
    assert_exact(batch_norm(gain=(-1.0, 2.0), weight=((-127, 1), (2, 3))), target=False)


def test_a_zero_scale_leaves_a_constant_channel() -> None:
    imported = assert_exact(batch_norm(gain=(0.0, 2.0)), target=False)
    op = op_of(imported.manifest, "Conv")
    assert array_of(imported, op.inputs[1]).reshape(2, 2).tolist() == [[0, 0], [30, 40]]


def test_a_second_reader_of_the_layer_keeps_it_apart() -> None:
    s = batch_norm()
    s.output(s.qdq("layer", 2.0, out="z"))
    with pytest.raises(
        RefusedError, match=r"node 'bn' \(BatchNormalization\): BatchNormalization is not behind a Conv"
    ):
        s.load()


def test_alone_it_is_refused_with_the_remedy() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 3, 3)), 0.5)
    constants = [s.const([1.0, 2.0]), s.const([0.0, 0.0]), s.const([0.0, 0.0]), s.const([1.0, 1.0])]
    norm = s.node("BatchNormalization", [x, *constants], name="bn")
    s.output(s.qdq(norm, 0.5, out="y"))
    with pytest.raises(RefusedError, match="quant_pre_process"):
        s.load()


def test_parameters_that_divide_by_zero_are_refused() -> None:
    s = batch_norm(gain=(np.inf, 1.0))
    with pytest.raises(RefusedError, match=r"scale / sqrt\(variance \+ epsilon\) is not finite"):
        s.load()
