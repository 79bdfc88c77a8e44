"""Parts, keys, attribute tables and refusals."""

import importlib
import inspect
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.errors import RefusedError
from manifest.model import Manifest, Op
from presim.kernels import KERNELS
from presim.kernels.attributes import Forms, Part, attributes_of, buffers_of, form_of, kernel_of, stream_of
from presim.kernels.buffers import constant_of
from presim.kernels.part import parse_part
from tests.qdq_models import Sketch, linear, op_of

COUNTS = st.integers(0, 5000)
OUTPUT = {"finish", "out_dtype", "out_channels", "y_zero_point", "qmin", "qmax", "zero_point_inside"}


def convolution() -> Any:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 12, 4, 4)), 0.1, out="xd")
    w = s.weight(np.arange(-20, 16).reshape(3, 12, 1, 1), [0.1, 0.2, 0.3], axis=0)
    s.output(s.qdq(s.node("Conv", [x, w, s.const([1.0, 2.0, 3.0])], name="a:b.c,d"), 0.1, 3, out="y"))
    return s.load()


@given(st.builds(Part, kernel=st.sampled_from(["", *KERNELS]), out_first=COUNTS, out_count=COUNTS, in_first=COUNTS,
                 in_count=COUNTS, x_first=COUNTS, operand=COUNTS))  # fmt: skip
def test_a_part_is_what_its_text_says(part: Part) -> None:
    assert parse_part(part.text()) == part


@pytest.mark.parametrize("text", ["o", "o1+2.z3", "", "o1+2.gemm", "o-1"])
def test_other_texts_are_no_part(text: str) -> None:
    with pytest.raises(ValueError, match="expected fields such as"):
        parse_part(text)


@pytest.mark.parametrize(
    "part",
    [Part(out_first=3), Part(out_first=2, out_count=2), Part(in_first=12), Part(in_first=8, in_count=5)],
)
def test_a_part_lies_inside_its_op(part: Part) -> None:
    imported = convolution()
    op = op_of(imported.manifest, "Conv")
    with pytest.raises(ValueError, match=r"part .* of (3 output channels|12 summands)"):
        attributes_of(op, imported.manifest, part)
    inside = Part(out_first=2, out_count=1, in_first=8, in_count=4)
    assert dict(attributes_of(op, imported.manifest, inside))["out_channels"] == 1


def test_an_unknown_kernel_is_named() -> None:
    imported = convolution()
    with pytest.raises(ValueError, match=r"expected a kernel type of .*, got 'softmax'"):
        attributes_of(op_of(imported.manifest, "Conv"), imported.manifest, Part(kernel="softmax"))


def test_a_cascade_has_bias_and_scales_at_its_end_alone() -> None:
    imported = convolution()
    op = op_of(imported.manifest, "Conv")
    head, tail = Part(in_count=8), Part(in_first=8, in_count=4)
    first, last = (dict(attributes_of(op, imported.manifest, p)) for p in (head, tail))
    assert (first["cascade_in"], first["cascade_out"], first["has_bias"]) == (0, 1, 0)
    assert (last["cascade_in"], last["cascade_out"], last["has_bias"]) == (1, 0, 1)
    kinds = [[b.kind for b in buffers_of(op, imported.manifest, p)] for p in (head, tail)]
    assert kinds == [["weights"], ["weights", "bias", "requant"]]


def test_keys_lead_back_to_their_values_whatever_the_name_of_the_op() -> None:
    imported = convolution()
    op = op_of(imported.manifest, "Conv")
    weights, bias, requant = (
        constant_of(str(b.array), imported.manifest, imported.arrays)
        for b in buffers_of(op, imported.manifest, Part(out_first=1))
    )
    np.testing.assert_array_equal(weights[:, :, 0, 0], np.arange(-8, 16).reshape(2, 12))
    np.testing.assert_array_equal(bias, [100, 100])
    assert bias.dtype == np.int32
    assert op.requant is not None
    np.testing.assert_array_equal(requant, [op.requant.multipliers[1:], op.requant.shifts[1:]])
    stream = stream_of(op, imported.manifest, None, 2)
    pieces = constant_of(stream.array, imported.manifest, imported.arrays)
    assert (stream.count, stream.shape, stream.chunk) == (2, (2, 12, 1, 1), 2)
    np.testing.assert_array_equal(pieces[0, :, :, 0, 0], np.arange(-20, 4).reshape(2, 12))
    np.testing.assert_array_equal(pieces[1, 0, :, 0, 0], np.arange(4, 16))
    np.testing.assert_array_equal(pieces[1, 1], 0)


def test_keys_of_nothing_are_refused() -> None:
    imported = convolution()
    with pytest.raises(ValueError, match="buffer key 'acc:x:all': expected one of weights"):
        constant_of("acc:x:all", imported.manifest, imported.arrays)
    with pytest.raises(KeyError):
        constant_of("bias:other:all", imported.manifest, imported.arrays)


def test_every_kernel_has_a_table_and_its_file_lists_what_the_table_gives() -> None:
    """Attributes of every kernel type, from ops that use it; the docstring of its file names each."""
    done = set()
    for manifest, op, part in every_kernel():
        kind = part.kernel or kernel_of(op, manifest)
        names = {name for name, _ in attributes_of(op, manifest, part)}
        module = inspect.getmodule(KERNELS[kind])
        assert module is not None
        text = str(module.__doc__)
        common = OUTPUT if "the output's" in text else set()
        missing = sorted(n for n in names - common if f"`{n}`" not in text)
        assert not missing, (kind, missing)
        done.add(kind)
    assert done == set(KERNELS)


def every_kernel() -> list[tuple[Manifest, Op, Part]]:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 8, 4, 4)), 0.1, out="xd")
    y = s.qdq(s.node("Conv", [x, s.weight(np.ones((8, 8, 1, 1)), 0.1)]), 0.1, out="c")
    y = s.qdq(s.node("MaxPool", [y], kernel_shape=[1, 1]), 0.1, out="m")
    y = s.qdq(s.node("AveragePool", [y], kernel_shape=[1, 1]), 0.1, out="a")
    y = s.qdq(s.node("Add", [y, x]), 0.1, out="s")
    y = s.qdq(s.node("Mul", [y, s.weight(3, 0.1)]), 0.1, out="u")
    y = s.qdq(s.node("Relu", [y]), 0.1, out="r")
    y = s.qdq(s.node("Clip", [y, s.const(0.0), s.const(0.5)]), 0.2, out="l")
    y = s.qdq(s.node("Concat", [y, x], axis=1), 0.1, out="k")
    y = s.qdq(s.node("Transpose", [y], perm=[0, 1, 3, 2]), 0.3, out="t")
    y = s.node("Reshape", [s.qdq(y, 0.4, out="q"), s.const([1, 16, 2, 8], np.int64)])
    pooled = s.node("GlobalAveragePool", [y])
    s.output(s.qdq(pooled, 0.1, out="g"))
    flat = s.node("Flatten", [s.dq(s.q(y, 0.4, out="f.q"), 0.5)])
    gemm = s.node("Gemm", [flat, s.weight(np.ones((256, 3)), 0.1)])
    s.output(s.qdq(gemm, 0.1, out="y"))
    manifest = s.load().manifest
    found = [(manifest, op, Part()) for op in manifest.ops if op.where == "npu"]
    extra = {
        "Gemm": ("gemm_rows", "gemm_finish", "matmul"),
        "GlobalAveragePool": ("global_average_pool_finish",),
        "Concat": ("requantize",),
    }
    found += [(manifest, op, Part(kernel=k)) for _, op, _ in found for k in extra.get(op.type, ())]
    quantize = next(op for _, op, _ in found if op.type == "QuantizeLinear")
    assert quantize.requant is not None
    table = replace(quantize, requant=replace(quantize.requant, target="lut", lut="t1"))
    return [*found, (manifest, table, Part())]


@pytest.mark.parametrize("kind", KERNELS)
def test_every_kernel_names_its_type_in_its_file(kind: str) -> None:
    module = inspect.getmodule(KERNELS[kind])
    files = {"relu": "relu", "clip": "clip", "reshape": "reshape", "flatten": "flatten"}
    text = str(importlib.import_module(f"presim.kernels.{files[kind]}").__doc__ if kind in files else module.__doc__)
    assert f"`{kind}`" in text


def refusals() -> dict[str, tuple[Sketch, str]]:
    """Graphs that no kernel computes: (graph, what the refusal says)."""
    clip = Sketch()
    x = clip.qdq(clip.input("x", (1, 3, 4, 4)), 0.1, out="xd")
    y = clip.node("Clip", [clip.node("Conv", [x, clip.weight(np.ones((2, 3, 1, 1)), 0.1)]), clip.const(0.0)])
    y = clip.node("Clip", [y, clip.const(0.0), clip.const(0.555)])
    clip.output(clip.qdq(y, 0.1, out="y"))
    clip.output(clip.qdq(clip.node("Relu", [y]), 0.1, out="z"))
    ranks = Sketch()
    x = ranks.qdq(ranks.input("x", (1, 3, 4, 4)), 0.1, out="xd")
    b = ranks.qdq(ranks.input("b", (4,)), 0.1, out="bd")
    ranks.output(ranks.qdq(ranks.node("Add", [x, b]), 0.1, out="y"))
    axis = Sketch()
    x = axis.qdq(axis.input("x", (1, 3, 4, 4)), 0.1, out="xd")
    axis.output(axis.qdq(axis.node("Concat", [x, x], axis=2), 0.1, out="y"))
    return {
        "Clip": (clip, "no whole multiple of the accumulator's unit"),
        "Add": (ranks, "activations of different ranks"),
        "Concat": (axis, "an order of objects, not a kernel"),
    }


@pytest.mark.parametrize("op_type", refusals())
def test_what_no_kernel_computes_is_refused_by_name(op_type: str) -> None:
    sketch, what = refusals()[op_type]
    manifest = sketch.load().manifest
    op = next(op for op in manifest.ops if op.type == op_type and (op_type != "Clip" or 0.555 in bounds(op)))
    with pytest.raises(RefusedError, match=rf"\[PRESIM-KERNEL\] {op_type} '.*{what}.*remedy: "):
        attributes_of(op, manifest)


FLOAT32_MAX = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-FLOAT32_MAX, FLOAT32_MAX, ((), ())),
        (-1e39, 1e300, ((), ())),
        (float("-inf"), float("inf"), ((), ())),
        (-float(np.nextafter(np.float32(FLOAT32_MAX), np.float32(0))), 1e37, ((), ())),
        (-2.0, 1.5, ((-256,), (192,))),
    ],
)
def test_the_ends_of_float32_bound_nothing(low: float, high: float, expected: tuple[tuple[int, ...], ...]) -> None:
    manifest, op = unrounded_clip()
    found = dict(attributes_of(replace(op, attributes={"minimum": low, "maximum": high}), manifest))
    assert (found["minimum"], found["maximum"]) == expected


@pytest.mark.parametrize(("low", "high"), [(1e30, FLOAT32_MAX), (-FLOAT32_MAX, -1e30), (-2.0, 0.3)])
def test_a_bound_that_does_bound_and_no_kernel_has_is_refused(low: float, high: float) -> None:
    manifest, op = unrounded_clip()
    with pytest.raises(RefusedError, match="no whole multiple of the accumulator's unit within 64 bits"):
        attributes_of(replace(op, attributes={"minimum": low, "maximum": high}), manifest)


def unrounded_clip() -> tuple[Manifest, Op]:
    """A Clip whose result is not rounded, on an accumulator with the unit 2**-7."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 8)), 2.0**-3, out="xd")
    y = s.node("MatMul", [x, s.weight(np.ones((8, 3), np.int8), 2.0**-4)])
    clip = s.node("Clip", [y, s.const(np.float32(-2.0)), s.const(np.float32(1.5))])
    s.output(s.qdq(clip, 2.0**-3, out="a"))
    s.output(s.qdq(s.node("Relu", [clip]), 2.0**-3, out="b"))
    manifest = s.load().manifest
    return manifest, next(op for op in manifest.ops if op.type == "Clip")


def bounds(op: Op) -> list[float]:
    return [round(float(str(v)), 3) for k, v in op.attributes.items() if k == "maximum"]


def test_rows_need_a_flattened_image() -> None:
    manifest = linear(np.ones((8, 3), np.int8)).load().manifest
    with pytest.raises(RefusedError, match="gemm_rows needs a Flatten of a rank-4 tensor in front"):
        attributes_of(op_of(manifest, "Gemm"), manifest, Part(kernel="gemm_rows"))


def test_forms_say_what_integers_mean() -> None:
    manifest = linear(np.ones((8, 3), np.int8), x_scale=0.5, w_scale=0.25).load().manifest
    form = form_of(manifest, "y.q")
    assert (form.units, form.zero_point, form.bound, form.dtype) == ((Fraction(1),), 0, 128, "int8")
    with pytest.raises(ValueError, match="expected codes with one zero point"):
        Forms(manifest).of("x")
