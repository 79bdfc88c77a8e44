from dataclasses import replace

import pytest

from manifest.model import Manifest, Observed, Quantization
from phases.reports.ranges import range_row


def test_a_range_is_drawn_where_the_data_lies(manifest: Manifest) -> None:
    row = range_row(manifest.tensors[0])
    assert row is not None
    assert (row.holds, row.seen) == ("-64 .. 63.5", "-32 .. 63.5")
    assert row.left == pytest.approx(25.1, abs=0.01)
    assert row.right == 100.0
    assert row.scale == "0.5 = 2^-1"


def test_a_range_beyond_the_scale_is_clipped_to_the_bar(manifest: Manifest) -> None:
    wide = replace(manifest.tensors[0], observed=Observed(minimum=-1e9, maximum=1e9, samples=1, saturated=2))
    row = range_row(wide)
    assert row is not None
    assert (row.left, row.right) == (0.0, 100.0)


def test_constants_and_per_channel_tensors_have_no_range_row(manifest: Manifest) -> None:
    x = manifest.tensors[0]
    assert range_row(replace(x, array="t000001")) is None
    assert range_row(replace(x, quant=None)) is None
    assert range_row(replace(x, quant=Quantization(scales=(1.0, 2.0), zero_points=(0, 0), axis=0))) is None
    unseen = range_row(replace(x, observed=None))
    assert unseen is not None
    assert (unseen.seen, unseen.used) == ("not measured", "")
