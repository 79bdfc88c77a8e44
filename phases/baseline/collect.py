"""Fills the evidence of phase 1: every figure that the baseline gate judges is measured or proved here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.io import manifest_errors, manifest_from_json, manifest_to_json, sha256_hex
from manifest.model import Manifest
from manifest.onnx_import import Imported
from manifest.onnx_import.instrument import expose, float_names, real_names, tensor_names
from manifest.onnx_import.strip import strip_quantization
from oracle.cpu import CpuFlags
from oracle.evidence import (
    AccumulatorBound,
    BaselineEvidence,
    BudgetEvidence,
    Comparison,
    ManifestEvidence,
    SchemeEvidence,
)
from oracle.reference import (
    OnnxruntimeError,
    compare_model,
    compare_random,
    cpu_evidence,
    level_disagreement,
    run_onnxruntime,
)
from oracle.reference.kernel_numbers import kernel_numbers
from oracle.reference.reach import reached
from oracle.run import Oracle
from phases.baseline.accuracy import FLOAT_MODEL, OWN_MEANING, AccuracyMeter
from phases.baseline.data import Data
from phases.baseline.layouts import in_place, returns
from phases.baseline.options import BaselineOptions
from phases.baseline.passes import FloatRun, HandOff, Pass, Share, lost_tensors, run_dispatches, run_pass
from phases.baseline.prepare import Prepared, Progress
from phases.baseline.ranges import input_ranges, with_observed

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Evidence, and the manifest with observed ranges that it speaks of."""

    evidence: BaselineEvidence
    manifest: Manifest


def collect(prepared: Prepared, options: BaselineOptions, flags: CpuFlags, progress: Progress) -> Collected:
    """Measure and prove everything.

    Args:
        prepared: model, manifest, data.
        options: of the run.
        flags: of the CPU that runs onnxruntime.
        progress: takes a few words per step.
    """
    imported, data = prepared.imported, prepared.data
    manifest, arrays = imported.manifest, imported.arrays
    oracle = Oracle(manifest, arrays, fma=flags.fma)
    passed, accuracy = Pass(), None
    comparisons: tuple[Comparison, ...] = ()
    levels = None
    if data is not None:
        meter, float_run = _float_side(prepared, options)
        passed = run_pass(oracle, manifest, _shares(data), meter=meter, float_run=float_run, progress=progress)
        accuracy = meter.evidence(arrays)
        progress("every tensor against onnxruntime on real data")
        feeds = _all_feeds(data)
        comparisons = compare_model(imported.model_bytes, manifest, arrays, feeds, cpu_flags=flags)
        progress("onnxruntime's own levels against each other")
        levels = level_disagreement(imported.model_bytes, manifest, feeds)
    elif len(manifest.dispatches) > 1:
        passed.hand_off = _made_up_hand_off(oracle, manifest, options.seed)
    progress("every op alone on random and boundary inputs")
    random = compare_random(imported.model_bytes, manifest, arrays, seed=options.seed, cpu_flags=flags)
    observed = with_observed(manifest, passed.observed)
    evidence = BaselineEvidence(
        data=data is not None,
        scheme=scheme_evidence(manifest),
        manifest=manifest_evidence(prepared, observed),
        budget=_budget(prepared, passed.hand_off),
        accumulators=_accumulators(manifest, arrays),
        random_ops=random,
        comparisons=comparisons,
        cpu=cpu_evidence(manifest, arrays, flags),
        accuracy=accuracy,
        target=passed.target(manifest),
        inputs=() if data is None else input_ranges(manifest, _all_feeds(data), prepared.preprocessing),
        levels=levels,
        kernel=kernel_numbers(manifest, arrays, seed=options.seed),
    )
    return Collected(evidence=evidence, manifest=observed)


def _accumulators(manifest: Manifest, arrays: Mapping[str, Array]) -> tuple[AccumulatorBound, ...]:
    """Proved bounds beside what made-up inputs reach."""
    far = reached(manifest, arrays)
    return tuple(
        AccumulatorBound(op=op.name, bound=op.accumulator.bound, bits=op.accumulator.bits, reached=far.get(op.name))
        for op in manifest.ops
        if op.accumulator is not None
    )


def scheme_evidence(manifest: Manifest) -> SchemeEvidence:
    """Whether every tensor between quantised ops has a scale, and which scales are 2**k by exact test."""
    unlocked = tuple(
        t.name for t in manifest.tensors if t.quant is None and t.dtype in ("int8", "uint8", "int16", "uint16")
    )
    locked = [t for t in manifest.tensors if t.quant is not None]
    scales = [(t.name, s) for t in locked if t.quant is not None for s in t.quant.scales]
    exact = [name for name, s in scales if np.frexp(s)[0] == 0.5]  # s == 2**k exactly when its mantissa is 1/2
    exceptions = tuple(dict.fromkeys(name for name, s in scales if np.frexp(s)[0] != 0.5))
    return SchemeEvidence(
        tensors=len(locked),
        unlocked=unlocked,
        claims_power_of_two=manifest.scheme.power_of_two,
        scales=len(scales),
        power_of_two=len(exact),
        exceptions=exceptions,
    )


def manifest_evidence(prepared: Prepared, observed: Manifest) -> ManifestEvidence:
    """Schema, reproducibility (two imports), round trip through the file, layout round trips."""
    arrays = prepared.imported.arrays
    data = manifest_to_json(observed)
    try:
        equal = manifest_from_json(data) == observed
        errors = manifest_errors(observed, arrays)
    except RefusedError as error:
        equal, errors = False, tuple(p.line() for p in error.problems)
    by_name = observed.by_name()
    failures, misplaced = [], []
    for layout in observed.layouts:
        tensor = by_name[layout.tensor]
        stored = arrays[tensor.array] if tensor.array is not None else _ramp(tensor.shape)
        if not returns(layout, stored):
            failures.append(layout.tensor)
        elif not in_place(layout, _ramp(tensor.shape)):
            misplaced.append(layout.tensor)
    return ManifestEvidence(
        schema_errors=errors,
        first_sha256=_import_sha256(prepared.first),
        second_sha256=_import_sha256(prepared.again),
        reload_equal=equal,
        layouts=len(observed.layouts),
        layout_failures=tuple(failures),
        layout_misplaced=tuple(misplaced),
    )


def _import_sha256(imported: Imported) -> str:
    arrays = b"".join(
        name.encode() + imported.arrays[name].dtype.str.encode() + imported.arrays[name].tobytes()
        for name in sorted(imported.arrays)
    )
    return sha256_hex(manifest_to_json(imported.manifest) + arrays)


def _ramp(shape: tuple[int, ...]) -> Array:
    """An array whose elements all differ, so that a swapped axis shows."""
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)


def _budget(prepared: Prepared, hand_off: HandOff) -> BudgetEvidence:
    manifest = prepared.imported.manifest
    edges = {op.name for op in manifest.ops if op.where == "host" and op.type in ("QuantizeLinear", "DequantizeLinear")}
    inner = [d for d in manifest.dispatches if not edges.issuperset(d.ops)]
    cuts = {n for d in inner for n in d.outputs} & {n for d in inner for n in d.inputs}
    return BudgetEvidence(
        device=prepared.device.name,
        dispatches=prepared.plan.budgets,
        cuts=tuple(sorted(cuts)),
        concatenation_elements=hand_off.elements,
        concatenation_mismatches=hand_off.mismatches,
        lost=hand_off.lost,
        unknown=prepared.plan.unknown,
    )


def _shares(data: Data) -> tuple[Share, ...]:
    judged = Share(feeds=data.evaluation, judged=True, labels=data.labels)
    if data.eval_feeds is None:
        return (judged,)
    return Share(feeds=data.feeds, judged=False), judged


def _all_feeds(data: Data) -> dict[str, Array]:
    if data.eval_feeds is None:
        return dict(data.feeds)
    return {name: np.concatenate([array, data.eval_feeds[name]]) for name, array in data.feeds.items()}


def _float_side(prepared: Prepared, options: BaselineOptions) -> tuple[AccuracyMeter, FloatRun | None]:
    """The float model to hold the accuracy against: the person's own, or the file with its Q/DQ removed."""
    imported = prepared.imported
    model, against = prepared.float_model, FLOAT_MODEL
    floats = float_names(imported.model_bytes)
    if model is None:
        against = OWN_MEANING
        try:
            meaning = strip_quantization(imported.model_bytes)
        except RefusedError:
            floats = {}
        else:
            model, floats = meaning.model_bytes, dict(meaning.floats)
    present = frozenset() if model is None else tensor_names(model)
    named = real_names(imported.model_bytes) if prepared.float_model is not None else {}
    stands = {codes: (name, named.get(codes, name)) for codes, name in floats.items()}
    layers = {codes: name for codes, names in stands.items() for name in names if name in present}
    meter = AccuracyMeter(
        manifest=imported.manifest, layers=layers, limits=options.declared.thresholds, against=against
    )
    if model is None:
        return meter, None
    wanted = sorted({*layers.values(), *imported.manifest.model.outputs} - set(imported.manifest.model.inputs))
    exposed = expose(model, wanted)

    def run(feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        try:
            return {**feeds, **run_onnxruntime(exposed, feeds, wanted)}
        except OnnxruntimeError as error:
            raise refused_by_onnxruntime(against, error) from error

    return meter, run


def refused_by_onnxruntime(against: str, error: OnnxruntimeError) -> RefusedError:
    """What onnxruntime, the reference of all that follows, says about a model that it does not run."""
    remedy = "mend what it says, or export the model without this form of the op"
    problem = Problem(
        code="MODEL-ONNXRUNTIME", where=against, what="onnxruntime cannot run it", got=str(error), remedy=remedy
    )
    return RefusedError((problem,))


def _made_up_hand_off(oracle: Oracle, manifest: Manifest, seed: int) -> HandOff:
    """Without real data the hand-off is held against the whole on seeded random inputs."""
    random = np.random.default_rng(seed)
    by_name = manifest.by_name()
    feeds: dict[str, Array] = {}
    for name in manifest.model.inputs:
        tensor = by_name[name]
        shape = (2, *tensor.shape)
        if tensor.dtype == "float32":
            feeds[name] = random.standard_normal(shape).astype(np.float32)
        else:
            limits = np.iinfo(tensor.dtype)
            feeds[name] = random.integers(limits.min, limits.max + 1, shape, dtype=tensor.dtype)
    names = sorted({n for d in manifest.dispatches for n in d.outputs})
    whole = oracle.run(feeds, keep="carried")
    result = HandOff(lost=lost_tensors(manifest))
    result.add({n: whole[n] for n in names}, run_dispatches(oracle, manifest, feeds), names)
    return result
