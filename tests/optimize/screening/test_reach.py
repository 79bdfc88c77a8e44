"""What a kernel reaches of its headers, and which branches its figures rule out."""

import pytest

from bringup.lint.cxx import Source
from optimize.screening import screen
from optimize.screening.reach import condition, definitions, reached, without_dead
from tests.optimize.screening.folders import folder

HEADER = """#pragma once
namespace port {
template <typename C>
struct Used {
    static void run(T* y) {
        if constexpr (C::WIDE != 0) {
            const int32_t a = y[0] / 2;
        } else if constexpr (C::NARROW) {
            const int32_t b = y[0] / 4;
        } else {
            helper(y);
        }
    }
};
template <unsigned N, typename T = int>
inline void helper(T* y) {
    const int32_t c = y[0] / 8;
}
struct Other {
    static void run(T* y) { const int32_t d = y[0] / 16; }
};
}  // namespace port
"""


def lines(body: str) -> list[int]:
    return [c.line for c in screen(folder(body, header=HEADER)) if c.rule == "KS03"]


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        ("constexpr int WIDE = 1;", [7]),
        ("constexpr int WIDE = 0; constexpr bool NARROW = true;", [9]),
        ("constexpr int WIDE = 0; constexpr bool NARROW = false;", [17]),
        ("constexpr int WIDE = 0;", [9, 17]),
        ("", [7, 9, 17]),
    ],
)
def test_figures_of_the_kernel_decide_what_is_reached(figures: str, found: list[int]) -> None:
    assert lines(f"{figures} port::Used<K>::run(y);") == found


def test_what_is_not_called_is_no_finding() -> None:
    assert lines("") == []
    assert lines("port::Other::run(y);") == [20]


def test_lines_stay_where_they_are() -> None:
    texts = {"kernels/one.cc": '#include "h.h"\nvoid f() { helper(1); }\n', "kernels/h.h": HEADER}
    source = reached("kernels/one.cc", texts, ["kernels/h.h"])["kernels/h.h"]
    assert len(source.code) == len(HEADER)
    assert source.code.count("\n") == HEADER.count("\n")
    assert "helper" in source.code
    assert "Used" not in source.code


def test_definitions_have_the_name_that_they_are_called_by() -> None:
    assert [d.name for d in definitions(HEADER)] == ["Used", "helper", "Other"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A == 3", True),
        ("C::A != 3", False),
        ("A > 2 && !B", True),
        ("B || A >= 4", False),
        ("A < 4 && A <= 3", True),
        ("A % 2 == 1", True),
        ("A == X", None),
        ("sizeof(T) == 1", None),
        ("A ==", None),
        ("f(" * 200, None),
    ],
)
def test_conditions_over_known_figures(text: str, value: bool | None) -> None:
    assert condition(text, Source("constexpr int A = 3; constexpr bool B = false;")) is value


def test_a_branch_without_braces_and_an_open_one() -> None:
    source = Source("constexpr int A = 3;")
    assert without_dead("if constexpr (A == 4) f(); g();", source).split() == [
        "if",
        "constexpr",
        "(A",
        "==",
        "4)",
        "g();",
    ]
    assert without_dead("if constexpr (A == 4", source) == "if constexpr (A == 4"
