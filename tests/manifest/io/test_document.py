"""Manifest JSON: canonical, strict, equal after a round trip; the schema says what the model says."""

import dataclasses
import json
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest import model as m
from manifest.errors import RefusedError, UpstreamError
from manifest.io import (
    canonical_json,
    is_canonical,
    load_manifest,
    manifest_errors,
    manifest_from_json,
    manifest_to_json,
    save_manifest,
    schema_errors,
)
from manifest.io.canonical import SCHEMAS

SCALE = float(np.float32(0.1))


def quant(scale: float = SCALE) -> m.Quantization:
    return m.Quantization(scales=(scale,), zero_points=(3,))


def example() -> m.Manifest:
    """Input x (float) -> QuantizeLinear -> Gemm with bias -> DequantizeLinear -> y."""
    tensors = (
        m.Tensor(name="b", shape=(3,), dtype="int32", onnx_dtype="int32", role="bias", quant=quant(), array="t000002"),
        m.Tensor(
            name="q",
            shape=(1, 2),
            dtype="int8",
            onnx_dtype="int8",
            role="activation",
            quant=quant(),
            observed=m.Observed(minimum=-1.0, maximum=1.0, samples=4, saturated=0),
        ),
        m.Tensor(
            name="w",
            shape=(2, 3),
            dtype="int8",
            onnx_dtype="int8",
            role="weight",
            array="t000001",
            quant=m.Quantization(scales=(0.5, 0.25, 2.0), zero_points=(0, 0, 0), axis=1, exponents=(-1, -2, 1)),
        ),
        m.Tensor(name="x", shape=(1, 2), dtype="float32", onnx_dtype="float32", role="input"),
        m.Tensor(name="y", shape=(1, 3), dtype="float32", onnx_dtype="float32", role="output"),
        m.Tensor(name="yq", shape=(1, 3), dtype="int8", onnx_dtype="int8", role="activation", quant=quant()),
    )
    requant = m.Requantization(
        reference="rational", target="multiplier_shift", qmin=-128, qmax=127, multipliers=(2**30,)
    )
    ops = (
        m.Op(name="quant", type="QuantizeLinear", inputs=("x",), outputs=("q",), where="host"),
        m.Op(
            name="gemm",
            type="Gemm",
            inputs=("q", "w", "b"),
            outputs=("yq",),
            requant=requant,
            attributes={"alpha": 1.0, "transA": 0, "names": "s", "pads": (1, 2), "floats": (1.0, 0.5), "none": ()},
            accumulator=m.Accumulator(bits=32, bound=1000),
            bias=m.Bias(kind="shifted", shifts=(2,)),
            activation=m.Activation(type="Relu", minimum=0.0, maximum=None),
        ),
        m.Op(name="dequant", type="DequantizeLinear", inputs=("yq",), outputs=("y",), where="host"),
    )
    return m.Manifest(
        model=m.ModelInfo(
            sha256="0" * 64, format="qdq", opset=17, ir_version=8, producer="p", inputs=("x",), outputs=("y",)
        ),
        target=m.Target(device="npu2"),
        scheme=m.Scheme(activations="int8", weights="int8", bias="int32", power_of_two=False, not_power_of_two=("q",)),
        tensors=tensors,
        ops=ops,
        layouts=(m.Layout(tensor="w", logical="KN", packed="blocks", block=(8, 8)),),
        dispatches=(
            m.Dispatch(
                name="d0",
                where="npu",
                ops=("quant", "gemm", "dequant"),
                inputs=("x",),
                outputs=("y",),
                cut_bytes=0,
                reason="end of the graph",
            ),
        ),
        notes=(m.Note(code="BIAS-SHIFTED", where="gemm", text="a remark"),),
    )


def arrays() -> dict[str, Any]:
    return {"t000001": np.ones((2, 3), np.int8), "t000002": np.ones(3, np.int32)}


def changed(change: Any) -> bytes:
    value = json.loads(manifest_to_json(example()))
    change(value)
    return canonical_json(value)


def test_round_trip_is_equal_and_byte_identical() -> None:
    data = manifest_to_json(example())
    assert manifest_from_json(data) == example()
    assert manifest_to_json(manifest_from_json(data)) == data
    assert manifest_errors(example(), arrays()) == ()
    assert type(manifest_from_json(data).ops[1].attributes["alpha"]) is float
    assert type(manifest_from_json(data).ops[1].attributes["transA"]) is int


@given(st.floats(width=32, min_value=2.0**-149, max_value=float(np.finfo(np.float32).max)))
def test_every_float32_scale_comes_back_exactly(scale: float) -> None:
    base = example()
    tensors = tuple(replace(t, quant=quant(float(np.float32(scale)))) if t.name == "q" else t for t in base.tensors)
    back = manifest_from_json(manifest_to_json(replace(base, tensors=tensors)))
    assert back.tensor("q").quant == quant(scale)
    assert np.float32(scale) == scale


def test_numpy_scalars_are_written_as_plain_numbers() -> None:
    op = replace(
        example().ops[1], accumulator=m.Accumulator(bits=int(np.int64(32)), bound=typing.cast(int, np.int64(1000)))
    )
    with_numpy = replace(example(), ops=(example().ops[0], op, example().ops[2]))
    assert manifest_to_json(with_numpy) == manifest_to_json(example())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None])
def test_a_value_that_is_no_finite_number_is_a_defect(value: Any) -> None:
    bad = m.Observed(minimum=value, maximum=1.0, samples=1, saturated=0)
    tensors = tuple(replace(t, observed=bad) if t.name == "q" else t for t in example().tensors)
    assert_refused = pytest.raises(TypeError) if not isinstance(value, str | None) else pytest.raises(RefusedError)
    with assert_refused:
        manifest_from_json(manifest_to_json(replace(example(), tensors=tensors)))


def test_every_changed_byte_is_refused_or_changes_the_value() -> None:
    data = manifest_to_json(example())
    for at in range(0, len(data), 7):
        bad = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            assert manifest_from_json(bad) != example()
        except (UpstreamError, RefusedError):
            continue


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d + b"\n",
        lambda d: d[:-1],
        lambda d: d.replace(b"\n", b"\r\n"),
        lambda d: json.dumps(json.loads(d)).encode(),
        lambda d: d.replace(b'"layouts"', b'"layouts": [],\n "layouts"', 1),
        lambda d: d.replace(b"0.25", b"0.250", 1),
        lambda d: d.replace(b"0.25", b"NaN", 1),
        lambda d: b"\xff" + d,
        lambda _: b"[" * 100_000,
    ],
)
def test_another_spelling_is_tampered(spoil: Any) -> None:
    data = spoil(manifest_to_json(example()))
    assert not is_canonical(data)
    with pytest.raises(UpstreamError, match=r"manifest\.json: tampered"):
        manifest_from_json(data)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda v: v.update(extra=1), "extra"),
        (lambda v: v.pop("notes"), "notes"),
        (lambda v: v.update(schema_version=2), "schema_version"),
        (lambda v: v["ops"][1]["requant"].update(reference="magic"), "ops/1/requant"),
        (lambda v: v["tensors"][0].update(dtype="float64"), "tensors/0/dtype"),
        (lambda v: v["tensors"][1]["quant"].update(scales=[0.0]), "tensors/1/quant"),
        (lambda v: v["tensors"][1]["quant"].update(scales=[1]), "expected float, got int"),
        (lambda v: v["model"].update(opset=17.0), "expected int, got float"),
        (lambda v: v["model"].update(opset=True), "model/opset"),
        (lambda v: v["ops"][1]["attributes"].update(mixed=[1, 0.5]), "mixed"),
        (lambda v: v["ops"][1].update(inputs=["q", "nothing", ""]), "'nothing' is not made before it"),
        (lambda v: v["ops"].reverse(), "is not made before it"),
        (lambda v: v["ops"][2].update(name="gemm"), "occurs twice"),
        (lambda v: v["ops"][2].update(outputs=["q"]), "'q' is made twice"),
        (lambda v: v["ops"][2].update(outputs=["zz"]), "output 'zz' is no tensor"),
        (lambda v: v["ops"].pop(), "output 'y': nothing makes it"),
        (lambda v: v["tensors"].reverse(), "not unique and sorted"),
        (lambda v: v["tensors"][2]["quant"].update(axis=0), "3 scales on axis 0"),
        (lambda v: v["tensors"][2]["quant"].update(axis=None), "3 scales without an axis"),
        (lambda v: v["tensors"][2]["quant"].update(zero_points=[0]), "3 scales, 1 zero points"),
        (lambda v: v["tensors"][2]["quant"].update(exponents=[-1, -2, 2]), "exponent is not that of its scale"),
        (lambda v: v["dispatches"][0].update(ops=["gemm"]), "every op exactly once"),
        (lambda v: v["dispatches"][0].update(inputs=["zz"]), "'zz' is no tensor"),
        (lambda v: v["layouts"][0].update(tensor="zz"), "no such tensor"),
        (lambda v: v["layouts"].append(v["layouts"][0]), "layouts: a tensor has two"),
        (lambda v: v["dispatches"].append(v["dispatches"][0]), "a name occurs twice"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(change: Any, match: str) -> None:
    with pytest.raises(RefusedError, match=match):
        manifest_from_json(changed(change))


def test_canonical_bytes_are_pinned() -> None:
    value = {"b": [1, 2.5, None], "a": {"ü": True}}
    assert canonical_json(value) == b'{\n "a": {\n  "\\u00fc": true\n },\n "b": [\n  1,\n  2.5,\n  null\n ]\n}\n'
    assert is_canonical(canonical_json(value))
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


def test_the_first_difference_is_named() -> None:
    with pytest.raises(UpstreamError, match=r"first difference at byte 9\)"):
        manifest_from_json(b'{\n "a": 1 }')


def test_errors_of_a_manifest_in_memory_include_its_arrays() -> None:
    assert manifest_errors(example()) == ()
    assert manifest_errors(example(), {}) == ("t000002 ('b'): no such array", "t000001 ('w'): no such array")
    op = example().ops[1]
    assert op.requant is not None
    requant = replace(op.requant, target="lut", lut="t000004")
    tables = replace(op, bias=m.Bias(kind="rescaled", target_array="t000003"), requant=requant)
    other = replace(example(), ops=(example().ops[0], tables, example().ops[2]))
    missing = ("t000003 (op 'gemm'): no such array", "t000004 (op 'gemm'): no such array")
    assert manifest_errors(other, arrays()) == missing
    assert manifest_errors(other, {**arrays(), "t000003": np.zeros(3), "t000004": np.zeros(256)}) == ()


def test_arrays_are_held_against_the_manifest(tmp_path: Path) -> None:
    save_manifest(tmp_path, example(), arrays())
    manifest, loaded = load_manifest(tmp_path)
    assert manifest == example()
    assert loaded.keys() == arrays().keys()
    for wrong, match in [
        ({"t000001": arrays()["t000001"]}, "t000002.*no such array"),
        ({**arrays(), "t000003": np.ones(1)}, "t000003: an array that no tensor uses"),
        ({**arrays(), "t000002": np.ones(4, np.int32)}, r"expected int32 \(3,\), got int32 \(4,\)"),
        ({**arrays(), "t000002": np.ones(3, np.int64)}, "expected int32"),
    ]:
        save_manifest(tmp_path, example(), wrong)
        with pytest.raises(UpstreamError, match=match):
            load_manifest(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(UpstreamError, match="missing"):
        load_manifest(tmp_path)


def classes() -> list[type]:
    return [c for c in vars(m).values() if isinstance(c, type) and dataclasses.is_dataclass(c)]


def literals(hint: Any) -> set[str]:
    if typing.get_origin(hint) is typing.Literal:
        return set(get_args(hint))
    return set().union(*(literals(a) for a in get_args(hint)))


def resolve(schema: Any, node: Any) -> Any:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    return node


@pytest.mark.parametrize("cls", classes(), ids=lambda c: c.__name__)
def test_the_schema_has_exactly_the_fields_and_words_of_the_model(cls: type) -> None:
    schema = json.loads((SCHEMAS / "manifest-1.json").read_text())
    names = {"Manifest": None, "ModelInfo": "model"}
    key = names.get(cls.__name__, cls.__name__.lower())
    node = schema if key is None else schema["$defs"][key]
    fields = {f.name for f in dataclasses.fields(cls)}
    assert set(node["properties"]) == set(node["required"]) == fields
    assert node["additionalProperties"] is False
    for name, hint in typing.get_type_hints(cls).items():
        if words := literals(hint):
            assert set(resolve(schema, node["properties"][name])["enum"]) == words, name


def objects(node: Any) -> list[Any]:
    if isinstance(node, list):
        return [o for n in node for o in objects(n)]
    if not isinstance(node, dict):
        return []
    own = [node] if node.get("type") == "object" else []
    return own + [o for n in node.values() for o in objects(n)]


@pytest.mark.parametrize("name", ["manifest-1", "gate-1", "device-1"])
def test_every_object_of_every_schema_says_what_else_it_may_hold(name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    found = objects(schema)
    assert found
    assert all("additionalProperties" in o for o in found)


def test_schema_errors_are_short_and_bounded() -> None:
    value = json.loads(manifest_to_json(example()))
    value["ops"] = [{"long": "x" * 10_000}] * 100
    errors = schema_errors(value, "manifest-1")
    assert len(errors) == 50
    assert max(map(len, errors)) < 300
