"""What the cores of a design carry, counted by hand."""

from presim.plan.loads import loads
from tests.presim.plan.harness import plan_of
from tests.presim.plan.models import Net, residual


def test_two_workers_in_a_row() -> None:
    net = Net((1, 8, 4, 4))
    rows = net.rounded("Relu", [net.x])
    first, second = loads(plan_of(net.done(net.rounded("Relu", [rows], 2.0**-3)).manifest))
    assert (first.inputs, first.outputs, first.descriptors, first.deepest) == (1, 1, 4, 2)
    assert (second.inputs, second.outputs, second.descriptors, second.deepest) == (1, 1, 4, 2)
    assert set(first.bytes_by_fifo.values()) == {2 * 4 * 8}  # two rows of four columns and eight channels
    assert first.bytes == 2 * 64
    assert second.bytes == 2 * 64 + 32  # and its multiplier and shift


def test_where_paths_meet_every_input_counts_with_its_own_depth() -> None:
    add = loads(plan_of(residual().manifest))[-1]
    assert (add.inputs, add.outputs) == (2, 1)
    assert add.descriptors == 3 + 2 + 2  # three rows wait on the skip
    assert add.deepest == 3
