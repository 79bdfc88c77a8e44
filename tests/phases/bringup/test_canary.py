"""What went in and what the file holds are hashed apart, and differ as soon as one value does."""

from dataclasses import replace
from pathlib import Path

import pytest

from manifest.io import arrays_to_bytes, load_arrays
from phases.bringup.canary import distinct_rows, fed_sha256, stored_sha256
from phases.port import open_port
from phases.presim.source import CANARY, Source, different_inputs, source_of


@pytest.fixture
def source(digits_port: Path) -> Source:
    return source_of(open_port(digits_port))


def test_a_run_on_the_canary_has_its_hash(source: Source) -> None:
    inputs = different_inputs(source, 3)
    assert inputs.real == distinct_rows(inputs) == 3
    assert fed_sha256(inputs) == stored_sha256(source.files, 3) != ""
    assert fed_sha256(different_inputs(source, 2)) != stored_sha256(source.files, 3)


def test_another_value_or_order_is_another_hash(source: Source) -> None:
    inputs = different_inputs(source, 3)
    (name,) = inputs.feeds
    other = inputs.feeds[name].copy()
    other.reshape(-1)[0] += 1
    assert fed_sha256(replace(inputs, feeds={name: other})) != stored_sha256(source.files, 3)
    assert fed_sha256(replace(inputs, feeds={name: inputs.feeds[name][::-1]})) != stored_sha256(source.files, 3)
    stored = load_arrays(source.files[CANARY])
    key = min(stored)
    stored[key] = stored[key] + 1
    assert fed_sha256(inputs) != stored_sha256({**source.files, CANARY: arrays_to_bytes(stored)}, 3)


def test_rows_that_are_the_same_count_once_and_no_canary_has_no_hash(source: Source) -> None:
    inputs = different_inputs(source, 3)
    (name,) = inputs.feeds
    assert distinct_rows(replace(inputs, feeds={name: inputs.feeds[name][[0, 0, 1]]})) == 2
    assert stored_sha256({}, 3) == fed_sha256(replace(inputs, real=0)) == ""
