"""Breaking the oracle or the manifest on purpose: the comparison names tensor, op and, where it can, the cause."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manifest.model import Manifest, Op, Tensor
from manifest.onnx_import import Imported
from oracle import contraction, registry, requantize
from oracle.contraction import Contraction
from oracle.evidence import Comparison, TensorComparison
from oracle.ops import conv, max_pool
from oracle.reference import compare_model, compare_random
from oracle.value import Plan, Scope, as_carrier
from tests.reference_models import FEEDS, Array, Numpy, cnn, feeds, sixteen

Breaking = Callable[[pytest.MonkeyPatch], None]
SCALES = {"two_to_k": 2.0**-4, "other": 0.0613}


def compared(imported: Imported, manifest: Manifest | None = None, data: Mapping[str, Array] | None = None) -> Any:
    """Comparisons on feeds by kind, and on made-up inputs."""
    manifest = manifest or imported.manifest
    on_feeds = compare_model(imported.model_bytes, manifest, imported.arrays, data or feeds())
    random = compare_random(imported.model_bytes, manifest, imported.arrays, seed=3)
    return {c.kind: c for c in (*on_feeds, random)}


def bad(comparison: Comparison) -> dict[str, TensorComparison]:
    """Rows with unexplained differences by tensor."""
    return {row.tensor: row for row in comparison.tensors if row.unexplained}


def cause(row: TensorComparison) -> str:
    """The cause of a row's first difference."""
    assert row.first is not None
    return row.first.cause


def half_up(m: pytest.MonkeyPatch) -> None:
    """Ties are rounded up."""

    def rint(x: Array, out: Array) -> None:
        np.floor(x + 0.5, out=out)

    m.setattr("oracle.requantize.np", Numpy(rint=rint))


def half_away(m: pytest.MonkeyPatch) -> None:
    """Ties are rounded away from zero."""

    def rint(x: Array, out: Array) -> None:
        np.copyto(out, np.trunc(x + np.copysign(0.5, x)))

    m.setattr("oracle.requantize.np", Numpy(rint=rint))


def rounded_down(m: pytest.MonkeyPatch) -> None:
    """The fraction is cut off."""
    m.setattr("oracle.requantize.np", Numpy(rint=np.floor))
    m.setattr("oracle.rational.np", Numpy(rint=np.floor))


def zero_point_inside(m: pytest.MonkeyPatch) -> None:
    """The zero point is added before the rounding."""
    affine = requantize.affine

    def inside(*args: Any, **kwargs: Any) -> Any:
        return affine(*args, **{**kwargs, "inside": True})

    m.setattr(requantize, "affine", inside)


def bias_dropped(m: pytest.MonkeyPatch) -> None:
    """The bias is not added."""

    def bias(self: Contraction, acc: Array, shape: tuple[int, ...]) -> Array:
        del shape
        return as_carrier(acc, self.dtype)

    m.setattr(Contraction, "bias", bias)


def kernel_axes_swapped(m: pytest.MonkeyPatch) -> None:
    """Kernel height and width are exchanged."""
    weights_of = contraction.weights_of

    def swapped(op: Op, scope: Scope, axis: int) -> tuple[Array, list[float]]:
        weights, scales = weights_of(op, scope, axis)
        return weights.swapaxes(2, 3), scales

    m.setattr("oracle.ops.conv.weights_of", swapped)


def pads_swapped(m: pytest.MonkeyPatch) -> None:
    """Begin and end of the padding are exchanged."""

    def prepare(op: Op, scope: Scope) -> Plan:
        pads: Any = op.attributes["pads"]
        return conv.prepare(replace(op, attributes={**op.attributes, "pads": pads[2:] + pads[:2]}), scope)

    m.setitem(registry.OPS, "Conv", prepare)


def padded_with_zero(op_type: str, prepare: Callable[[Op, Scope], Plan]) -> Breaking:
    """The border holds the integer 0."""

    def broken(op: Op, scope: Scope) -> Plan:
        pads: Any = op.attributes["pads"]
        tensor = scope.tensors[op.inputs[0]]
        widths = ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3]))
        wide = replace(tensor, shape=tuple(n + a + b for n, (a, b) in zip(tensor.shape, widths, strict=True)))
        unpadded = replace(op, attributes={**op.attributes, "pads": (0, 0, 0, 0)})
        plan = prepare(unpadded, replace(scope, tensors={**scope.tensors, tensor.name: wide}))

        def run(values: Any, finish: Any) -> Array:
            return plan.run({**values, tensor.name: np.pad(values[tensor.name], (*widths, (0, 0)))}, finish)

        return replace(plan, run=run)

    def apply(m: pytest.MonkeyPatch) -> None:
        m.setitem(registry.OPS, op_type, broken)

    return apply


ORACLE: list[tuple[str, Breaking, str, str, str]] = [
    ("half up", half_up, "two_to_k", "d.q", "ties are rounded half up"),
    ("half away", half_away, "two_to_k", "d.q", "ties are rounded half away from zero"),
    ("down", rounded_down, "two_to_k", "d.q", "rounded down"),
    ("down", rounded_down, "other", "d.q", "rounded down"),
    ("zero point inside", zero_point_inside, "two_to_k", "d.q", "zero point is inside the rounding"),
    ("bias", bias_dropped, "two_to_k", "d.q", "the bias is missing in the oracle"),
    ("bias", bias_dropped, "other", "d.q", ""),
    ("kernel axes", kernel_axes_swapped, "two_to_k", "d.q", "the kernel axes are swapped in the oracle"),
    ("kernel axes", kernel_axes_swapped, "other", "d.q", "the kernel axes are swapped in the oracle"),
    ("pads", pads_swapped, "two_to_k", "d.q", "pads of begin and end are swapped in the oracle"),
    ("pad value", padded_with_zero("Conv", conv.prepare), "two_to_k", "d.q", "padded with code 0"),
    ("pad value", padded_with_zero("Conv", conv.prepare), "other", "d.q", "padded with code 0"),
    ("max pad value", padded_with_zero("MaxPool", max_pool.prepare), "two_to_k", "e.q", ""),
]


@pytest.mark.parametrize(
    ("breaking", "scales", "tensor", "words"), [m[1:] for m in ORACLE], ids=[f"{m[0]}-{m[2]}" for m in ORACLE]
)
def test_a_broken_oracle_is_named(
    monkeypatch: pytest.MonkeyPatch, breaking: Breaking, scales: str, tensor: str, words: str
) -> None:
    act = np.int8 if tensor == "e.q" else np.uint8
    imported = cnn(SCALES[scales], act=act, out_zero=-9 if act is np.int8 else 5).load()
    breaking(monkeypatch)
    found = compared(imported)
    judged = [found["disable_all" if scales == "two_to_k" else "file_op"], found["random_op"]]
    ops = {"d.q": "conv", "e.q": "max"}
    for comparison in judged:
        rows = bad(comparison)
        assert tensor in rows, (comparison.kind, rows)
        assert rows[tensor].op == ops[tensor]
        assert rows[tensor].mismatches == rows[tensor].unexplained + rows[tensor].near_ties
        assert words in cause(rows[tensor])


def changed(manifest: Manifest, op: Op) -> Manifest:
    """The manifest with one op exchanged."""
    return replace(manifest, ops=tuple(op if o.name == op.name else o for o in manifest.ops))


def with_tensor(manifest: Manifest, tensor: Tensor) -> Manifest:
    """The manifest with one tensor exchanged."""
    return replace(manifest, tensors=tuple(tensor if t.name == tensor.name else t for t in manifest.tensors))


def conv_of(manifest: Manifest) -> Op:
    """The Conv."""
    return next(op for op in manifest.ops if op.type == "Conv")


def lost_relu(m: Manifest) -> Manifest:
    """The fused Relu is lost."""
    op = conv_of(m)
    assert op.requant is not None
    return changed(m, replace(op, activation=None, requant=replace(op.requant, qmin=0)))


def lost_axis(m: Manifest) -> Manifest:
    """The weights take the scale of channel 0 everywhere."""
    tensor = m.tensor(conv_of(m).inputs[1])
    assert tensor.quant is not None
    one = replace(tensor.quant, scales=tensor.quant.scales[:1] * 4, exponents=None)
    return with_tensor(m, replace(tensor, quant=one))


def lost_zero_point(m: Manifest) -> Manifest:
    """The zero point of the input is lost."""
    tensor = m.tensor("a.q")
    assert tensor.quant is not None
    return with_tensor(m, replace(tensor, quant=replace(tensor.quant, zero_points=(0,))))


def turned_pads(m: Manifest) -> Manifest:
    """Pads of begin and end exchanged."""
    op = conv_of(m)
    pads: Any = op.attributes["pads"]
    return changed(m, replace(op, attributes={**op.attributes, "pads": pads[2:] + pads[:2]}))


def turned_count(m: Manifest) -> Manifest:
    """The average does not count its border."""
    op = next(o for o in m.ops if o.type == "AveragePool")
    return changed(m, replace(op, attributes={**op.attributes, "count_include_pad": 0}))


MANIFEST: list[tuple[Callable[[Manifest], Manifest], str, str, str]] = [
    (lost_relu, "d.q", "conv", ""),
    (lost_axis, "d.q", "conv", ""),
    (lost_zero_point, "d.q", "conv", ""),
    (turned_pads, "d.q", "conv", "pads of begin and end are swapped in onnxruntime"),
    (turned_count, "f.q", "average", "count_include_pad is the other way round in onnxruntime"),
]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("breaking", "tensor", "op", "words"), MANIFEST, ids=[m[0].__name__ for m in MANIFEST])
def test_a_wrong_manifest_is_named(
    breaking: Callable[[Manifest], Manifest], tensor: str, op: str, words: str, scales: str
) -> None:
    imported = cnn(SCALES[scales]).load()
    found = compared(imported, breaking(imported.manifest))
    for comparison in (found["disable_all" if scales == "two_to_k" else "file_op"], found["random_op"]):
        rows = bad(comparison)
        assert tensor in rows, comparison.kind
        assert rows[tensor].op == op
        assert words in cause(rows[tensor])


def test_an_exact_sum_above_2_24_is_no_mismatch_and_a_wrong_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = sixteen(2.0**-11, depth=160).load()
    op = conv_of(imported.manifest)
    assert op.accumulator is not None
    assert op.accumulator.bound > 2**24
    data = {"x": np.random.default_rng(0).choice([-16.0, 15.99], (FEEDS, 1, 160, 6, 5)).astype(np.float32)}
    found = compared(imported, data=data)
    assert found["disable_all"].unexplained == 0
    assert found["random_op"].unexplained == 0
    assert found["disable_all"].reference_inexact + found["random_op"].reference_inexact > 0
    kernel_axes_swapped(monkeypatch)
    rows = bad(compared(imported, data=data)["disable_all"])
    assert set(rows) == {"y.q"}
    assert "kernel axes are swapped" in cause(rows["y.q"])
