"""A stage with one thing wrong on purpose: what the exact values would be if it were so.

Each variant takes a `Sample` and returns exact values in output codes, or None where it does not apply.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from manifest.model import Bias, Manifest, Op, Quantization, Tensor
from oracle.reference.sample import Array, Sample, terms_at, values_of

Values = tuple[Fraction, ...]
Variant = Callable[[Sample], Values | None]

_MATRIX: Final = frozenset({"Conv", "Gemm", "MatMul"})
_WINDOW: Final = frozenset({"Conv", "MaxPool", "AveragePool"})


def main_op(sample: Sample) -> Op:
    """The op that carries the arithmetic: the Conv, Gemm or MatMul of the stage, else its first op."""
    ops = sample.run.ops()
    return next((op for op in ops if op.type in _MATRIX), ops[0])


def evaluate(
    sample: Sample,
    *,
    op: Op | None = None,
    tensor: Tensor | None = None,
    arrays: Mapping[str, Array] | None = None,
    inputs: Mapping[str, Array] | None = None,
) -> Values | None:
    """Exact values of the sample with one op, tensor, constant or input exchanged."""
    run = sample.run
    ops = tuple(op if op is not None and o.name == op.name else o for o in run.ops())
    tensors = run.manifest.by_name()
    if tensor is not None:
        tensors[tensor.name] = tensor
    evaluator = replace(
        run.evaluator(),
        ops=ops,
        tensors=tensors,
        arrays={**run.arrays, **(arrays or {})},
        inputs={**run.tensors, **(inputs or {})},
    )
    terms = terms_at(evaluator, sample.tensor.name, sample.indices)
    if any(term is None for term in terms):
        return None
    return tuple(term.value for term in terms if term is not None)


def without_bias(sample: Sample) -> Values | None:
    """The bias is not added."""
    op = main_op(sample)
    if op.type not in _MATRIX or len(op.inputs) < 3 or not op.inputs[2]:
        return None
    return evaluate(sample, op=replace(op, inputs=(*op.inputs[:2], ""), bias=None))


def without_bias_shift(sample: Sample) -> Values | None:
    """The bias is added as stored, its own scale ignored."""
    op = main_op(sample)
    if op.bias is None or op.bias.kind != "shifted":
        return None
    weight = _by_name(sample.run.manifest)[op.inputs[1]]
    bias = _by_name(sample.run.manifest)[op.inputs[2]]
    activation = _by_name(sample.run.manifest)[op.inputs[0]]
    if weight.quant is None or bias.quant is None or activation.quant is None:
        return None
    product = tuple(float(np.float32(s * activation.quant.scales[0])) for s in weight.quant.scales)
    axis = 0 if len(product) > 1 else None
    quant = Quantization(scales=product, zero_points=(0,) * len(product), axis=axis)
    return evaluate(sample, op=replace(op, bias=Bias(kind="accumulator")), tensor=replace(bias, quant=quant))


def swapped_kernel_axes(sample: Sample) -> Values | None:
    """Kernel height and width are exchanged."""
    op = main_op(sample)
    if op.type != "Conv":
        return None
    key = _by_name(sample.run.manifest)[op.inputs[1]].array
    if key is None or sample.run.arrays[key].ndim != 4:
        return None
    weights = sample.run.arrays[key]
    if weights.shape[2] != weights.shape[3] or weights.shape[2] == 1:
        return None
    return evaluate(sample, arrays={key: np.ascontiguousarray(weights.swapaxes(2, 3))})


def swapped_pads(sample: Sample) -> Values | None:
    """Begin and end of the padding are exchanged."""
    op = main_op(sample)
    pads = _pads(op)
    half = len(pads) // 2
    if not pads or pads[:half] == pads[half:]:
        return None
    return evaluate(sample, op=replace(op, attributes={**op.attributes, "pads": pads[half:] + pads[:half]}))


def padded_with_code_zero(sample: Sample) -> Values | None:
    """The border holds the integer 0 instead of the zero point."""
    op = main_op(sample)
    tensor = _by_name(sample.run.manifest)[op.inputs[0]]
    pads = _pads(op)
    quant = tensor.quant
    if not any(pads) or op.type not in _WINDOW or quant is None:
        return None
    if quant.zero_points[0] == 0 and op.type != "MaxPool":
        return None
    half = len(pads) // 2
    widths = ((0, 0), (0, 0), (0, 0), *zip(pads[:half], pads[half:], strict=True))
    padded = np.pad(sample.run.tensors[tensor.name], widths) if tensor.name in sample.run.tensors else None
    if padded is None:
        return None
    return evaluate(
        sample,
        op=replace(op, attributes={**op.attributes, "pads": (0,) * len(pads)}),
        tensor=replace(tensor, shape=tuple(padded.shape[1:])),
        inputs={tensor.name: padded},
    )


def without_input_zero_point(sample: Sample) -> Values | None:
    """The zero point of the activation is not subtracted."""
    return _zero_point_dropped(sample, 0)


def without_weight_zero_point(sample: Sample) -> Values | None:
    """The zero point of the weights (or the second operand) is not subtracted."""
    return _zero_point_dropped(sample, 1)


def first_channel_scale(sample: Sample) -> Values | None:
    """All output channels take the scale of channel 0."""
    op = main_op(sample)
    if op.type not in _MATRIX:
        return None
    quant = _by_name(sample.run.manifest)[op.inputs[1]].quant
    if quant is None or len(quant.scales) == 1:
        return None
    axis = 2 if op.type == "Conv" else sample.indices.shape[1] - 1
    scales = [Fraction(s) for s in quant.scales]
    channels = sample.indices[:, axis]
    return tuple(v * scales[0] / scales[int(c)] for v, c in zip(values_of(sample), channels, strict=True))


def without_factor(sample: Sample) -> Values | None:
    """The constant behind the average is not applied."""
    op = main_op(sample)
    if op.attributes.get("factor", 1.0) == 1.0:
        return None
    return evaluate(sample, op=replace(op, attributes={**op.attributes, "factor": 1.0}))


def count_of_padding(sample: Sample) -> Values | None:
    """The average counts the border where it must not, or the reverse."""
    op = main_op(sample)
    if op.type != "AveragePool" or not any(_pads(op)):
        return None
    flipped = 0 if op.attributes.get("count_include_pad") else 1
    return evaluate(sample, op=replace(op, attributes={**op.attributes, "count_include_pad": flipped}))


def wrapped_int32(sample: Sample) -> Values | None:
    """The accumulator wraps at 32 bits."""
    found = _accumulators(sample)
    if found is None:
        return None
    pairs = zip(values_of(sample), found, strict=True)
    return tuple(v if not acc else ((acc + 2**31) % 2**32 - 2**31) * v / acc for v, (acc, _) in pairs)


def without_dilation(sample: Sample) -> Values | None:
    """The taps lie side by side."""
    op = main_op(sample)
    dilations: Any = op.attributes.get("dilations", ())
    if all(d == 1 for d in dilations):
        return None
    return evaluate(sample, op=replace(op, attributes={**op.attributes, "dilations": (1,) * len(dilations)}))


def transposed_weight(sample: Sample) -> Values | None:
    """A square weight of a Gemm is read the other way round."""
    op = main_op(sample)
    shape = _by_name(sample.run.manifest)[op.inputs[1]].shape if op.type == "Gemm" else ()
    if len(set(shape)) != 1:
        return None
    return evaluate(sample, op=replace(op, attributes={**op.attributes, "transB": int(not op.attributes["transB"])}))


def inverse_perm(sample: Sample) -> Values | None:
    """The permutation goes the other way."""
    op = main_op(sample)
    perm: Any = op.attributes.get("perm", ())
    inverse = tuple(perm.index(i) for i in range(len(perm)))
    if op.type != "Transpose" or inverse == perm:
        return None
    return evaluate(sample, op=replace(op, attributes={**op.attributes, "perm": inverse}))


def reversed_inputs(sample: Sample) -> Values | None:
    """The inputs lie side by side in reverse order."""
    op = main_op(sample)
    return evaluate(sample, op=replace(op, inputs=op.inputs[::-1])) if op.type == "Concat" else None


def kernel_multiplier(sample: Sample) -> Values | None:
    """One float32 multiplier, f32(f32(f32(alpha * sx) * sw) / sy), as the kernels of QOperator nodes have it."""
    found = _accumulators(sample)
    if found is None or main_op(sample).origin != "qoperator":
        return None
    f32 = np.float32
    values = []
    for acc, (sx, sw, sy) in found:
        multiplier = f32(f32(f32(sx) * f32(sw)) / f32(sy))
        values.append(Fraction(float(f32(float(acc)) * multiplier)))
    return tuple(values)


VARIANTS: Final[Mapping[str, Variant]] = {
    "the bias is missing": without_bias,
    "the bias pre-shift is missing": without_bias_shift,
    "the kernel axes are swapped": swapped_kernel_axes,
    "pads of begin and end are swapped": swapped_pads,
    "the border is padded with code 0 instead of the zero point": padded_with_code_zero,
    "the zero point of the first input is not subtracted": without_input_zero_point,
    "the zero point of the second input is not subtracted": without_weight_zero_point,
    "every channel takes the scale of channel 0": first_channel_scale,
    "the constant factor behind the average is missing": without_factor,
    "count_include_pad is the other way round": count_of_padding,
    "the accumulator wraps at int32": wrapped_int32,
    "the dilations are ignored": without_dilation,
    "transB is the other way round": transposed_weight,
    "the permutation is inverted": inverse_perm,
    "the inputs are in reverse order": reversed_inputs,
    "the float32 multiplier (sx * sw) / sy is applied": kernel_multiplier,
}


def _by_name(manifest: Manifest) -> dict[str, Tensor]:
    return manifest.by_name()


def _pads(op: Op) -> tuple[int, ...]:
    pads: Any = op.attributes.get("pads", ())
    return tuple(int(p) for p in pads)


def _zero_point_dropped(sample: Sample, position: int) -> Values | None:
    op = main_op(sample)
    if position >= len(op.inputs) or not op.inputs[position]:
        return None
    tensor = _by_name(sample.run.manifest)[op.inputs[position]]
    if tensor.quant is None or not any(tensor.quant.zero_points):
        return None
    quant = replace(tensor.quant, zero_points=(0,) * len(tensor.quant.zero_points))
    return evaluate(sample, tensor=replace(tensor, quant=quant))


def _accumulators(sample: Sample) -> list[tuple[Fraction, tuple[float, float, float]]] | None:
    """Per element the integer that is rounded, and the float32 scales alpha * sx, sw and sy."""
    op, by_name = main_op(sample), _by_name(sample.run.manifest)
    if op.type not in _MATRIX or sample.tensor.quant is None:
        return None
    activation, weight = by_name[op.inputs[0]].quant, by_name[op.inputs[1]].quant
    if activation is None or weight is None:
        return None
    alpha: Any = op.attributes.get("alpha", 1.0)
    sx, sy = float(np.float32(alpha) * np.float32(activation.scales[0])), sample.tensor.quant.scales[0]
    found = []
    for value, channel in zip(values_of(sample), sample.indices[:, 2 if op.type == "Conv" else -1], strict=True):
        sw = weight.scales[int(channel) if len(weight.scales) > 1 else 0]
        found.append(
            (value * Fraction(sy) / (Fraction(activation.scales[0]) * Fraction(alpha) * Fraction(sw)), (sx, sw, sy))
        )
    return found
