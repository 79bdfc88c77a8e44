"""The Python API: load a port, run its oracle, read its gates.

::

    from phases import api

    port = api.load("digits.port")                      # every byte is checked; UpstreamError where one changed
    y = port.run({"image": x})                          # {"logits": ...}, integers exact; x with or without feed axis
    t = port.run({"image": x}, all_tensors=True, arithmetic="target")
    gate = port.gate("baseline")                        # gate.verdict, gate.passed, gate.report.items
    port.manifest.tensor("logits").quant

What a person can cause raises `manifest.errors.PortError`; its text says where, what, expected, got, remedy.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manifest.io import load_arrays, manifest_from_json
from manifest.model import Manifest
from oracle.run import Oracle
from phases.feeds import Feeds, as_onnx, chunks, take_feeds
from phases.gates import GateView
from phases.port import Port, open_port
from phases.runner import survey

Arithmetic = Literal["reference", "target"]


@dataclass(frozen=True, kw_only=True)
class LoadedPort:
    """A port in memory.

    Attributes:
        port: its files.
        manifest: the deployment manifest.
        arrays: constants by key (`t000001`).
    """

    port: Port = field(repr=False)
    manifest: Manifest = field(repr=False)
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)

    @cached_property
    def oracle(self) -> Oracle:
        """The exact integer model; arrays in and out carry a feed axis in front."""
        return Oracle(self.manifest, self.arrays)

    def run(
        self, inputs: Mapping[str, ArrayLike], *, all_tensors: bool = False, arithmetic: Arithmetic = "reference"
    ) -> dict[str, NDArray[Any]]:
        """Run the oracle.

        Args:
            inputs: by ONNX input name, in the model's exact shape or all with one feed axis in front; ONNX dtypes.
            all_tensors: return every quantised tensor.
            arithmetic: `reference`: the file as written; `target`: what the kernels compute.

        Returns:
            By ONNX name, in the form of the inputs, in ONNX dtypes; quantised tensors as integers.

        Raises:
            RefusedError: every missing, extra, mis-shaped or mis-typed input.
        """
        feeds = take_feeds({name: np.asarray(value) for name, value in inputs.items()}, self.manifest)
        return self.run_feeds(feeds, all_tensors=all_tensors, arithmetic=arithmetic)

    def run_feeds(
        self, feeds: Feeds, *, all_tensors: bool = False, arithmetic: Arithmetic = "reference"
    ) -> dict[str, NDArray[Any]]:
        """Like `run`, from feeds that were checked before."""
        parts: dict[str, list[NDArray[Any]]] = {}
        for piece in chunks(feeds, self.manifest):
            found = self.oracle.run(piece, arithmetic=arithmetic, keep="quantized" if all_tensors else "outputs")
            for name in self._names(found, all_tensors=all_tensors):
                parts.setdefault(name, []).append(as_onnx(self.manifest.tensor(name), found[name]))
        whole = {name: np.concatenate(arrays) for name, arrays in parts.items()}
        return whole if feeds.leading else {name: array[0] for name, array in whole.items()}

    def _names(self, found: Mapping[str, NDArray[Any]], *, all_tensors: bool) -> list[str]:
        outputs = list(self.manifest.model.outputs)
        return [*outputs, *(name for name in found if name not in outputs)] if all_tensors else outputs

    def gate(self, phase: str = "baseline", *, today: date | None = None) -> GateView:
        """A gate as it is worth today: as written, or STALE, MISSING, TAMPERED."""
        return survey(self.port.root, today).gate(phase)


def load(path: str | os.PathLike[str]) -> LoadedPort:
    """Load a port, whatever its gates say.

    Raises:
        RefusedError: no port there.
        UpstreamError: it is tampered or interrupted; one line per file.
        LockedError: another run is changing it right now.
    """
    port = open_port(Path(path))
    manifest = manifest_from_json(port.read("manifest.json"))
    return LoadedPort(port=port, manifest=manifest, arrays=load_arrays(port.read("tensors.npz")))
