"""Every lever: an example that it finds and one that it leaves alone."""

from typing import Any

import numpy as np
import pytest

from optimize.screening import RULES, UNCONFIRMED, Candidate, screen, screen_evidence
from tests.optimize.screening.folders import folder

VECTOR = "const auto v = aie::load_v<16>(x); aie::store_v(y, v);\n"
LOOP = "for (int32_t i = 0; i < 8; ++i) { sums = aie::mac(sums, aie::load_v<16>(x + 16 * i), v); }"
MMUL = "aie::mmul<8, 8, 8, int8, int8> m;\nfor (int32_t i = 0; i < 8; ++i) { m.mac(a, b); }"
BITS = "static constexpr int32_t BITS = 64;\n" + VECTOR
FINISH = "const auto z = aie::mul(v, requant[0]);\n"

FOUND: dict[str, list[dict[str, Any]]] = {
    "KS01": [{"body": LOOP}, {"body": f"AIE_PREPARE_FOR_PIPELINING\n{LOOP}"}],
    "KS02": [
        {"body": "for (int32_t i = 0; i < rows; ++i) { y[i] = x[i]; }"},
        {"body": "for (int32_t i = 0; i < s.last; ++i) { f(i); }"},
    ],
    "KS03": [{"body": VECTOR + "const int32_t half = x[0] / 2;"}, {"body": VECTOR + "const int32_t r = x[0] % 8;"}],
    "KS04": [
        {"body": "for (int32_t i = 0; i < 8; ++i) { if (i > 2) { f(x); } }"},
        {"body": "for (int32_t i = 0; i < 8; ++i) { if (x[0]) { f(x); } }"},
    ],
    "KS05": [
        {"body": "for (int32_t i = 0; i < 8; ++i) { y[i] = (acc[i] + (1 << (s - 1))) >> s; }"},
        {"body": "for (int32_t i = 0; i < 8; ++i) { y[i] = acc[i] >> shift; }"},
    ],
    "KS06": [
        {"body": f"{MMUL}\nfor (int32_t i = 0; i < 8; ++i) {{ m.mac(aie::transpose(a, 8, 8), b); }}"},
        {"body": f"{MMUL}\nfor (int32_t i = 0; i < 8; ++i) {{ memcpy(t + 8 * i, x + 8 * i, 8); }}"},
    ],
    "KS07": [
        {"body": "for (int32_t i = 0; i < 8; ++i) { y[i] = x[i]; }"},
        {"body": "for (int32_t i = 0; i < 8; ++i) y[i] = 0;"},
    ],
    "KS08": [
        {"body": MMUL.replace("mmul<8,", "mmul<4,")},
        {"body": MMUL.replace("mmul<8,", "mmul<2,"), "device": "npu1"},
        {"body": LOOP, "type": "gemm"},
    ],
    "KS09": [{"body": VECTOR, "type": "transpose"}, {"body": VECTOR, "type": "concat"}],
    "KS10": [{"body": "y[0] = x[0];"}, {"body": VECTOR, "vectorized": False, "notes": ["strides"]}],
    "KS11": [
        {"body": BITS},
        {"body": BITS, "dtype": "int16", "weights": [127] * 256},
        {"body": VECTOR + "aie::accum<acc64, 16> sums;"},
    ],
    "KS12": [
        {"body": FINISH, "requant": [1, 6]},
        {"body": FINISH, "requant": [4, 6]},
        {"body": FINISH, "requant": np.stack([np.full((2, 8), 2), np.full((2, 8), 5)], 1)},
    ],
}
CLEAN: dict[str, list[dict[str, Any]]] = {
    "KS01": [
        {"body": f"PORT_LOOP_AT_LEAST(1)\n{LOOP}"},
        {"body": LOOP.replace("i < 8", "i < 1")},
        {"body": "for (int32_t i = 0; i < 8; ++i) { n += i; }"},
    ],
    "KS02": [
        {"body": LOOP},
        {"body": "constexpr int32_t a = 1, rows = 8;\nfor (int32_t i = 0; i < rows; ++i) { f(i); }"},
        {"body": "for (int32_t i = 0; i < K::rows * ROWS; ++i) { f(i); }"},
    ],
    "KS03": [{"body": "const int32_t half = x[0] >> 1;"}, {"body": "const int32_t third = x[0] / 3;"}],
    "KS04": [
        {"body": "for (int32_t i = 0; i < 8; ++i) { if constexpr (C::A) { f(x); } }"},
        {"body": "if (x[0]) { for (int32_t i = 0; i < 8; ++i) { f(x); } }"},
    ],
    "KS05": [
        {"body": "for (int32_t i = 0; i < 8; ++i) { aie::store_v(y, sums.template to_vector<int8>(shift)); }"},
        {"body": "const int32_t s = a >> shift;"},
    ],
    "KS06": [
        {"body": MMUL},
        {"body": f"{MMUL}\nmemcpy(t, x, 8);"},
        {"body": "for (int32_t i = 0; i < 8; ++i) { memcpy(t + 8 * i, x + 8 * i, 8); }"},
    ],
    "KS07": [
        {"body": "for (int32_t i = 0; i < 8; ++i) { aie::store_v(y + 16 * i, aie::load_v<16>(x + 16 * i)); }"},
        {"body": "for (int32_t i = 0; i < 8; ++i) { y[i] = x[i] + 1; }"},
    ],
    "KS08": [
        {"body": MMUL},
        {"body": MMUL.replace("mmul<8,", "mmul<4,"), "device": "npu1"},
        {"body": LOOP, "type": "add"},
        {"body": LOOP, "type": "gemm", "dtype": "float32"},
    ],
    "KS09": [{"body": VECTOR, "type": "add"}],
    "KS10": [{"body": VECTOR}],
    "KS11": [
        {"body": BITS.replace("64", "32")},
        {"body": BITS, "dtype": "int16", "weights": [127] * 259},
        {"body": BITS + "static constexpr int32_t W_ZEROS[] = {3};"},
        {"body": BITS + "static constexpr int32_t PROMOTIONS[] = {0, 2};"},
        {"body": BITS, "dtype": "float32"},
    ],
    "KS12": [
        {"body": FINISH, "requant": [3, 6]},
        {"body": FINISH, "requant": [0, 6]},
        {"body": FINISH, "requant": np.stack([np.full((2, 8), 2) + np.eye(2, 8), np.full((2, 8), 5)], 1)},
        {"body": "y[0] = x[0];", "requant": [1, 6]},
    ],
}


def found(rule: str, given: dict[str, Any]) -> list[Candidate]:
    return [c for c in screen(folder(**given)) if c.rule == rule]


def test_every_lever_has_both_examples() -> None:
    assert list(RULES) == sorted(FOUND) == sorted(CLEAN)
    assert len({lever.lever_class for lever in RULES.values()}) == len(RULES)


@pytest.mark.parametrize(("rule", "given"), [(rule, g) for rule, rows in FOUND.items() for g in rows])
def test_what_a_lever_finds(rule: str, given: dict[str, Any]) -> None:
    rows = found(rule, given)
    assert len(rows) == 1
    assert rows[0].kernel == "one"
    assert rows[0].file == "kernels/one.cc"
    assert rows[0].lever_class == RULES[rule].lever_class
    assert rows[0].text.endswith(f"; {UNCONFIRMED}")


@pytest.mark.parametrize(("rule", "given"), [(rule, g) for rule, rows in CLEAN.items() for g in rows])
def test_what_a_lever_leaves_alone(rule: str, given: dict[str, Any]) -> None:
    assert found(rule, given) == []


def test_a_branch_on_the_index_is_surer_than_another() -> None:
    assert [found("KS04", given)[0].confidence for given in FOUND["KS04"]] == ["high", "medium"]


def test_the_bound_of_sums_is_exact_at_32_bits() -> None:
    """65536 * (32767 + 1) is 2**31; one less fits."""
    least = [127] * 258 + [1]
    assert sum(least) == 32767
    assert found("KS11", {"body": BITS, "dtype": "int16", "weights": least})
    assert not found("KS11", {"body": BITS, "dtype": "int16", "weights": [*least, 1]})
    chunk = BITS + "static constexpr int32_t CHUNK = 2;"
    assert found("KS11", {"body": chunk, "dtype": "int16", "weights": [*least, 1]})


def test_line_and_order_are_those_of_the_levers() -> None:
    rows = screen(folder(f"\n{LOOP}\nconst int32_t half = x[0] / 2;", requant=[1, 1]))
    assert [(c.rule, c.line) for c in rows] == [("KS01", 4), ("KS03", 5), ("KS12", 0)]
    assert screen(folder(f"\n{LOOP}\nconst int32_t half = x[0] / 2;", requant=[1, 1])) == rows


def test_nothing_of_the_evidence_is_confirmed() -> None:
    rows = screen_evidence(folder(LOOP))
    assert rows[0].text.startswith("kernels/one.cc:3: ")
    assert UNCONFIRMED in rows[0].text
    assert not any(row.confirmed for row in rows)


def test_a_folder_without_an_index_or_with_broken_files_has_no_candidates() -> None:
    assert screen({}) == ()
    files = folder(VECTOR, requant=[1, 1])
    broken = {**files, "d0/design.py": b"def (", "d0/weights/001.npy": b"x"}
    assert screen(broken) == ()
    assert screen({**folder(FINISH, requant=[1, 1]), "d0/weights/001.npy": b"x"}) == ()
