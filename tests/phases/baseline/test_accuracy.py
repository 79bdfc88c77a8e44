"""Accuracy figures against values computed by hand."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manifest.errors import RefusedError
from manifest.model import Manifest, ModelInfo, Op, Quantization, Scheme, Target, Tensor
from phases.baseline.accuracy import (
    MAX_DB,
    OWN_MEANING,
    AccuracyMeter,
    Sums,
    class_numbers,
    layer_cliffs,
    weight_cliffs,
)
from phases.declared import Thresholds

SCHEME = Scheme(activations="int8", weights="int8", bias="int32", power_of_two=True, not_power_of_two=())


def int8(name: str, shape: tuple[int, ...], array: str | None = None, scale: float = 0.5) -> Tensor:
    quant = Quantization(scales=(scale,), zero_points=(0,))
    return Tensor(name=name, shape=shape, dtype="int8", onnx_dtype="int8", role="activation", quant=quant, array=array)


def manifest(tensors: tuple[Tensor, ...], ops: tuple[Op, ...] = (), outputs: tuple[str, ...] = ("y",)) -> Manifest:
    info = ModelInfo(sha256="", format="qdq", opset=17, ir_version=8, producer="", inputs=("x",), outputs=outputs)
    return Manifest(model=info, target=Target(device="npu2"), scheme=SCHEME, tensors=tensors, ops=ops)


def one_output(shape: tuple[int, ...] = (1, 3)) -> Manifest:
    return manifest((int8("y", shape),))


def codes(*rows: Any) -> NDArray[np.int8]:
    return np.array(rows, np.int8)


def test_accuracy_agreement_and_share_are_counted() -> None:
    meter = AccuracyMeter(one_output(), {})
    got = codes([[1, 2, 3]], [[3, 2, 1]], [[0, 5, 0]], [[0, 5, 0]])
    floats = {"y": np.array([[[0, 0, 9]], [[9, 0, 0]], [[0, 9, 0]], [[0, 0, 9]]], np.float32)}
    meter.add({"y": got[:1]}, {"y": floats["y"][:1]}, np.array([2]))
    meter.add({"y": got[1:]}, {"y": floats["y"][1:]}, np.array([2, 1, 2]))
    e = meter.evidence()
    assert e is not None
    assert (e.samples, e.labels) == (4, True)
    assert e.accuracy == 0.5
    assert e.float_accuracy == 0.75
    assert e.top1_agreement == 0.75
    assert e.majority_share == 0.75
    assert e.against == "float model"


def test_sqnr_and_cosine_are_those_of_the_worst_output() -> None:
    m = manifest((int8("y", (1, 2)), int8("z", (1, 2))), outputs=("y", "z"))
    meter = AccuracyMeter(m, {}, against=OWN_MEANING)
    good, bad = np.array([[[1.0, 2.0]]]), np.array([[[1.0, 0.5]]])
    meter.add({"y": codes([[2, 4]]), "z": codes([[2, 0]])}, {"y": good, "z": bad})
    e = meter.evidence()
    assert e is not None
    assert e.sqnr_db == pytest.approx(10 * math.log10(1.25 / 0.25))
    assert e.cosine == pytest.approx(1 / math.sqrt(1.25))
    assert e.accuracy is None
    assert e.against == OWN_MEANING


def test_figures_stay_finite_at_the_corners() -> None:
    exact, silent, both = Sums(), Sums(), Sums()
    exact.add(np.array([1.0]), np.array([1.0]))
    silent.add(np.array([0.0]), np.array([1.0]))
    both.add(np.zeros(2), np.zeros(2))
    assert (exact.sqnr_db, silent.sqnr_db, both.sqnr_db) == (MAX_DB, -MAX_DB, MAX_DB)
    assert (exact.cosine, silent.cosine, both.cosine) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(("reference", "got"), [(np.nan, 1), (np.inf, 1), (np.inf, np.inf), (1, np.nan), (1, -np.inf)])
def test_values_that_are_not_finite_are_the_worst(reference: float, got: float) -> None:
    sums = Sums()
    sums.add(np.array([1.0, reference]), np.array([1.0, got]))
    assert (sums.sqnr_db, sums.cosine) == (-MAX_DB, 0.0)


def test_layers_are_compared_under_their_float_names_worst_first() -> None:
    tensors = (int8("y", (1, 2)), int8("a_q", (1, 2)), int8("b_q", (1, 2)))
    meter = AccuracyMeter(manifest(tensors), {"a_q": "a", "b_q": "b", "y": "missing"})
    got = {"y": codes([[2, 4]]), "a_q": codes([[2, 4]]), "b_q": codes([[2, 4]])}
    meter.add(got, {"y": np.array([[[1.0, 2.0]]]), "a": np.array([[[1.0, 2.0]]]), "b": np.array([[[1.0, 3.0]]])})
    e = meter.evidence()
    assert e is not None
    assert [name for name, _ in e.worst_layers] == ["b_q", "a_q"]
    assert e.worst_layers[0][1] == pytest.approx(10.0)


def test_labels_without_a_float_model_and_float_model_without_labels() -> None:
    meter = AccuracyMeter(one_output(), {})
    meter.add({"y": codes([[1, 2, 3]])}, None, np.array([2]))
    e = meter.evidence()
    assert e is not None
    assert (e.accuracy, e.float_accuracy, e.sqnr_db, e.top1_agreement, e.against) == (1.0, None, None, None, "labels")
    assert AccuracyMeter(one_output(), {}).evidence() is None


def test_limits_are_carried() -> None:
    meter = AccuracyMeter(one_output(), {}, Thresholds(max_accuracy_drop=0.5, min_sqnr_db=3.0, min_top1_agreement=0.1))
    meter.add({"y": codes([[1, 2, 3]])})
    e = meter.evidence()
    assert e is not None
    assert (e.max_accuracy_drop, e.min_sqnr_db, e.min_top1_agreement) == (0.5, 3.0, 0.1)


@pytest.mark.parametrize("labels", [np.array([3]), np.array([0, 1])])
def test_labels_that_do_not_fit_the_output_are_refused(labels: NDArray[np.int64]) -> None:
    meter = AccuracyMeter(one_output(), {})
    with pytest.raises(RefusedError, match="1 class numbers below 3"):
        meter.add({"y": codes([[1, 2, 3]])}, None, labels)


def test_class_axis() -> None:
    assert class_numbers(np.zeros((4, 1, 1))) is None
    image_style = np.zeros((2, 1, 5, 1, 1))
    image_style[0, 0, 3], image_style[1, 0, 1] = 1, 1
    found = class_numbers(image_style)
    assert found is not None
    assert found.tolist() == [[3], [1]]


def test_an_image_output_has_no_top1_agreement() -> None:
    meter = AccuracyMeter(one_output((1, 3, 4, 4)), {})
    meter.add({"y": np.zeros((1, 1, 3, 4, 4), np.int8)}, {"y": np.ones((1, 1, 3, 4, 4), np.float32)})
    e = meter.evidence()
    assert e is not None
    assert e.top1_agreement is None
    assert e.sqnr_db == 0.0


def conv(name: str, source: str, target: str) -> Op:
    return Op(name=name, type="Conv", inputs=(source, "w", ""), outputs=(target,))


def test_a_layer_is_a_cliff_at_10_db_lost_and_not_before() -> None:
    m = manifest((), (conv("c1", "x", "a"), conv("c2", "a", "b")))
    assert layer_cliffs(m, {"a": 19.5, "b": 9.75}) == ()
    assert layer_cliffs(m, {"a": 19.5, "b": 9.5}) == ("b (Conv c2): SQNR falls from 19.5 dB to 9.5 dB",)
    assert layer_cliffs(m, {"a": 40.0, "b": 10.0}) == ()
    assert layer_cliffs(m, {"a": 5.0}) == ("a (Conv c1): SQNR falls at once to 5.0 dB",)


@pytest.mark.parametrize(("largest", "weak"), [(4, 0), (3, 1)])
def test_a_weight_channel_needs_4_levels(largest: int, weak: int) -> None:
    weight = np.zeros((3, 1, 2, 2), np.int8)
    weight[0], weight[1, 0, 0, 0] = 127, -largest
    m = manifest((int8("w", weight.shape, "t1"),), (conv("c1", "x", "a"),))
    found = weight_cliffs(m, {"t1": weight})
    assert len(found) == weak
    if weak:
        assert "Conv c1: 1 of 3 output channels keep fewer than 4 levels of weight w" in found[0]


def test_gemm_and_matmul_have_their_output_channels_where_they_are() -> None:
    weight = np.array([[100, 1], [100, 1]], np.int8)
    plain = Op(name="m", type="MatMul", inputs=("x", "w", ""), outputs=("a",))
    turned = Op(name="g", type="Gemm", inputs=("x", "w", ""), outputs=("a",), attributes={"transB": 1})
    tensors = (int8("w", weight.shape, "t1"),)
    assert "1 of 2" in weight_cliffs(manifest(tensors, (plain,)), {"t1": weight})[0]
    assert weight_cliffs(manifest(tensors, (turned,)), {"t1": weight}) == ()


def test_outputs_of_another_size_than_the_float_ones_are_not_measured() -> None:
    meter = AccuracyMeter(one_output(), {})
    meter.add({"y": codes([[1, 2, 3]])}, {"y": np.zeros((1, 1, 4), np.float32)}, np.array([2]))
    e = meter.evidence()
    assert e is not None
    assert (e.sqnr_db, e.top1_agreement, e.float_accuracy) == (None, None, None)
    assert (e.accuracy, e.against) == (1.0, "labels")
