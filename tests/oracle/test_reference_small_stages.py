"""Small stages get more made-up inputs than large ones."""

import numpy as np

from oracle.reference import compare_random
from oracle.reference.random_ops import CASES, MAX_CASES
from tests.qdq_models import Sketch


def cases(size: int) -> int:
    """Made-up inputs of the only integer stage: Relu over `size` elements."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, size)), 2**-4, out="xd")
    s.qdq(s.node("Relu", [x], name="relu"), 2**-3, out="y")
    s.output("y", (1, size))
    imported = s.load()
    found = compare_random(imported.model_bytes, imported.manifest, imported.arrays)
    row = next(r for r in found.tensors if r.op == "relu")
    assert found.unexplained == 0
    assert np.equal(row.elements % size, 0)
    return row.elements // size


def test_the_smaller_the_stage_the_more_inputs() -> None:
    few, more, most = cases(1 << 14), cases(1 << 10), cases(4)
    assert few < more < most
    assert most - few == MAX_CASES - CASES
