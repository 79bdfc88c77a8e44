import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bringup.aie_api_host.host_api import diagnostics

REFUSED = Path(__file__).resolve().parent / "refused.cc"
CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
block = (ctypes.c_char * 1024).from_buffer(bytearray(b"\\1" * 1024))
aligned = -ctypes.addressof(block) % 64
at = lambda n: ctypes.c_void_p(ctypes.addressof(block) + aligned + n)
{body}
"""


def run(path: Path, body: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", CALL.format(body=body), str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arch", [20, 21])
def test_what_the_documentation_does_not_have_fails_to_compile(arch: int) -> None:
    found = diagnostics(REFUSED, arch=arch)
    marks = {}
    for number, line in enumerate(REFUSED.read_text().splitlines(), start=1):
        match = re.search(rf"// REFUSED(?:-{arch})? (.*)$", line)
        if match:
            marks[number] = match.group(1)
    assert len(marks) == 20
    assert set(found) == set(marks)
    for number, text in marks.items():
        assert text in found[number] or text == "constraint", (number, text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("library.probe_load(at(1), 16)", "load_v: pointer is 1 bytes off the required alignment of 16 bytes"),
        ("library.probe_load(at(16), 32)", "load_v: pointer is 16 bytes off the required alignment of 32 bytes"),
        ("library.probe_load(at(8), 64)", "load_v: pointer is 8 bytes off the required alignment of 32 bytes"),
        ("library.probe_store(at(31))", "store_v: pointer is 31 bytes off the required alignment of 32 bytes"),
        ("library.probe_load_unaligned(at(2), 4)", "load_unaligned_v: pointer is 2 bytes off"),
        ("library.probe_load_unaligned(at(0), 3)", "aligned_elems is not a power of two"),
        ("library.probe_element(16)", "vector element index out of range"),
        ("library.probe_cascade(at(0))", "cascade read, but the neighbour put no more words"),
        ("library.probe_srs(0, 64, -1, at(0), 60, at(512))", "SRS shift outside -4..59"),
        ("library.probe_srs(0, 64, -1, at(0), -5, at(512))", "SRS shift outside -4..59"),
        ("library.probe_modes(9, 1); library.probe_srs(0, 64, -1, at(0), -2, at(512))", "unsafe on AIE-ML"),
        ("library.probe_ups(0, 32, at(0), 60, at(512))", "UPS shift outside 0..59"),
        ("library.probe_reshape(0, 3, at(0), at(32), at(64), at(128))", "step is not a power of two"),
        ("library.probe_reshape(4, 17, at(0), at(32), at(64), at(128))", "amount above the vector size"),
        ("library.probe_reshape(13, 3, at(0), at(32), at(64), at(128))", "rows x cols differs"),
        ("library.probe_modes(5, 0); library.probe_srs(0, 64, -1, at(0), 1, at(512))", "unknown rounding mode"),
    ],
)
def test_what_the_api_calls_undefined_ends_the_run(probe_path: Path, body: str, message: str) -> None:
    code, text = run(probe_path, body)
    assert code == -6
    assert text.startswith("aie_api_host: ")
    assert message in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    "body",
    [
        "library.probe_load(at(16), 16)",
        "library.probe_load(at(32), 32)",
        "library.probe_load(at(32), 64)",
        "library.probe_store(at(32))",
        "library.probe_load_unaligned(at(2), 1)",
        "library.probe_load_unaligned(at(8), 4)",
        "library.probe_element(15)",
        "library.probe_srs(0, 64, -1, at(0), 59, at(512))",
        "library.probe_modes(9, 1); library.probe_srs(0, 64, -1, at(0), -1, at(512))",
        "library.probe_modes(9, 0); library.probe_srs(0, 64, -1, at(0), -4, at(512))",
        "library.probe_reshape(4, 16, at(0), at(32), at(64), at(128))",
    ],
)
def test_the_other_side_of_each_limit_runs(probe_path: Path, body: str) -> None:
    assert run(probe_path, body) == (0, "")
