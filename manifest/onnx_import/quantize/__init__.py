"""Quantization of a float model: int8 with power-of-two scales, calibrated on real data, as a QDQ model."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.model import Note
from manifest.onnx_import.graph import Graph, build
from manifest.onnx_import.load import load_bytes, load_model
from manifest.onnx_import.quantize.average import Factor, factor_for, window_elements
from manifest.onnx_import.quantize.calibrate import exponents
from manifest.onnx_import.quantize.plan import Plan, make_plan
from manifest.onnx_import.quantize.prepare import prepare
from manifest.onnx_import.quantize.scheme import Quantized, QuantizeOptions
from manifest.onnx_import.quantize.support import AVERAGES, HANDED_ON, problem, reasons, source_problems
from manifest.onnx_import.quantize.verify import verify
from manifest.onnx_import.quantize.write import Parts, write
from manifest.onnx_import.validate import validate

__all__ = ["QuantizeOptions", "Quantized", "quantize_float"]

DEFAULT_OPTIONS = QuantizeOptions()


def quantize_float(
    model: Path | bytes,
    feeds: Mapping[str, NDArray[Any]],
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    options: QuantizeOptions = DEFAULT_OPTIONS,
) -> Quantized:
    """Quantize a float model on real data; the same model, data and options give the same bytes.

    Args:
        model: file or bytes of an ONNX model without Q/DQ.
        feeds: (F, *shape) per graph input, F >= 1, in the dtypes that the model takes, finite.
        shapes: fixed shapes of inputs with open dimensions; None = those of the feeds.
        options: the scheme's choices.

    Returns:
        The QDQ model and notes.

    Raises:
        RefusedError: every op that cannot be quantized by name (unless `host_ops`), open shapes, values that are not
            finite, or whatever else keeps the model from being quantized.
    """
    source = load_model(model) if isinstance(model, Path) else load_bytes(model)
    problems = validate(source)
    if problems:
        raise RefusedError(tuple(problems))
    ready, notes = _prepared(source, shapes or _shapes_of(source, feeds), options)
    graph = build(ready)
    floats, sizes = _values(ready)
    host = reasons(graph, sizes, floats)
    _refuse(graph, host, options)
    plan = make_plan(graph, floats, frozenset(host))
    if not plan.quantized or all(node.key == ":Identity" for node in graph.nodes):
        what = "there is nothing to quantize"
        raise RefusedError((Problem(code="QUANT-NOTHING", where="model", what=what, expected="float ops"),))
    feeds = {port.name: feeds[port.name] for port in graph.inputs if port.name in feeds}
    _check_feeds(graph, feeds)
    found, silent = exponents(ready, plan, feeds, options)
    factors = _factors(graph, plan, sizes, found)
    parts = Parts(model=ready, graph=graph, plan=plan, exponents=found, factors=factors, options=options)
    written = write(parts)
    data = written.model.SerializeToString(deterministic=True)
    verify(data, feeds)
    return Quantized(model_bytes=data, notes=(*notes, *_remarks(parts, host, silent, written.coarser)))


def _shapes_of(model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]]) -> dict[str, tuple[int, ...]]:
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in constants]
    return {name: tuple(feeds[name].shape[1:]) for name in names if name in feeds}


def _prepared(
    source: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]], options: QuantizeOptions
) -> tuple[onnx.ModelProto, tuple[Note, ...]]:
    """The folded model; unsupported ops are named as the file has them, with every other problem."""
    found = {} if options.host_ops else source_problems(build(source))
    try:
        ready = prepare(source, shapes)
    except RefusedError as error:
        others = [p for p in error.problems if not found or p.code != "QUANT-ONNXRUNTIME"]
        raise RefusedError((*found.values(), *others)) from error
    if found:
        graph = build(ready[0])
        floats, sizes = _values(ready[0])
        kept = {name for node in source.graph.node for name in node.output}.difference(found)
        late = [(graph.nodes[index], why) for index, why in reasons(graph, sizes, floats).items()]
        others = [problem(node, why) for node, why in late if node.outputs[0] in kept and why != HANDED_ON]
        raise RefusedError((*found.values(), *others))
    return ready


def _refuse(graph: Graph, host: Mapping[int, str], options: QuantizeOptions) -> None:
    if host and not options.host_ops:
        raise RefusedError(tuple(problem(graph.nodes[index], why) for index, why in host.items() if why != HANDED_ON))


def _values(model: onnx.ModelProto) -> tuple[frozenset[str], dict[str, tuple[int, ...]]]:
    """Names of the float32 values, and the shape of every value."""
    graph = model.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    floats = {v.name for v in values if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    floats |= {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}
    return frozenset(floats), shapes | {t.name: tuple(t.dims) for t in graph.initializer}


def _check_feeds(graph: Graph, feeds: Mapping[str, NDArray[Any]]) -> None:
    problems = []
    for port in graph.inputs:
        array = feeds.get(port.name)
        if array is None or tuple(array.shape[1:]) != port.dims or not len(array) or array.dtype.name != port.dtype:
            got = "none" if array is None else f"{array.dtype} {list(array.shape)}"
            expected = f"{port.dtype} [feeds, {', '.join(str(d) for d in port.dims or ())}]"
            what = "calibration data does not fit"
            where = f"input {port.name!r}"
            problems.append(Problem(code="QUANT-FEED", where=where, what=what, expected=expected, got=got))
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            what = "calibration data is not finite"
            problems.append(Problem(code="QUANT-FEED", where=f"input {port.name!r}", what=what))
    if problems:
        raise RefusedError(tuple(problems))


def _factors(
    graph: Graph, plan: Plan, shapes: Mapping[str, tuple[int, ...]], found: Mapping[str, int]
) -> dict[int, Factor]:
    """The constant behind every average that needs one."""
    factors = {}
    for node in graph.nodes:
        if node.key not in AVERAGES or node.index in plan.host:
            continue
        elements = window_elements(node, shapes[node.inputs[0]])
        last = _written(graph, plan, node.outputs[0])
        factor = None if elements is None else factor_for(elements, found[node.inputs[0]], found[last])
        if factor is not None:
            factors[node.index] = factor
    return factors


def _written(graph: Graph, plan: Plan, name: str) -> str:
    """The quantized tensor that a result ends in, behind the clamps fused to it."""
    consumers = graph.consumers()
    while name not in plan.group:
        name = consumers[name][0].outputs[0]
    return name


def _remarks(
    parts: Parts, host: Mapping[int, str], silent: tuple[str, ...], coarser: tuple[str, ...]
) -> Iterator[Note]:
    labels = [f"node {node.label()}" for node in parts.graph.nodes]
    low, high = min(parts.exponents.values()), max(parts.exponents.values())
    count = len(parts.exponents)
    text = f"{count} activations int8 at scales 2**{low} to 2**{high}, weights int8 per tensor, bias int32"
    yield Note(code="QUANT-SCHEME", where="model", text=text)
    for index, why in host.items():
        yield Note(code="QUANT-HOST", where=labels[index], text=f"left in float: {why}")
    for index, factor in parts.factors.items():
        yield Note(code="QUANT-AVERAGE", where=labels[index], text=factor.words())
    for name in silent:
        yield Note(code="QUANT-SILENT", where=f"tensor {name!r}", text="0 on all calibration data")
    for name in coarser:
        yield Note(code="QUANT-BIAS", where=f"weights {name!r}", text="scale grown until the bias fits the accumulator")
