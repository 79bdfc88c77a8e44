"""`port.toml`: every key, and everything that is wrong with it at once, by name."""

import re

import pytest

from manifest.errors import RefusedError
from phases.declared import Declared, Thresholds, parse_declared

FULL = b"""
data = "../real.npz"
labels = "classes"
device = "npu1"
[shapes]
image = [1, 3, 224, 224]
scalar = []
[preprocessing]
mean = 1.5
[preprocessing.image]
scale = 2
[thresholds]
max_accuracy_drop = 0
min_sqnr_db = -3
min_top1_agreement = 1
"""


def test_everything_is_read() -> None:
    assert parse_declared(FULL) == Declared(
        data="../real.npz",
        labels="classes",
        device="npu1",
        shapes={"image": (1, 3, 224, 224), "scalar": ()},
        preprocessing={"mean": 1.5, "image": {"scale": 2}},
        thresholds=Thresholds(max_accuracy_drop=0.0, min_sqnr_db=-3.0, min_top1_agreement=1.0),
    )


def test_nothing_is_required() -> None:
    assert parse_declared(None) == parse_declared(b"") == Declared()


def test_all_problems_at_once() -> None:
    bad = b"""
    dat = "x"
    device = 2
    labels = ""
    shapes = {a = [0], b = [1]}
    preprocessing = []
    [thresholds]
    min_sqnr = 3
    max_accuracy_drop = 1.5
    """
    with pytest.raises(RefusedError) as caught:
        parse_declared(bad, "p/port.toml")
    lines = [problem.line() for problem in caught.value.problems]
    assert len(lines) == 7
    assert all("p/port.toml" in line for line in lines)
    assert "unknown key 'dat'" in lines[0]
    assert "did you mean 'data'?" in lines[0]
    assert any("unknown key 'min_sqnr'" in line and "'min_sqnr_db'" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data = 3", "data: bad value"),
        ('data = ""', "data: bad value"),
        ('data = "a\\nb"', "data: bad value"),
        ("shapes = 3", "shapes: bad value"),
        ("shapes = {x = [1.0]}", "shapes: bad value"),
        ("shapes = {x = [true]}", "shapes: bad value"),
        ("shapes = {x = [2147483648]}", "shapes: bad value"),
        ("thresholds = 3", "thresholds: bad value"),
        ("thresholds.max_accuracy_drop = -0.001", "from 0 to 1"),
        ("thresholds.max_accuracy_drop = 1.001", "from 0 to 1"),
        ("thresholds.min_top1_agreement = nan", "from 0 to 1"),
        ("thresholds.min_sqnr_db = inf", "a number of dB"),
        ("thresholds.min_sqnr_db = true", "a number of dB"),
        ("data = ", "not TOML"),
        ("data = 'a'\ndata = 'b'", "not TOML"),
        ("x = " + "[" * 100_000, "not TOML"),
    ],
)
def test_one_bad_value(text: str, words: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(words)) as caught:
        parse_declared(text.encode())
    assert len(caught.value.problems) == 1


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(RefusedError, match="not TOML"):
        parse_declared(b"\xff\xfe")


@pytest.mark.parametrize("text", ["shapes = {x = [2147483647, 1]}", "thresholds.max_accuracy_drop = 1"])
def test_the_last_value_that_is_taken(text: str) -> None:
    assert parse_declared(text.encode()) != Declared()
