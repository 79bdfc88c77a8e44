"""SRS against the `ap_fixed` headers that hls4ml ships, in the modes that both have.

hls4ml is no dependency: without it these tests are skipped, and say so.
"""

import ctypes
import importlib.util
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.bringup.aie_api_host import host_api as api
from tests.bringup.aie_api_host.host_api import Array, Probe

HERE = Path(__file__).resolve().parent
SHIFT = 5
SHARED_ROUNDINGS = (api.FLOOR, api.SYM_FLOOR, api.NEG_INF, api.POS_INF, api.SYM_ZERO, api.SYM_INF, api.EVEN)


def headers() -> Path | None:
    spec = importlib.util.find_spec("hls4ml")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "templates" / "vivado" / "ap_types"
    return folder if (folder / "ap_fixed.h").is_file() else None


@pytest.fixture(scope="session")
def ap_fixed(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = headers()
    if folder is None:
        pytest.skip(
            "hls4ml is not installed: `pip install hls4ml` brings the ap_fixed headers that SRS is compared with"
        )
    library = tmp_path_factory.mktemp("ap_fixed") / "ap_fixed.so"
    command = ["g++", "-std=c++17", "-O0", "-w", "-shared", "-fPIC", f"-I{folder}", str(HERE / "ap_fixed_probe.cc")]
    done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def lanes() -> Array:
    """Every value near zero and near the limits of 8 bits, and random ones of 32 bits; a multiple of 16 of them."""
    rng = np.random.default_rng(5)
    near = np.arange(-400, 400)
    limits = np.concatenate([np.arange(-40, 40) + (edge << SHIFT) for edge in (-256, -128, 127, 255, 256)])
    wide = rng.integers(-(2**31), 2**31, 816)
    return np.concatenate([near, limits, wide]).astype(np.int64)


@pytest.mark.parametrize("rounding", SHARED_ROUNDINGS)
def test_srs_agrees_with_ap_fixed(ap_fixed: ctypes.CDLL, probe: Probe, rounding: int) -> None:
    values = lanes()
    assert values.size % 16 == 0
    other = np.zeros(values.size, np.int64)
    pointers = (ctypes.c_void_p(values.ctypes.data), values.size, ctypes.c_void_p(other.ctypes.data))
    for saturation, dtype in product(api.SATURATIONS, (np.int8, np.uint8)):
        assert ap_fixed.ap_convert(rounding, saturation, int(dtype is np.int8), *pointers) == 1
        probe.modes(rounding, saturation)
        got = np.zeros(values.size, dtype)
        for start in range(0, values.size, 16):
            part, out = values[start : start + 16], got[start : start + 16]
            probe.call("probe_srs", api.TYPES.index(dtype), 64, -1, part, SHIFT, out)
        assert got.tolist() == other.tolist(), (saturation, dtype)


def test_modes_that_only_the_hardware_has_are_told(ap_fixed: ctypes.CDLL) -> None:
    block = np.zeros(1, np.int64)
    pointer = ctypes.c_void_p(block.ctypes.data)
    for rounding in set(api.ROUNDINGS) - set(SHARED_ROUNDINGS):
        assert ap_fixed.ap_convert(rounding, 0, 1, pointer, 1, pointer) == 0
