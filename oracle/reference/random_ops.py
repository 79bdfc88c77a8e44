"""Every op alone on random and boundary inputs: the stage is cut out of the file and run in onnxruntime."""

from collections.abc import Mapping
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Manifest, Op, Tensor
from manifest.onnx_import.instrument import extract, tensor_names
from oracle.cpu import CpuFlags, read_cpu_flags
from oracle.evidence import Comparison
from oracle.reference.graph import Graph, graph_of, is_float_alias, type_at_cut
from oracle.reference.judge import dequantised
from oracle.reference.patterns import Matrix, float_inputs, integer_inputs, tie_inputs
from oracle.reference.plan import make_plan
from oracle.reference.session import OnnxruntimeError, Session, Settings
from oracle.reference.stagewise import Result, StageWise, chunks
from oracle.stages import Stage, stages

Array = npt.NDArray[Any]

CASES: Final = 8
TIES: Final = 8
STAGE_ELEMENTS: Final = 1 << 22
"""Elements of inputs and outputs of one stage over all its cases, unless `MIN_CASES` need more."""
MIN_CASES: Final = 6
SMALL_STAGE_ELEMENTS: Final = 1 << 15
"""A small stage gets more random cases, until its inputs and outputs come to this many elements."""
MAX_CASES: Final = 64
_MATRIX: Final = frozenset({"Conv", "Gemm", "MatMul"})


def compare_random(
    model_bytes: bytes,
    manifest: Manifest,
    arrays: Mapping[str, Array],
    *,
    seed: int = 0,
    cases: int = CASES,
    cpu_flags: CpuFlags | None = None,
) -> Comparison:
    """Compare every stage of a model with onnxruntime on made-up inputs.

    Args:
        model_bytes: self-contained ONNX model.
        manifest: imported from it.
        arrays: constants of the manifest.
        seed: of the inputs; the same seed gives the same inputs.
        cases: random cases per stage beside the boundary cases, more for a small stage.
        cpu_flags: flags of the CPU that runs onnxruntime; this machine's where None.

    Returns:
        A comparison of kind `random_op`; `samples` counts the inputs of all stages.
    """
    flags = cpu_flags if cpu_flags is not None else read_cpu_flags()
    settings = make_plan(manifest, arrays, flags).file
    graph = graph_of(model_bytes, manifest, arrays, fma=flags.fma)
    runner = _Runner(graph, settings)
    result, failures = Result(), []
    for number, stage in enumerate(_cuttable(manifest, tensor_names(model_bytes))):
        try:
            runner.run(stage, np.random.default_rng([seed, number]), cases, result)
        except OnnxruntimeError as error:
            failures.append(f"{stage.name}: {error}")
    computed = [n for n in graph.target.visible if manifest.tensor(n).array is None]
    return Comparison(
        kind="random_op",
        reference=f"each op alone at {settings.words()}, seed {seed}",
        samples=result.samples,
        tensors_expected=len(computed),
        tensors=result.table(),
        left_in_float=tuple(result.in_float),
        why_not="; ".join(failures),
    )


def _cuttable(manifest: Manifest, present: frozenset[str]) -> list[Stage]:
    """The stages, joined where one reads codes that the file has no tensor for and that cannot be fed to it."""
    joined: list[Stage] = []
    for stage in stages(manifest):
        hidden = set(stage.inputs) - present
        parts = [*(s for s in joined if hidden.intersection(s.outputs)), stage]
        names = {name for part in parts for name in part.ops}
        made = {name for part in parts for name in part.outputs}
        whole = Stage(
            name=parts[0].name,
            ops=tuple(op.name for op in manifest.ops if op.name in names),
            inputs=tuple(dict.fromkeys(n for part in parts for n in part.inputs if n not in made)),
            outputs=tuple(n for part in parts for n in part.outputs),
        )
        joined = [s for s in joined if s not in parts] + [whole]
    return joined


class _Runner:
    """What all stages share."""

    def __init__(self, graph: Graph, settings: Settings) -> None:
        self._graph = graph
        self._settings = settings
        self._tensors = graph.manifest.by_name()

    def run(self, stage: Stage, rng: np.random.Generator, cases: int, result: Result) -> None:
        """Compare one stage."""
        made = _made(self._graph.manifest, stage)
        outputs = tuple(name for name in self._graph.target.visible if name in made)
        if not outputs:
            return
        more = min(MAX_CASES, SMALL_STAGE_ELEMENTS // self._elements(stage))
        inputs = self._within_budget(stage, self._inputs(stage, rng, max(cases, more)))
        types = {name: type_at_cut(self._tensors[name]) for name in stage.inputs}
        session = Session(extract(self._graph.model_bytes, stage.inputs, outputs, types), self._settings)
        staged = StageWise(self._graph, session, stage=stage)
        for offset, piece in chunks(self._graph.manifest, inputs):
            truth = session.run(self._as_file(piece), outputs)
            staged.compare_chunk(piece, truth, offset, result)

    def _within_budget(self, stage: Stage, inputs: dict[str, Array]) -> dict[str, Array]:
        """All cases, or for a large stage as many of them, evenly chosen, as keep it within `STAGE_ELEMENTS`."""
        count = len(next(iter(inputs.values())))
        kept = max(MIN_CASES, min(count, STAGE_ELEMENTS // self._elements(stage)))
        if kept >= count:
            return inputs
        chosen = np.linspace(0, count - 1, kept).round().astype(np.int64)
        return {name: values[chosen] for name, values in inputs.items()}

    def _elements(self, stage: Stage) -> int:
        """Elements of inputs and outputs of one case, at least 1."""
        return max(1, sum(prod(self._tensors[name].shape) for name in (*stage.inputs, *stage.outputs)))

    def _as_file(self, piece: Mapping[str, Array]) -> dict[str, Array]:
        """Inputs in the type that the file has at the cut: some integer tensors are float32 there."""
        given = {}
        for name, values in piece.items():
            tensor = self._tensors[name]
            given[name] = dequantised(tensor, values) if is_float_alias(tensor) else values
        return given

    def _inputs(self, stage: Stage, rng: np.random.Generator, cases: int) -> dict[str, Array]:
        tensors = {name: self._tensors[name] for name in stage.inputs}
        if any(t.dtype == "float32" for t in tensors.values()):
            return self._float_inputs(stage, tensors, rng, cases)
        inputs = integer_inputs(tensors, cases, rng)
        matrix = matrix_of(self._graph, stage)
        if matrix is None:
            return inputs
        count = max(TIES, cases // 2)
        ties = tie_inputs(matrix, count, rng)
        more = integer_inputs(tensors, count, rng)
        name = matrix.activation.name
        return {n: np.concatenate([values, ties if n == name else more[n][-count:]]) for n, values in inputs.items()}

    def _float_inputs(
        self, stage: Stage, tensors: Mapping[str, Tensor], rng: np.random.Generator, cases: int
    ) -> dict[str, Array]:
        """Inputs of a stage that reads float32: around the ties of what it writes."""
        output = self._tensors[stage.outputs[0]]
        count = max(cases, CASES)
        integers = {n: t for n, t in tensors.items() if t.dtype != "float32"}
        drawn = {n: v[-count:] for n, v in integer_inputs(integers, count, rng).items()} if integers else {}
        names = set(stage.ops)
        special = all(op.type == "QuantizeLinear" for op in self._graph.manifest.ops if op.name in names)
        floats = {
            n: float_inputs(t, output, count, rng, special=special) for n, t in tensors.items() if t.dtype == "float32"
        }
        return {**drawn, **floats}


def matrix_of(graph: Graph, stage: Stage) -> Matrix | None:
    """The Conv, Gemm or MatMul of a stage where a search of ties is possible."""
    tensors, names = graph.manifest.by_name(), set(stage.ops)
    op = next((o for o in graph.manifest.ops if o.name in names and o.type in _MATRIX), None)
    if op is None or op.inputs[0] not in stage.inputs or len(tensors[op.inputs[1]].shape) < 2:
        return None
    weight, activation, output = tensors[op.inputs[1]], tensors[op.inputs[0]], tensors[stage.outputs[0]]
    if weight.array is None or weight.quant is None or activation.quant is None or output.quant is None:
        return None
    scales = np.asarray(weight.quant.scales)
    return Matrix(
        op=op,
        activation=activation,
        output=output,
        weights=graph.arrays[weight.array].astype(np.int64) - _zero_points(weight),
        ratios=activation.quant.scales[0] * scales / output.quant.scales[0],
        offsets=_offsets(graph, op, output.quant.scales[0]),
    )


def _offsets(graph: Graph, op: Op, scale: float) -> Array:
    """Bias in output codes."""
    name = op.inputs[2] if len(op.inputs) > 2 else ""
    key = graph.manifest.tensor(name).array if name else None
    if key is None:
        return np.zeros(1)
    quant = graph.manifest.tensor(name).quant
    values = graph.arrays[key].astype(np.float64).reshape(-1)
    if quant is not None:
        values = (values - np.asarray(quant.zero_points)) * np.asarray(quant.scales)
    return values / scale


def _zero_points(tensor: Tensor) -> Array:
    """Zero points in a form that broadcasts against the weights."""
    quant = tensor.quant
    if quant is None or len(quant.zero_points) == 1 or quant.axis is None:
        return np.asarray(quant.zero_points[0] if quant is not None else 0)
    form = [1] * len(tensor.shape)
    form[quant.axis] = len(quant.zero_points)
    return np.asarray(quant.zero_points).reshape(form)


def _made(manifest: Manifest, stage: Stage) -> set[str]:
    names = set(stage.ops)
    return {name for op in manifest.ops if op.name in names for name in op.outputs}
