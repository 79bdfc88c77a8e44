"""Reports of the sanitizers, in the words of several compilers, as worker, kernel and argument."""

import signal

import pytest

from bringup.execute import Crash, ExternalAbi, ScalarAbi
from bringup.execute.events import LastEvent, Stage
from bringup.execute.report import crash_of
from tests.bringup.execute.compiled import pointer

ABI = ExternalAbi(
    symbol="conv", parameters=(pointer("row0", 16), pointer("y", 4, dtype="int8", access="out"), ScalarAbi(name="pad"))
)
FRAMES = """\
    #0 0x7f in __interceptor_memcpy ../../../../src/libsanitizer/sanitizer_common_interceptors.inc:827
    #1 0x7f in void store<16>(int*) aie_api/host/memory.hpp:48
    #2 0x7f in conv_row /scratch/x/build-0123456789abcdef/kernels/conv.h:30
    #3 0x7f in conv /scratch/x/build-0123456789abcdef/kernels/conv.cc:7
    #4 0x7f in invoke /scratch/x/build-0123456789abcdef/unit001.cc:11
"""


def crash(stderr: str, status: int = -signal.SIGABRT, *, stage: Stage = "kernel") -> Crash:
    event = LastEvent(stage=stage, worker=1, kernel=0, scalars=(3,), blocks=(0x1000, 0x5000), calls=5)
    return crash_of(
        status,
        stderr,
        event,
        externals=[ABI],
        workers=["v", "w"],
        sources=["kernels/conv.cc", "kernels/conv.h"],
        timeout_s=2.0,
    )


def asan(kind: str, address: int, access: str, region: str) -> str:
    return (
        f"==1==ERROR: AddressSanitizer: {kind} on address 0x{address:x} at pc 0x7f bp 0x7f sp 0x7f\n"
        f"{access} at 0x{address:x} thread T0\n{FRAMES}\n0x{address:x} is located {region}\n"
    )


@pytest.mark.parametrize(
    "region",
    ["0 bytes to the right of 64-byte region [0x1000,0x1040)", "0 bytes after 64-byte region [0x1000,0x1040)"],
)
def test_an_overrun_names_argument_offset_call_and_the_kernels_own_line(region: str) -> None:
    found = crash(asan("heap-buffer-overflow", 0x1040, "READ of size 32", region))
    assert (found.kind, found.worker, found.kernel, found.argument) == ("read_overrun", "w", "conv", "row0")
    assert (found.offset_bytes, found.source, found.scalars) == (64, "kernels/conv.h:30", (3,))
    assert found.text == (
        "kernel conv of worker w (pad=3) reads 32 bytes at offset 64 of row0, which has 64 bytes at kernels/conv.h:30"
    )


@pytest.mark.parametrize(("address", "argument", "offset"), [(0x1050, "row0", 80), (0x4FFF, "y", -1), (0x5004, "y", 4)])
def test_without_a_region_the_nearest_block_is_meant(address: int, argument: str, offset: int) -> None:
    found = crash(asan("heap-buffer-overflow", address, "WRITE of size 1", "in a wild place"))
    assert (found.kind, found.argument, found.offset_bytes) == ("write_overrun", argument, offset)


def test_far_from_every_block_no_argument_is_blamed() -> None:
    found = crash(asan("heap-buffer-overflow", 0x900000, "WRITE of size 4", "nowhere"))
    assert (found.kind, found.argument, found.offset_bytes) == ("write_overrun", "", None)
    assert "writes 4 bytes where it has no memory (heap-buffer-overflow)" in found.text


def test_a_local_array_is_no_argument() -> None:
    found = crash(asan("stack-buffer-overflow", 0x7F0000, "READ of size 4", "in stack of thread T0 at offset 48"))
    assert (found.kind, found.argument) == ("read_overrun", "")
    assert "stack-buffer-overflow" in found.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000001000 (pc 0x7f)", "(SEGV)"),
        ("==1==ERROR: AddressSanitizer: attempting double-free on 0x602000000010 in thread T0:", "(double-free)"),
        ("==1==ERROR: AddressSanitizer: stack-overflow on address 0x7ffc1000 (pc 0x7f)", "(stack-overflow)"),
        ("==1==ERROR: AddressSanitizer: requested allocation size too big", "requested allocation size too big"),
    ],
)
def test_other_breaks_of_memory(text: str, words: str) -> None:
    found = crash(text)
    assert (found.kind, found.kernel, found.argument) == ("memory", "conv", "")
    assert words in found.text


def test_undefined_behaviour_is_its_first_report() -> None:
    found = crash("kernels/conv.h:12:5: runtime error: shift exponent 32 is too large\nmore\n" + FRAMES)
    assert (found.kind, found.source) == ("undefined", "kernels/conv.h:12")
    assert "undefined behaviour: shift exponent 32 is too large" in found.text


def test_a_header_of_the_host_api_stands_in_where_no_kernel_is_in_the_trace() -> None:
    found = crash("aie_api/host/srs.hpp:9:1: runtime error: shift exponent 99 is too large\n")
    assert found.source == "aie_api/host/srs.hpp:9"


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (-signal.SIGALRM, "timeout", "did not return within 2 s"),
        (-signal.SIGILL, "signal", "SIGILL"),
        (-200, "signal", "signal 200"),
        (0, "internal", "status 0"),
        (3, "internal", "status 3"),
    ],
)
def test_without_a_report_the_status_says_what_it_can(status: int, kind: str, words: str) -> None:
    found = crash("", status)
    assert (found.kind, found.kernel) == (kind, "conv")
    assert words in found.text


def test_what_the_kernel_said_before_it_ended_is_kept() -> None:
    assert "cascade read, but empty" in crash("cascade read, but empty\n").text


@pytest.mark.parametrize("stage", ["starting", "loading", "simulating", "done"])
def test_outside_of_a_kernel_no_kernel_is_blamed(stage: Stage) -> None:
    found = crash("Traceback\nMemoryError: out\n", 1, stage=stage)
    assert (found.kind, found.kernel, found.worker) == ("internal", "", "")
    assert "MemoryError: out" in found.text
    late = crash("", -signal.SIGALRM, stage=stage)
    assert (late.kind, late.text) == ("timeout", "the simulation took more than 2 s")
