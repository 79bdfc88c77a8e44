"""onnxruntime sessions: one thread, sequential, quiet; the only module of the oracle that imports onnxruntime."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as _state

from manifest.errors import PortError

Array = npt.NDArray[Any]
Level = Literal["off", "extended"]

INT8_ALLOWED: Final = ("session.qdqisint8allowed", "1")
"""Lets int8 activations use the integer kernels; without it x86 leaves them in float."""
PRECISE_U8S8: Final = ("session.x64quantprecision", "1")
"""Rewrites int8 weights to uint8 on CPUs whose u8*s8 kernel saturates."""

_LEVELS: Final = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}
_FATAL: Final = 4
_FAILURES: Final[tuple[type[Exception], ...]] = tuple(
    getattr(_state, name)
    for name in (
        "Fail", "InvalidArgument", "NoSuchFile", "NoModel", "EngineError", "RuntimeException",
        "InvalidProtobuf", "ModelLoaded", "NotImplemented", "InvalidGraph", "EPFail",
    )
    if hasattr(_state, name)
)  # fmt: skip


class OnnxruntimeError(PortError):
    """onnxruntime refused to load or run a graph; the text is its own, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a session is made.

    Attributes:
        level: `off` (ORT_DISABLE_ALL) or `extended` (ORT_ENABLE_EXTENDED).
        config: session configuration entries.
    """

    level: Level
    config: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> str:
        """The settings as one phrase for a report."""
        name = "ORT_DISABLE_ALL" if self.level == "off" else "ORT_ENABLE_EXTENDED"
        return " + ".join([name, *(f"{key}={value}" for key, value in sorted(self.config.items()))])


OFF: Final = Settings(level="off")
EXTENDED: Final = Settings(level="extended", config=dict([INT8_ALLOWED]))


class Session:
    """A loaded graph. One intra-op and one inter-op thread, sequential execution, no log output."""

    def __init__(self, model_bytes: bytes, settings: Settings, dump: Path | None = None) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = _FATAL
        options.graph_optimization_level = _LEVELS[settings.level]
        for key, value in settings.config.items():
            options.add_session_config_entry(key, value)
        if dump is not None:
            options.optimized_model_filepath = str(dump)
        try:
            self._session = ort.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"])
        except _FAILURES as error:
            raise OnnxruntimeError(_one_line("load", error)) from error
        self.inputs: tuple[str, ...] = tuple(i.name for i in self._session.get_inputs())
        self.outputs: tuple[str, ...] = tuple(o.name for o in self._session.get_outputs())

    def run_one(self, outputs: Sequence[str], feed: Mapping[str, Array]) -> list[Array]:
        """Outputs of one feed.

        Raises:
            OnnxruntimeError: onnxruntime refuses the feed.
        """
        try:
            results: list[Array] = self._session.run(list(outputs), dict(feed))
        except _FAILURES as error:
            raise OnnxruntimeError(_one_line("run", error)) from error
        return results

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str]) -> dict[str, Array]:
        """Outputs of all feeds, stacked.

        Args:
            feeds: by input name, (F, *shape); F >= 1, the same for all.
            outputs: names of graph outputs.

        Returns:
            By name, (F, *shape) in onnxruntime's dtype.
        """
        count = len(next(iter(feeds.values())))
        used = {name: feeds[name] for name in self.inputs}
        stacked: dict[str, Array] = {}
        for index in range(count):
            results = self.run_one(outputs, {name: array[index] for name, array in used.items()})
            for name, value in zip(outputs, results, strict=True):
                if name not in stacked:
                    stacked[name] = np.empty((count, *value.shape), value.dtype)
                stacked[name][index] = value
        return stacked


def run_onnxruntime(
    model_bytes: bytes,
    feeds: Mapping[str, Array],
    outputs: Sequence[str],
    *,
    level: Level = "off",
    config: Mapping[str, str] | None = None,
) -> dict[str, Array]:
    """Run a model in onnxruntime over all feeds.

    Args:
        model_bytes: self-contained ONNX model.
        feeds: by input name, (F, *shape).
        outputs: graph outputs to return (`instrument.expose` makes inner tensors graph outputs).
        level: `off` (ORT_DISABLE_ALL) or `extended`.
        config: session configuration entries.

    Returns:
        By name, (F, *shape).

    Raises:
        OnnxruntimeError: onnxruntime refuses the model or a feed.
    """
    return Session(model_bytes, Settings(level=level, config=config or {})).run(feeds, outputs)


def dump_optimised(model_bytes: bytes, settings: Settings) -> bytes:
    """The graph that onnxruntime executes after its own optimisation.

    It is written to a private directory, read back and deleted.

    Raises:
        OnnxruntimeError: onnxruntime refuses the model.
    """
    with tempfile.TemporaryDirectory(prefix="ort-dump-") as folder:
        path = Path(folder) / "optimised.onnx"
        Session(model_bytes, settings, dump=path)
        return path.read_bytes()


def _one_line(doing: str, error: Exception) -> str:
    return f"onnxruntime cannot {doing} the graph: {' '.join(str(error).split())[:500]}"
