"""Both forms of a data file, what is refused, and that nothing is read in two ways."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.io import read_npz
from phases.baseline import data as module
from phases.baseline.data import infer_shapes, load_data, open_data
from phases.baseline.data_forms import InputSpec
from phases.baseline.preprocessing import Preprocessing

IMAGE: tuple[InputSpec, ...] = (("Input3", "float32", (1, 1, 4, 4)),)
RNG = np.random.default_rng(0)


def npz(tmp_path: Path, **arrays: Any) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


def images(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.random(shape, dtype=np.float32)


def refusal(path: Path, inputs: tuple[InputSpec, ...] = IMAGE, **options: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        load_data(path, inputs, **options)
    return str(caught.value)


def test_feed_form_is_taken_as_it_is_and_said(tmp_path: Path) -> None:
    stored = images(5, 1, 1, 4, 4)
    data = load_data(npz(tmp_path, Input3=stored), IMAGE)
    np.testing.assert_array_equal(data.feeds["Input3"], stored)
    assert data.understood == ("Input3: feed form: 5 feeds of (1, 1, 4, 4)",)
    assert data.samples == 5
    assert data.labels is None
    assert data.notes == ()


def test_batch_form_gets_its_batch_axis_of_one(tmp_path: Path) -> None:
    stored = images(5, 1, 4, 4)
    data = load_data(npz(tmp_path, x=stored), IMAGE)
    np.testing.assert_array_equal(data.feeds["Input3"], stored[:, None])
    assert data.understood == ("x: batch form: 5 feeds of (1, 1, 4, 4)",)


def test_the_inputs_own_name_goes_before_x(tmp_path: Path) -> None:
    data = load_data(npz(tmp_path, x=images(2, 1, 4, 4), Input3=images(3, 1, 4, 4)), IMAGE)
    assert data.samples == 3
    assert "'x'" in data.notes[0]


def test_evaluation_set_and_labels(tmp_path: Path) -> None:
    path = npz(tmp_path, x=images(3, 1, 1, 4, 4), x_eval=images(2, 1, 1, 4, 4), y_eval=np.array([7, 1]), y=np.arange(3))
    data = load_data(path, IMAGE)
    assert data.eval_feeds is not None
    assert data.evaluation["Input3"].shape == (2, 1, 1, 4, 4)
    assert data.labels is not None
    assert data.labels.tolist() == [7, 1]
    assert data.notes == ("arrays that belong to no input are left out: 'y'",)


def test_y_labels_the_feeds_where_there_is_no_evaluation_set(tmp_path: Path) -> None:
    data = load_data(npz(tmp_path, x=images(3, 1, 1, 4, 4), y=np.array([0, 1, 2], np.uint8)), IMAGE)
    assert data.eval_feeds is None
    assert data.labels is not None
    assert data.labels.dtype == np.int64
    assert data.evaluation is data.feeds


def test_labels_of_another_name(tmp_path: Path) -> None:
    path = npz(tmp_path, x=images(2, 1, 1, 4, 4), classes=np.array([4, 5]), y=np.array([0, 0]))
    labels = load_data(path, IMAGE, labels="classes").labels
    assert labels is not None
    assert labels.tolist() == [4, 5]
    assert "expected 'digits'; got 'x', 'classes', 'y'" in refusal(path, labels="digits")


def test_evaluation_inputs_without_labels_are_left_out(tmp_path: Path) -> None:
    data = load_data(npz(tmp_path, x=images(2, 1, 1, 4, 4), x_eval=images(3, 1, 1, 4, 4), y=np.zeros(2, int)), IMAGE)
    assert data.eval_feeds is None
    assert data.notes[0] == "evaluation inputs are left out: they have no labels y_eval"


def test_an_input_called_y_is_an_input(tmp_path: Path) -> None:
    data = load_data(npz(tmp_path, y=images(3, 2)), (("y", "float32", (1, 2)),))
    assert data.labels is None
    assert data.feeds["y"].shape == (3, 1, 2)


def test_max_samples_keeps_the_first_of_feeds_and_labels(tmp_path: Path) -> None:
    path = npz(tmp_path, x=images(4, 1, 1, 4, 4), y=np.arange(4))
    data = load_data(path, IMAGE, max_samples=3)
    assert data.samples == 3
    assert data.labels is not None
    assert data.labels.tolist() == [0, 1, 2]
    assert "the first 3 of 4 calibration feeds are used" in data.notes
    assert load_data(path, IMAGE, max_samples=4).notes == ()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((0, 1, 1, 4, 4), np.float32), "DATA-EMPTY"),
        (np.full((2, 1, 1, 4, 4), np.nan, np.float32), "32 of 32, the first at [0, 0, 0, 0, 0]: nan"),
        (np.full((2, 1, 1, 4, 4), -np.inf), "DATA-NOT-FINITE"),
        (np.full((2, 1, 1, 4, 4), 1e300), "as float32: NaN or infinite"),
        (np.zeros((2, 1, 1, 4, 4), bool), "not numbers"),
        (np.zeros((2, 1, 1, 4, 4), np.complex64), "not numbers"),
        (np.full((2, 1, 1, 4, 4), 200, np.uint8), "uint8 values from 200 to 200"),
        (
            np.zeros((2, 1, 1, 4, 5), np.float32),
            "expected (feeds, 1, 1, 4, 4) or (feeds, 1, 4, 4); got (2, 1, 1, 4, 5)",
        ),
        (np.zeros((2, 4, 4), np.float32), "an axis of 1 seems to be missing: reshape to (2, 1, 4, 4)"),
        (np.zeros((2, 4, 4, 1), np.float32), 'declare layout = "NHWC"'),
        (np.float32(1), "DATA-SHAPE"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path: Path, array: Any, words: str) -> None:
    assert words in refusal(npz(tmp_path, Input3=array))


def test_object_arrays_are_refused_without_unpickling(tmp_path: Path) -> None:
    assert "NPZ-OBJECT" in refusal(npz(tmp_path, Input3=np.array([{}], dtype=object)))


def test_missing_array_names_what_was_expected_and_found(tmp_path: Path) -> None:
    text = refusal(npz(tmp_path, images=images(2, 1, 4, 4)))
    assert "expected 'Input3' or 'x'; got 'images'" in text


def test_no_arrays_at_all(tmp_path: Path) -> None:
    assert "DATA-EMPTY" in refusal(npz(tmp_path))


def test_all_problems_come_in_one_report(tmp_path: Path) -> None:
    inputs: tuple[InputSpec, ...] = (("a", "float32", (1, 3)), ("b", "float32", (1, 3)), ("c", "float32", (1, 3)))
    path = npz(tmp_path, a=np.full((2, 1, 3), np.nan, np.float32), b=np.zeros((2, 1, 4), np.float32), y=np.array([0.5]))
    with pytest.raises(RefusedError) as caught:
        load_data(path, inputs)
    assert [p.code for p in caught.value.problems] == ["DATA-NOT-FINITE", "DATA-SHAPE", "DATA-MISSING", "DATA-LABELS"]


def test_inputs_with_different_counts_are_refused(tmp_path: Path) -> None:
    inputs: tuple[InputSpec, ...] = (("a", "float32", (1, 3)), ("b", "float32", (1, 3)))
    assert "a: 2, b: 3" in refusal(npz(tmp_path, a=images(2, 1, 3), b=images(3, 1, 3)), inputs)


def test_a_file_that_changes_while_it_is_read_keeps_the_earlier_sha256(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = npz(tmp_path, Input3=images(2, 1, 4, 4))
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    def changed(path: Path, **options: Any) -> Any:
        np.savez(path, Input3=images(3, 1, 4, 4))
        return read_npz(path, **options)

    monkeypatch.setattr(module, "read_npz", changed)
    assert open_data(path).sha256 == before


@pytest.mark.parametrize(
    "labels", [np.array([0]), np.array([0, -1]), np.array([0.5, 1]), np.array(["a", "b"]), np.int64(2)]
)
def test_labels_that_are_none(tmp_path: Path, labels: Any) -> None:
    assert "DATA-LABELS" in refusal(npz(tmp_path, x=images(2, 1, 1, 4, 4), y=labels))


def test_float64_is_rounded_to_float32_and_said(tmp_path: Path) -> None:
    data = load_data(npz(tmp_path, x=np.full((2, 1, 1, 4, 4), 0.1)), IMAGE)
    assert data.feeds["Input3"].dtype == np.float32
    assert data.notes == ("x: float64 values rounded to float32",)


def test_integer_inputs_take_any_integers_that_fit(tmp_path: Path) -> None:
    spec: tuple[InputSpec, ...] = (("x", "int8", (1, 2)),)
    assert load_data(npz(tmp_path, x=np.array([[-128, 127]])), spec).feeds["x"].dtype == np.int8
    assert "values from -128 to 128" in refusal(npz(tmp_path, x=np.array([[-128, 128]])), spec)
    assert "DATA-DTYPE" in refusal(npz(tmp_path, x=np.array([[1.0, 2.0]])), spec)


def test_declared_preprocessing_turns_raw_bytes_into_what_the_model_takes(tmp_path: Path) -> None:
    raw = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    declared = {"x": Preprocessing(mean=(1.0, 2.0, 3.0), scale=(0.5,), layout="NHWC")}
    data = load_data(npz(tmp_path, x=raw), (("x", "float32", (1, 3, 4, 4)),), preprocessing=declared)
    expected = ((raw.astype(np.float64) - [1, 2, 3]) * 0.5).transpose(0, 3, 1, 2)[:, None]
    np.testing.assert_array_equal(data.feeds["x"], expected.astype(np.float32))
    assert "range -1.5 to 127" in data.notes[0]


def test_preprocessing_that_does_not_fit_the_channels(tmp_path: Path) -> None:
    declared = {"Input3": Preprocessing(mean=(1.0, 2.0, 3.0))}
    assert "DATA-PREPROCESSING" in refusal(npz(tmp_path, x=np.ones((2, 1, 4, 4), np.uint8)), preprocessing=declared)


def test_two_readings_of_a_fixed_first_axis_are_refused(tmp_path: Path) -> None:
    tokens: tuple[InputSpec, ...] = (("x", "float32", (16, 8)),)
    text = refusal(npz(tmp_path, x=images(32, 8)), tokens)
    assert "2 feeds of (16, 8), or 32 feeds for a model that takes 16 rows" in text
    assert "remedy: add a first axis for the feeds: (feeds, 16, 8)" in text
    data = load_data(npz(tmp_path, x=images(16, 8)), tokens)
    assert data.understood == ("x: a single feed: 1 feeds of (16, 8)",)
    assert load_data(npz(tmp_path, x=images(2, 16, 8)), tokens).samples == 2


def test_open_dimensions_come_from_the_data(tmp_path: Path) -> None:
    path = npz(tmp_path, image=images(5, 1, 3, 8, 6), v=images(5, 4))
    inputs: tuple[InputSpec, ...] = (("image", "float32", ("N", 3, "h", "w")), ("v", "float32", (1, 4)))
    assert infer_shapes(path, inputs) == {"image": (1, 3, 8, 6)}
    assert infer_shapes(npz(tmp_path, x=images(256, 64)), (("x", "float32", ("n", 64)),)) == {"x": (1, 64)}
    assert infer_shapes(npz(tmp_path, x=images(256, 2, 64)), (("x", "float32", ("n", 64)),)) == {"x": (2, 64)}


def test_open_first_dimension_that_is_no_batch_has_two_readings(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"7 feeds of \(1, 64\), or one feed of \(7, 64\)"):
        infer_shapes(npz(tmp_path, x=images(7, 64)), (("x", "float32", ("tokens", 64)),))
    assert infer_shapes(npz(tmp_path, x=images(1, 64)), (("x", "float32", ("tokens", 64)),)) == {"x": (1, 64)}


def test_unnamed_dimensions_are_not_one_symbol(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.ones((5, 1, 3, 4, 6), np.float32))
    assert infer_shapes(path, (("x", "float32", ("?", 3, "?", "?")),)) == {"x": (1, 3, 4, 6)}


def test_one_symbol_with_two_sizes_is_refused(tmp_path: Path) -> None:
    inputs: tuple[InputSpec, ...] = (("a", "float32", ("batch", 3)), ("b", "float32", ("batch", 3)))
    with pytest.raises(RefusedError, match="dimension 'batch' gets two sizes"):
        infer_shapes(npz(tmp_path, a=images(4, 1, 3), b=images(4, 2, 3)), inputs)


def test_the_sha256_is_that_of_the_file(tmp_path: Path) -> None:
    path = npz(tmp_path, x=images(2, 1, 1, 4, 4))
    file = open_data(path)
    assert load_data(file, IMAGE).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["cntk_mnist", "digits_cnn", "digits_mlp", "mnist_resnet"])
def test_corpus_feeds_are_understood(shared: Path, name: str) -> None:
    dims: dict[str, tuple[int, ...]] = {
        "cntk_mnist": (1, 1, 28, 28),
        "digits_cnn": (1, 1, 8, 8),
        "digits_mlp": (1, 64),
        "mnist_resnet": (1, 1, 28, 28),
    }
    key = "Input3" if name == "cntk_mnist" else "x"
    data = load_data(shared / "corpus" / "feeds" / f"{name}.npz", ((key, "float32", dims[name]),))
    assert data.understood[0].startswith(f"{key}: feed form")
    assert (data.labels is not None) == (name != "cntk_mnist")
