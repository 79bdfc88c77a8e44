"""Have of a device, rows kept on skip paths, and cores, each against numbers worked out by hand or by brute force."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.device import Figure, load_device
from phases.baseline.capacity import Capacity, Load, Stream, capacity_of, exceeds
from phases.baseline.footprint import CORE_PROGRAM_BYTES, PROGRAM_BYTES, Footprint, footprints
from tests.budget_graphs import Build

NPU1 = load_device("npu1")
CORE = 4 * (65536 - 1024) // 5


def footprint(
    name: str, weights: int = 0, window: int = 0, *, body: str = "b", program: int = 1000, product: bool = False
) -> Footprint:
    return Footprint(
        name=name, outputs=(f"{name}_out",), weights_bytes=weights, window_bytes=window, body=body,
        program_bytes=program, edges=(), channels=8, reduction=8, product=product,
    )  # fmt: skip


def cores(ops: list[Footprint], capacity: Capacity) -> tuple[int, float, int]:
    load = Load(capacity)
    for op in ops:
        load.append(op)
    b = load.budget("d0", inputs=1, outputs=1)
    return b.cores_needed, b.bodies_per_core, b.program_bytes


def test_capacity_is_80_percent_of_l1_less_stack_and_of_the_memory_tiles() -> None:
    c = capacity_of(NPU1)
    assert c.total_bytes == 4 * ((65536 - 1024) * 16 + 4 * 524288) // 5
    assert (c.core_bytes, c.memtile_bytes, c.cores) == (CORE, 4 * 4 * 524288 // 5, 16)
    assert (c.program_bytes, c.shim_channels, c.unknown) == (16384, 8, ())
    assert capacity_of(load_device("vc1902")).memtile_bytes == 0
    assert capacity_of(load_device("vek280")).shim_channels == 24


FIGURES = ["l1_bytes", "stack_bytes", "memtile_bytes", "memtiles", "program_memory_bytes", "core_tiles", "shim_mm2s"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_null_figure_is_named_and_its_budget_is_none(name: str) -> None:
    c = capacity_of(replace(NPU1, **{name: Figure(value=None, source="none")}))  # type: ignore[arg-type]
    assert c.unknown == (name,)
    load = Load(c)
    load.append(footprint("a", 10, 10))
    budget = load.budget("d0", inputs=1, outputs=1)
    have = (budget.have_bytes, budget.cores_have, budget.program_have_bytes, budget.shim_channels_have)
    assert None in have
    assert exceeds(budget) == ""


def test_vek385_names_its_gaps() -> None:
    assert capacity_of(load_device("vek385")).unknown == ("shim_dma_columns", "shim_mm2s", "shim_s2mm")


@pytest.mark.parametrize(
    ("field", "have", "words"),
    [
        ("need_bytes", "have_bytes", "bytes"),
        ("cores_needed", "cores_have", "cores"),
        ("program_bytes", "program_have_bytes", "program bytes per core"),
        ("shim_channels_need", "shim_channels_have", "shim channels"),
    ],
)
def test_limits_are_exact(field: str, have: str, words: str) -> None:
    budget = Load(capacity_of(NPU1)).budget("d0", inputs=1, outputs=1)
    limit = getattr(budget, have)
    assert exceeds(replace(budget, **{field: limit})) == ""
    assert exceeds(replace(budget, **{field: limit + 1})) == f"{words} need {limit + 1}, have {limit}"
    assert exceeds(replace(budget, **{field: limit + 1, have: None})) == ""


def test_shim_channels_are_counted_per_direction_with_one_for_weights() -> None:
    load = Load(capacity_of(NPU1))
    load.append(footprint("a"))
    assert load.budget("d", inputs=3, outputs=5).shim_channels_need == 5
    assert load.budget("d", inputs=5, outputs=3).shim_channels_need == 5
    load.append(footprint("b", weights=1))
    assert load.budget("d", inputs=5, outputs=3).shim_channels_need == 6


def test_neighbours_share_a_core_up_to_its_data() -> None:
    c = capacity_of(NPU1)
    assert cores([footprint("a", CORE - 10, 5), footprint("b", 2, 3)], c)[0] == 1
    assert cores([footprint("a", CORE - 10, 5), footprint("b", 3, 3)], c)[0] == 2
    assert cores([footprint("a", CORE - 1, 1)], c)[0] == 1
    assert cores([footprint("a", CORE, 1)], c)[0] == 2
    assert cores([footprint("a", 10 * CORE, 1)], c)[0] == 11


def test_neighbours_share_a_core_up_to_its_program() -> None:
    c = capacity_of(NPU1)
    room = 16384 - CORE_PROGRAM_BYTES
    fits = [footprint("a", body="a", program=room - 100), footprint("b", body="b", program=100)]
    assert cores(fits, c) == (1, 2.0, 16384)
    over = [fits[0], footprint("b", body="b", program=101)]
    assert cores(over, c) == (2, 1.0, 16384 - 100)
    same = [footprint(f"s{i}", body="a", program=room) for i in range(5)]
    assert cores(same, c) == (1, 1.0, 16384)


def test_ops_without_a_kernel_need_no_core() -> None:
    assert cores([footprint("a", body="", program=0)], capacity_of(NPU1)) == (0, 0.0, 0)


def test_a_product_has_a_core_of_its_own_and_others_join_it() -> None:
    c = capacity_of(NPU1)
    conv, relu = footprint("c", 100, 100, product=True), footprint("r", 0, 10, body="r")
    assert cores([conv, relu, relu], c)[:2] == (1, 2.0)
    assert cores([conv, conv, conv], c)[:2] == (3, 1.0)
    assert cores([relu, conv], c)[0] == 2
    large = footprint("l", 2 * CORE - 15, 5, product=True)
    assert cores([large, relu], c)[:2] == (2, 2.0)
    assert cores([large, relu, footprint("s", 1)], c)[:2] == (3, 1.67)


def test_weights_move_to_the_memory_tiles_when_the_cores_run_out() -> None:
    c = replace(capacity_of(NPU1), cores=6, memtile_bytes=CORE)
    a = footprint("a", 3 * CORE, 10, product=True)  # 4 cores, the last for 10 bytes
    b = footprint("b", 2 * CORE + 100, 10, product=True)  # 3 cores, the last for 110 bytes
    assert cores([a, b], replace(c, cores=7))[0] == 7
    assert cores([a, b], c)[0] == 6  # 10 bytes moved
    assert cores([a, b], replace(c, cores=5))[0] == 5  # 120 bytes moved
    assert cores([a, b], replace(c, cores=5, memtile_bytes=119))[0] == 6
    assert cores([a, b], replace(c, cores=4, memtile_bytes=CORE + 120))[0] == 4
    assert cores([a, b], replace(c, cores=4, memtile_bytes=CORE + 119))[0] == 5
    assert cores([a, b], replace(c, cores=1, memtile_bytes=100 * CORE))[0] == 2  # one per product at least
    wide = footprint("w", 10, 2 * CORE + 1, product=True)
    assert cores([wide], replace(c, cores=2, memtile_bytes=100 * CORE))[0] == 3  # a window cannot move


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), min_size=1, max_size=4),
    st.integers(1, 12), st.integers(0, 400),
)  # fmt: skip
def test_cores_are_the_fewest_that_hold_everything(sizes: list[tuple[int, int]], have: int, memtile: int) -> None:
    """Against every distribution of cores over products of (weights, window) bytes, L1 of 50 bytes a core."""
    c = replace(capacity_of(NPU1), core_bytes=50, cores=have, memtile_bytes=memtile)
    got = cores([footprint(f"p{i}", w, r, product=True) for i, (w, r) in enumerate(sizes)], c)[0]
    ranges = [range(max(1, -(-r // 50)), max(1, -(-(w + r) // 50)) + 1) for w, r in sizes]
    fits = [
        sum(counts)
        for counts in product(*ranges)
        if sum(max(0, w + r - n * 50) for (w, r), n in zip(sizes, counts, strict=True)) <= memtile
    ]
    resident = sum(max(1, -(-(w + r) // 50)) for w, r in sizes)
    assert got == (resident if resident <= have else max(min(fits), have))


def residual(kernels: list[tuple[int, int]], rows: int) -> tuple[int, int]:
    """(skip bytes of the budget, bytes of a row) of x + a chain of convs with (kernel, dilation), padded to `rows`."""
    b = Build()
    x = y = b.input("x", (1, 8, rows, 4))
    for kernel, dilation in kernels:
        pad = (kernel - 1) * dilation // 2
        y = b.conv(y, 8, kernel, 1, pad)
        op = b.ops[-1]
        b.tensor(op.outputs[0], (1, 8, rows, 4))
        b.ops[-1] = replace(op, attributes={**op.attributes, "dilations": (dilation, dilation)})
    out = b.op("Add", (y, x), (1, 8, rows, 4))
    stream = Stream()
    for f in footprints(b.manifest(out), NPU1).values():
        stream.append(f)
    return stream.skip_bytes, 32


@given(st.lists(st.tuples(st.sampled_from([1, 3, 5]), st.integers(1, 2)), min_size=1, max_size=4), st.integers(1, 40))
def test_skip_rows_equal_a_brute_force_count(kernels: list[tuple[int, int]], rows: int) -> None:
    def needed(m: int) -> int:
        """Rows of x that have to be in before row m of the chain is there."""
        for kernel, dilation in reversed(kernels):
            m = m + (kernel - 1) * dilation - (kernel - 1) * dilation // 2
        return m

    kept = max(min(rows, needed(m) - m) for m in range(1, rows + 1))
    skip, row = residual(kernels, rows)
    assert skip == kept * row


def test_a_strided_shortcut_waits_one_row_and_equal_paths_none() -> None:
    b = Build()
    x = b.input("x", (1, 8, 8, 8))
    main = b.conv(b.conv(x, 8, 3, 2), 8, 3)
    short = b.conv(x, 8, 1, 2)
    out = b.op("Add", (main, short), (1, 8, 4, 4))
    stream = Stream()
    for f in footprints(b.manifest(out), NPU1).values():
        stream.append(f)
    # main needs 2 m + 2 rows of x, the shortcut 2 m - 1: 3 rows of x are 1.5 -> 2 rows of the shortcut
    assert stream.skip_bytes == 2 * 32
    assert residual([(1, 1), (1, 1)], 8) == (0, 32)


def test_a_whole_tensor_waits_for_an_op_that_needs_all_of_it() -> None:
    b = Build()
    x = b.input("x", (6, 6))
    t = b.op("Transpose", (x,), (6, 6), perm=(1, 0))
    out = b.op("Add", (t, x), (6, 6))
    stream = Stream()
    for f in footprints(b.manifest(out), NPU1).values():
        stream.append(f)
    assert stream.skip_bytes == 5 * 6  # row 1 of the sum needs all 6 rows: 5 wait beside the one in the window


def test_delays_add_up_through_strides_and_whole_tensors() -> None:
    b = Build()
    x = b.input("x", (1, 8, 8, 8))
    y = b.conv(b.conv(x, 8, 3, 2), 8, 3, 2)  # row m of y needs 4 m + 0 rows of x
    y = b.conv(y, 8, 3)  # ... and one row of y more: 4 m + 4
    t = b.op("Transpose", (y,), (1, 8, 2, 2), perm=(0, 1, 3, 2))  # both rows of y: 4 * 2 + 4
    short = b.conv(x, 8, 1, 4)  # row m needs 4 m - 3
    out = b.op("Add", (t, short), (1, 8, 2, 2))
    stream = Stream()
    for f in footprints(b.manifest(out), NPU1).values():
        stream.append(f)
    # at row 1 the sum waits for 12 - 1 = 11 rows of x: 2.75 -> 3 rows of the shortcut, which has only 2
    assert stream.skip_bytes == 2 * 16


def test_inputs_without_a_common_origin_wait_outside() -> None:
    b = Build()
    x, y = b.input("x", (1, 8, 8, 4)), b.input("y", (1, 8, 8, 4))
    out = b.op("Add", (b.conv(b.conv(x, 8), 8), y), (1, 8, 8, 4))
    stream = Stream()
    for f in footprints(b.manifest(out), NPU1).values():
        stream.append(f)
    assert stream.skip_bytes == 0


def test_program_bytes_are_those_of_the_fullest_core() -> None:
    b = Build()
    y = b.op("Relu", (b.conv(b.conv(b.input("x", (1, 8, 8, 8)), 8), 8, 1),), (1, 8, 8, 8))
    rows = list(footprints(b.manifest(y), NPU1).values())
    assert cores(rows, capacity_of(NPU1)) == (2, 1.5, CORE_PROGRAM_BYTES + PROGRAM_BYTES["conv"])
