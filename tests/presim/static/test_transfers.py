"""Host tasks and transfers: queues, tokens, words, patterns."""

import dataclasses
from typing import Any

import pytest

from presim.design import Transfer
from presim.static.host import outstanding
from presim.static.transfers import contiguous, pattern_faults, split_size
from tests.presim.checking import device, found, plain, severities
from tests.presim.sketches import Sketch, loop, move


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
