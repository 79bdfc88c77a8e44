"""Builds libraries on the host API and says in exact integers what its operations mean."""

import ctypes
import re
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

ROOT: Final = Path(__file__).resolve().parents[3]
HOST: Final = ROOT / "bringup" / "aie_api_host"
INCLUDE: Final = HOST / "include"
RUNTIME: Final = HOST / "aie_host_runtime.cc"
# Undefined behaviour ends the process: no run-time library is needed for that.
FLAGS: Final = (
    "-std=c++20",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffp-contract=off",
    "-fsanitize=undefined",
    "-fsanitize-undefined-trap-on-error",
)
ARCHES: Final = {20: "aie2", 21: "aie2p"}

Array = npt.NDArray[Any]

# Codes of the types in the probes.
TYPES: Final = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
LANES: Final = 16

FLOOR, CEIL, SYM_FLOOR, SYM_CEIL, NEG_INF, POS_INF, SYM_ZERO, SYM_INF, EVEN, ODD = 0, 1, 2, 3, 8, 9, 10, 11, 12, 13
ROUNDINGS: Final = (FLOOR, CEIL, SYM_FLOOR, SYM_CEIL, NEG_INF, POS_INF, SYM_ZERO, SYM_INF, EVEN, ODD)
NONE, SATURATE, SYMMETRIC = 0, 1, 3
SATURATIONS: Final = (NONE, SATURATE, SYMMETRIC)


def build(sources: Sequence[Path], out: Path, *, arch: int = 20, flags: Sequence[str] = ()) -> Path:
    """A shared library of the sources and the run time."""
    command = ["g++", *FLAGS, "-shared", "-fPIC", f"-I{INCLUDE}", f"-DAIE_HOST_ARCH={arch}", *flags]
    done = subprocess.run(
        [*command, *map(str, sources), str(RUNTIME), "-o", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    return out


def diagnostics(source: Path, *, arch: int = 20) -> dict[int, str]:
    """What the compiler refuses: text of the errors by line of the source that they come from."""
    command = ["g++", "-std=c++20", "-fsyntax-only", "-fmax-errors=0", f"-I{INCLUDE}", f"-DAIE_HOST_ARCH={arch}"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    here, found, stack = re.compile(re.escape(str(source)) + r":(\d+):\d+:"), dict[int, str](), set[int]()
    for line in done.stderr.splitlines():
        at = here.match(line)
        if at and " note: " not in line:
            stack.add(int(at.group(1)))  # the error itself, or "required from here" in front of it
        if " error: " in line:
            for number in stack:
                found[number] = found.get(number, "") + line
            stack = set()
    return found


RESULTS: Final = {
    "probe_reduce": ctypes.c_int64,
    "aie_host_cascade_unread": ctypes.c_size_t,
    "aie_host_cascade_take_output": ctypes.c_size_t,
}


class Probe:
    """The probes of one library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function; arrays are given as pointers, integers as int."""
        plain: list[Any] = []
        for value in arguments:
            pointed = isinstance(value, np.ndarray)
            plain.append(ctypes.c_void_p(value.ctypes.data) if pointed else ctypes.c_int(int(value)))
        function = getattr(self.library, name)
        function.restype = RESULTS.get(name, ctypes.c_int)
        return function(*plain)

    def modes(self, rounding: int = FLOOR, saturation: int = NONE) -> None:
        """Set both modes of the selected tile."""
        self.call("probe_modes", rounding, saturation)

    def current_modes(self) -> tuple[int, int]:
        """Rounding and saturation of the selected tile."""
        rounding, saturation = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self.call("aie_host_get_modes", rounding, saturation)
        return int(rounding[0]), int(saturation[0])


def round_exact(value: Fraction, mode: int) -> int:
    """A rational to an integer, straight from the definitions of the modes."""
    low = value.numerator // value.denominator
    rest = value - low
    if rest == 0:
        return low
    half = Fraction(1, 2)
    up = {
        FLOOR: False,
        CEIL: True,
        SYM_FLOOR: value < 0,
        SYM_CEIL: value > 0,
        NEG_INF: rest > half,
        POS_INF: rest >= half,
        SYM_ZERO: rest > half or (rest == half and value < 0),
        SYM_INF: rest > half or (rest == half and value > 0),
        EVEN: rest > half or (rest == half and low % 2 == 1),
        ODD: rest > half or (rest == half and low % 2 == 0),
    }[mode]
    return low + int(up)


def wrap(value: int, bits: int, signed: bool) -> int:
    """The integer that the low bits stand for."""
    low = value % (1 << bits)
    return low - (1 << bits) if signed and low >> (bits - 1) else low


def saturate(value: int, bits: int, signed: bool, mode: int) -> int:
    """Saturate or truncate, as the mode says."""
    if mode == NONE:
        return wrap(value, bits, signed)
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    low = 0 if not signed else (-high if mode == SYMMETRIC else -high - 1)
    return min(max(value, low), high)


def srs_exact(value: int, shift: int, bits: int, signed: bool, modes: tuple[int, int]) -> int:
    """Shift, round, saturate: value / 2**shift in the rounding mode, then the saturation mode of `modes`."""
    scaled = Fraction(value) / (1 << shift) if shift >= 0 else Fraction(value * (1 << -shift))
    return saturate(round_exact(scaled, modes[0]), bits, signed, modes[1])


def of_type(value: int, dtype: Any) -> int:
    """Wrap an integer into a numpy integer type."""
    info = np.iinfo(dtype)
    return wrap(value, info.bits, info.min < 0)
