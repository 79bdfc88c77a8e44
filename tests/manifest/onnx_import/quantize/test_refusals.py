"""What the quantizer refuses, by name and all in one report."""

import importlib
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from manifest.errors import RefusedError
from manifest.onnx_import.quantize import quantize_float
from tests.quantizing import (
    IMAGES,
    ROWS,
    Array,
    conv,
    float_model,
    graph_of,
    normal,
)


@pytest.mark.parametrize("source", [b"", b"\x08\x07"])
def test_bytes_that_are_no_model_are_refused(source: bytes) -> None:
    with pytest.raises(RefusedError, match="ONNX-PARSE"):
        quantize_float(source, IMAGES)


def test_every_op_that_cannot_be_quantized_is_named_in_one_report() -> None:
    nodes = [
        conv("x", "w", "a"),
        helper.make_node("HardSwish", ["a"], ["h"], name="swish"),
        helper.make_node("Mul", ["h", "a"], ["m"], name="gate"),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("BatchNormalization", ["f", "s", "s", "s", "v"], ["n"], name="norm"),
        helper.make_node("Softmax", ["n"], ["y"], name="soft"),
    ]
    constants = {"w": normal(2, 3, 1, 1), "s": normal(288), "v": np.abs(normal(288))}
    with pytest.raises(RefusedError) as caught:
        quantize_float(float_model(nodes, constants, (1, 3, 12, 12), {"y": (1, 288)}), IMAGES)
    assert [p.code for p in caught.value.problems] == ["QUANT-OP"] * 4
    text = str(caught.value)
    for name, op in (("swish", "HardSwish"), ("gate", "Mul"), ("norm", "BatchNormalization"), ("soft", "Softmax")):
        assert f"'{name}'" in text
        assert op in text
    assert "remedy: leave it to the host with --host-ops" in text


@pytest.mark.parametrize(
    ("node", "constants", "words"),
    [
        (helper.make_node("Gemm", ["x", "x"], ["y"], transA=1), {}, "computed at run time"),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transA=1), {"w": normal(4, 6)}, "transA"),
        (helper.make_node("MatMul", ["w", "x"], ["y"]), {"w": normal(6, 4)}, "of a constant with an activation"),
        (helper.make_node("Mul", ["x", "w"], ["y"]), {"w": normal(6)}, "one constant number"),
        (helper.make_node("Concat", ["x", "w"], ["y"], axis=0), {"w": normal(2, 6)}, "Concat with a constant"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": np.full((6, 6), np.inf, np.float32)}, "NaN or infinite"),
        (helper.make_node("Div", ["x", "w"], ["y"]), {"w": np.zeros(1, np.float32)}, "op Div"),
        (helper.make_node("Div", ["x", "w"], ["y"]), {"w": np.array([1e-40], np.float32)}, "op Div"),
        (helper.make_node("Sub", ["w", "x"], ["y"]), {"w": normal(1)}, "op Sub"),
    ],
)
def test_forms_of_supported_ops_that_are_refused(node: onnx.NodeProto, constants: dict[str, Any], words: str) -> None:
    shapes = {"Gemm": (6, 6), "MatMul": (6, 6) if node.input[0] == "w" else (4, 6), "Concat": (6, 6)}
    model = float_model([node], constants, (4, 6), {"y": shapes.get(node.op_type, (4, 6))})
    with pytest.raises(RefusedError, match=words):
        quantize_float(model, ROWS)


def test_open_dimensions_come_from_the_feeds_or_are_refused() -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    model = float_model([node], {"w": normal(6, 6)}, ("n", 6), {"y": (4, 6)})
    q = quantize_float(model, ROWS)
    assert [d.dim_value for d in graph_of(q).input[0].type.tensor_type.shape.dim] == [4, 6]
    with pytest.raises(RefusedError, match=r"ONNX-OPEN-DIM.*\[n, 6\]"):
        quantize_float(model, {"z": ROWS["x"]})
    with pytest.raises(RefusedError, match="the shape does not fit the input"):
        quantize_float(model, ROWS, shapes={"x": (4, 7)})


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        (normal(6, 4, 5), "got float32"),
        (normal(6, 4, 6).astype(np.float64), "got float64"),
        (normal(0, 4, 6), r"got float32 \[0, 4, 6\]"),
        (np.full((2, 4, 6), np.nan, np.float32), "not finite"),
    ],
)
def test_feeds_that_do_not_fit_are_refused(feed: Array, words: str) -> None:
    model = float_model([helper.make_node("Gemm", ["x", "w"], ["y"])], {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)})
    with pytest.raises(RefusedError, match=words):
        quantize_float(model, {"x": feed}, shapes={"x": (4, 6)})


def test_values_beyond_every_scale_are_refused_by_tensor() -> None:
    def scaled(by: float) -> bytes:
        nodes = [helper.make_node("Mul", ["x", "k"], ["y"])]
        return float_model(nodes, {"k": np.float32(by)}, (4, 6), {"y": (4, 6)})

    with pytest.raises(RefusedError, match=r"tensor 'y': its values on the data are beyond every scale"):
        quantize_float(scaled(1e30), ROWS)
    with pytest.raises(RefusedError, match=r"tensor 'y': is not finite on the data"):
        quantize_float(scaled(3e38), ROWS)
    assert quantize_float(scaled(1e19), ROWS).model_bytes


@pytest.mark.parametrize(("size", "refused"), [(2**28, False), (2**28 + 1, True)])
def test_values_of_absurd_size_are_refused_before_they_are_computed(
    size: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model at the limit would need a GiB: its folding is replaced."""

    class FoldedError(Exception):
        pass

    def fold(_: onnx.ModelProto) -> onnx.ModelProto:
        raise FoldedError

    monkeypatch.setattr(importlib.import_module("manifest.onnx_import.quantize.prepare"), "folded", fold)
    nodes = [
        helper.make_node("Expand", ["one", "shape"], ["big"]),
        helper.make_node("ReduceMax", ["big"], ["m"]),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    constants = {"one": np.ones(1, np.float32), "shape": np.array([size])}
    model = float_model(nodes, constants, (4, 6), {"y": (4, 6)})
    if refused:
        with pytest.raises(RefusedError, match=r"QUANT-SIZE.*tensor 'big'"):
            quantize_float(model, ROWS)
    else:
        with pytest.raises(FoldedError):
            quantize_float(model, ROWS)


def test_a_model_that_computes_nothing_is_refused() -> None:
    model = float_model([helper.make_node("Identity", ["x"], ["y"])], {}, (4, 6), {"y": (4, 6)})
    with pytest.raises(RefusedError, match="QUANT"):
        quantize_float(model, ROWS)
