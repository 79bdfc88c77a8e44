"""The corpus's float models: accuracy kept, the same bytes in every process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.onnx_import.quantize import QuantizeOptions, quantize_float
from tests.quantizing import (
    run,
)


def test_the_same_input_gives_the_same_bytes_in_another_process(shared: Path, root: Path) -> None:
    code = (
        "import hashlib, numpy, pathlib, sys\n"
        "from manifest.onnx_import.quantize import quantize_float\n"
        "feeds = numpy.load(sys.argv[2])\n"
        "q = quantize_float(pathlib.Path(sys.argv[1]), {'x': feeds['x']})\n"
        "print(hashlib.sha256(q.model_bytes).hexdigest())\n"
    )
    model = str(shared / "corpus" / "models" / "mnist_resnet.onnx")
    feeds = str(shared / "corpus" / "feeds" / "mnist_resnet.npz")
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, model, feeds],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize("choice", ["mse", "range"])
@pytest.mark.parametrize(
    ("name", "key", "float_accuracy"),
    [
        ("digits_cnn", "x", 0.9824),
        ("digits_mlp", "x", 0.932),
        ("mnist_resnet", "x", 0.964),
        ("cntk_mnist", "Input3", None),
    ],
)
def test_corpus_models_keep_their_accuracy(
    shared: Path, name: str, key: str, float_accuracy: float | None, choice: Any
) -> None:
    path = shared / "corpus" / "models" / f"{name}.onnx"
    data = np.load(shared / "corpus" / "feeds" / f"{name}.npz")
    feeds = data["x"] if "x" in data else data[key]
    q = quantize_float(path, {key: feeds}, options=QuantizeOptions(scale_choice=choice))
    judged = data["x_eval"] if float_accuracy is not None else feeds
    got = run(q.model_bytes, {key: judged})[0].reshape(len(judged), -1).argmax(1)
    wanted = run(path.read_bytes(), {key: judged})[0].reshape(len(judged), -1).argmax(1)
    assert (got == wanted).mean() >= 0.98
    if float_accuracy is not None:
        labels = data["y_eval"]
        assert (wanted == labels).mean() == pytest.approx(float_accuracy, abs=5e-4)
        assert (got == labels).mean() >= float_accuracy - 0.01
