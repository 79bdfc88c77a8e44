"""The front by brute force, and the same picture every time."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from optimize.pareto import Point, dominates, front_of, plot

TRIPLES = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=30)


@given(TRIPLES)
def test_the_front_is_what_no_other_one_beats(triples: list[tuple[int, int, int]]) -> None:
    front = front_of(triples, lambda t: t)
    beaten = [any(b != a and all(y <= x for x, y in zip(a, b, strict=True)) for b in triples) for a in triples]
    assert set(front) == {t for t, bad in zip(triples, beaten, strict=True) if not bad}
    assert len(front) == len(set(front))
    assert list(front) == sorted(front)


def test_of_equal_ones_the_first_is_kept() -> None:
    rows = [("a", (1, 1, 1)), ("b", (1, 1, 1)), ("c", (0, 2, 1))]
    assert [name for name, _ in front_of(rows, lambda row: row[1])] == ["c", "a"]


def test_equal_ones_do_not_dominate() -> None:
    assert not dominates((1, 2, 3), (1, 2, 3))
    assert dominates((1, 2, 2), (1, 2, 3))
    assert not dominates((1, 2, 4), (1, 3, 3))


def points() -> list[Point]:
    return [
        Point(name="c000", tiles=3, interval=2466, latency=2818, front=True),
        Point(name="c001", tiles=12, interval=917, latency=1695, front=True, best=True),
        Point(name="c002", tiles=40, interval=980, latency=2047, front=False),
    ]


def test_the_picture_is_the_same_bytes_and_names_the_front() -> None:
    first, second = (plot(points(), title="front <simulated>") for _ in range(2))
    assert first == second
    assert first != plot(points()[:2], title="front <simulated>")
    text = "".join(ET.fromstring(first).itertext())
    assert "c000" in text
    assert "c001" in text
    assert "c002" not in text
    assert "simulated" in text


def test_a_picture_of_nothing_and_of_beaten_ones_alone() -> None:
    assert ET.fromstring(plot([], title="none")) is not None
    assert ET.fromstring(plot(points()[2:], title="none")) is not None
