"""The public entry: files of the corpus and the model cases, determinism, what comes with the manifest."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from manifest.errors import RefusedError
from manifest.io import manifest_from_json, manifest_to_json
from manifest.model import Manifest
from manifest.onnx_import import Imported, import_bytes, import_model
from manifest.onnx_import.instrument import quantized_outputs
from tests.qdq_models import Sketch, assert_exact, linear

FAMILIES = ("digits_mlp", "digits_cnn", "mnist_resnet", "cntk_mnist")
VARIANTS = {
    "qdq_s8s8_pt": "qdq",
    "qdq_s8s8_sym": "qdq",
    "qdq_u8s8_pc": "qdq",
    "qdq_u8s8_rr": "qdq",
    "qdq_s16s8_pc": "qdq",
    "qop_s8s8_pc": "qoperator",
    "qop_u8s8_pt": "qoperator",
    "qop_u8u8_pt": "qoperator",
    "quark_a8w8": "qdq",
    "quark_s8s8_aaws": "qdq",
    "quark_xint8": "qdq",
}
INVALID = {("cntk_mnist", "quark_s8s8_aaws"), ("cntk_mnist", "quark_xint8")}
MODELS = [(f, v) for f in FAMILIES for v in VARIANTS if (f, v) not in INVALID]


def load(shared: Path, family: str, variant: str) -> Imported:
    shapes = {"x": (1, 64)} if family == "digits_mlp" else None
    return import_model(shared / "corpus" / "models" / f"{family}.{variant}.onnx", shapes=shapes)


@pytest.mark.parametrize(("family", "variant"), MODELS)
def test_corpus_files_are_imported(shared: Path, family: str, variant: str) -> None:
    imported = load(shared, family, variant)
    manifest = imported.manifest
    assert manifest.model.format == VARIANTS[variant]
    assert manifest.scheme.power_of_two == (variant == "quark_xint8")
    assert not [t.name for t in manifest.tensors if t.dtype == "exact"]
    codes = set(quantized_outputs(imported.model_bytes))
    assert codes <= set(manifest.by_name())
    assert {t.array for t in manifest.tensors if t.array} <= set(imported.arrays)
    consistent(manifest, imported)


def consistent(manifest: Manifest, imported: Imported) -> None:
    """Every tensor is written before it is read, once; shapes of constants are those of their arrays."""
    known = set(manifest.model.inputs) | {t.name for t in manifest.tensors if t.array}
    for op in manifest.ops:
        assert {i for i in op.inputs if i} <= known, op.name
        assert not known.intersection(op.outputs), op.name
        known.update(op.outputs)
    assert known == set(manifest.by_name())
    assert set(manifest.model.outputs) <= known
    for tensor in manifest.tensors:
        if tensor.array:
            array = imported.arrays[tensor.array]
            assert (array.shape, array.dtype.name) == (tensor.shape, tensor.dtype)


@pytest.mark.parametrize("variant", ["qdq_s8s4w"])
@pytest.mark.parametrize("family", FAMILIES)
def test_four_bit_weights_are_refused_by_name(shared: Path, family: str, variant: str) -> None:
    with pytest.raises(RefusedError, match="int4 codes are not supported"):
        load(shared, family, variant)


@pytest.mark.parametrize(("family", "variant"), sorted(INVALID))
def test_quantize_in_opset_8_is_refused_in_one_line(shared: Path, family: str, variant: str) -> None:
    with pytest.raises(RefusedError, match="convert the source to opset 13") as error:
        load(shared, family, variant)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("name", ["qat_digits_mlp_pot8_qcdq", "qat_mnist_cnn_w8a8_qcdq"])
def test_qcdq_files_end_in_an_exact_output(shared: Path, name: str) -> None:
    imported = import_model(shared / "corpus" / "models" / f"{name}.onnx")
    exact = [t for t in imported.manifest.tensors if t.dtype == "exact"]
    assert [(t.name.endswith("#exact"), t.role) for t in exact] == [(True, "accumulator")]
    assert imported.manifest.scheme.power_of_two == ("pot" in name)


@pytest.mark.parametrize("family", FAMILIES)
def test_float_files_need_data(shared: Path, family: str) -> None:
    with pytest.raises(RefusedError, match=r"\[ONNX-FLOAT\] model: the model is float"):
        import_model(shared / "corpus" / "models" / f"{family}.onnx")


def dumped(data: bytes, path: Path) -> bytes:
    """The graph as onnxruntime optimises it at EXTENDED."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.optimized_model_filepath = str(path)
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


@pytest.mark.parametrize(
    "variant", ["qdq_s8s8_pt", "qdq_s8s8_sym", "qdq_u8s8_pc", "qop_s8s8_pc", "quark_a8w8", "quark_xint8"]
)
@pytest.mark.parametrize("family", ["digits_mlp", "digits_cnn", "mnist_resnet"])
def test_graphs_that_onnxruntime_dumps_are_imported(shared: Path, tmp_path: Path, family: str, variant: str) -> None:
    original = load(shared, family, variant)
    again = import_bytes(dumped(original.model_bytes, tmp_path / "dump.onnx"))
    consistent(again.manifest, again)
    assert again.manifest.model.outputs == original.manifest.model.outputs
    if variant != "quark_xint8":
        assert any(op.origin == "qoperator" for op in again.manifest.ops)


REFUSED = {
    "m03_per_channel_default_axis_clash": ("axis", "DequantizeLinear"),
    "m07_int16_in_opset13": ("opset", "int16"),
    "m09_int4_blocked": ("block_size", "int4"),
    "m12_qonnx_quant": ("Quant", "qonnx"),
    "m26_resize_linear_qdq": ("Resize",),
    "m35_fp16_quantize": ("float16",),
    "m48_symbolic_dims": ("batch",),
    "m50_zero_scale": ("scale", "0"),
    "m61_external_data_escapes": ("external",),
    "m63_truncated_file": ("parse",),
    "m71_split_conv_concat": ("Split",),
}


def test_model_cases_are_imported_or_refused_with_the_words_that_matter(shared: Path) -> None:
    files = sorted((shared / "cases" / "models").glob("*.onnx"))
    assert len(files) >= 40
    refused = {}
    for path in files:
        try:
            imported = import_model(path)
        except RefusedError as error:
            refused[path.stem] = str(error)
        else:
            consistent(imported.manifest, imported)
    assert set(refused) == set(REFUSED)
    for name, words in REFUSED.items():
        assert all(word in refused[name] for word in words), refused[name]


def test_two_imports_give_the_same_bytes(shared: Path) -> None:
    first, second = (load(shared, "mnist_resnet", "quark_xint8") for _ in range(2))
    assert first.manifest == second.manifest
    assert manifest_to_json(first.manifest) == manifest_to_json(second.manifest)
    assert first.model_bytes == second.model_bytes
    assert first.arrays.keys() == second.arrays.keys()
    assert all(np.array_equal(first.arrays[k], second.arrays[k]) for k in first.arrays)


@pytest.mark.parametrize("variant", ["qdq_u8s8_pc", "qop_s8s8_pc", "quark_xint8", "qdq_s16s8_pc"])
def test_the_manifest_survives_its_file(shared: Path, variant: str) -> None:
    manifest = load(shared, "mnist_resnet", variant).manifest
    assert manifest_from_json(manifest_to_json(manifest)) == manifest


def test_a_file_and_its_bytes_give_the_same_manifest(tmp_path: Path) -> None:
    data = linear(np.eye(2) * 3).proto().SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert import_model(path).manifest == import_bytes(data).manifest
    assert import_bytes(data).manifest.model.sha256 == hashlib.sha256(data).hexdigest()


def test_external_data_is_embedded(shared: Path) -> None:
    imported = import_model(shared / "cases" / "models" / "m64_external_data_good.onnx")
    model = onnx.load_from_string(imported.model_bytes)
    assert all(not t.external_data for t in model.graph.initializer)
    onnxruntime.InferenceSession(imported.model_bytes, providers=["CPUExecutionProvider"])


def test_nodes_out_of_order_are_sorted_with_a_note(shared: Path) -> None:
    imported = load(shared, "mnist_resnet", "quark_xint8")
    assert "ONNX-NODES-SORTED" in {n.code for n in imported.manifest.notes}
    onnx.checker.check_model(onnx.load_from_string(imported.model_bytes))


@pytest.mark.parametrize("device", ["npu1", "npu2", "vek280"])
def test_the_device_chooses_the_layouts(device: str) -> None:
    imported = linear(np.ones((16, 8))).load(device=device)
    assert imported.manifest.target.device == device
    assert {layout.tensor for layout in imported.manifest.layouts} == {"w", "xd.q", "y.q"}


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(RefusedError, match="DEVICE-UNKNOWN"):
        linear(np.eye(2)).load(device="npu9")


@pytest.mark.parametrize("opset", range(10, onnx.defs.onnx_opset_version() + 1))
def test_every_opset_from_10_on(opset: int) -> None:
    s = Sketch(opset)
    bias = s.weight([1, -2], 0.125, dtype=np.int32)  # Gemm has to have one before opset 11
    made = linear(np.eye(2) * 3, bias=bias, sketch=s)
    manifest = (assert_exact(made) if opset in (10, 13, 21) else made.load()).manifest
    assert (manifest.model.opset, len(manifest.ops)) == (opset, 3)


def test_the_branching_model_of_the_first_issue() -> None:
    """16 tokens x 64 features in int16, six dense layers, int8 weights and biases, two branches, a transpose."""
    s = Sketch(21)
    rng = np.random.default_rng(0)

    def dense(x: str, scale: float, *, hidden: bool) -> str:
        w = s.weight(rng.integers(-60, 61, (64, 64)), 2.0**-7)
        m = s.node("MatMul", [x, w])
        a = s.node("Add", [m, s.weight(rng.integers(-100, 101, (64,)), 2.0**-5)])
        return s.qdq(s.node("Relu", [a]) if hidden else a, scale, 0, np.uint8 if hidden else np.int8)

    x = s.qdq(s.input("x", (16, 64)), 2.0**-9, 0, np.int16)
    trunk = dense(x, 2.0**-8, hidden=True)
    first = dense(trunk, 2.0**-8, hidden=True)
    turned = s.node("Transpose", [s.node("Reshape", [first, s.const([64, 16], np.int64)])], perm=[1, 0])
    s.output(dense(turned, 2.0**-5, hidden=False), (16, 64))
    second = dense(dense(trunk, 2.0**-8, hidden=True), 2.0**-8, hidden=True)
    s.output(dense(second, 2.0**-5, hidden=False), (16, 64))
    imported = s.load()
    layers = [op for op in imported.manifest.ops if op.type == "MatMul"]
    assert len(layers) == 6
    assert [op.bias.shifts for op in layers if op.bias] == [(11,), (10,), (10,), (10,), (10,), (10,)]
    assert all(op.requant and op.requant.reference == op.requant.target == "srs" for op in layers)
    assert imported.manifest.scheme.power_of_two
