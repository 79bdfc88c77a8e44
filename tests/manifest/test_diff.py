"""The diff of two manifests: nothing for equal ones, a typed and exact line for every kind of change."""

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manifest import model as m
from manifest.diff import KINDS, Difference, diff

Q = m.Quantization(scales=(0.5, 0.25), zero_points=(0, 1), axis=1, exponents=(-1, -2))
QA = m.Quantization(scales=(0.125,), zero_points=(3,))


def tensors() -> tuple[m.Tensor, ...]:
    seen = m.Observed(minimum=-1.0, maximum=1.0, samples=4, saturated=0)
    return (
        m.Tensor(name="b", shape=(2,), dtype="int32", onnx_dtype="int32", role="bias", quant=QA, array="t000001"),
        m.Tensor(name="w", shape=(3, 2), dtype="int8", onnx_dtype="int8", role="weight", quant=Q, array="t000002"),
        m.Tensor(name="x", shape=(1, 3), dtype="int8", onnx_dtype="int8", role="input", quant=QA, observed=seen),
        m.Tensor(name="y", shape=(1, 2), dtype="int8", onnx_dtype="int8", role="output", quant=QA),
    )


def requant() -> m.Requantization:
    return m.Requantization(
        reference="rational", target="lut", qmin=-128, qmax=127, multipliers=(5, 6), shifts=(1, 2), lut="t000003"
    )


def base() -> m.Manifest:
    op = m.Op(
        name="gemm",
        type="Gemm",
        inputs=("x", "w", "b"),
        outputs=("y",),
        attributes={"alpha": 1.0, "transA": 0},
        nodes=("gemm",),
        accumulator=m.Accumulator(bits=32, bound=7),
        requant=requant(),
        bias=m.Bias(kind="rescaled", shifts=(), target_array="t000004"),
        activation=m.Activation(type="Relu", minimum=0.0, maximum=None),
    )
    return m.Manifest(
        model=m.ModelInfo(
            sha256="0" * 64, format="qdq", opset=17, ir_version=8, producer="p", inputs=("x",), outputs=("y",)
        ),
        target=m.Target(device="npu2"),
        scheme=m.Scheme(activations="a", weights="w", bias="b", power_of_two=False, not_power_of_two=("x",)),
        tensors=tensors(),
        ops=(op, m.Op(name="relu", type="Relu", inputs=("y",), outputs=("z",))),
        layouts=(m.Layout(tensor="w", logical="KN", packed="dense_kn_blocks", block=(8, 8)),),
        dispatches=(
            m.Dispatch(
                name="d0", where="npu", ops=("gemm", "relu"), inputs=("x",), outputs=("y",), cut_bytes=0, reason="r"
            ),
        ),
        notes=(m.Note(code="N", where="w", text="t"),),
    )


def arrays() -> dict[str, NDArray[Any]]:
    return {
        "t000001": np.array([1, 2], np.int32),
        "t000002": np.arange(6, dtype=np.int8).reshape(3, 2),
        "t000003": np.arange(256, dtype=np.int16),
        "t000004": np.array([1, 2], np.int32),
    }


def with_tensor(name: str, **change: Any) -> m.Manifest:
    return replace(base(), tensors=tuple(replace(t, **change) if t.name == name else t for t in base().tensors))


def with_op(**change: Any) -> m.Manifest:
    return replace(base(), ops=(replace(base().ops[0], **change), base().ops[1]))


def changes(other: m.Manifest) -> tuple[Difference, ...]:
    return diff(base(), other, arrays(), arrays())


def only(found: tuple[Difference, ...]) -> tuple[str, str, str, str, str]:
    assert len(found) == 1, found
    d = found[0]
    return d.kind, d.where, d.what, d.before, d.after


def test_equal_manifests_do_not_differ() -> None:
    assert diff(base(), base(), arrays(), arrays()) == ()


def test_array_keys_alone_are_no_difference() -> None:
    renamed = {f"t00001{k[-1]}": v for k, v in arrays().items()}
    moved = replace(
        base(),
        tensors=tuple(replace(t, array=t.array and f"t00001{t.array[-1]}") for t in base().tensors),
        ops=(
            replace(
                base().ops[0],
                bias=m.Bias(kind="rescaled", target_array="t000014"),
                requant=replace(requant(), lut="t000013"),
            ),
            base().ops[1],
        ),
    )
    assert diff(base(), moved, arrays(), renamed) == ()


def with_quant(name: str, quant: m.Quantization) -> m.Manifest:
    return with_tensor(name, quant=quant)


def with_seen(**change: Any) -> m.Manifest:
    seen = base().tensor("x").observed
    assert seen is not None
    return with_tensor("x", observed=replace(seen, **change))


def with_requant(**change: Any) -> m.Manifest:
    return with_op(requant=replace(requant(), **change))


def with_dispatch(**change: Any) -> m.Manifest:
    return replace(base(), dispatches=(replace(base().dispatches[0], **change),))


def with_block(block: tuple[int, ...]) -> m.Manifest:
    return replace(base(), layouts=(replace(base().layouts[0], block=block),))


def with_scheme(**change: Any) -> m.Manifest:
    return replace(base(), scheme=replace(base().scheme, **change))


T, G, M = "tensor 'w'", "op 'gemm'", "manifest"
SEEN = "Observed(minimum=-1.0, maximum=1.0, samples=4, saturated=0)"
BIAS = "Bias(kind='rescaled', shifts=(), target_array='t000004')"
RELU6 = m.Activation(type="Relu", minimum=0.0, maximum=6.0)
CLIP = m.Op(name="n", type="Clip", inputs=("z",), outputs=("o",))
Z = replace(base().tensors[3], name="z")
CASES: list[tuple[str, m.Manifest, tuple[str, str, str, str]]] = [
    ("scale", with_quant("w", replace(Q, scales=(0.5, 0.75))), (T, "scales[1] (1 of 2 moved)", "0.25", "0.75")),
    ("scale", with_quant("x", replace(QA, scales=(1.0,))), ("tensor 'x'", "scales", "(0.125,)", "(1.0,)")),
    ("scale", with_quant("w", replace(Q, exponents=None)), (T, "exponents", "(-1, -2)", "absent")),
    ("zero_point", with_quant("x", replace(QA, zero_points=(4,))), ("tensor 'x'", "zero_points", "(3,)", "(4,)")),
    ("quantization", with_quant("w", replace(Q, axis=0)), (T, "axis", "1", "0")),
    ("quantization", with_tensor("x", quant=None), ("tensor 'x'", "quantization", repr(QA), "absent")),
    ("shape", with_tensor("y", shape=(1, 4)), ("tensor 'y'", "shape[1] (1 of 2 moved)", "2", "4")),
    ("dtype", with_tensor("y", dtype="uint8"), ("tensor 'y'", "dtype", "int8", "uint8")),
    ("dtype", with_tensor("y", onnx_dtype="float32"), ("tensor 'y'", "onnx_dtype", "int8", "float32")),
    ("role", with_tensor("y", role="activation"), ("tensor 'y'", "role", "output", "activation")),
    ("observed", with_tensor("x", observed=None), ("tensor 'x'", "observed", SEEN, "absent")),
    ("observed", with_seen(maximum=2.0), ("tensor 'x'", "observed.maximum", "1.0", "2.0")),
    ("op", with_op(type="MatMul"), (G, "type", "Gemm", "MatMul")),
    ("op", with_op(inputs=("x", "w", "")), (G, "inputs[2] (1 of 3 moved)", "b", "")),
    ("op", with_op(where="host"), (G, "where", "npu", "host")),
    ("op", with_op(origin="qoperator"), (G, "origin", "qdq", "qoperator")),
    ("op", with_op(nodes=("gemm", "n2")), (G, "nodes", "('gemm',)", "('gemm', 'n2')")),
    ("attributes", with_op(attributes={"alpha": 2.0, "transA": 0}), (G, "attribute alpha", "1.0", "2.0")),
    ("attributes", with_op(attributes={"alpha": 1, "transA": 0}), (G, "attribute alpha", "1.0", "1")),
    ("attributes", with_op(attributes={"alpha": 1.0}), (G, "attribute transA", "0", "absent")),
    ("accumulator", with_op(accumulator=m.Accumulator(bits=64, bound=7)), (G, "accumulator.bits", "32", "64")),
    ("bias", with_op(bias=m.Bias(kind="shifted", target_array="t000004")), (G, "bias.kind", "rescaled", "shifted")),
    ("bias", with_op(bias=None), (G, "bias", BIAS, "absent")),
    ("activation", with_op(activation=RELU6), (G, "activation.maximum", "absent", "6.0")),
    ("shift", with_requant(shifts=(1, 3)), (G, "requant.shifts[1] (1 of 2 moved)", "2", "3")),
    ("multiplier", with_requant(multipliers=(5, 7)), (G, "requant.multipliers[1] (1 of 2 moved)", "6", "7")),
    ("requant", with_requant(rounding="floor"), (G, "requant.rounding", "conv_even", "floor")),
    ("requant", with_requant(lut=None), (G, "requant.lut", "int16 (256,)", "absent")),
    ("op_removed", replace(base(), ops=base().ops[:1]), ("op 'relu'", "removed", "Relu", "absent")),
    ("op_added", replace(base(), ops=(*base().ops, CLIP)), ("op 'n'", "added", "absent", "Clip")),
    ("op_order", replace(base(), ops=base().ops[::-1]), (M, "order of ops[0] (2 of 2 moved)", "gemm", "relu")),
    ("tensor_removed", replace(base(), tensors=tensors()[:3]), ("tensor 'y'", "removed", "int8 (1, 2)", "absent")),
    ("tensor_added", replace(base(), tensors=(*tensors(), Z)), ("tensor 'z'", "added", "absent", "int8 (1, 2)")),
    ("layout", with_block((8, 4)), (T, "layout.block[1] (1 of 2 moved)", "8", "4")),
    ("model", replace(base(), model=replace(base().model, opset=18)), (M, "model.opset", "17", "18")),
    ("model", replace(base(), schema_version=2), (M, "schema_version", "1", "2")),
    ("target", replace(base(), target=m.Target(device="npu1")), (M, "target.device", "npu2", "npu1")),
    ("scheme", with_scheme(power_of_two=True), (M, "scheme.power_of_two", "False", "True")),
    ("dispatch", with_dispatch(cut_bytes=3), ("dispatch 'd0'", "cut_bytes", "0", "3")),
    ("dispatch", replace(base(), dispatches=()), ("dispatch 'd0'", "ops", "('gemm', 'relu')", "absent")),
    ("note", replace(base(), notes=()), (M, "note", "N w: t", "absent")),
    ("note", replace(base(), notes=base().notes * 2), (M, "note", "absent", "N w: t")),
]


@pytest.mark.parametrize(("kind", "other", "expected"), CASES)
def test_one_change_gives_one_exact_line(kind: str, other: m.Manifest, expected: tuple[str, ...]) -> None:
    assert only(changes(other)) == (kind, *expected)


def test_every_kind_has_a_case() -> None:
    assert {c[0] for c in CASES} | {"weights"} == set(KINDS)


def test_moved_weights_are_counted_and_the_first_is_named() -> None:
    moved = arrays()
    moved["t000002"][1, 1] += 1
    moved["t000002"][2, 0] -= 1
    found = only(diff(base(), base(), arrays(), moved))
    assert found == ("weights", "tensor 'w'", "values: 2 of 6 moved, first at [1, 1]", "3", "4")
    assert (
        diff(base(), base(), arrays(), moved)[0].line() == "tensor 'w': values: 2 of 6 moved, first at [1, 1]: 3 -> 4"
    )


@pytest.mark.parametrize(("key", "kind", "where"), [("t000003", "requant", G), ("t000004", "bias", G)])
def test_moved_tables_of_an_op_are_found(key: str, kind: str, where: str) -> None:
    moved = arrays()
    moved[key][1] += 1
    found = only(diff(base(), base(), arrays(), moved))
    assert found[:2] == (kind, where)
    assert "1 of" in found[2]


def test_arrays_of_another_shape_and_floats_bit_for_bit() -> None:
    other = {**arrays(), "t000001": np.array([1.0, np.nan, -0.0], np.float32)}
    assert only(diff(base(), base(), arrays(), other))[3:] == ("int32 (2,)", "float32 (3,)")
    same = {**other, "t000001": other["t000001"].copy()}
    assert diff(base(), base(), other, same) == ()
    same["t000001"][2] = 0.0
    assert only(diff(base(), base(), other, same))[2:] == ("values: 1 of 3 moved, first at [2]", "-0.0", "0.0")


SKIPPED = {"array", "target_array", "lut", "name", "tensor", "ops", "tensors", "layouts", "notes", "dispatches"}
"""Keys and lists of named things, whose changes have their own cases."""


def nested(value: Any, make: Callable[[Any], m.Manifest], path: str) -> list[tuple[str, m.Manifest]]:
    """A manifest per scalar field below `value`, with that field alone changed."""
    out = []
    for field in dataclasses.fields(value):
        old = getattr(value, field.name)
        if field.name in SKIPPED:
            continue

        def put(new: Any, field: str = field.name) -> m.Manifest:
            return make(replace(value, **{field: new}))

        if dataclasses.is_dataclass(old):
            out += nested(old, put, f"{path}.{field.name}")
        else:
            out.append((f"{path}.{field.name}", put(("changed",))))
    return out


def every_field() -> list[tuple[str, m.Manifest]]:
    b = base()
    return [
        *nested(b, lambda v: v, "manifest"),
        *nested(b.ops[0], lambda v: replace(b, ops=(v, b.ops[1])), "op"),
        *nested(b.tensors[2], lambda v: replace(b, tensors=(*b.tensors[:2], v, b.tensors[3])), "tensor"),
        *nested(b.layouts[0], lambda v: replace(b, layouts=(v,)), "layout"),
        *nested(b.dispatches[0], lambda v: replace(b, dispatches=(v,)), "dispatch"),
        *nested(b.notes[0], lambda v: replace(b, notes=(v,)), "note"),
    ]


@pytest.mark.parametrize(("path", "other"), [p for p in every_field() if p[0] != "op.attributes"])
def test_no_field_of_the_model_is_forgotten(path: str, other: m.Manifest) -> None:
    assert changes(other) != (), path


def test_lines_of_hostile_names_stay_one_line() -> None:
    d = Difference(kind="scale", where="tensor 'a\nb'", what="scales", before="1\r", after="2")
    assert "\n" not in d.line()
    assert "\r" not in d.line()
