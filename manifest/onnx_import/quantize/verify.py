"""The written model checked from its bytes, by nothing that wrote it: scales, zero points, types, biases, loading."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.onnx_import.graph import Graph, Node, build
from manifest.onnx_import.quantize.runtime import FloatRunner
from manifest.onnx_import.quantize.support import LINEAR


def is_power_of_two(scale: float) -> bool:
    """Whether a scale is exactly 2**k."""
    return math.isfinite(scale) and scale > 0 and math.frexp(scale)[0] == 0.5


def verify(data: bytes, feeds: Mapping[str, NDArray[Any]]) -> None:
    """Check a QDQ model and run it on the first feed.

    Args:
        data: serialised model.
        feeds: (F, *shape) by input name.

    Raises:
        RefusedError: everything that does not hold.
    """
    model = onnx.ModelProto.FromString(data)
    problems = [*_checker(model)]
    if not problems:
        problems += _faults(build(model))
    if problems:
        raise RefusedError(tuple(problems))
    outputs = [value.name for value in model.graph.output]
    for name, array in FloatRunner(model, outputs).run({name: array[0] for name, array in feeds.items()}).items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            what = "output of the quantized model is not finite"
            raise RefusedError((Problem(code="QUANT-NOT-FINITE", where=f"tensor {name!r}", what=what),))


def _checker(model: onnx.ModelProto) -> Iterator[Problem]:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:400]
        what = "the quantized model is invalid"
        yield Problem(code="QUANT-INVALID", where="quantized model", what=what, got=reason)


def _faults(graph: Graph) -> Iterator[Problem]:
    scales = {}
    for node in graph.nodes:
        if node.type not in ("QuantizeLinear", "DequantizeLinear"):
            continue
        scale = graph.constants[node.inputs[1]].array
        if scale.size != 1 or not is_power_of_two(float(scale.reshape(()))):
            yield _fault(node, "scale is not one power of two", str(scale.ravel()[:4]))
        zero = graph.constants[node.inputs[2]].array
        codes = graph.constants.get(node.inputs[0]) if node.type == "DequantizeLinear" else None
        code_type = np.dtype(np.int8) if codes is None else codes.array.dtype
        if zero.any() or zero.dtype != code_type:
            yield _fault(node, "zero point is not 0 of the code type", f"{zero} ({zero.dtype})")
        scales[node.outputs[0]] = float(scale.ravel()[0])
    for node in graph.nodes:
        if node.key in LINEAR and node.input(2) in scales:
            wanted = scales[node.inputs[0]] * scales[node.inputs[1]]
            if scales[node.inputs[2]] != wanted:
                got = f"{scales[node.inputs[2]]} instead of {wanted}"
                yield _fault(node, "bias scale is not input scale times weight scale", got)


def _fault(node: Node, what: str, got: str) -> Problem:
    return Problem(code="QUANT-INVALID", where=f"node {node.label()}", what=what, got=got)
