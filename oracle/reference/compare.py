"""Comparisons (a) to (c) of a model with onnxruntime on real feeds."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.errors import RefusedError
from manifest.model import Manifest
from manifest.onnx_import import Imported
from manifest.onnx_import import import_bytes as default_import
from manifest.onnx_import.instrument import extract
from oracle.cpu import CpuFlags, read_cpu_flags
from oracle.evidence import Comparison, ComparisonKind, CpuEvidence, Mismatch
from oracle.reference.graph import Graph, graph_of, type_at_cut
from oracle.reference.judge import dequantised
from oracle.reference.newer_opset import in_newer_opset
from oracle.reference.plan import Plan, make_plan, untrusted_ops
from oracle.reference.session import OFF, OnnxruntimeError, Session, Settings, dump_optimised
from oracle.reference.stagewise import Result, StageWise, chunks
from oracle.reference.tally import Judged

Array = npt.NDArray[Any]
Importer = Callable[[bytes], Imported]

_EDGE: Final = frozenset({"QuantizeLinear", "DequantizeLinear"})
_NO_DATA: Final = "no feeds were given"
_NO_OUTPUTS: Final = "the graph has no quantised tensor"


def cpu_evidence(manifest: Manifest, arrays: Mapping[str, Array], flags: CpuFlags | None = None) -> CpuEvidence:
    """Which flags chose which reference for a model; flags of this machine where none are given."""
    return make_plan(manifest, arrays, flags if flags is not None else read_cpu_flags()).cpu


def compare_model(
    model_bytes: bytes,
    manifest: Manifest,
    arrays: Mapping[str, Array],
    feeds: Mapping[str, Array],
    *,
    cpu_flags: CpuFlags | None = None,
    import_bytes: Importer = default_import,
) -> tuple[Comparison, ...]:
    """Hold the oracle against onnxruntime on real feeds.

    Files whose every op has one exact meaning (2**k scales, QOperator): `disable_all`, end to end. Other QDQ files:
    `dump`, the graph that onnxruntime makes of the file at EXTENDED, and `file_op`, the file op by op.

    Args:
        model_bytes: self-contained ONNX model.
        manifest: imported from it.
        arrays: constants of the manifest.
        feeds: by input name, (F, *shape).
        cpu_flags: flags of the CPU that runs onnxruntime; this machine's where None.
        import_bytes: importer for the dumped graph.

    Returns:
        The comparisons that the format needs. One that could not be run says why in `why_not`.
    """
    flags = cpu_flags if cpu_flags is not None else read_cpu_flags()
    plan = make_plan(manifest, arrays, flags)
    graph = graph_of(model_bytes, manifest, arrays, fma=flags.fma)
    if plan.end_to_end:
        return (_compare("disable_all", plan.file.words(), graph, feeds, plan.file),)
    words = f"{plan.file.words()}, op by op on onnxruntime's own inputs"
    dumped = _dump(graph, feeds, plan, flags, import_bytes)
    return (dumped, _compare("file_op", words, graph, feeds, plan.file))


def has_host_functions(manifest: Manifest) -> bool:
    """Whether any op beyond the graph's edge runs in float on the host."""
    return any(op.where == "host" and op.type not in _EDGE for op in manifest.ops)


def quantised_part(graph: Graph, *, floats: bool) -> bytes | None:
    """The part of a model that depends on no host function, None where there is none such.

    Why: onnxruntime fuses host functions with the Q/DQ around them, and float outputs with the products behind them,
    into ops of its own, which are no part of the bit-exact promise.

    Args:
        graph: the model.
        floats: keep float outputs.
    """
    manifest, tainted = graph.manifest, set[str]()
    for op in manifest.ops:
        if (op.where == "host" and op.type not in _EDGE) or tainted.intersection(op.inputs):
            tainted.update(op.outputs)
    made = {name for op in manifest.ops for name in op.outputs}
    kept = (*graph.target.codes, *(graph.target.floats if floats else ()))
    outputs = [name for name in kept if name in made and name not in tainted]
    if not outputs:
        return None
    types = {name: type_at_cut(manifest.tensor(name)) for name in (*manifest.model.inputs, *outputs)}
    return extract(graph.model_bytes, manifest.model.inputs, outputs, types)


def _dump(file: Graph, feeds: Mapping[str, Array], plan: Plan, flags: CpuFlags, import_bytes: Importer) -> Comparison:
    """The graph that onnxruntime executes at EXTENDED, read by our own importer."""
    if plan.dump is None:
        return _not_run("dump", "", plan.why_no_dump, 0, required=False)
    words = f"graph dumped at {plan.dump.words()}, run at {OFF.words()}"
    model_bytes: bytes | None = file.model_bytes
    if has_host_functions(file.manifest):
        model_bytes = quantised_part(file, floats=True)
        words += "; the part in front of host functions"
    if model_bytes is None:
        return _not_run("dump", words, "every quantised tensor depends on a host function", 0, required=False)
    try:
        dumped, raised = _dumped(model_bytes, plan.dump)
        try:
            imported = import_bytes(dumped)
        except RefusedError:
            part = quantised_part(file, floats=False)
            if part is None:
                raise
            dumped, raised = _dumped(part, plan.dump)
            imported = import_bytes(dumped)
            words += "; without float outputs, which it computes by ops of its own"
        words += raised
    except OnnxruntimeError as error:
        return _not_run("dump", words, str(error), 0)
    except RefusedError as error:
        return _not_run("dump", words, f"the dumped graph cannot be imported: {error.problems[0].line()}", 0)
    untrusted = untrusted_ops(imported.manifest, imported.arrays, flags)
    if untrusted:
        why = f"integer kernels are no reference on this CPU: {', '.join(untrusted)}"
        return _not_run("dump", words, why, 0, required=False)
    graph = graph_of(imported.model_bytes, imported.manifest, imported.arrays, fma=flags.fma)
    return _compare("dump", words, graph, feeds, OFF)


def _dumped(model_bytes: bytes, settings: Settings) -> tuple[bytes, str]:
    """The graph that onnxruntime makes of a model, and in words what had to be done to the model first."""
    return in_newer_opset(model_bytes, lambda data: dump_optimised(data, settings))


def _compare(
    kind: ComparisonKind, words: str, graph: Graph, feeds: Mapping[str, Array], settings: Settings
) -> Comparison:
    expected = graph.target.expected
    if not expected:
        return _not_run(kind, words, _NO_OUTPUTS, 0)
    if not feeds or not len(next(iter(feeds.values()))):
        return _not_run(kind, words, _NO_DATA, expected)
    try:
        session = graph.session(settings)
        result = _end_to_end(graph, session, feeds) if kind == "disable_all" else StageWise(graph, session).run(feeds)
    except OnnxruntimeError as error:
        return _not_run(kind, words, str(error), expected)
    absent = graph.target.absent
    return Comparison(
        kind=kind,
        reference=words,
        samples=result.samples,
        tensors_expected=expected,
        tensors=result.table(),
        left_in_float=tuple(result.in_float),
        why_not=f"tensors of the file that the manifest lacks: {', '.join(absent)}" if absent else "",
    )


def _end_to_end(graph: Graph, session: Session, feeds: Mapping[str, Array]) -> Result:
    """One run over the whole model; only where it differs the stages are taken one by one to find the op."""
    result, staged = Result(), StageWise(graph, session)
    for offset, piece in chunks(graph.manifest, feeds):
        truth = session.run(piece, graph.target.visible)
        got = graph.oracle.run(piece, arithmetic="reference", keep="all")
        differing = [name for name in graph.target.visible if not _same(graph, name, truth[name], got)]
        if differing:
            before = sum(t.mismatches for t in result.table())
            staged.compare_chunk(piece, truth, offset, result)
            if sum(t.mismatches for t in result.table()) == before:
                _only_together(graph, differing, truth, offset, result)
            continue
        result.samples += len(next(iter(piece.values())))
        staged.constants(truth, result)
        for op in graph.manifest.ops:
            for name in op.outputs:
                if name in truth:
                    result.tallies.add(name, op.name, op.type, Judged(elements=truth[name].size))
    return result


def _same(graph: Graph, name: str, expected: Array, got: Mapping[str, Array]) -> bool:
    """Whether a tensor is equal in dtype, shape and every bit (float tensors: every value)."""
    tensor = graph.manifest.tensor(name)
    if tensor.array is not None:
        return True  # constants are compared on their own
    ours = got[name]
    if tensor.quant is not None and expected.dtype == np.float32:
        ours = dequantised(tensor, ours)
    same = ours.dtype == expected.dtype and ours.shape == expected.shape
    return same and bool(np.array_equal(ours, expected, equal_nan=ours.dtype == np.float32))


def _only_together(graph: Graph, differing: list[str], truth: Mapping[str, Array], offset: int, result: Result) -> None:
    """Every stage alone is right, the whole is not: the run puts the stages together wrongly."""
    makers = {name: op for op in graph.manifest.ops for name in op.outputs}
    first = Mismatch(index=(offset,), expected="", got="", exact="", cause="stages agree alone, the whole run does not")
    for name in differing:
        op = makers[name]
        result.tallies.add(name, op.name, op.type, Judged(elements=0, unexplained=truth[name].size, first=first))


def _not_run(kind: ComparisonKind, words: str, why: str, tensors_expected: int, *, required: bool = True) -> Comparison:
    return Comparison(
        kind=kind,
        reference=words,
        samples=0,
        tensors_expected=tensors_expected,
        tensors=(),
        required=required,
        why_not=why,
    )
