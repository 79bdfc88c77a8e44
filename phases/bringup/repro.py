"""One op of a port as a file of its own: ONNX, inputs, expected outputs, for a report to somebody else.

Why onnxruntime runs at once: a repro that does not show the expected values there would waste its reader's time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from manifest.onnx_import import Imported, import_bytes, import_model
from manifest.onnx_import.instrument import extract, tensor_names
from oracle.reference import run_onnxruntime
from oracle.reference.graph import is_float_alias, type_at_cut
from oracle.reference.judge import dequantised
from oracle.run import Oracle
from oracle.stages import Stage, stages
from phases.baseline.options import Arguments, resolve
from phases.port import Port
from phases.presim.source import different_inputs, source_of

Array = NDArray[Any]
FEEDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Repro:
    """A part of a model that stands alone.

    Attributes:
        stage: ops in it; more than one where they hand each other unrounded values.
        model: ONNX bytes.
        inputs: by ONNX name, (F, *shape), as the file has them.
        expected: likewise, `reference` arithmetic of the oracle.
        different: elements in which onnxruntime without optimisations differs, by output.
        real: whether the inputs come from the canary of the port.
    """

    stage: Stage
    model: bytes
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    different: Mapping[str, int]
    real: bool


def repro_of(port: Port, op: str) -> Repro:
    """Cut an op out of the model of a port.

    Raises:
        RefusedError: the port has no such op, the model is not there any more, or it cannot be cut at that place.
    """
    source = source_of(port)
    where = f"--op {op}"
    stage = next((s for s in stages(source.manifest) if op in s.ops), None)
    if stage is None:
        names = ", ".join(o.name for o in source.manifest.ops[:8])
        raise _refused(where, "no such op in the port", expected=f"one of {names}, ...")
    imported = _model(port)
    tensors = imported.manifest.by_name()
    present = tensor_names(imported.model_bytes)
    hidden = [n for n in (*stage.inputs, *stage.outputs) if n not in present]
    if hidden:
        raise _refused(where, f"the file has no tensor {', '.join(map(repr, hidden))} to cut at")
    given = different_inputs(source, FEEDS)
    oracle = Oracle(source.manifest, source.arrays)
    everything = {**given.feeds, **oracle.run(given.feeds, arithmetic="reference", keep="stored")}
    types = {name: type_at_cut(tensors[name]) for name in (*stage.inputs, *stage.outputs)}
    model = extract(imported.model_bytes, stage.inputs, stage.outputs, types)
    computed = oracle.run_ops(stage.ops, everything, arithmetic="reference")
    form = {n: _as_file(imported, n, a) for n, a in {**everything, **computed}.items() if n in types}
    truth = run_onnxruntime(model, {n: form[n] for n in stage.inputs}, stage.outputs)
    return Repro(
        stage=stage,
        model=model,
        inputs={n: form[n] for n in stage.inputs},
        expected={n: form[n] for n in stage.outputs},
        different={n: int((truth[n] != form[n]).sum()) for n in stage.outputs},
        real=given.real == given.count,
    )


def _as_file(imported: Imported, name: str, array: Array) -> Array:
    """A tensor in the type that the ONNX file has it in."""
    tensor = imported.manifest.tensor(name)
    return np.asarray(dequantised(tensor, array)) if is_float_alias(tensor) else array


def _model(port: Port) -> Imported:
    """The model of a port, imported again from where it was."""
    if "model.qdq.onnx" in port.state.files:
        return import_bytes(port.read("model.qdq.onnx"), device=port.info.device)
    path = port.info.model.locate(port.root)
    if not path.is_file():
        raise _refused(str(path), "the model of the port is not there any more", expected="the file of phase 1")
    options = resolve(Arguments(model=port.root))
    return import_model(Path(path), device=port.info.device, shapes=options.shapes, host_ops=options.host_ops)


def _refused(where: str, what: str, *, expected: str = "") -> RefusedError:
    return RefusedError((Problem(code="REPRO-OP", where=where, what=what, expected=expected),))
