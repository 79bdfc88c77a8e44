"""The [preprocessing] table of port.toml."""

from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from phases.baseline.preprocessing import Preprocessing, preprocessing_from


def parse(table: dict[str, Any], *inputs: str) -> dict[str, Preprocessing]:
    return preprocessing_from(table, inputs or ("x",), where="port.toml")


def test_declared_range_follows_mean_and_scale() -> None:
    assert Preprocessing(scale=(1 / 256,)).declared_range() == (0.0, 255 / 256)
    assert Preprocessing(mean=(128.0,), scale=(-0.5,), minimum=0, maximum=255).declared_range() == (-63.5, 64.0)
    per_channel = Preprocessing(mean=(0.0, 10.0), scale=(1.0, 2.0), minimum=0, maximum=1)
    assert per_channel.declared_range() == (-20.0, 1.0)


def test_std_divides() -> None:
    assert parse({"mean": [1, 2], "std": [2, 4]})["x"].scale == (0.5, 0.25)


def test_one_table_for_all_inputs_and_one_per_input() -> None:
    found = parse({"scale": 0.5, "b": {"scale": 2.0}}, "a", "b")
    assert (found["a"].scale, found["b"].scale) == ((0.5,), (2.0,))
    assert list(parse({"b": {}}, "a", "b")) == ["b"]
    assert parse({}) == {}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"men": 1}, "preprocessing.men: unknown key"),
        ({"mean": "1"}, "preprocessing.mean: not a number"),
        ({"mean": []}, "preprocessing.mean: not a number"),
        ({"mean": True}, "preprocessing.mean: not a number"),
        ({"mean": float("nan")}, "preprocessing.mean: not a number"),
        ({"scale": 0}, "finite numbers, not 0"),
        ({"std": [1, 0]}, "finite numbers, not 0"),
        ({"scale": 1, "std": 1}, "both scale and std"),
        ({"layout": "CHW"}, "expected NCHW or NHWC; got 'CHW'"),
        ({"minimum": 5, "maximum": 5}, "one minimum below one maximum"),
        ({"mean": [1, 2], "scale": [1, 2, 3]}, "mean and scale of different lengths"),
        ({"z": {}}, "no input of this name"),
    ],
)
def test_bad_tables_are_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parse(table)
    assert words in str(caught.value)


def test_all_problems_at_once() -> None:
    with pytest.raises(RefusedError) as caught:
        parse({"a": 1, "b": 2, "scale": 0})
    assert len(caught.value.problems) == 3


def test_apply_rounds_once() -> None:
    raw = np.array([[[255]]], np.uint8)
    got = Preprocessing(mean=(0.1,), scale=(1 / 3,)).apply(raw)
    assert got.dtype == np.float32
    assert got.item() == np.float32((255 - 0.1) * (1 / 3))
