import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.io import write_npz
from phases.__main__ import main
from phases.presim import equivalence
from phases.presim.equivalence import compare, read_equivalence
from presim.decompositions import DECOMPOSITIONS

RANDOM = np.random.default_rng(4)
X = (4 * RANDOM.standard_normal((3, 24))).astype(np.float32)


def write(folder: Path, stored: dict[str, Any] | None = None, **fields: Any) -> Path:
    write_npz(folder / "real.npz", {"x": X} if stored is None else stored)
    made = {
        "name": "scores",
        "decomposition": "chunked_softmax",
        "chunks": [7, 8],
        "data": "real.npz",
        "allowed": 1e-6,
        **fields,
    }
    path = folder / "equivalence.json"
    path.write_text(json.dumps({k: v for k, v in made.items() if v is not None}))
    return path


def test_every_chunk_length_is_a_row(tmp_path: Path) -> None:
    rows = compare(read_equivalence(write(tmp_path)))
    assert [(row.name, row.elements, row.mismatches) for row in rows] == [
        ("scores in chunks of 7", 72, 0),
        ("scores in chunks of 8", 72, 0),
    ]


def test_the_largest_difference_is_the_limit(tmp_path: Path) -> None:
    (row,) = compare(read_equivalence(write(tmp_path, chunks=[7])))
    assert row.largest_difference > 0
    (at,) = compare(read_equivalence(write(tmp_path, chunks=[7], allowed=row.largest_difference)))
    assert at.mismatches == 0
    below = float(np.nextafter(row.largest_difference, 0))
    (over,) = compare(read_equivalence(write(tmp_path, chunks=[7], allowed=below)))
    assert over.mismatches >= 1
    assert main(["equivalence", str(write(tmp_path, chunks=[7], allowed=below))]) == 1


def test_a_wrong_decomposition_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_to_correct(x: Any, chunk: int) -> Any:
        peak, total = np.full((*x.shape[:-1], 1), -np.inf, np.float32), np.zeros((*x.shape[:-1], 1), np.float32)
        for at in range(0, x.shape[-1], chunk):
            piece = x[..., at : at + chunk]
            peak = np.maximum(peak, piece.max(axis=-1, keepdims=True))
            total = total + np.exp(piece - peak).sum(axis=-1, keepdims=True)
        return np.exp(x - peak) / total

    row = dataclasses.replace(DECOMPOSITIONS["chunked_softmax"], pieces=forgets_to_correct)
    monkeypatch.setattr(equivalence, "DECOMPOSITIONS", {"chunked_softmax": row})
    assert all(found.mismatches for found in compare(read_equivalence(write(tmp_path))))


def test_what_is_no_number_is_a_mismatch(tmp_path: Path) -> None:
    huge = {"q": np.full((1, 4), 1e30), "k": np.full((4, 4), 1e30), "v": np.full((4, 2), 1.0)}
    with np.errstate(all="ignore"):
        path = write(tmp_path, huge, decomposition="streaming_attention", chunks=[2])
        (row,) = compare(read_equivalence(path))
    assert row.mismatches == row.elements == 2
    assert row.largest_difference == float("inf")


def test_outcomes_are_kept_in_a_port(port: Path, tmp_path: Path) -> None:
    assert main(["equivalence", str(write(tmp_path)), "--port", str(port)]) == 0
    assert len(list((port / "evidence/equivalences").iterdir())) == 2
    assert main(["equivalence", str(write(tmp_path)), "--port", str(tmp_path / "none.port")]) == 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": None}, "key 'name' is missing"),
        ({"extra": 1}, "no such key: 'extra'"),
        ({"name": ""}, "expected a few words"),
        ({"allowed": -1}, "expected a number from 0"),
        ({"allowed": True}, "expected a number from 0"),
        ({"allowed": 10**400}, "expected a number from 0"),
        ({"decomposition": "magic"}, "no such decomposition"),
        ({"decomposition": ["chunked_softmax"]}, "no such decomposition"),
        ({"chunks": [1] * 65}, "at most 64; got 65"),
        ({"chunks": []}, "expected a list of numbers from 1"),
        ({"chunks": [0]}, "expected a list of numbers from 1"),
        ({"chunks": [24]}, "holds all 24 values: nothing is decomposed"),
        ({"data": "none.npz"}, "NPZ-MISSING"),
        ({"data": 3}, "expected a path"),
        ({"arrays": {"y": "x"}}, "no input 'y'"),
        ({"arrays": {"x": "y"}}, "no array 'y'"),
    ],
)
def test_a_wrong_file_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], words: str
) -> None:
    assert main(["equivalence", str(write(tmp_path, **fields))]) == 2
    assert words in capsys.readouterr().err


def test_a_chunk_of_all_but_one_is_taken(tmp_path: Path) -> None:
    assert len(compare(read_equivalence(write(tmp_path, chunks=[23])))) == 1


@pytest.mark.parametrize(
    "array",
    [np.array([[1, 2]], np.int8), np.zeros((0, 3)), np.float32(1), np.array([[np.nan, 1]])],
)
def test_data_that_cannot_be_taken_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], array: Any) -> None:
    assert main(["equivalence", str(write(tmp_path, {"x": np.asarray(array)}))]) == 2
    assert "array 'x' cannot be taken" in capsys.readouterr().err


def test_arrays_that_do_not_fit_each_other_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = {"q": np.zeros((2, 4)), "k": np.zeros((6, 5)), "v": np.zeros((6, 3))}
    assert main(["equivalence", str(write(tmp_path, arrays, decomposition="streaming_attention"))]) == 2
    assert "do not fit each other" in capsys.readouterr().err
