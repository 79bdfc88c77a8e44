"""A first look at a model file: is it quantised, what goes in, which ops it has."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import onnx

from manifest.errors import RefusedError
from manifest.onnx_import.inputs import unused_inputs
from manifest.onnx_import.load import MAX_MODEL_BYTES, load_model
from manifest.onnx_import.validate import validate
from manifest.onnx_import.validate_text import type_name

_QUANTIZED_TYPES: Final = frozenset(
    [
        "QuantizeLinear",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "DynamicQuantizeMatMul",
        "DynamicQuantizeLSTM",
        "ConvInteger",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "MatMulNBits",
        "QGemm",
        "QAttention",
        "Quant",
        "BipolarQuant",
        "IntQuant",
        "FloatQuant",
    ]
)


class InputSummary(NamedTuple):
    """A graph input: element type and dims; an open dim is its name, or `?` where it has none."""

    name: str
    dtype: str
    dims: tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """What a model file holds.

    Attributes:
        is_quantized: it has Q/DQ, QOperator, QONNX or dynamically quantised nodes; then phase 1 imports it as it is.
        inputs: graph inputs in order, without initializers that are listed as inputs.
        ops: nodes per op, keyed `domain:type` with the standard domain as "" (`:Conv`).
        opset: version of the standard domain.
        unused: inputs that no output depends on; the import leaves them out.
    """

    is_quantized: bool
    inputs: tuple[InputSummary, ...]
    ops: Counter[str] = field(default_factory=Counter)
    opset: int = 0
    unused: tuple[str, ...] = ()


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether any node states or uses a quantization."""
    return any(node.op_type in _QUANTIZED_TYPES or node.op_type.startswith("QLinear") for node in model.graph.node)


def inspect_model(path: Path, *, max_bytes: int = MAX_MODEL_BYTES) -> ModelSummary:
    """Summary of a model file.

    Raises:
        RefusedError: the file cannot be loaded; or it is a float model with problems (those of a quantised
            model are left to its import, which reports them together with its own).
    """
    model = load_model(path, max_bytes=max_bytes)
    quantized = is_quantized(model)
    problems = [] if quantized else validate(model)
    if problems:
        raise RefusedError(tuple(problems))
    initializers = {tensor.name for tensor in model.graph.initializer}
    return ModelSummary(
        is_quantized=quantized,
        inputs=tuple(_summary(value) for value in model.graph.input if value.name not in initializers),
        ops=Counter(f"{node.domain}:{node.op_type}" for node in model.graph.node),
        opset=max((entry.version for entry in model.opset_import if entry.domain == ""), default=0),
        unused=unused_inputs(model.graph),
    )


def _summary(value: onnx.ValueInfoProto) -> InputSummary:
    """Name, type and dims of a graph input; a dim that is not positive counts as open."""
    tensor = value.type.tensor_type
    dims = tuple(dim.dim_value if dim.dim_value > 0 else dim.dim_param or "?" for dim in tensor.shape.dim)
    return InputSummary(name=value.name, dtype=type_name(tensor.elem_type), dims=dims)
