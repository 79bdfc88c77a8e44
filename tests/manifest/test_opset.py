"""The op table: every row has an answer per layer, and every `yes` has its file."""

import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

from bringup.kernels import KERNELS as EMITTED
from manifest import model as m
from manifest.onnx_import.ops import RULES
from manifest.opset import INTERNAL, OPSET, UNKNOWN, YES, op_key, refusal
from oracle.run import Oracle
from presim.kernels import KERNELS

INT16 = {
    "QuantizeLinear", "DequantizeLinear", "MatMul", "Gemm", "Conv", "Add", "Relu", "Clip", "MaxPool",
    "GlobalAveragePool", "Flatten", "Reshape", "Transpose",
}  # fmt: skip
LAYERS = {
    "importer": "manifest.onnx_import.ops",
    "oracle": "oracle.ops",
    "presim": "presim.kernels",
    "bringup": "bringup.kernels",
}


@pytest.mark.parametrize("key", OPSET)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_row_that_says_yes_has_its_file(key: str, layer: str) -> None:
    row = OPSET[key]
    answer = getattr(row, layer)
    assert answer.strip()
    if answer == YES:
        assert importlib.util.find_spec(f"{LAYERS[layer]}.{row.file}") is not None, f"{LAYERS[layer]}.{row.file}"


@pytest.mark.parametrize("file", INTERNAL.values())
@pytest.mark.parametrize("layer", ["oracle.ops", "presim.kernels", "bringup.kernels"])
def test_internal_ops_have_a_file(file: str, layer: str) -> None:
    assert importlib.util.find_spec(f"{layer}.{file}") is not None


def test_every_kernel_of_the_simulator_belongs_to_a_row() -> None:
    """And every row that says yes has a kernel in its file."""
    homes = {inspect.getmodule(f).__name__.rpartition(".")[2] for f in KERNELS.values()}  # type: ignore[union-attr]
    named = {row.file for row in OPSET.values() if row.presim == YES} | set(INTERNAL.values())
    shared = {"relu", "clip", "reshape", "flatten"}
    assert homes | shared == named


def test_kernels_are_emitted_for_exactly_what_is_simulated() -> None:
    """A row that says yes has an emitter in its file."""
    assert set(EMITTED) == set(KERNELS)
    homes = {module.__name__.rpartition(".")[2] for module in EMITTED.values()}  # type: ignore[attr-defined]
    assert homes == {row.file for row in OPSET.values() if row.bringup == YES} | set(INTERNAL.values())


@pytest.mark.parametrize("layer", ["importer", "oracle"])
def test_every_op_file_belongs_to_a_row(layer: str, root: Path) -> None:
    """A module that no row names would never be looked for; names with a leading underscore are helpers."""
    folder = root / LAYERS[layer].replace(".", "/")
    files = {p.stem for p in folder.glob("*.py") if not p.stem.startswith("_")}
    named = {row.file for row in OPSET.values() if getattr(row, layer) == YES} | set(INTERNAL.values())
    assert files <= named, sorted(files - named)


@pytest.mark.parametrize("key", OPSET)
def test_rows_are_consistent(key: str) -> None:
    row = OPSET[key]
    domain, _, op_type = key.partition(":")
    assert op_key(domain, op_type) == key
    if row.importer == YES:
        assert row.file
        assert not row.host
        assert row.dtypes
        assert refusal(key) is None
    else:
        assert row.remedy
        assert not row.dtypes
        assert refusal(key) == (row.importer, row.remedy)
        assert (row.oracle == YES) == row.host


def test_the_importer_has_a_rule_for_exactly_the_rows_that_say_yes() -> None:
    """Constants are folded before any rule; Quantize and Dequantize of com.microsoft are the standard ones."""
    taken = {k for k, row in OPSET.items() if row.importer == YES}
    assert taken - {":Constant", "com.microsoft:QuantizeLinear", "com.microsoft:DequantizeLinear"} == set(RULES)


@pytest.mark.parametrize("key", [k for k, row in OPSET.items() if row.host])
def test_the_oracle_computes_every_host_op(key: str) -> None:
    """A model of one float op on the host, against a value that numpy gives for the plain ones."""
    op_type = key.partition(":")[2]
    two = op_type in ("Sub", "Div", "Pow")
    reduced = op_type in ("ArgMax", "ReduceMean", "ReduceSum", "ReduceMax")
    attributes: dict[str, m.AttributeValue] = {"axes": (1,), "keepdims": 1} if op_type.startswith("Reduce") else {}
    if op_type == "ArgMax":
        attributes = {"axis": 1, "keepdims": 1}
    dtype: m.DType = "int64" if op_type == "ArgMax" else "float32"
    tensors = [
        m.Tensor(name="c", shape=(1, 3), dtype="float32", onnx_dtype="float32", role="constant", array="t000001"),
        m.Tensor(name="x", shape=(2, 3), dtype="float32", onnx_dtype="float32", role="input"),
        m.Tensor(name="y", shape=(2, 1 if reduced else 3), dtype=dtype, onnx_dtype=dtype, role="output"),
    ]
    inputs = ("x", "c") if two else ("x",)
    op = m.Op(name="n", type=op_type, inputs=inputs, outputs=("y",), attributes=attributes, where="host")
    info = m.ModelInfo(
        sha256="0" * 64, format="qdq", opset=17, ir_version=8, producer="", inputs=("x",), outputs=("y",)
    )
    scheme = m.Scheme(activations="", weights="", bias="", power_of_two=True, not_power_of_two=())
    manifest = m.Manifest(
        model=info, target=m.Target(device="npu2"), scheme=scheme, tensors=tuple(tensors[0 if two else 1 :]), ops=(op,)
    )
    x = np.array([[[1.0, 2.0, 4.0], [0.5, 3.0, 2.5]]], np.float32)
    constants = {"t000001": np.array([[2.0, 4.0, 0.5]], np.float32)} if two else {}
    got = Oracle(manifest, constants).run({"x": x})["y"]
    assert got.shape == (1, *tensors[2].shape)
    assert got.dtype == np.dtype(dtype)
    plain = {
        "Exp": np.exp(x), "Sqrt": np.sqrt(x), "Log": np.log(x), "Tanh": np.tanh(x),
        "Sub": x - constants.get("t000001", 0), "ArgMax": x.argmax(2)[..., None],
        "ReduceSum": x.sum(2, keepdims=True), "ReduceMax": x.max(2, keepdims=True),
        "ReduceMean": x.mean(2, keepdims=True),
    }  # fmt: skip
    if op_type in plain:
        np.testing.assert_allclose(got, plain[op_type], rtol=1e-6)
    assert np.isfinite(got).all()


def test_int16_is_taken_where_the_capability_says_so() -> None:
    got = {k.partition(":")[2] for k, row in OPSET.items() if row.int16 and row.oracle == YES}
    assert got - {"Squeeze", "Unsqueeze"} == INT16


def test_host_ops_are_refused_unless_asked_for() -> None:
    refused = refusal(":Softmax")
    assert refused is not None
    assert "--host-ops" in refused[1]
    assert refusal(":Softmax", host_ops=True) is None
    assert refusal(":Resize", host_ops=True) is not None


def test_an_op_without_a_row_is_unknown() -> None:
    assert refusal("my.domain:Foo") == UNKNOWN
    assert refusal("my.domain:Foo", host_ops=True) == UNKNOWN
    assert op_key("ai.onnx", "Conv") == op_key("", "Conv") == ":Conv"


def test_the_table_cannot_be_changed_by_accident() -> None:
    with pytest.raises(AttributeError):
        OPSET[":Conv"].file = "other"  # type: ignore[misc]
