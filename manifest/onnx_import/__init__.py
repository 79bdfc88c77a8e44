"""ONNX files to manifests: the only package that knows onnx.

`import_model` refuses with every problem of the file at once (one line each), or returns a manifest whose meaning is
exact integers.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt
import onnx

from manifest.device import load_device
from manifest.errors import Problem, RefusedError
from manifest.layout import default_layouts
from manifest.model import Manifest, ModelInfo, Note, Target
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fold import fold
from manifest.onnx_import.graph import Shape, build, live
from manifest.onnx_import.inputs import fix_shapes, prune, resolve, settle_shapes
from manifest.onnx_import.inspect import ModelSummary, inspect_model
from manifest.onnx_import.load import Loaded, read_bytes, read_model
from manifest.onnx_import.lower import lower, rules
from manifest.onnx_import.ops import batch_normalization
from manifest.onnx_import.scheme import cliff_notes, scheme_of
from manifest.onnx_import.survey import float_model, format_of, import_notes
from manifest.onnx_import.validate import BROKEN, validate

__all__ = ["Imported", "ModelSummary", "import_bytes", "import_model", "inspect_model"]

_HASH_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import gives.

    Attributes:
        manifest: the deployment manifest, without dispatches.
        arrays: constants by their key in the manifest.
        model_bytes: the model, self-contained: sorted, shapes fixed, external data embedded.
        dequantised: float ONNX tensor -> integer tensor whose value it is.
    """

    manifest: Manifest
    arrays: Mapping[str, npt.NDArray[Any]]
    model_bytes: bytes
    dequantised: Mapping[str, str]


def import_model(
    path: Path, *, device: str = "npu2", shapes: Mapping[str, Shape] | None = None, host_ops: bool = False
) -> Imported:
    """Import an ONNX file.

    Args:
        path: the file; external data is read from its folder only.
        device: name of a device of the catalogue.
        shapes: fixed shapes of graph inputs by name, for open dimensions.
        host_ops: allow float ops that run on the host.

    Raises:
        RefusedError: with every problem found.
    """
    loaded = read_model(path)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK):
            digest.update(chunk)
    return _import(loaded, digest.hexdigest(), device, shapes or {}, host_ops)


def import_bytes(
    data: bytes, *, device: str = "npu2", shapes: Mapping[str, Shape] | None = None, host_ops: bool = False
) -> Imported:
    """As `import_model`, from memory and without external data."""
    return _import(read_bytes(data), hashlib.sha256(data).hexdigest(), device, shapes or {}, host_ops)


def _import(loaded: Loaded, sha256: str, device: str, shapes: Mapping[str, Shape], host_ops: bool) -> Imported:
    """The steps: validate, fix shapes, fold, lower, assemble."""
    catalogue = load_device(device)
    b, notes = _lowered(loaded, shapes, host_ops)
    tensors = tuple(sorted(b.tensors.values(), key=lambda t: t.name))
    ops = tuple(b.ops)
    manifest = Manifest(
        model=_info(loaded.model, sha256, b),
        target=Target(device=device),
        scheme=scheme_of(b.tensors, ops),
        tensors=tensors,
        ops=ops,
        layouts=default_layouts(tensors, ops, catalogue),
        notes=(*loaded.notes, *notes, *b.notes, *cliff_notes(b.tensors, b.arrays, ops)),
    )
    return Imported(
        manifest=manifest,
        arrays=dict(b.arrays),
        model_bytes=fix_shapes(loaded.model, b.graph).SerializeToString(deterministic=True),
        dequantised=dict(b.dequantised),
    )


def _lowered(loaded: Loaded, shapes: Mapping[str, Shape], host_ops: bool) -> tuple[Builder, tuple[Note, ...]]:
    """The lowered graph, or every problem of the model at once."""
    problems = validate(loaded.model)
    if any(problem.code in BROKEN for problem in problems):
        raise RefusedError(tuple(problems))
    graph = live(build(loaded.model))
    fixed = resolve(graph, shapes)
    folded = fold(graph, fixed.shapes, rules(host_ops=host_ops), host_ops=host_ops)
    merged, folds, more = batch_normalization.fold(folded.graph)
    known = {p.code for p in problems}
    floating = float_model(graph)
    readable = not problems and not floating
    problems += [p for p in (*fixed.problems, *floating, *folded.problems, *more) if _is_new(p, known)]
    settle_shapes(loaded.model, fixed.shapes)
    pruned, notes = prune(merged, loaded.model)
    if readable:
        b, found = lower(pruned, host_ops=host_ops, poisoned=folded.poisoned)
        if not problems and not found:
            return b, (*notes, *import_notes(graph), *folds)
        problems += found
    raise RefusedError(tuple(dict.fromkeys(problems)))


def _is_new(problem: Problem, known: set[str]) -> bool:
    """Whether validation has not said it already."""
    return problem.code not in known and not ("ONNX-QONNX" in known and "QONNX" in problem.what)


def _info(model: onnx.ModelProto, sha256: str, b: Builder) -> ModelInfo:
    """Where the manifest comes from."""
    graph = b.graph
    return ModelInfo(
        sha256=sha256,
        format=format_of(b.ops),
        opset=graph.opset,
        ir_version=model.ir_version,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        inputs=tuple(p.name for p in graph.inputs),
        outputs=graph.output_names(),
    )
