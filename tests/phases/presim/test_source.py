from dataclasses import replace

import numpy as np
import pytest

from manifest.errors import UpstreamError
from phases.presim.source import NEEDED, Source, different_inputs, read_source, target_tensors


def test_real_inputs_come_first_and_all_differ(digits: Source) -> None:
    inputs = different_inputs(digits, 3)
    assert (inputs.count, inputs.real) == (3, 3)
    rows = inputs.feeds["x"]
    np.testing.assert_array_equal(rows[0], digits.canary["x"][0])
    assert len({row.tobytes() for row in rows}) == 3


def test_made_up_inputs_fill_what_is_missing(digits: Source) -> None:
    twice = np.repeat(digits.canary["x"][:1], 4, axis=0)
    inputs = different_inputs(replace(digits, canary={"x": twice}), 3)
    assert (inputs.count, inputs.real) == (3, 1)
    rows = inputs.feeds["x"]
    assert len({row.tobytes() for row in rows}) == 3
    np.testing.assert_array_equal(np.sort(rows[2].ravel()), np.sort(rows[0].ravel()))


def test_without_data_everything_is_made_up_and_the_same_every_time(digits: Source) -> None:
    bare = replace(digits, canary={})
    first, second = different_inputs(bare, 3), different_inputs(bare, 3)
    assert (first.count, first.real) == (3, 0)
    np.testing.assert_array_equal(first.feeds["x"], second.feeds["x"])


def test_a_model_with_too_few_different_inputs_gives_fewer(digits: Source) -> None:
    flat = np.zeros_like(digits.canary["x"])
    inputs = different_inputs(replace(digits, canary={"x": flat}), 3)
    assert (inputs.count, inputs.real) == (1, 1)


def test_target_tensors_hold_every_activation(branching: Source) -> None:
    inputs = different_inputs(branching, 2)
    found = target_tensors(branching, inputs.feeds)
    wanted = {t.name for t in branching.manifest.tensors if t.array is None}
    assert wanted <= set(found)
    assert {len(array) for array in found.values()} == {2}


def test_a_missing_file_is_told(digits: Source) -> None:
    def read(name: str) -> bytes:
        msg = f"{name}: missing"
        raise UpstreamError(msg)

    with pytest.raises(UpstreamError, match=NEEDED[0]):
        read_source(read, frozenset())
    without = read_source(digits.files.__getitem__, frozenset(NEEDED))
    assert without.canary == {}
    assert set(without.files) == set(NEEDED)
