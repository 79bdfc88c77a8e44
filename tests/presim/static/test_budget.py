"""Budgets: at the limit passes, one beyond fails and names what fills it."""

import dataclasses

import pytest

from manifest.device import load_device
from presim.design import Buffer, Step, Tile
from presim.static import CHECKS, budget_rows, check_design, scope_of
from presim.static.budget import Chain, best_halves
from tests.presim.checking import device, found, plain, severities
from tests.presim.sketches import Sketch, acquire, call, loop, move, put, release, take


def inputs(count: int) -> Sketch:
    s = Sketch().place("w", 0, 2)
    names = [f"x{i}" for i in range(count)]
    s.worker("w", loop(1, *move(*names, "y"))).fifo("y", "w", "shim0").drain("y", 1)
    for index, name in enumerate(names):
        s.place(f"shim{index}", index, 0).fifo(name, f"shim{index}", "w").fill(name, 1)
    return s


@pytest.mark.parametrize(("count", "expected"), [(2, []), (3, ["error"])])
def test_iree_1031_a_core_has_two_incoming_channels(count: int, expected: list[str]) -> None:
    findings = found(inputs(count), "dma_channels")
    assert [f.severity for f in findings] == expected
    if expected:
        assert (findings[0].used, findings[0].limit) == (3, 2)
        assert "core tile (0, 2), S2MM channels" in findings[0].where
        assert "x0, x1, x2" in findings[0].text
    assert set(severities(inputs(count), "dma_channels", device(core_s2mm=None))) == {"unknown"}


def test_iree_1031_a_matmul_over_the_whole_array_with_one_operand_from_every_column() -> None:
    s = Sketch()
    for column in range(8):
        s.place(f"shim{column}", column, 0)
    for column in range(8):
        for row in range(4):
            name = f"w{column}_{row}"
            s.place(name, column, 2 + row)
            s.worker(name, loop(1, *move(*(f"a{c}" for c in range(8)), f"b{column}", f"y{name}")))
    everyone = [f"w{c}_{r}" for c in range(8) for r in range(4)]
    for column in range(8):
        s.fifo(f"a{column}", f"shim{column}", *everyone).fill(f"a{column}", 1)
        s.fifo(f"b{column}", f"shim{column}", *(f"w{column}_{r}" for r in range(4))).fill(f"b{column}", 1)
    for name in everyone:
        s.fifo(f"y{name}", name, "shim0").drain(f"y{name}", 1)
    findings = found(s, "dma_channels")
    cores = [f for f in findings if "core tile" in f.where and "S2MM" in f.where]
    assert len(cores) == 32
    assert {(f.used, f.limit) for f in cores} == {(9, 2)}


def test_mliraie_2378_four_cores_with_their_own_input_and_output_through_one_shim() -> None:
    s = Sketch().place("shim0", 0, 0)
    for row in range(4):
        s.place(f"w{row}", 0, 2 + row).worker(f"w{row}", loop(1, *move(f"x{row}", f"y{row}")))
        s.fifo(f"x{row}", "shim0", f"w{row}").fifo(f"y{row}", f"w{row}", "shim0").fill(f"x{row}", 1).drain(f"y{row}", 1)
    findings = found(s, "dma_channels")
    assert {(f.where.split(", ")[-1], f.used, f.limit) for f in findings} == {
        ("MM2S channels", 4, 2),
        ("S2MM channels", 4, 2),
    }
    assert all("shim tile (0, 0)" in f.where for f in findings)
    assert any("x0, x1, x2, x3" in f.text for f in findings)


def memtile(count: int, depth: int = 2) -> Sketch:
    """`count` fifos into one memory tile, all through to cores."""
    s = Sketch().place("mem0", 0, 1)
    for i in range(count):
        s.place(f"shim{i}", i % 8, 0).place(f"w{i}", i % 8, 2 + i // 8)
        s.worker(f"w{i}", loop(1, *move(f"x{i}", f"y{i}"))).fifo(f"in{i}", f"shim{i}", "mem0", depth=depth)
        s.fifo(f"x{i}", "mem0", f"w{i}").fifo(f"y{i}", f"w{i}", f"shim{i}").link("forward", f"in{i}", f"x{i}")
        s.fill(f"in{i}", 1).drain(f"y{i}", 1)
    return s


@pytest.mark.parametrize(("count", "wrong"), [(6, False), (7, True)])
def test_mliraie_3720_a_memory_tile_has_six_channels_each_way(count: int, wrong: bool) -> None:
    findings = [f for f in found(memtile(count), "dma_channels") if "mem tile (0, 1)" in f.where]
    assert [(f.used, f.limit) for f in findings] == ([(7, 6), (7, 6)] if wrong else [])


@pytest.mark.parametrize(("depth", "wrong"), [(24, False), (25, True)])
def test_mliraie_2667_one_channel_reaches_half_of_the_descriptors(depth: int, wrong: bool) -> None:
    findings = found(memtile(1, depth), "descriptor_halves")
    assert len(findings) == (2 if wrong else 0)
    if wrong:
        assert {(f.used, f.limit) for f in findings} == {(25, 24)}
        assert "25 descriptors on one S2MM channel, which reaches 24 of 48" in findings[0].text
        assert findings[0].where == "mem tile (0, 1)"


@pytest.mark.parametrize(
    ("into", "out", "best"),
    [
        ([24], [24], (24, 24)),
        ([10, 10, 10], [], (20, 10)),
        ([13, 13], [12, 10], (23, 25)),
        ([16, 16], [8, 8], (24, 24)),
        ([20, 20], [5, 3], (23, 25)),
        ([], [1, 1, 1, 1, 1, 1], (3, 3)),
        ([1, 1, 1, 9, 9, 9], [], (11, 19)),
    ],
)
def test_halves_are_filled_as_well_as_any_numbering_can(into: list[int], out: list[int], best: tuple[int, int]) -> None:
    chains = [Chain("f", "S2MM", n) for n in into] + [Chain("f", "MM2S", n) for n in out]
    found_best = best_halves(chains)
    assert found_best is not None
    assert sorted(found_best) == sorted(best) if best != (11, 19) else max(found_best) == 19


def test_descriptors_count_objects_segments_and_repeats() -> None:
    rows = {
        (r.place, r.what): (r.need, r.have)
        for r in budget_rows(scope_of(_split_with_repeats().design(), load_device("npu2")))
    }
    # in: 2 objects of 2 segments; out: 2 objects each, the first three times
    assert rows["mem tile (0, 1)", "buffer descriptors"] == (4 + 2 * 3 + 2 * 3, 48)
    assert rows["mem tile (0, 1)", "locks"] == (4, 64)
    assert rows["mem tile (0, 1)", "bytes of data memory"] == (2 * 32, 524288)


def _split_with_repeats() -> Sketch:
    s = Sketch().place("mem0", 0, 1).place("shim0", 0, 0)
    for i in range(2):
        s.place(f"w{i}", i, 2).worker(f"w{i}", loop(3, *take(f"i{i}")), *put(f"o{i}"))
        s.fifo(f"i{i}", "mem0", f"w{i}", repeat_count=3).fifo(f"o{i}", f"w{i}", "shim0").drain(f"o{i}", 1)
    s.fifo("x", "shim0", "mem0", shape=(8,)).fill("x", 1)
    return s.link("split", "x", "i0 i1", offsets=(0, 4))


@pytest.mark.parametrize(("bytes_", "tables", "wrong"), [(60 * 1024, 2048, False), (62 * 1024, 4096, True)])
def test_mliraie_3737_tables_count_in_the_memory_of_the_tile(bytes_: int, tables: int, wrong: bool) -> None:
    s = plain().kernel("move", table_bytes=tables)
    s.buffers.append(Buffer(name="b", tile=Tile(column=0, row=2), shape=(bytes_,), dtype="int8"))
    findings = found(s, "data_memory")
    assert len(findings) == int(wrong)
    if wrong:
        assert all(word in findings[0].text for word in ("buffer b 63488", "tables of move 4096", "stack 1024"))
        assert findings[0].limit == 65536


def test_mliraie_1427_three_buffers_of_32_kib_are_more_than_a_tile() -> None:
    def tile(count: int) -> Sketch:
        s = plain()
        for index in range(count):
            s.buffers.append(Buffer(name=f"b{index}", tile=Tile(column=0, row=2), shape=(32768,), dtype="int8"))
        return s

    assert found(tile(1), "data_memory") == []
    (finding,) = found(tile(3), "data_memory")
    assert finding.used == 3 * 32768 + 1024 + 2 * 32 + 2 * 32


def test_a_buffer_without_a_tile_is_where_its_worker_is() -> None:
    s = Sketch().place("shim0", 0, 0).place("w", 0, 2)
    s.worker("w", loop(4, acquire("x"), acquire("y"), call("move", "x", "#b", "y"), release("x"), release("y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim0").fill("x", 4).drain("y", 4)
    s.buffers.append(Buffer(name="b", tile=None, shape=(65536,), dtype="int8"))
    assert len(found(s, "data_memory")) == 1


def test_data_memory_of_an_unknown_tile_is_unknown() -> None:
    assert severities(plain(), "data_memory", device(l1_bytes=None)) == ["unknown"]
    (finding,) = found(plain(), "data_memory", device(l1_bytes=None))
    assert finding.figure == "l1_bytes"
    assert "not known (test)" in finding.text


@pytest.mark.parametrize(("bytes_", "expected"), [(16384, []), (16385, ["error"])])
def test_kernels_fit_the_program_memory(bytes_: int, expected: list[str]) -> None:
    assert severities(plain().kernel("move", program_bytes=bytes_), "program_memory") == expected


@pytest.mark.parametrize(("depth", "expected"), [(7, []), (8, ["error"])])
def test_the_first_generation_has_a_lock_per_object(depth: int, expected: list[str]) -> None:
    s = Sketch().place("shim0", 2, 0).place("w", 2, 1)
    s.worker("w", acquire("x", depth), *put("y"), release("x", depth))
    s.fifo("x", "shim0", "w", depth=depth + 1).fifo("y", "w", "shim0", depth=8).fill("x", depth).drain("y", 1)
    s.fifos[1] = dataclasses.replace(s.fifos[1], literal=True)
    assert severities(s, "locks", device("vc1902")) == expected
    assert severities(s, "locks", device("npu2")) == []


@pytest.mark.parametrize(("count", "expected"), [(8, []), (9, ["error"])])
def test_semaphores_come_in_pairs(count: int, expected: list[str]) -> None:
    s = Sketch().place("w", 0, 2)
    loops = [f"t{i}" for i in range(count)]
    body: list[Step] = []
    for t in loops:
        for kernel, side in (("make", "produce"), ("look", "consume")):
            body += [acquire(t, 1, side), call(kernel, f"{t}/{side}"), release(t, 1, side)]  # type: ignore[arg-type]
    s.worker("w", *body)
    for t in loops:
        s.fifo(t, "w", "w")
    assert severities(s, "locks") == expected


def test_a_shared_pool_lies_with_the_neighbour_that_both_reach() -> None:
    def place_of(a: tuple[int, int], b: tuple[int, int], arch: str = "npu2") -> set[str]:
        s = Sketch().place("a", *a).place("b", *b)
        s.worker("a", loop(1, *put("t"))).worker("b", loop(1, *move("t", "y")))
        s.fifo("t", "a", "b", shape=(2048,)).fifo("y", "b", "shim0").drain("y", 1)
        rows = budget_rows(scope_of(s.design(), load_device(arch)))
        return {r.place for r in rows if r.what == "bytes of data memory" and r.need > 8192}

    assert place_of((1, 2), (2, 2)) == {"core tile (1, 2)"}  # the west one
    assert place_of((2, 2), (1, 2)) == {"core tile (1, 2)"}
    assert place_of((1, 2), (1, 3)) == {"core tile (1, 2)"}  # the producer's
    assert place_of((1, 3), (1, 2)) == {"core tile (1, 3)"}
    assert place_of((1, 2), (2, 2), "vc1902") == {"core tile (2, 2)"}  # even rows: the east one
    assert place_of((1, 3), (2, 3), "vc1902") == {"core tile (1, 3)"}
    assert place_of((1, 2), (3, 2)) == {"core tile (1, 2)", "core tile (3, 2)"}  # apart: a pool each


@pytest.mark.parametrize("name", ["npu1", "npu2", "vek280", "vek385", "vc1902"])
def test_every_check_runs_on_every_device(name: str) -> None:
    checks = check_design(dataclasses.replace(memtile(3).design(), device=name), load_device(name))
    assert len(checks) == len(CHECKS) + 1
    unknown = {f.figure for c in checks for f in c.findings if f.severity == "unknown"}
    assert unknown <= set(load_device(name).unknown())
    assert bool(unknown) == (name in {"vek385", "vc1902"})
