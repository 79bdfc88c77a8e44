"""Limits come from the device's figures; what is null limits nothing and is named."""

from dataclasses import replace

import pytest

from manifest.device import load_device
from presim.plan.limits import limits_of, size_of
from tests.presim.plan.harness import NPU2, with_figures


def test_nine_tenths_of_what_the_stack_leaves() -> None:
    assert limits_of(NPU2).core_bytes == (65536 - 1024) * 9 // 10
    assert limits_of(with_figures(l1_bytes=1034)).core_bytes == 9


def test_ways_to_the_host_are_columns_times_channels() -> None:
    limits = limits_of(load_device("vek280"))
    assert (limits.fills, limits.drains) == (24, 24)


def test_ways_into_and_out_of_memory_tiles_are_those_of_the_device() -> None:
    limits = limits_of(with_figures(mem_s2mm=5, mem_mm2s=4))
    assert (limits.join, limits.mem_out) == (5, 4)


def test_a_device_without_memory_tiles_joins_nothing() -> None:
    limits = limits_of(load_device("vc1902"))
    assert (limits.join, limits.mem_out, limits.memtile_bytes) == (0, 0, 0)


@pytest.mark.parametrize("name", ["core_bds", "l1_bytes", "core_tiles", "memtile_bytes"])
def test_null_figures_are_named(name: str) -> None:
    device = replace(NPU2, **{name: replace(getattr(NPU2, name), value=None)})
    assert limits_of(device).unknown == (name,)
    assert limits_of(NPU2).unknown == ()


@pytest.mark.parametrize(("shape", "dtype", "size"), [((32,), "int8", 32), ((33,), "int8", 64), ((2, 5), "int32", 64)])
def test_sizes_are_rounded_up_to_a_register(shape: tuple[int, ...], dtype: str, size: int) -> None:
    assert size_of(shape, dtype) == size
