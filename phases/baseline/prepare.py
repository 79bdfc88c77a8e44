"""From the person's files to a quantised model, its manifest and its data: everything that can be refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from manifest.device import Device, load_device
from manifest.errors import Problem, RefusedError
from manifest.model import Note
from manifest.onnx_import import Imported, import_bytes, import_model
from manifest.onnx_import.external import external_files
from manifest.onnx_import.inputs import drop_unused, settle_shapes
from manifest.onnx_import.inspect import InputSummary, ModelSummary, inspect_model
from manifest.onnx_import.load import load_model
from manifest.onnx_import.quantize import QuantizeOptions, quantize_float
from phases.baseline.budget import BudgetPlan, plan_dispatches
from phases.baseline.data import Data, infer_shapes, load_data, open_data
from phases.baseline.data_forms import DataFile, InputSpec
from phases.baseline.options import BaselineOptions
from phases.baseline.placeable import planner
from phases.baseline.preprocessing import Preprocessing, preprocessing_from
from phases.state import sha256_file

Array = NDArray[Any]
Progress = Callable[[str], None]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What phase 1 judges.

    Attributes:
        imported: manifest with dispatches, constants, self-contained model.
        again: a second, independent import of the same model, before dispatches.
        first: the first import, before dispatches.
        plan: dispatches and budgets.
        device: what the budgets were held against.
        quantized_model: the QDQ file that phase 1 wrote, None where the file came quantised.
        float_model: the float model, None where the file came quantised.
        data: real inputs, None where none were given.
        preprocessing: what `port.toml` declares, per input.
        external: sha256 by file of the model's external data.
        source_sha256: of the model file as given.
        notes: remarks for the person.
    """

    imported: Imported
    first: Imported
    again: Imported
    plan: BudgetPlan
    device: Device
    quantized_model: bytes | None
    float_model: bytes | None
    data: Data | None
    preprocessing: dict[str, Preprocessing]
    external: Mapping[Path, str]
    source_sha256: str
    notes: tuple[str, ...]


def prepare(options: BaselineOptions, progress: Progress) -> Prepared:
    """Read, quantise where needed, import, read the data, plan the dispatches.

    Raises:
        RefusedError: everything that is wrong with model and data, all at once where one does not hide the other.
    """
    progress("reading the model")
    device = load_device(options.device)
    summary = inspect_model(options.model)
    names = tuple(i.name for i in summary.inputs)
    preprocessing = preprocessing_from(options.declared.preprocessing, names, where="port.toml")
    file = None if options.data is None else open_data(options.data)
    _known_inputs(options, names)
    sha256, external = _hashes(options.model)
    if summary.is_quantized:
        prepared = _import(options, summary, file, preprocessing, progress)
    else:
        prepared = _quantize(options, summary, file, preprocessing, progress)
    first, again, data, quantized, floats, notes = prepared
    progress("cutting into dispatches")
    refusal = planner(first.manifest, device)
    plan = plan_dispatches(first.manifest, device, options.cuts, options.host_ops, refusal)
    manifest = replace(first.manifest, dispatches=plan.dispatches)
    return Prepared(
        imported=replace(first, manifest=manifest),
        first=first,
        again=again,
        plan=plan,
        device=device,
        quantized_model=quantized,
        float_model=floats,
        data=data,
        preprocessing=preprocessing,
        external=external,
        source_sha256=sha256,
        notes=(*notes, *plan.refused),
    )


_Result = tuple[Imported, Imported, Data | None, bytes | None, bytes | None, tuple[str, ...]]


def _hashes(model: Path) -> tuple[str, dict[Path, str]]:
    """The sha256 of the model and of each file of its external data.

    Why before the model is imported: a file that changes meanwhile is then STALE for every reader of the port. Links
    are followed, as the readers of model and data do. Absent external data is left to the importer to refuse.

    Raises:
        RefusedError: a file cannot be read.
    """
    try:
        external = {path: sha256_file(path.resolve()) for path in external_files(model) if path.is_file()}
        return sha256_file(model.resolve()), external
    except OSError as error:
        what, got = "cannot be read", f"{error.filename or model}: {error.strerror or error}"
        raise RefusedError((Problem(code="MODEL-UNREADABLE", where=str(model), what=what, got=got),)) from error


def _known_inputs(options: BaselineOptions, names: tuple[str, ...]) -> None:
    problems = tuple(
        Problem(
            code="OPTION-INPUT",
            where=f"--shape {name}",
            what="the model has no input of this name",
            expected=", ".join(names),
            got=name,
        )
        for name in options.shapes
        if name not in names
    )
    if problems:
        raise RefusedError(problems)


def _read(summary: ModelSummary) -> tuple[InputSummary, ...]:
    """The inputs that outputs depend on: the only ones that data has to be given for."""
    return tuple(i for i in summary.inputs if i.name not in summary.unused)


def _fixed(inputs: tuple[InputSummary, ...], shapes: Shapes) -> tuple[InputSpec, ...]:
    return tuple((i.name, i.dtype, shapes.get(i.name, i.dims)) for i in inputs)


def _open_shapes(
    options: BaselineOptions,
    summary: ModelSummary,
    file: DataFile | None,
    preprocessing: dict[str, Preprocessing],
    problems: list[Problem],
) -> Shapes:
    """Shapes from `--shape`, then from the data; what the data lacks is collected, not raised."""
    shapes: Shapes = dict(options.shapes)
    if file is not None:
        try:
            found = infer_shapes(file, _fixed(_read(summary), shapes), preprocessing=preprocessing)
        except RefusedError as error:
            problems += error.problems
        else:
            shapes = found | shapes
    return shapes


def _import(
    options: BaselineOptions,
    summary: ModelSummary,
    file: DataFile | None,
    preprocessing: dict[str, Preprocessing],
    progress: Progress,
) -> _Result:
    problems: list[Problem] = []
    shapes = _open_shapes(options, summary, file, preprocessing, problems)
    progress("importing the model")
    try:
        first = import_model(options.model, device=options.device, shapes=shapes, host_ops=options.host_ops)
    except RefusedError as error:
        raise RefusedError((*error.problems, *problems)) from error
    if problems:
        raise RefusedError(tuple(problems))
    again = import_model(options.model, device=options.device, shapes=shapes, host_ops=options.host_ops)
    data = None
    if file is not None:
        by_name = first.manifest.by_name()
        inputs: tuple[InputSpec, ...] = tuple(
            (name, by_name[name].onnx_dtype, by_name[name].shape) for name in first.manifest.model.inputs
        )
        data = _load(file, inputs, options, preprocessing)
    return first, again, data, None, None, ()


def _load(
    file: DataFile, inputs: tuple[InputSpec, ...], options: BaselineOptions, preprocessing: dict[str, Preprocessing]
) -> Data:
    wanted = {name: p for name, p in preprocessing.items() if name in {i[0] for i in inputs}}
    return load_data(
        file, inputs, max_samples=options.max_samples, preprocessing=wanted, labels=options.declared.labels
    )


def _quantize(
    options: BaselineOptions,
    summary: ModelSummary,
    file: DataFile | None,
    preprocessing: dict[str, Preprocessing],
    progress: Progress,
) -> _Result:
    if file is None:
        # The importer names what a float model lacks: data to choose the scales on, and the ops that it refuses.
        import_model(options.model, device=options.device, shapes=dict(options.shapes), host_ops=options.host_ops)
        msg = "the importer took a float model that has no scale"
        raise AssertionError(msg)
    problems: list[Problem] = []
    shapes = _open_shapes(options, summary, file, preprocessing, problems)
    if problems:
        raise RefusedError(tuple(problems))
    data = _load(file, _fixed(_read(summary), shapes), options, preprocessing)
    progress("choosing power-of-two scales on the data")
    model = load_model(options.model)
    settle_shapes(model, {i.name: tuple(int(d) for d in shapes.get(i.name, i.dims)) for i in _read(summary)})
    left_out = tuple(Note(code="INPUT-UNUSED", where=n, text="no output depends on it") for n in drop_unused(model))
    kept = {value.name for value in model.graph.input}
    shapes = {name: shape for name, shape in shapes.items() if name in kept}
    data = replace(data, feeds=_only(data.feeds, kept), eval_feeds=data.eval_feeds and _only(data.eval_feeds, kept))
    floats = model.SerializeToString(deterministic=True)
    quantize_options = QuantizeOptions(host_ops=options.host_ops)
    quantized = quantize_float(floats, data.feeds, shapes=shapes, options=quantize_options)
    progress("importing the quantised model")
    first, again = (
        _quantized_here(import_bytes(quantized.model_bytes, device=options.device, host_ops=options.host_ops), left_out)
        for _ in range(2)
    )
    return (
        first,
        again,
        data,
        quantized.model_bytes,
        floats,
        tuple(f"{n.code} {n.where}: {n.text}" for n in quantized.notes),
    )


def _only(feeds: Mapping[str, Array], names: set[str]) -> dict[str, Array]:
    return {name: array for name, array in feeds.items() if name in names}


def _quantized_here(imported: Imported, notes: tuple[Note, ...]) -> Imported:
    manifest = imported.manifest
    model = replace(manifest.model, quantized_by_phase1=True)
    return replace(imported, manifest=replace(manifest, model=model, notes=(*notes, *manifest.notes)))
