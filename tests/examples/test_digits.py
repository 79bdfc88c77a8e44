"""The digits example is what its README says."""

from pathlib import Path

import numpy as np
import pytest

from manifest.onnx_import.quantize import quantize_float
from phases.baseline.data import load_data


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "examples" / "digits"


def test_the_data_is_understood_and_labelled(folder: Path) -> None:
    data = load_data(folder / "digits.npz", (("x", "float32", (1, 1, 8, 8)),))
    assert data.samples == 256
    assert data.evaluation["x"].shape == (397, 1, 1, 8, 8)
    assert data.labels is not None
    assert set(data.labels.tolist()) == set(range(10))
    assert (data.feeds["x"].min(), data.feeds["x"].max()) == (0, 1)


def test_the_images_are_sixteenths(folder: Path) -> None:
    with np.load(folder / "digits.npz") as stored:
        pixels = np.concatenate([stored["x"], stored["x_eval"]]) * 16
    np.testing.assert_array_equal(pixels, np.rint(pixels))
    assert pixels.max() == 16


def test_the_model_quantizes(folder: Path) -> None:
    data = load_data(folder / "digits.npz", (("x", "float32", (1, 1, 8, 8)),))
    notes = quantize_float(folder / "digits_cnn.onnx", data.feeds).notes
    assert "8 activations int8" in next(n.text for n in notes if n.code == "QUANT-SCHEME")


def test_the_files_are_those_of_the_corpus(folder: Path, shared: Path) -> None:
    corpus = shared / "corpus"
    assert (folder / "digits_cnn.onnx").read_bytes() == (corpus / "models" / "digits_cnn.onnx").read_bytes()
    assert (folder / "digits.npz").read_bytes() == (corpus / "feeds" / "digits_cnn.npz").read_bytes()
