"""Averages whose windows differ in size and that two readers round, against the oracle."""

from typing import Any

import numpy as np
import pytest

from oracle.run import Oracle
from tests.presim.kernels.driver import Bench
from tests.qdq_models import Sketch, feeds_for


@pytest.mark.parametrize("biased", [False, True])
def test_averages_of_windows_of_different_sizes_that_nothing_rounds(biased: bool) -> None:
    """Integers weighed to one unit, rounded by two readers; against the float meaning, off by one where 1/3 ties."""
    random = np.random.default_rng(11)

    def codes(*shape: int) -> Any:
        return random.integers(-127, 128, shape)

    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 6, 6)), 2**-4, 1, out="xd")
    bias = [s.weight(codes(4), 2**-13)] if biased else []
    y = s.node("Conv", [x, s.weight(codes(4, 3, 1, 1), 2**-6), *bias])
    y = s.node("AveragePool", [y], kernel_shape=[2, 3], pads=[1, 0, 0, 1])
    s.output(s.qdq(y, 0.25, out="z"))
    s.output(s.qdq(s.node("Relu", [y]), 0.125, out="r"))
    imported = s.load()
    manifest, feeds = imported.manifest, feeds_for(imported, 2)
    reference = Oracle(manifest, imported.arrays).run(feeds, keep="stored")
    bench = Bench(manifest=manifest, arrays=imported.arrays)
    for feed in range(2):
        values = {"xd.q": reference["xd.q"][feed]}
        for op in manifest.ops:
            if op.where == "npu":
                values[op.outputs[0]] = bench.run(op, {n: values[n] for n in op.inputs if n in values})
        for name in ("z.q", "r.q"):
            wanted = reference[name][feed].astype(int)
            assert len(np.unique(wanted)) > 20
            assert np.abs(values[name] - wanted).max() <= 1
            assert (values[name] == wanted).mean() > 0.99
