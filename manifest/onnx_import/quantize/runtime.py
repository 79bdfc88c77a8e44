"""onnxruntime for the quantizer: folding a float model, and running it on the data. One thread, no log output."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as _state

from manifest.errors import Problem, RefusedError

FAILURES: Final[tuple[type[Exception], ...]] = tuple(
    getattr(_state, name)
    for name in (
        "Fail", "InvalidArgument", "NoSuchFile", "NoModel", "EngineError", "RuntimeException",
        "InvalidProtobuf", "ModelLoaded", "NotImplemented", "InvalidGraph", "EPFail",
    )
    if hasattr(_state, name)
)  # fmt: skip
_KEPT: Final = ("TransposeOptimizer", "ConstantSharing", "MatMulAddFusion")
"""Passes that rewrite the graph without making it smaller, or take an activation for a bias."""
_FATAL: Final = 4


def _options(level: Any) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    options.graph_optimization_level = level
    return options


def refused(error: Exception, doing: str) -> RefusedError:
    """The complaint of onnxruntime as one line."""
    reason = " ".join(str(error).split())[:400]
    return RefusedError(
        (Problem(code="QUANT-ONNXRUNTIME", where="model", what=f"onnxruntime cannot {doing} it", got=reason),)
    )


def folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model after onnxruntime's basic optimisation.

    Constants are computed, BatchNormalization and Add of a constant folded into Conv, Identity and Dropout are gone.

    Raises:
        RefusedError: onnxruntime does not load the model.
    """
    options = _options(ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
    with tempfile.TemporaryDirectory(prefix="fold-") as folder:
        path = Path(folder) / "folded.onnx"
        options.optimized_model_filepath = str(path)
        try:
            ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(_KEPT)
            )
        except FAILURES as error:
            raise refused(error, "load") from error
        return onnx.load_model(str(path), load_external_data=False)


def session(model: Path | bytes) -> Any:
    """An onnxruntime session that runs a model as it is written.

    Raises:
        RefusedError: onnxruntime does not load the model.
    """
    options = _options(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    source = model if isinstance(model, bytes) else str(model)
    try:
        return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except FAILURES as error:
        raise refused(error, "load") from error


class FloatRunner:
    """A model with chosen tensors as outputs, run as written."""

    def __init__(self, model: onnx.ModelProto, outputs: Sequence[str]) -> None:
        """Load.

        Args:
            model: every tensor in `outputs` is a value of its graph.
            outputs: tensors to return; graph inputs among them are passed through.

        Raises:
            RefusedError: onnxruntime does not load the model.
        """
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        inputs = {value.name for value in copy.graph.input}
        known = {value.name for value in copy.graph.output}
        self._passed = [name for name in outputs if name in inputs]
        self._computed = [name for name in outputs if name not in inputs]
        copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self._computed if name not in known)
        self._session = session(copy.SerializeToString())

    def run(self, feed: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The chosen tensors for one feed.

        Raises:
            RefusedError: onnxruntime refuses the feed.
        """
        values: list[NDArray[Any]] = []
        if self._computed:
            try:
                values = self._session.run(self._computed, dict(feed))
            except FAILURES as error:
                raise refused(error, "run") from error
        passed = {name: np.asarray(feed[name]) for name in self._passed}
        return {**passed, **dict(zip(self._computed, values, strict=True))}
