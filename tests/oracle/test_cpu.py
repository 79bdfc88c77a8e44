from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.cpu import CpuFlags, KernelOp, hazard_ops, integer_kernels_exact, pair_sums, read_cpu_flags

AVX2 = CpuFlags(frozenset({"sse4_1", "avx2", "fma"}))
AVX512 = CpuFlags(frozenset({"sse4_1", "avx2", "fma", "avx512bw"}))
VNNI = CpuFlags(AVX512.flags | {"avx512_vnni"})
SSE = CpuFlags(frozenset({"sse4_1"}))
ARM = CpuFlags(frozenset({"fp", "asimd"}))
UNKNOWN = CpuFlags(frozenset())


def op(high: int = 254, low: int = -256, activation: str = "uint8", weight: str = "int8") -> KernelOp:
    return KernelOp(name="conv", activation=activation, weight=weight, highest_pair=high, lowest_pair=low)


@pytest.mark.parametrize(
    ("flags", "saturates"),
    [(AVX2, True), (AVX512, True), (VNNI, False), (SSE, False), (ARM, False), (UNKNOWN, True)],
)
def test_which_cpus_saturate(flags: CpuFlags, saturates: bool) -> None:
    assert flags.saturates_u8s8 is saturates
    assert integer_kernels_exact(flags, [op()]) is not saturates


@pytest.mark.parametrize("flag", ["avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8"])
def test_any_vnni_flag_makes_the_kernels_exact(flag: str) -> None:
    assert integer_kernels_exact(CpuFlags(AVX512.flags | {flag}), [op()])


@pytest.mark.parametrize(("high", "hazard"), [(128, False), (129, True)])
def test_highest_pair_at_and_above_the_limit(high: int, hazard: bool) -> None:
    assert (255 * high > 32767) is hazard
    assert bool(hazard_ops(AVX2, [op(high=high, low=0)])) is hazard


@pytest.mark.parametrize(("low", "hazard"), [(-128, False), (-129, True)])
def test_lowest_pair_at_and_below_the_limit(low: int, hazard: bool) -> None:
    assert (255 * low < -32768) is hazard
    assert bool(hazard_ops(AVX2, [op(high=0, low=low)])) is hazard


@pytest.mark.parametrize(("activation", "weight"), [("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")])
def test_other_type_pairs_never_saturate(activation: str, weight: str) -> None:
    assert integer_kernels_exact(AVX2, [op(activation=activation, weight=weight)])


def test_hazards_are_named_in_order() -> None:
    safe = KernelOp(name="safe", activation="uint8", weight="int8", highest_pair=1, lowest_pair=-1)
    assert hazard_ops(AVX2, [op(), safe, op()]) == ("conv", "conv")


@given(st.lists(st.lists(st.integers(-128, 127), min_size=1, max_size=5), min_size=1, max_size=4))
def test_pair_sums_equal_brute_force(rows: list[list[int]]) -> None:
    width = max(len(row) for row in rows)
    weights = np.array([row + [0] * (width - len(row)) for row in rows], np.int8)
    high = low = 0
    for row in weights.astype(int).tolist():
        for i, a in enumerate(row):
            high, low = max(high, a), min(low, a)
            for b in row[i + 1 :]:
                high = max(high, max(a, 0) + max(b, 0))
                low = min(low, min(a, 0) + min(b, 0))
    assert pair_sums(weights) == (high, low)


def test_pair_sums_of_nothing() -> None:
    assert pair_sums(np.zeros((0, 3), np.int8)) == (0, 0)


def test_add_variant_follows_avx2_and_fma() -> None:
    assert AVX2.fma
    assert not SSE.fma
    assert not CpuFlags(frozenset({"sse4_1", "avx2"})).fma
    assert AVX2.reproduces_add
    assert SSE.reproduces_add
    assert not ARM.reproduces_add


def test_flags_are_read_from_both_forms_of_cpuinfo(tmp_path: Path) -> None:
    x86 = tmp_path / "x86"
    x86.write_text("processor\t: 0\nflags\t\t: fpu sse4_1 avx2 fma\nbugs\t: none\n\nprocessor\t: 1\nflags\t\t: other\n")
    arm = tmp_path / "arm"
    arm.write_text("processor : 0\nFeatures : fp asimd asimddp\n")
    assert read_cpu_flags(x86) == CpuFlags(frozenset({"fpu", "sse4_1", "avx2", "fma"}))
    assert read_cpu_flags(x86).deciding == ("avx2", "fma", "sse4_1")
    assert read_cpu_flags(arm).deciding == ("asimd", "asimddp")


def test_absent_cpuinfo_is_an_unknown_cpu(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("model name : none\n")
    assert read_cpu_flags(tmp_path / "absent") == UNKNOWN
    assert read_cpu_flags(empty) == UNKNOWN
    assert not UNKNOWN.known
