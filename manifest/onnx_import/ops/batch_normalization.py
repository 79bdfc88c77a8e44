"""BatchNormalization: folded into the Conv, Gemm or MatMul in front of it, refused elsewhere.

y = (x - mean) * g + b with g = scale / sqrt(var + epsilon) in float32, as onnxruntime computes it. A quantised weight
keeps its codes: g goes into its scales (rounded to float32, one per output channel), a negative g mirrors the codes,
and the bias becomes float32.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from manifest.errors import Problem, RefusedError
from manifest.model import Note
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Array, Constant, Graph, Node, Shape, refusal
from manifest.onnx_import.names import Names
from manifest.onnx_import.rules import Facts

_KEY: Final = ":BatchNormalization"
_REMEDY: Final = "fold it into the layer in front of it before quantizing (onnxruntime.quantization.quant_pre_process)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Affine:
    """y = x * gain + shift, one float32 per channel."""

    gain: Array
    shift: Array


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The shape of the input; other outputs belong to training."""
    return (facts.shape(node, 0), *(() for _ in node.outputs[1:]))


def lower(node: Node, b: Builder) -> None:
    """Refuse what could not be folded."""
    del b
    raise refusal(
        node,
        "ONNX-BATCHNORM",
        "BatchNormalization is not behind a Conv, Gemm or MatMul of constant weight that it alone reads",
        remedy=_REMEDY,
    )


def fold(graph: Graph) -> tuple[Graph, tuple[Note, ...], tuple[Problem, ...]]:
    """The graph with every BatchNormalization folded that follows a layer of constant weight."""
    consumers = graph.consumers()
    outputs = set(graph.output_names())
    producers = graph.producers()
    names = Names(graph.names())
    constants = dict(graph.constants)
    replaced: dict[int, Node | None] = {}
    notes: list[Note] = []
    problems: list[Problem] = []
    for node in graph.nodes:
        layer = producers.get(node.input(0)) if node.key == _KEY else None
        if layer is None or len(consumers[node.input(0)]) != 1 or node.input(0) in outputs:
            continue
        try:
            merged = _merged(replace(graph, constants=constants), node, layer, names)
        except RefusedError as error:
            problems.extend(error.problems)
            continue
        if merged is not None:
            new, added = merged
            constants.update(added)
            replaced[layer.index], replaced[node.index] = new, None
            notes.append(Note(code="BATCHNORM-FOLDED", where=node.name, text=f"folded into {layer.label()}"))
    nodes = tuple(n for n in (replaced.get(n.index, n) for n in graph.nodes) if n is not None)
    return replace(graph, nodes=nodes, constants=constants), tuple(notes), tuple(problems)


def _merged(graph: Graph, node: Node, layer: Node, names: Names) -> tuple[Node, dict[str, Constant]] | None:
    """The layer that does both, and its new constants; None where the layer is of another kind."""
    axis = _channel_axis(layer, graph)
    bias = graph.constants.get(layer.input(2)) if layer.input(2) else None
    if axis is None or (layer.input(2) and bias is None):
        return None
    weight = graph.constants[layer.input(1)]
    affine = _affine(node, graph)
    count = weight.array.shape[axis]
    if affine.gain.size != count:
        raise refusal(node, "ONNX-SHAPE", "scale and channels differ", expected=f"{count}", got=f"{affine.gain.size}")
    old = np.zeros(1, np.float64) if bias is None else _real(bias).astype(np.float64).reshape(-1)
    shifted = Constant(
        array=(old * affine.gain + affine.shift).astype(np.float32),
        origin=names.fresh(node.name, "bias"),
        nodes=(node.name,),
    )
    scaled = _scaled(node, weight, affine.gain, axis, names.fresh(weight.origin, node.name))
    inputs = (layer.inputs[0], scaled.origin, shifted.origin)
    attributes = {**layer.attributes, "beta": 1.0} if layer.key == ":Gemm" else layer.attributes
    new = replace(
        layer, inputs=inputs, outputs=node.outputs[:1], attributes=attributes, folded=(*layer.folded, node.name)
    )
    return new, {scaled.origin: scaled, shifted.origin: shifted}


def _channel_axis(layer: Node, graph: Graph) -> int | None:
    """Output channel axis of the constant weight; None where there is none."""
    weight = graph.constants.get(layer.input(1))
    if weight is None:
        return None
    if layer.key == ":Conv":
        return 0
    if layer.key == ":Gemm" and layer.real("alpha", 1.0) == layer.real("beta", 1.0) == 1.0:
        return 0 if layer.integer("transB", 0) else 1
    return weight.array.ndim - 1 if layer.key == ":MatMul" and weight.array.ndim == 2 else None


def _affine(node: Node, graph: Graph) -> _Affine:
    """Gain and shift from the constants of the node."""
    arrays = []
    for position in range(1, 5):
        constant = graph.constants.get(node.input(position))
        if constant is None or constant.array.dtype != np.float32:
            raise refusal(node, "ONNX-BATCHNORM", f"input {node.input(position)!r}", expected="a float32 constant")
        arrays.append(constant.array.reshape(-1))
    if node.integer("training_mode", 0):
        raise refusal(node, "ONNX-BATCHNORM", "training mode is not supported", remedy="export in inference mode")
    scale, offset, mean, variance = arrays
    with np.errstate(all="ignore"):
        gain = scale / np.sqrt(variance + np.float32(node.real("epsilon", 1e-5)))
        shift = (offset.astype(np.float64) - mean.astype(np.float64) * gain).astype(np.float32)
    if not (np.isfinite(gain).all() and np.isfinite(shift).all()):
        raise refusal(node, "ONNX-BATCHNORM", "scale / sqrt(variance + epsilon) is not finite")
    return _Affine(gain=gain, shift=shift)


def _real(constant: Constant) -> Array:
    """float32 values."""
    if constant.quant is None:
        return constant.array
    return quantities.dequantize_array(constant.array, constant.quant)


def _scaled(node: Node, weight: Constant, gain: Array, axis: int, origin: str) -> Constant:
    """The weight with its channels multiplied."""
    along = tuple(-1 if i == axis else 1 for i in range(weight.array.ndim))
    quant = weight.quant
    if quant is None:
        return Constant(array=weight.array * gain.reshape(along), origin=origin, nodes=(*weight.nodes, node.name))
    if quant.axis is not None and quant.axis != axis:
        raise refusal(node, "ONNX-BATCHNORM", f"weight {weight.origin!r} has its scales along another axis")
    count = gain.size
    scales = np.broadcast_to(np.asarray(quant.scales, np.float32), count) * np.abs(gain)
    zeros = np.broadcast_to(np.asarray(quant.zero_points, np.int64), count)
    codes = weight.array.astype(np.int64)
    mirrored = np.where(gain.reshape(along) < 0, 2 * zeros.reshape(along) - codes, codes)
    mirrored = np.where(gain.reshape(along) == 0, zeros.reshape(along), mirrored)
    low, high = np.iinfo(weight.array.dtype).min, np.iinfo(weight.array.dtype).max
    if mirrored.min() < low or mirrored.max() > high:
        raise refusal(
            node, "ONNX-BATCHNORM", f"a negative scale mirrors codes of {weight.origin!r} out of range", remedy=_REMEDY
        )
    kept = np.where(gain == 0, np.float32(1), scales)
    return Constant(
        array=mirrored.astype(weight.array.dtype),
        quant=quantities.quantization(tuple(float(s) for s in kept), tuple(int(z) for z in zeros), axis),
        origin=origin,
        nodes=(*weight.nodes, node.name),
    )
