"""Static checks: at the limit passes, one beyond fails, the place is named."""

import dataclasses
from typing import Any

import pytest

from manifest.device import Device, Figure, load_device
from presim.design import Buffer, Cascade, Design, Step, Tile, Transfer
from presim.static import CHECKS, StaticFinding, budget_rows, check_design, scope_of
from presim.static.budget import Chain, best_halves
from presim.static.host import outstanding
from presim.static.transfers import contiguous, pattern_faults, split_size
from tests.presim.sketches import Sketch, acquire, call, loop, move, put, release, take


def device(name: str = "npu2", **figures: int | None) -> Device:
    changed: dict[str, Any] = {key: Figure(value=value, source="test") for key, value in figures.items()}
    return dataclasses.replace(load_device(name), **changed)


def found(design: Design | Sketch, rule: str, where: Device | None = None) -> list[StaticFinding]:
    made = design.design() if isinstance(design, Sketch) else design
    checks = {c.rule: c for c in check_design(made, where or load_device(made.device))}
    assert rule in checks, checks["structure"].findings
    return list(checks[rule].findings)


def severities(design: Design | Sketch, rule: str, where: Device | None = None) -> list[str]:
    return [f.severity for f in found(design, rule, where)]


def plain(**fifo: Any) -> Sketch:
    """x through one core into y, on tiles of npu2."""
    s = Sketch().place("shim0", 0, 0).place("w", 0, 2)
    s.worker("w", loop(4, *move("x", "y")))
    s.fifo("x", "shim0", "w", **fifo).fifo("y", "w", "shim0")
    return s.fill("x", 4).drain("y", 4)


def test_every_check_has_a_rule_of_its_own_and_looks_at_a_plain_design_without_finding_anything() -> None:
    checks = check_design(plain().design(), load_device("npu2"))
    assert [c.rule for c in checks] == ["structure", *(c.__name__ for c in CHECKS)]
    assert [f.line() for c in checks for f in c.findings] == []
    idle = {c.rule for c in checks if c.looked_at == 0}
    assert idle == {
        "replayed_broadcasts",
        "segments",
        "links",
        "access_patterns",
        "cascades",
        "descriptor_halves",
        "program_memory",
    }


# structure


def changed(design: Design, part: str, index: int, **changes: Any) -> Design:
    rows = list(getattr(design, part))
    rows[index] = dataclasses.replace(rows[index], **changes)
    parts: dict[str, Any] = {part: tuple(rows)}
    return dataclasses.replace(design, **parts)


@pytest.mark.parametrize(
    ("part", "index", "changes", "words"),
    [
        ("fifos", 0, {"name": "y"}, "2 of this name"),
        ("fifos", 0, {"dtype": "int7"}, "dtype"),
        ("fifos", 0, {"dtype": "U3"}, "dtype"),
        ("fifos", 0, {"shape": ()}, "shape"),
        ("fifos", 0, {"shape": (4, 0)}, "shape"),
        ("fifos", 0, {"depth": 0}, "depth at"),
        ("fifos", 0, {"depth": (1 << 20) + 1}, "depth at"),
        ("fifos", 0, {"depth": 1 << 20, "shape": (64,)}, "no tile has as many"),
        ("fifos", 0, {"consumers": ()}, "no consumer"),
        ("fifos", 0, {"repeat_count": 0}, "repeat_count"),
        ("fifos", 0, {"iter_count": 0}, "iter_count"),
        ("fifos", 0, {"consumer_shape": (3,)}, "does not divide"),
        ("fifos", 0, {"init_objects": 1}, "a shim, which holds none"),
        ("fifos", 1, {"init_objects": 3}, "expected 0 to its depth 2"),
        ("sequence", 0, {"fifo": "z"}, "no such fifo"),
        ("sequence", 0, {"direction": "drain"}, "no consumer is at a shim"),
        ("sequence", 1, {"direction": "fill"}, "not at a shim"),
        ("sequence", 0, {"objects": 0}, "objects from 1"),
        ("sequence", 0, {"sizes": (4,)}, "do not fit each other"),
        ("sequence", 0, {"sizes": (4, 5), "strides": (4, 1)}, "are 20 elements, its objects 16"),
        ("workers", 0, {"program": (acquire("z"),)}, "no fifo 'z'"),
        ("workers", 0, {"program": (acquire("x", 0),)}, "count: expected 1"),
        ("workers", 0, {"program": (acquire("x", 1, "produce"),)}, "which end"),
        ("workers", 0, {"program": (loop(-1),)}, "times"),
        ("workers", 0, {"program": (call("nothing", "x"),)}, "no kernel 'nothing'"),
        ("workers", 0, {"program": (call("move", "#b"),)}, "no buffer 'b'"),
        ("workers", 0, {"program": (call("move", "x:-1"),)}, "index of fifo"),
        ("workers", 0, {"program": (call("move", "<"),)}, "no such cascade"),
        ("workers", 0, {"program": (call("move", "x", row="@i"),)}, "no loop around it"),
        ("workers", 0, {"program": (loop(2, call("move", "x", row="@i/2"), counter="i"),)}, "no loop around it"),
        ("workers", 0, {"name": "v"}, "no worker 'w'"),
    ],
)
def test_structure_names_what_makes_no_sense(part: str, index: int, changes: dict[str, Any], words: str) -> None:
    (only,) = check_design(changed(plain().design(), part, index, **changes), load_device("npu2"))
    assert only.rule == "structure"
    assert any(words in f.line() for f in only.findings), [f.line() for f in only.findings]


def test_structure_of_a_self_loop_needs_its_side() -> None:
    s = plain()
    s.fifo("t", "w", "w")
    for side, fine in (("", False), ("produce", True), ("consume", True)):
        made = changed(s.design(), "workers", 0, program=(acquire("t", 1, side),))  # type: ignore[arg-type]
        assert (check_design(made, load_device("npu2"))[0].findings == ()) == fine


@pytest.mark.parametrize(
    ("dims", "fine"),
    [
        (((4, 1),), True),
        (((2, 2), (2, 1)), True),
        (((5, 1),), False),
        (((2, 3), (2, 1)), False),
        (((2, 4), (2, 1)), False),
    ],
)
def test_structure_of_dims_is_exact(dims: tuple[tuple[int, int], ...], fine: bool) -> None:
    s = plain(dims={"w": dims})
    assert (check_design(s.design(), load_device("npu2"))[0].findings == ()) == fine


def split(offsets: tuple[int, ...], parts: tuple[int, ...], whole: int) -> Sketch:
    s = Sketch()
    for i, size in enumerate(parts):
        s.worker(f"w{i}", loop(2, *move(f"i{i}", f"o{i}"))).fifo(f"i{i}", "mem0", f"w{i}", shape=(size,))
        s.fifo(f"o{i}", f"w{i}", f"shim{i}", shape=(size,)).drain(f"o{i}", 2)
    s.fifo("x", "shim9", "mem0", shape=(whole,)).fill("x", 2)
    return s.link("split", "x", " ".join(f"i{i}" for i in range(len(parts))), offsets=offsets)


@pytest.mark.parametrize(
    ("offsets", "parts", "whole", "words"),
    [
        ((0, 4), (4, 4), 8, ""),
        ((0, 4, 12), (4, 8, 4), 16, ""),
        ((0, 4), (4, 4), 12, "end at 8 of 12"),
        ((0, 8), (4, 4), 12, "leaves a gap"),
        ((0, 2), (4, 4), 8, "overlaps"),
        ((4, 8), (4, 4), 12, "expected 0"),
    ],
)
def test_segments_tile_their_object_exactly(
    offsets: tuple[int, ...], parts: tuple[int, ...], whole: int, words: str
) -> None:
    lines = [f.line() for f in found(split(offsets, parts, whole), "segments")]
    assert bool(lines) == bool(words)
    assert any(words in line for line in lines) or not words


@pytest.mark.parametrize(("offsets", "fine"), [((0, 4), True), ((0, 5), False), ((-1, 4), False)])
def test_a_segment_outside_its_object_is_no_structure(offsets: tuple[int, ...], fine: bool) -> None:
    assert (check_design(split(offsets, (4, 4), 8).design(), load_device("npu2"))[0].findings == ()) == fine


@pytest.mark.parametrize("change", ["unknown", "twice", "no_mem", "arity", "offsets", "dtype"])
def test_structure_of_links(change: str) -> None:
    s = split((0, 4), (4, 4), 8)
    link = s.links[0]
    if change == "unknown":
        s.links[0] = dataclasses.replace(link, targets=("i0", "nothing"))
    elif change == "twice":
        s.links.append(link)
    elif change == "no_mem":
        s.links[0] = dataclasses.replace(link, sources=("o0",))
    elif change == "arity":
        s.links[0] = dataclasses.replace(link, kind="forward")
    elif change == "offsets":
        s.links[0] = dataclasses.replace(link, offsets=(0,))
    else:
        s.fifos[0] = dataclasses.replace(s.fifos[0], dtype="int16")
    (only,) = check_design(s.design(), load_device("npu2"))
    assert only.findings


def test_structure_of_cascades() -> None:
    def cascades(*pairs: tuple[str, str]) -> int:
        s = Sketch()
        for name in "abc":
            s.worker(name, loop(1, *move(f"{name}x", f"{name}y")))
            s.fifo(f"{name}x", "shim0", name).fifo(f"{name}y", name, "shim1").fill(f"{name}x", 1).drain(f"{name}y", 1)
        s.cascades += [Cascade(source=a, target=b) for a, b in pairs]
        return len(check_design(s.design(), load_device("npu2"))[0].findings)

    assert cascades(("a", "b"), ("b", "c")) == 0
    assert cascades(("a", "b"), ("a", "c")) == 1
    assert cascades(("a", "c"), ("b", "c")) == 1
    assert cascades(("a", "d")) == 1


@pytest.mark.parametrize(("repeats", "expected"), [(1, []), (2, []), (3, ["warning"])])
def test_H1_the_rule_of_thumb_of_the_compiler_is_a_warning(repeats: int, expected: list[str]) -> None:
    s = Sketch()
    for name in "ab":
        s.worker(name, loop(repeats, *move("x", f"{name}y"))).fifo(f"{name}y", name, f"shim{name}").drain(
            f"{name}y", repeats
        )
    s.fifo("in", "shim0", "mem0").fifo("x", "mem0", "a", "b", repeat_count=repeats).link("forward", "in", "x").fill(
        "in", 1
    )
    assert severities(s, "replayed_broadcasts") == expected


def test_memory_tile_ends_lead_on_or_hold_values() -> None:
    s = plain()
    s.fifo("dead", "w", "mem0").fifo("empty", "mem0", "w").fifo("full", "mem0", "w", init_objects=1)
    assert {f.where for f in found(s, "links")} == {"fifo 'dead'", "fifo 'empty'"}


# programs


@pytest.mark.parametrize(("count", "depth", "fine"), [(2, 2, True), (3, 2, False), (3, 3, True)])
def test_acquire_stays_within_the_declared_depth(count: int, depth: int, fine: bool) -> None:
    s = Sketch()
    s.worker("w", acquire("x", count), *put("y"), release("x", count))
    s.fifo("x", "shim0", "w", depth=depth).fifo("y", "w", "shim1").fill("x", count).drain("y", 1)
    assert severities(s, "acquire_depth") == ([] if fine else ["error"])
    listed = Sketch()
    listed.worker("w", acquire("x", count), *put("y"), release("x", count))
    listed.fifo("x", "shim0", "w", depth=[1, depth]).fifo("y", "w", "shim1").fill("x", count).drain("y", 1)
    assert severities(listed, "acquire_depth") == ([] if fine else ["error"])


@pytest.mark.parametrize(("depth", "expected"), [(2, []), (3, ["warning"])])
def test_a_producer_deeper_than_some_toolchains_allocate_is_a_warning(depth: int, expected: list[str]) -> None:
    s = Sketch()
    s.worker("a", loop(2, *put("t"))).worker("b", loop(2, *move("t", "y")))
    s.fifo("t", "a", "b", depth=[depth, 2]).fifo("y", "b", "shim0").drain("y", 2)
    assert severities(s, "acquire_depth") == expected


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ((loop(4, *move("x", "y")),), ""),
        ((loop(4, acquire("x", 2), call("look", "x:1"), release("x"), *put("y")),), ""),
        ((loop(4, *move("x", "y"), release("x")),), "releases 1 of fifo 'x' and holds 0"),
        ((acquire("x"), release("x", 2)), "releases 2 of fifo 'x' and holds 1"),
        ((loop(2, acquire("x"), call("look", "x:1"), release("x")),), "gets object 1"),
        ((acquire("x"), release("x"), call("look", "x")), "gets object 0 of fifo 'x', held are 0"),
        ((loop(2, acquire("y"), acquire("x"), call("look", "x"), release("y"), release("x")),), "no kernel was given"),
        ((acquire("x", 4), loop(5, call("look", "x"), release("x"))), "holds 0"),
        ((acquire("x", 4), loop(4, call("look", "x"), release("x"))), ""),
    ],
)
def test_release_balance_is_exact(program: Any, words: str) -> None:
    s = Sketch()
    s.worker("w", *program)
    s.fifo("x", "shim0", "w", depth=4).fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    lines = [f.line() for f in found(s, "release_balance")]
    assert bool(lines) == bool(words), lines
    assert any(words in line for line in lines) or not words


def test_release_balance_is_quick_for_long_loops() -> None:
    s = Sketch()
    s.worker("w", loop(10**12, loop(10**12, *move("x", "y"))))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    assert found(s, "release_balance") == []
    assert found(s, "drift") == []


def test_drift_is_a_body_that_takes_another_number_the_second_time() -> None:
    s = Sketch()
    s.worker("w", loop(3, acquire("x", 2), *put("y"), release("x")))
    s.fifo("x", "shim0", "w", depth=3).fifo("y", "w", "shim1").fill("x", 3).drain("y", 3)
    (finding,) = found(s, "drift")
    assert (finding.severity, finding.used, finding.limit) == ("warning", 4, 3)
    assert "keeps 1 when it ends" in finding.text
    even = Sketch()
    even.worker("w", loop(3, acquire("x", 2), *put("y"), release("x")), release("x"))
    even.fifo("x", "shim0", "w", depth=3).fifo("y", "w", "shim1").fill("x", 4).drain("y", 3)
    assert found(even, "drift") == []


@pytest.mark.parametrize(("sent", "expected"), [(4, []), (5, ["warning"]), (3, ["error"])])
def test_rates_compare_what_is_sent_with_what_is_taken(sent: int, expected: list[str]) -> None:
    s = plain()
    s.sequence[0] = dataclasses.replace(s.sequence[0], objects=sent)
    findings = found(s, "rates")
    assert [f.severity for f in findings] == expected
    if expected:
        assert f"{sent} objects are sent an inference and 4 are taken" in findings[0].text


def test_rates_go_through_links_repeats_and_cut_objects() -> None:
    s = split((0, 4), (4, 4), 8)
    assert found(s, "rates") == []
    s.fifos[0] = dataclasses.replace(s.fifos[0], repeat_count=2)
    assert len(found(s, "rates")) == 1
    cut = Sketch()
    cut.worker("w", loop(6, *move("x", "y")))
    cut.fifo("x", "shim0", "w", shape=(12,), consumer_shape=(4,)).fifo("y", "w", "shim1").fill("x", 2).drain("y", 6)
    assert found(cut, "rates") == []
    assert len(found(cut.fill("x", 1), "rates")) == 1


def test_rates_solve_for_bodies_that_run_several_times() -> None:
    s = Sketch()
    s.worker("w", *move("x", "y"))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 5).drain("y", 5)
    assert found(s, "rates") == []
    assert found(s.fill("x", 1), "rates")


# host


def test_shim_fifos_need_their_tasks() -> None:
    s = plain()
    assert found(s, "host_tasks") == []
    for index, words in ((0, "no task fills it"), (1, "no task drains it")):
        fewer = plain()
        del fewer.sequence[index]
        assert [words in f.text for f in found(fewer, "host_tasks")] == [True]


@pytest.mark.parametrize(("count", "expected"), [(4, []), (5, ["warning"]), (6, ["warning"]), (7, ["error"])])
def test_queues_hold_four_and_absorb_six(count: int, expected: list[str]) -> None:
    s = plain()
    s.sequence[:1] = [Transfer(fifo="x", direction="fill", tensor="x", objects=1)] * count
    assert severities(s, "task_queues") == expected
    assert severities(s, "task_queues", device(dma_queue_depth=None)) == ["unknown", "unknown"]


def test_an_awaited_task_retires_all_before_it_on_its_channel() -> None:
    def tasks(*rows: tuple[str, bool]) -> dict[str, int]:
        return outstanding(
            tuple(
                Transfer(fifo="x", direction="fill", tensor="x", objects=1, group=group, wait=wait)
                for group, wait in rows
            )
        )

    assert tasks(*[("", True)] * 5) == {"x": 5}
    assert tasks(*[("", False)] * 3, ("g", True), *[("", False)] * 3) == {"x": 4}
    assert tasks(*[("", False)] * 3, ("g", False), *[("", False)] * 3) == {"x": 7}


def test_drains_are_awaited() -> None:
    s = plain()
    assert found(s, "awaited_drains") == []
    s.sequence[1] = dataclasses.replace(s.sequence[1], wait=False)
    assert ["no drain is awaited" in f.text for f in found(s, "awaited_drains")] == [True]
    s.sequence.append(dataclasses.replace(s.sequence[1], wait=True))
    assert found(s, "awaited_drains") == []


# transfers


@pytest.mark.parametrize(
    ("dtype", "size", "fine"), [("int8", 4, True), ("int8", 6, False), ("int16", 3, False), ("int32", 1, True)]
)
def test_objects_are_whole_words(dtype: str, size: int, fine: bool) -> None:
    assert (found(plain(shape=(size,), dtype=dtype), "whole_words") == []) == fine


@pytest.mark.parametrize(("words", "expected"), [(16383, []), (16384, ["error"])])
def test_a_descriptor_of_a_core_moves_at_most_its_words(words: int, expected: list[str]) -> None:
    assert severities(plain(shape=(words,), depth=1), "transfer_lengths") == expected
    assert severities(plain(), "transfer_lengths", device(core_bd_words=None)) == ["unknown", "unknown"]


def test_mliraie_3392_a_strided_dimension_above_1023_is_refused_naming_it() -> None:
    """A column block of a [64, 1500] matrix of 32-bit words cut out of wider rows."""

    def block(inner: int) -> Sketch:
        s = Sketch().place("shim0", 0, 0).place("w", 0, 2)
        s.worker("w", loop(64, *move("x", "y"))).fifo("x", "shim0", "w", shape=(inner,)).fifo(
            "y", "w", "shim0", shape=(inner,)
        )
        return s.fill("x", 64, sizes=(64, inner), strides=(2000, 1)).drain("y", 64)

    assert found(block(1023), "access_patterns") == []
    (finding,) = found(block(1500), "access_patterns")
    assert (finding.severity, finding.used, finding.limit) == ("error", 1500, 1023)
    assert "transfer 0 of fifo 'x'" in finding.where
    assert "dimension 1 of 2 (size 1500 words" in finding.text
    assert "1500 = 2 * 750" in finding.text


def test_mliraie_3392_the_factors_it_names_do_fit() -> None:
    assert pattern_faults(((64, 2000), (2, 750), (750, 1)), 4, "shim") == []


@pytest.mark.parametrize(
    ("dims", "itemsize", "kind", "words"),
    [
        (((5000, 1),), 4, "shim", ""),  # contiguous: the length field, no wrap
        (((4, 1500), (1500, 1)), 4, "shim", ""),  # contiguous over both
        (((4, 1500), (1024, 1)), 4, "shim", "above 1023"),
        (((4, 1500), (1024, 1)), 2, "shim", ""),  # 512 words
        (((4, 512), (256, 1)), 4, "core", "above 255"),
        (((4, 512), (255, 1)), 4, "core", ""),
        (((2000, 8), (2, 16000), (4, 1)), 4, "shim", ""),  # the outermost of three has no wrap
        (((2000, 8), (2, 4), (2, 16000), (4, 1)), 4, "shim", "above 64"),
        (((2000, 8), (2, 4), (2, 16000), (4, 1)), 4, "mem", ""),
        (((2, 4), (2000, 8), (2, 16000), (4, 1)), 4, "mem", "above 1023"),
        (((2, 4), (2000, 8), (2, 16000), (4, 1)), 4, "shim", ""),
        (((4, 3),), 4, "shim", "inner stride is 3"),
        (((4, 4), (4, 16)), 1, "mem", "inner stride is 16"),
        (((4, 7), (4, 1)), 1, "mem", "a stride of 7 bytes"),
        (((4, 8), (6, 1)), 1, "mem", "inner runs of 6 bytes"),
        (((2, 2_000_000), (4, 1)), 4, "shim", "step of 2000000 words"),
        (((2, 1 << 20), (4, 1)), 4, "shim", ""),
    ],
)
def test_patterns_fit_a_descriptor(dims: Any, itemsize: int, kind: Any, words: str) -> None:
    texts = [text for text, _, _ in pattern_faults(dims, itemsize, kind)]
    assert bool(texts) == bool(words), texts
    assert any(words in text for text in texts) or not words


@pytest.mark.parametrize(
    ("dims", "expected"), [(((2, 4), (4, 1)), True), (((2, 5), (4, 1)), False), (((1, 9), (4, 1)), True)]
)
def test_contiguous(dims: Any, expected: bool) -> None:
    assert contiguous(dims) == expected


def test_split_size_finds_factors_within_the_limit_wherever_there_are_any() -> None:
    for size in range(2, 3000):
        outer, inner = split_size(size, 63)
        legal = [n for n in range(2, 64) if size % n == 0 and size // n <= 63]
        if not legal and size > 63:
            assert (outer, inner) == (1, size)
        elif size > 63:
            assert outer * inner == size
            assert max(outer, inner) <= 63


@pytest.mark.parametrize(
    ("dims", "expected"),
    [(((4, 4), (4, 16), (4, 1)), []), (((2, 8), (2, 4), (4, 16), (4, 1)), ["error"])],
)
def test_a_layout_has_as_many_dimensions_as_a_descriptor_of_the_tile(dims: Any, expected: list[str]) -> None:
    assert severities(plain(shape=(64,), dims={"w": dims}), "access_patterns") == expected
    assert severities(plain(shape=(64,), dims={"w": dims}), "access_patterns", device(core_bd_dims=None)) == ["unknown"]
    s = Sketch().place("shim0", 0, 0).place("mem0", 0, 1).place("w", 0, 2)
    s.worker("w", loop(4, *move("t", "y"))).fifo("x", "shim0", "mem0", shape=(64,))
    s.fifo("t", "mem0", "w", shape=(64,), dims={"mem0": dims}).fifo("y", "w", "shim0", shape=(64,))
    s.link("forward", "x", "t").fill("x", 4).drain("y", 4)
    assert severities(s, "access_patterns") == []


# tiles


def test_mliraie_26_a_shim_without_a_way_to_memory_is_refused_naming_those_with_one() -> None:
    s = plain()
    (finding,) = found(s, "shim_columns", device("vc1902"))
    assert "column 0" in finding.text
    assert "those with one: 2, 3, 6, 7, 10, 11" in finding.text
    allowed = plain()
    for fifo in list(allowed.fifos):
        allowed.fifos.remove(fifo)
    allowed.place("shim0", 2, 0).fifo("x", "shim0", "w").fifo("y", "w", "shim0")
    assert found(allowed, "shim_columns", device("vc1902")) == []
    assert severities(s, "shim_columns", device("vek385")) == ["unknown"]


def test_two_workers_on_a_tile_are_refused_by_name() -> None:
    s = Sketch().place("a", 0, 2).place("b", 0, 2)
    for name in "ab":
        s.worker(name, loop(1, *put(f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    (finding,) = found(s, "placement")
    assert "2 workers (a, b)" in finding.text
    s = Sketch().place("a", 0, 2).place("b", 0, 3)
    for name in "ab":
        s.worker(name, loop(1, *put(f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    assert found(s, "placement") == []


@pytest.mark.parametrize(
    ("actor", "column", "row", "fine"),
    [
        ("w", 7, 5, True),
        ("w", 8, 5, False),
        ("w", 7, 6, False),
        ("w", 7, 1, False),
        ("shim0", 0, 1, False),
        ("w", -1, 2, False),
    ],
)
def test_tiles_exist(actor: str, column: int, row: int, fine: bool) -> None:
    s = Sketch().place("shim0", 0, 0).place("w", 0, 2).place(actor, column, row)
    s.worker("w", loop(4, *move("x", "y"))).fifo("x", "shim0", "w").fifo("y", "w", "shim0").fill("x", 4).drain("y", 4)
    assert (found(s, "placement") == []) == fine


def test_what_is_not_placed_is_a_warning_and_counts_nowhere() -> None:
    s = Sketch()
    s.tiles = dict.fromkeys(("w", "shim0"))
    s.worker("w", loop(4, *move("x", "y"))).fifo("x", "shim0", "w").fifo("y", "w", "shim0").fill("x", 4).drain("y", 4)
    assert severities(s, "placement") == ["warning"]
    assert budget_rows(scope_of(s.design(), load_device("npu2"))) == ()


def test_an_end_that_is_not_where_its_worker_is() -> None:
    design = plain().design()
    moved = dataclasses.replace(design.fifos[1].producer, tile=Tile(column=1, row=2))
    assert len(found(changed(design, "fifos", 1, producer=moved), "broadcast")) == 1


def test_two_consumers_of_a_broadcast_on_one_tile() -> None:
    s = Sketch().place("a", 0, 2).place("b", 0, 2).place("shim0", 0, 0)
    for name in "ab":
        s.worker(name, loop(1, *move("x", f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    s.fifo("x", "shim0", "a", "b").fill("x", 1)
    assert [f.used for f in found(s, "broadcast")] == [2]


@pytest.mark.parametrize(
    ("arch", "step", "fine"),
    [
        ("npu2", (1, 0), True), ("npu2", (0, -1), True), ("npu2", (0, 1), False), ("npu2", (-1, 0), False),
        ("npu2", (2, 0), False), ("vc1902", (0, -1), False),
    ],
)  # fmt: skip
def test_cascades_lead_south_or_east(arch: str, step: tuple[int, int], fine: bool) -> None:
    s = Sketch().place("a", 3, 4).place("b", 3 + step[0], 4 + step[1])
    for name in "ab":
        s.worker(name, loop(1, *put(f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    s.cascades.append(Cascade(source="a", target="b"))
    assert (found(s, "cascades", device(arch)) == []) == fine


# budgets


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
