"""A small real model with data, for tests that run phase 1 itself."""

from pathlib import Path

import numpy as np
import onnx

from manifest.io import write_npz
from tests.onnx_models import linear_model


def write_model(folder: Path, *, weight_scale: float = 0.5, samples: int = 12, name: str = "m.onnx") -> Path:
    """Write a MatMul model and `real.npz` into `folder`; returns the model. The data loses nothing when quantised."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    onnx.save(linear_model(weight_scale=weight_scale), path)
    feeds = (2 * np.random.default_rng(7).integers(-2, 3, (samples, 1, 4))).astype(np.float32)
    write_npz(folder / "real.npz", {"x": feeds})
    return path
