"""Target of an average whose windows hold different numbers of elements, as the importer states it."""

import numpy as np
import pytest

from oracle.run import Oracle
from tests.qdq_models import Sketch, op_of


@pytest.mark.parametrize(("x_scale", "largest"), [(2**-4, 0), (0.07, 1)])
def test_one_multiplier_on_the_weighed_sums(x_scale: float, largest: int) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 5, 6)), x_scale, 9, out="xd")
    a = s.node("AveragePool", [x], kernel_shape=[2, 2], pads=[1, 1, 1, 0], count_include_pad=0)
    s.qdq(a, 2**-4, -7, out="y")
    s.output("y", (1, 2, 6, 6))
    imported = s.load()
    requant = op_of(imported.manifest, "AveragePool").requant
    assert requant is not None
    assert len(requant.multipliers) == 1
    oracle = Oracle(imported.manifest, imported.arrays)
    feeds = {"x": np.random.default_rng(1).normal(0, 3, (9, 1, 2, 5, 6)).astype(np.float32)}
    reference, target = (oracle.run(feeds, arithmetic=a, keep="quantized")["y.q"] for a in ("reference", "target"))
    assert np.abs(reference.astype(int) - target).max() <= largest


@pytest.mark.parametrize(("x_scale", "largest"), [(2**-4, 0), (0.07, 1)])
@pytest.mark.parametrize("behind", ["Relu", "Flatten", "Add"])
def test_an_op_behind_an_average_that_nothing_rounds(x_scale: float, largest: int, behind: str) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 5, 6)), x_scale, 9, out="xd")
    a = s.node("AveragePool", [x], "a", kernel_shape=[2, 2], pads=[1, 1, 1, 0], count_include_pad=0)
    s.node("Reshape", [a, s.const([1, 72], np.int64)], "second")
    s.output(s.qdq("second", 2**-4, 3, out="z"), (1, 72))
    last = s.node(behind, [a, a] if behind == "Add" else [a])
    s.output(s.qdq(last, 2**-3, -7, out="y"), (1, 72) if behind == "Flatten" else (1, 2, 6, 6))
    imported = s.load()
    assert imported.manifest.tensor("a").dtype == "exact"
    oracle = Oracle(imported.manifest, imported.arrays)
    feeds = {"x": np.random.default_rng(1).normal(0, 3, (9, 1, 2, 5, 6)).astype(np.float32)}
    reference, target = (oracle.run(feeds, arithmetic=a, keep="quantized") for a in ("reference", "target"))
    for name in ("y.q", "z.q"):
        assert np.abs(reference[name].astype(int) - target[name]).max() <= largest
