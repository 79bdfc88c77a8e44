"""Real models with their tensors in `target` arithmetic, from the corpus and the examples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.io import read_npz
from manifest.model import Manifest, Op
from manifest.onnx_import import import_model, inspect_model
from oracle.run import Oracle
from tests.presim.kernels.driver import Bench

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT.parent / "shared" / "corpus"
FEEDS = 3


@dataclass(frozen=True, kw_only=True)
class Real:
    """A model, its arrays, and every tensor of some real inputs: (FEEDS, *shape), accumulators as integers."""

    manifest: Manifest
    arrays: Mapping[str, Array]
    tensors: Mapping[str, Array]

    def ops(self) -> Iterator[Op]:
        """Ops on the array."""
        return (op for op in self.manifest.ops if op.where == "npu" and op.type != "DequantizeLinear")

    def inputs(self, op: Op, feed: int) -> dict[str, Array]:
        """Activations that an op reads."""
        return {n: self.tensors[n][feed] for n in op.inputs if n in self.tensors}

    def wanted(self, op: Op, feed: int) -> Array:
        """What it writes."""
        found: Array = self.tensors[op.outputs[0]][feed]
        return found

    def bench(self, **options: Any) -> Bench:
        """A tile for it."""
        return Bench(manifest=self.manifest, arrays=self.arrays, **options)


@cache
def real(model: str, feeds: str) -> Real:
    """A model of the corpus (`digits_cnn.quark_xint8`) or of the examples (`examples/branching/branching`)."""
    path = ROOT / f"{model}.onnx" if "/" in model else CORPUS / "models" / f"{model}.onnx"
    data = read_npz(ROOT / f"{feeds}.npz" if "/" in feeds else CORPUS / "feeds" / f"{feeds}.npz", max_bytes=1 << 30)
    inputs, shapes = {}, {}
    for name, _, dims in inspect_model(path).inputs:
        found = data.get(name, data.get("x"))
        assert found is not None
        batch = found[:, np.newaxis] if found.ndim == len(dims) else found
        inputs[name], shapes[name] = batch[:FEEDS], tuple(batch.shape[1:])
    imported = import_model(path, shapes=shapes)
    oracle = Oracle(imported.manifest, imported.arrays)
    tensors = oracle.run(inputs, arithmetic="target", keep="stored")
    return Real(manifest=imported.manifest, arrays=imported.arrays, tensors={**inputs, **tensors})
