"""Model bytes to model bytes: more outputs, sub-models, newer opsets, the float meaning of a quantised file.

Why bytes: the runner of the reference has no business with onnx; it gets models that are ready to run. All functions
take models that this package has loaded or that onnxruntime has written, so they do not look for malice again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import onnx
from onnx import version_converter

from manifest.onnx_import.order import sort_nodes
from manifest.onnx_import.validate_facts import PER_AXIS_OPSET, gather, is_dequantize, is_quantize

__all__ = ["PER_AXIS_OPSET", "expose", "extract", "opset_of", "quantized_outputs", "raise_opset"]

TypeAndShape = tuple[int, Sequence[int]]
"""ONNX element type (`onnx.TensorProto.INT8`, ...) and shape of a tensor."""

_STANDARD_QDQ_OPSET: Final = 21
"""From this opset on the standard Q/DQ have every type that those of com.microsoft have."""

_IR_OF_OPSET: Final = ((21, 10), (23, 11), (24, 12), (25, 13))
"""(opset, IR version that came with it) for the newest opsets; older ones are fine with IR 8."""


def quantized_outputs(model_bytes: bytes, *, constants: bool = False) -> tuple[str, ...]:
    """Names of the outputs of Quantize and QOperator nodes, in graph order.

    Args:
        model_bytes: a serialised model.
        constants: also Quantize nodes that do not depend on a graph input (weights quantised inside the file).
    """
    model = _parse(model_bytes)
    known = gather(model.graph).constant
    return tuple(
        node.output[0] for node in model.graph.node if _makes_codes(node) and (constants or node.output[0] not in known)
    )


def _makes_codes(node: onnx.NodeProto) -> bool:
    """Whether the node's first output is quantised by the node's own scale."""
    if not node.output or not node.output[0]:
        return False
    if node.op_type == "QGemm":
        return len(node.input) > 8 and bool(node.input[8])
    return is_quantize(node) or node.op_type.startswith("QLinear")


def expose(model_bytes: bytes, tensors: Iterable[str]) -> bytes:
    """The model with `tensors` as additional outputs behind its own, in the given order, each once.

    The outputs carry no type: onnxruntime infers it. Adding float tensors keeps onnxruntime's optimiser from fusing
    and so changes numbers; at `ORT_DISABLE_ALL` it changes nothing.

    Raises:
        KeyError: the graph has no such tensor.
    """
    model = _parse(model_bytes)
    known = _tensor_names(model.graph)
    present = {value.name for value in model.graph.output}
    for name in dict.fromkeys(tensors):
        if name not in known:
            raise KeyError(name)
        if name not in present:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    return _bytes(model)


def extract(
    model_bytes: bytes, inputs: Sequence[str], outputs: Sequence[str], types: Mapping[str, TypeAndShape]
) -> bytes:
    """The part of a model between tensors, with the initializers that it needs and every name unchanged.

    Args:
        model_bytes: a serialised model.
        inputs: tensors that become the graph inputs, integer or float; those that the part does not need are
            left out.
        outputs: tensors that become the graph outputs, in this order.
        types: element type and shape of each of `inputs`; also of `outputs`, which otherwise have the type that the
            model states, if any.

    Raises:
        KeyError: the graph has no such output, or an input lacks its type.
        ValueError: the outputs also depend on a graph input that is not among `inputs`.
    """
    model = _parse(model_bytes)
    graph = model.graph
    known = _tensor_names(graph)
    for name in outputs:
        if name not in known:
            raise KeyError(name)
    nodes, read = _behind(graph, set(inputs), outputs)
    initializers = [tensor for tensor in graph.initializer if tensor.name in read and tensor.name not in inputs]
    embedded = {tensor.name for tensor in initializers}
    open_inputs = sorted({value.name for value in graph.input} & read - set(inputs) - embedded)
    if open_inputs:
        msg = f"outputs also depend on graph inputs {open_inputs}"
        raise ValueError(msg)
    part = onnx.GraphProto(name=graph.name)
    part.node.extend(nodes)
    part.initializer.extend(initializers)
    for name in dict.fromkeys(inputs):
        if name in read:
            elem_type, shape = types[name]
            part.input.append(onnx.helper.make_tensor_value_info(name, elem_type, list(shape)))
    typed = {value.name: value for value in (*graph.value_info, *graph.output)}
    typed |= {name: onnx.helper.make_tensor_value_info(name, types[name][0], list(types[name][1])) for name in types}
    part.output.extend(typed.get(name, onnx.ValueInfoProto(name=name)) for name in dict.fromkeys(outputs))
    model.graph.CopyFrom(part)
    return _bytes(model)


def _behind(graph: onnx.GraphProto, stop: set[str], outputs: Sequence[str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """Nodes that `outputs` depend on, not looking behind `stop`, in graph order; and every tensor read."""
    producer = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    read: set[str] = set()
    used: set[int] = set()
    todo = list(outputs)
    while todo:
        name = todo.pop()
        if name in read:
            continue
        read.add(name)
        index = producer.get(name)
        if name in stop or index is None or index in used:
            continue
        used.add(index)
        todo.extend(source for source in graph.node[index].input if source)
    return [graph.node[index] for index in sorted(used)], read


def opset_of(model_bytes: bytes) -> int:
    """The opset of the standard domain, 0 without one."""
    return _opset(_parse(model_bytes))


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain == ""), default=0)


def raise_opset(model_bytes: bytes, to: int) -> bytes:
    """The model in opset `to`, with the same numbers; a model that is there already is returned as it is.

    From opset 21 on, Quantize and Dequantize of com.microsoft become the standard ones, whose meaning is the same.

    Raises:
        RuntimeError: onnx cannot convert the model.
    """
    model = _parse(model_bytes)
    if _opset(model) < to:
        model.ir_version = max(model.ir_version, 8)
        sort_nodes(model.graph)
        model = version_converter.convert_version(model, to)
    if to >= _STANDARD_QDQ_OPSET:
        for node in model.graph.node:
            if is_quantize(node) or is_dequantize(node):
                node.domain = ""
    needed = max((ir for since, ir in _IR_OF_OPSET if to >= since), default=8)
    model.ir_version = max(model.ir_version, needed)
    return _bytes(model)


def tensor_names(model_bytes: bytes) -> frozenset[str]:
    """Every tensor of a model."""
    return frozenset(_tensor_names(_parse(model_bytes).graph))


def float_names(model_bytes: bytes) -> dict[str, str]:
    """Quantize output -> the float tensor that it quantises."""
    return {node.output[0]: node.input[0] for node in _parse(model_bytes).graph.node if is_quantize(node)}


def real_names(model_bytes: bytes) -> dict[str, str]:
    """Integer tensor -> the first tensor that stands for its real values: phase 1 gives it the float model's name."""
    names: dict[str, str] = {}
    for node in _parse(model_bytes).graph.node:
        if node.op_type == "DequantizeLinear":
            names.setdefault(node.input[0], node.output[0])
    return names


def _tensor_names(graph: onnx.GraphProto) -> set[str]:
    """Every tensor of a graph."""
    names = {name for node in graph.node for name in node.output if name}
    return names | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}


def _parse(model_bytes: bytes) -> onnx.ModelProto:
    model: onnx.ModelProto = onnx.ModelProto.FromString(model_bytes)
    return model


def _bytes(model: onnx.ModelProto) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))
