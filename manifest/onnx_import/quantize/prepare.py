"""A float model made ready to be quantized.

Shapes are fixed, weights that were inputs are constants, the opset is 13 or later, and what can be computed beforehand
is computed.

Why opset 13: it is the first whose ops all have the form that today's Q/DQ tools read; older files are converted,
since Q/DQ written into them would be invalid.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import onnx
from onnx import shape_inference, version_converter

from manifest.errors import Problem, RefusedError
from manifest.model import Note
from manifest.onnx_import.graph import build
from manifest.onnx_import.inputs import drop_unused, resolve
from manifest.onnx_import.quantize.rewrite import rewritten
from manifest.onnx_import.quantize.runtime import folded
from manifest.onnx_import.validate_text import capped, quoted

MIN_OPSET: Final = 13
MIN_IR: Final = 8
MAX_ELEMENTS: Final = 1 << 28
"""Largest value of a graph that is run on the data: 1 GiB of float32."""
_CONVERSION_FAILURES: Final = (RuntimeError, ValueError, IndexError, TypeError, version_converter.ConvertError)


def prepare(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> tuple[onnx.ModelProto, tuple[Note, ...]]:
    """A copy of a validated float model, folded, with every shape inferred.

    Args:
        model: self-contained, sorted.
        shapes: fixed shape of graph inputs that have open dimensions (others may be given too).

    Returns:
        The model and what was done to it.

    Raises:
        RefusedError: shapes that stay open or contradict the model, an opset that cannot be converted, or a model
            that onnxruntime does not load.
    """
    ready = onnx.ModelProto()
    ready.CopyFrom(model)
    notes = [*_without_initializer_inputs(ready)]
    unused = drop_unused(ready)
    notes += [Note(code="INPUT-UNUSED", where=n, text="no node needs this graph input: left out") for n in unused]
    _fix_shapes(ready, {name: shape for name, shape in shapes.items() if name not in unused})
    ready.ir_version = max(ready.ir_version, MIN_IR)
    ready, converted = _converted(ready)
    _refuse_huge_values(ready)
    ready = _clean(folded(ready))
    return _inferred(rewritten(_inferred(ready))), (*notes, *converted)


def _without_initializer_inputs(model: onnx.ModelProto) -> Iterator[Note]:
    constants = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    count = len(model.graph.input) - len(kept)
    if count:
        del model.graph.input[:]
        model.graph.input.extend(kept)
        yield Note(
            code="QUANT-CONSTANT-INPUTS", where="model", text=f"{count} inputs with a stored value are constants"
        )


def _fix_shapes(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Write the shapes into the inputs and forget every other one, so that inference starts from the inputs."""
    fixed = resolve(build(model), shapes)
    if fixed.problems:
        raise RefusedError(fixed.problems)
    for value in model.graph.input:
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in fixed.shapes[value.name])
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _converted(model: onnx.ModelProto) -> tuple[onnx.ModelProto, tuple[Note, ...]]:
    opset = next((entry.version for entry in model.opset_import if entry.domain == ""), 0)
    if opset >= MIN_OPSET:
        return model, ()
    used = {node.domain for node in model.graph.node}
    kept = [entry for entry in model.opset_import if entry.domain == "" or entry.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    try:
        ready = version_converter.convert_version(model, MIN_OPSET)
    except _CONVERSION_FAILURES as error:
        reason = " ".join(str(error).split())[:300]
        remedy = f"export the model with opset {MIN_OPSET} or later"
        what = f"opset {opset} cannot be converted to {MIN_OPSET}, the first that the QDQ form needs"
        raise RefusedError(
            (Problem(code="QUANT-OPSET", where="model", what=what, got=reason, remedy=remedy),)
        ) from error
    text = f"converted from opset {opset} to {MIN_OPSET} before quantization"
    return ready, (Note(code="QUANT-OPSET-CONVERTED", where="model", text=text),)


def _refuse_huge_values(model: onnx.ModelProto) -> None:
    """Refuse values of absurd size before anything computes them."""
    try:
        sized = shape_inference.infer_shapes(model, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return  # what is wrong with the shapes is told when the model is loaded
    problems = []
    for value in (*sized.graph.value_info, *sized.graph.output):
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if math.prod(dims) > MAX_ELEMENTS:
            where, expected = f"tensor {quoted(value.name)}", f"at most {MAX_ELEMENTS} elements"
            problems.append(
                Problem(code="QUANT-SIZE", where=where, what="is too large", expected=expected, got=str(dims))
            )
    if problems:
        raise RefusedError(tuple(capped(problems)))


def _clean(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without onnxruntime's traces: imports of its own domains, metadata, orders that vary from run to run."""
    used = {node.domain for node in model.graph.node} | {""}
    kept = [entry for entry in model.opset_import if entry.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(sorted(kept, key=lambda entry: entry.domain))
    model.ClearField("metadata_props")
    tensors = sorted(model.graph.initializer, key=lambda tensor: tensor.name)
    del model.graph.initializer[:]
    model.graph.initializer.extend(tensors)
    taken = {node.name for node in model.graph.node if node.name}
    seen: set[str] = set()
    for node in model.graph.node:
        if not node.name or node.name in seen:
            base = f"{node.op_type}_{next((o for o in node.output if o), '')}"
            node.name = base
            count = 1
            while node.name in taken:
                count += 1
                node.name = f"{base}_{count}"
            taken.add(node.name)
        seen.add(node.name)
    return model


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every shape inferred from its inputs; unused constants are dropped."""
    graph = model.graph
    del graph.value_info[:]
    used = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    constants = {tensor.name: tensor for tensor in graph.initializer if tensor.name in used}
    kept = list(constants.values())
    del graph.initializer[:]
    graph.initializer.extend(kept)
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
        if value.name in constants:
            dims = [onnx.TensorShapeProto.Dimension(dim_value=size) for size in constants[value.name].dims]
            value.type.tensor_type.shape.dim.extend(dims)
    try:
        return shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        what = "its shapes cannot be inferred"
        raise RefusedError((Problem(code="QUANT-INFERENCE", where="model", what=what, got=reason),)) from error
