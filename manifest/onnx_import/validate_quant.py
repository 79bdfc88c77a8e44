"""Quantization as the file states it: opset, types, scales, zero points, axes.

onnx.checker looks at none of this: a scale of 0, or 8 scales along an axis of size 4, are fine with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx

from manifest.errors import Problem
from manifest.onnx_import.validate_facts import (
    Array,
    Facts,
    code_type,
    gather,
    integer,
    is_dequantize,
    is_quantize,
)
from manifest.onnx_import.validate_text import node_label, quoted, type_name

_T: Final = onnx.TensorProto
_CODES_8: Final = (_T.INT8, _T.UINT8)
_CODES_16: Final = (_T.INT16, _T.UINT16)
_FLOAT16: Final = (_T.FLOAT16, _T.BFLOAT16)
_MICROSOFT: Final = "com.microsoft"
_SMALLEST_NORMAL: Final = 2.0**-126


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One quantised operand of a node.

    Attributes:
        node: the node that states the quantization.
        codes: name of the integer tensor.
        scale: name of the scale tensor, "" = absent.
        zero_point: name of the zero point tensor, "" = absent.
        axis: channel axis if there are several scales; None = they must be one.
        axis_text: where the axis comes from, for messages.
        over: name of the tensor whose shape the axis belongs to.
    """

    node: onnx.NodeProto
    codes: str
    scale: str
    zero_point: str
    axis: int | None
    axis_text: str
    over: str


# op key -> ((codes, scale, zero point) input positions of each operand ("o" = output 0), channel axis of the operand)
_OPERANDS: Final[dict[tuple[str, str], tuple[tuple[int | str, int, int, int | None], ...]]] = {
    ("", "QLinearConv"): ((0, 1, 2, None), (3, 4, 5, 0), ("o", 6, 7, None)),
    ("", "QLinearMatMul"): ((0, 1, 2, -2), (3, 4, 5, -1), ("o", 6, 7, -2)),
    (_MICROSOFT, "QLinearConv"): ((0, 1, 2, None), (3, 4, 5, 0), ("o", 6, 7, None)),
    (_MICROSOFT, "QLinearAdd"): ((0, 1, 2, None), (3, 4, 5, None), ("o", 6, 7, None)),
    (_MICROSOFT, "QLinearMul"): ((0, 1, 2, None), (3, 4, 5, None), ("o", 6, 7, None)),
    (_MICROSOFT, "QGemm"): ((0, 1, 2, None), (3, 4, 5, 1), ("o", 7, 8, None)),
    (_MICROSOFT, "MatMulIntegerToFloat"): ((0, 2, 4, None), (1, 3, 5, -1)),
    **{
        (_MICROSOFT, name): ((0, 1, 2, None), ("o", 3, 4, None))
        for name in (
            "QLinearGlobalAveragePool",
            "QLinearAveragePool",
            "QLinearSigmoid",
            "QLinearLeakyRelu",
            "QLinearSoftmax",
            "QLinearReduceMean",
        )
    },
}


def quantization_problems(model: onnx.ModelProto) -> list[Problem]:
    """Every problem of the model's quantization; nodes have to be in topological order."""
    facts = gather(model.graph)
    opset = next((entry.version for entry in model.opset_import if entry.domain == ""), 0)
    found: dict[Problem, int] = {}
    for node in model.graph.node:
        for problem in _node_problems(node, facts, opset):
            found[problem] = found.get(problem, 0) + 1
    return list(found)


def _node_problems(node: onnx.NodeProto, facts: Facts, opset: int) -> Iterator[Problem]:
    """Problems of one node."""
    if is_quantize(node) or is_dequantize(node):
        if len(node.input) < 2 or not node.input[0] or not node.input[1] or not node.output:
            return  # said by the count of inputs and outputs
        yield from _code_type_problems(node, facts, opset)
        if integer(node, "block_size", 0) != 0:
            yield _blocked(node, facts)
            return
    if node.op_type == "QGemm" and (len(node.input) > 7 and node.input[7] != "") != (len(node.input) > 8):
        yield Problem(
            code="ONNX-QUANT-INPUTS",
            where=node_label(node),
            what="QGemm needs both scale and zero point of its output, or neither",
            remedy="give the zero point (0 where it was meant to be left out)",
        )
    for operand in operands(node):
        yield from _scale_problems(operand, facts)
        yield from _zero_point_problems(operand, facts)


def operands(node: onnx.NodeProto) -> Iterator[Operand]:
    """The quantised operands that a node states, inputs first."""
    if is_quantize(node) or is_dequantize(node):
        stated = any(attribute.name == "axis" for attribute in node.attribute)
        channel = integer(node, "axis", 1)
        yield Operand(
            node=node,
            codes=node.output[0] if is_quantize(node) else node.input[0],
            scale=node.input[1],
            zero_point=node.input[2] if len(node.input) > 2 else "",
            axis=channel,
            axis_text=f"axis {channel}" if stated else f"axis {channel} (the default)",
            over=node.input[0],
        )
        return
    if (node.domain, node.op_type) == (_MICROSOFT, "QLinearConcat"):
        rows: tuple[tuple[int | str, int, int, int | None], ...] = (("o", 0, 1, None),)
        rows += tuple((at, at + 1, at + 2, None) for at in range(2, len(node.input), 3))
    else:
        rows = _OPERANDS.get((node.domain, node.op_type), ())
    for codes, scale, zero_point, axis in rows:
        yield _operand(node, codes, scale, zero_point, axis)


def _operand(node: onnx.NodeProto, codes: int | str, scale: int, zero_point: int, axis: int | None) -> Operand:
    """An operand of a QOperator node by positions."""

    def at(position: int) -> str:
        return node.input[position] if position < len(node.input) else ""

    name = at(codes) if isinstance(codes, int) else (node.output[0] if node.output else "")
    if node.op_type == "QGemm" and axis == 1 and integer(node, "transB", 0):
        axis = 0
    return Operand(
        node=node,
        codes=name,
        scale=at(scale),
        zero_point=at(zero_point),
        axis=axis,
        axis_text=f"axis {axis} of input {quoted(name)}",
        over=name,
    )


def _code_type_problems(node: onnx.NodeProto, facts: Facts, opset: int) -> Iterator[Problem]:
    """The integer type of a Q or DQ node: known, and allowed in the node's opset."""
    where = node_label(node)
    kind = code_type(node, facts.types)
    if is_dequantize(node) and len(node.input) > 2 and facts.types.get(node.input[2], kind) != kind != 0:
        yield Problem(
            code="ONNX-ZERO-POINT-TYPE",
            where=where,
            what=f"zero point {quoted(node.input[2])} has another type than the codes {quoted(node.input[0])}",
            expected=type_name(kind),
            got=type_name(facts.types[node.input[2]]),
        )
    declared = integer(node, "output_dtype", 0)
    if is_quantize(node) and declared and declared != kind and kind:
        yield Problem(
            code="ONNX-ZERO-POINT-TYPE",
            where=where,
            what="output_dtype and the type of the zero point differ",
            expected=type_name(declared),
            got=type_name(kind),
        )
    if kind in _CODES_16 and node.domain == "" and opset < 21:
        yield Problem(
            code="ONNX-OPSET-INT16",
            where=where,
            what=f"{node.op_type} with {type_name(kind)} codes is not in opset {opset}",
            expected="opset 21 or later",
            got=f"opset {opset}",
            remedy="convert the model to opset 21, or use the nodes of domain com.microsoft",
        )
    allowed = (*_CODES_8, *_CODES_16, *((_T.INT32,) if is_dequantize(node) else ()), 0)
    if kind not in allowed and kind not in (*_FLOAT16, _T.FLOAT):
        yield Problem(
            code="ONNX-QUANTIZED-TYPE",
            where=where,
            what=f"{type_name(kind)} codes are not supported",
            expected="int8, uint8, int16 or uint16",
            got=_block_text(node, type_name(kind)),
            remedy="quantize to 8 or 16 bit",
        )


def _block_text(node: onnx.NodeProto, kind: str) -> str:
    """The type and, where the scales are blocked, the block size."""
    block = integer(node, "block_size", 0)
    return f"{kind} with block_size {block}" if block else kind


def _blocked(node: onnx.NodeProto, facts: Facts) -> Problem:
    return Problem(
        code="ONNX-BLOCK-SIZE",
        where=node_label(node),
        what="blocked scales are not supported",
        expected="block_size 0 (one scale per tensor or per channel)",
        got=_block_text(node, type_name(code_type(node, facts.types))).replace(" with ", ", "),
        remedy="quantize per tensor or per channel",
    )


def _scale_problems(operand: Operand, facts: Facts) -> Iterator[Problem]:
    """The scale: constant, float32, usable values, as many as the axis has channels."""
    if not operand.scale:
        return
    yield from _constness(operand, operand.scale, "scale", facts)
    where = node_label(operand.node)
    kind = facts.types.get(operand.scale, 0)
    if operand.scale in facts.tensors and kind not in (_T.FLOAT, *_FLOAT16):
        yield Problem(
            code="ONNX-SCALE-TYPE",
            where=where,
            what=f"scale {quoted(operand.scale)} is {type_name(kind)}",
            expected="float32",
            got=type_name(kind),
        )
        return
    scale = facts.array(operand.scale)
    if scale is None or kind in _FLOAT16:
        return
    yield from _value_problems(operand, scale)
    yield from _axis_problems(operand, scale, facts)


def _constness(operand: Operand, name: str, what: str, facts: Facts) -> Iterator[Problem]:
    """Scales and zero points that depend on the model's input are dynamic quantization."""
    if name not in facts.constant:
        yield Problem(
            code="ONNX-DYNAMIC-QUANTIZATION",
            where=node_label(operand.node),
            what=f"{what} {quoted(name)} is computed at run time",
            expected="a constant",
            remedy="quantize statically, with calibration data",
        )


# code, what is wrong, which values are; in order of appearance in messages
_FAULTS: Final = (
    ("ONNX-SCALE-ZERO", "is 0", lambda scale: scale == 0),
    ("ONNX-SCALE-NEGATIVE", "is negative", lambda scale: scale < 0),
    ("ONNX-SCALE-NAN", "is not a number", np.isnan),
    ("ONNX-SCALE-INFINITE", "is infinite", np.isposinf),
    ("ONNX-SCALE-DENORMAL", "is denormal and underflows", lambda scale: (scale > 0) & (scale < _SMALLEST_NORMAL)),
)


def _value_problems(operand: Operand, scale: Array) -> Iterator[Problem]:
    """Values that no arithmetic survives: named with tensor, channel and value."""
    flat = scale.ravel()
    for code, what, test in _FAULTS:
        bad = np.flatnonzero(test(flat))
        if bad.size:
            channel = f" at channel {bad[0]} of {flat.size}" if flat.size > 1 else ""
            more = f" (and at {bad.size - 1} more channels)" if bad.size > 1 else ""
            yield Problem(
                code=code,
                where=f"scale {quoted(operand.scale)} of tensor {quoted(operand.codes)}",
                what=f"{what}{channel}{more}",
                expected="a finite float32 scale of at least 2^-126",
                got=f"{flat[bad[0]]!s}",
                remedy="a channel without values wants scale 1 and codes 0",
            )


def _axis_problems(operand: Operand, scale: Array, facts: Facts) -> Iterator[Problem]:
    """One scale, or a vector as long as the tensor's channel axis; the axis of the file, never a guessed one."""
    where = node_label(operand.node)
    if scale.ndim == 0 or scale.shape == (1,):
        return
    what = f"scale {quoted(operand.scale)}"
    per_column = operand.node.op_type in ("QLinearMatMul", "MatMulIntegerToFloat") and scale.ndim > 1
    if per_column:
        return
    if scale.ndim != 1 or scale.size == 0:
        yield Problem(
            code="ONNX-SCALE-SHAPE",
            where=where,
            what=f"{what} is neither one number nor a vector",
            expected="shape [], [1] or [channels]",
            got=f"shape {list(scale.shape)}",
        )
        return
    if operand.axis is None:
        yield Problem(
            code="ONNX-SCALE-SHAPE",
            where=where,
            what=f"{what} of tensor {quoted(operand.codes)} has to be one number",
            got=f"{scale.size} scales",
        )
        return
    shape = facts.shapes.get(operand.over)
    if shape is None:
        return
    if not -len(shape) <= operand.axis < len(shape):
        yield Problem(
            code="ONNX-SCALE-AXIS",
            where=where,
            what=f"{operand.axis_text} is out of range for {quoted(operand.over)} of shape {list(shape)}",
            expected=f"an axis from {-len(shape)} to {len(shape) - 1}",
            got=f"axis {operand.axis}",
            remedy="state the channel axis with the attribute `axis`",
        )
    elif shape[operand.axis] != scale.size:
        yield Problem(
            code="ONNX-SCALE-AXIS",
            where=where,
            what=f"{what} does not fit {operand.axis_text} of {quoted(operand.over)} of shape {list(shape)}",
            expected=f"{shape[operand.axis]} scales",
            got=f"{scale.size} scales",
            remedy="state the channel axis with the attribute `axis`",
        )


def _operand_type_problems(operand: Operand, facts: Facts) -> Iterator[Problem]:
    """Codes of a QOperator node: 8 bit, and of one type with their zero point."""
    zero_type, code = facts.types.get(operand.zero_point, 0), facts.types.get(operand.codes, 0)
    if zero_type and zero_type not in _CODES_8:
        yield Problem(
            code="ONNX-QUANTIZED-TYPE",
            where=node_label(operand.node),
            what=f"{type_name(zero_type)} codes of {quoted(operand.codes)} are not in {operand.node.op_type}",
            expected="int8 or uint8",
            got=type_name(zero_type),
            remedy="quantize to 8 bit, or use Q/DQ nodes",
        )
    elif zero_type and code and zero_type != code:
        yield Problem(
            code="ONNX-ZERO-POINT-TYPE",
            where=node_label(operand.node),
            what=f"zero point {quoted(operand.zero_point)} has another type than the codes {quoted(operand.codes)}",
            expected=type_name(code),
            got=type_name(zero_type),
        )


def _zero_point_problems(operand: Operand, facts: Facts) -> Iterator[Problem]:
    """The zero point: constant, one or as many as scales."""
    if not operand.zero_point:
        return
    yield from _constness(operand, operand.zero_point, "zero point", facts)
    if not (is_quantize(operand.node) or is_dequantize(operand.node)):
        yield from _operand_type_problems(operand, facts)
    zeros, scale = facts.shapes.get(operand.zero_point), facts.shapes.get(operand.scale)
    if zeros is None or scale is None or operand.zero_point not in facts.tensors or operand.scale not in facts.tensors:
        return
    counts = (int(np.prod(zeros, dtype=object)), int(np.prod(scale, dtype=object)))
    lone = operand.node.op_type not in ("QuantizeLinear", "DequantizeLinear") and counts[0] == 1
    if counts[0] != counts[1] and not lone:
        yield Problem(
            code="ONNX-QUANTIZATION-LENGTH",
            where=node_label(operand.node),
            what=f"zero point {quoted(operand.zero_point)} and scale {quoted(operand.scale)} differ in length",
            expected=f"{counts[1]} zero points",
            got=str(counts[0]),
        )
