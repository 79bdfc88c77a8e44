from pathlib import Path

import numpy as np
import pytest

from tests.bringup.aie_api_host.host_api import EVEN, SATURATE, Array, Probe, build, srs_exact

SOURCE = Path(__file__).resolve().parent / "example_kernels.cc"
ROW_MAJOR = "-DAIE_HOST_ROW_MAJOR_INT32"
BLOCK_ROWS = {20: 4, 21: 8}


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, bool], Path]:
    folder, found = tmp_path_factory.mktemp("examples"), {}
    for arch, plain in ((20, False), (21, False), (20, True)):
        flags = ("-O0", ROW_MAJOR) if plain else ("-O0",)
        found[arch, plain] = build([SOURCE], folder / f"{arch}{plain}.so", arch=arch, flags=flags)
    return found


def aligned(values: Array) -> Array:
    """A copy at an address that is a multiple of 64 bytes."""
    block = np.zeros(values.nbytes + 64, np.uint8)
    start = -block.ctypes.data % 64
    copy = block[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def blocked(matrix: Array, rows: int, columns: int) -> Array:
    """Blocks of rows x columns, row-major inside and outside."""
    m, n = matrix.shape
    return matrix.reshape(m // rows, rows, n // columns, columns).swapaxes(1, 2).reshape(-1)


def matmul(path: Path, arch: int, name: str, dtype: type, shift: int) -> tuple[Array, Array]:
    """What the kernel stores and the exact sums, both in blocks."""
    rng, rows = np.random.default_rng(arch), BLOCK_ROWS[arch]
    a, b = rng.integers(-128, 128, (2 * rows, 24)), rng.integers(-128, 128, (24, 16))
    exact = blocked(a @ b, rows, 8)
    out = aligned(np.zeros(exact.size, dtype))
    packed = [aligned(blocked(a, rows, 8).astype(np.int8)), aligned(blocked(b, 8, 8).astype(np.int8))]
    Probe(path).call(name, *packed, out, 2, 3, 2, shift)
    return out, exact


@pytest.mark.parametrize("arch", [20, 21])
def test_8_bit_results_are_the_matrix_product(kernels: dict[tuple[int, bool], Path], arch: int) -> None:
    out, exact = matmul(kernels[arch, False], arch, "matmul_i8_i8", np.int8, 9)
    assert out.tolist() == [srs_exact(int(v), 9, 8, True, (EVEN, SATURATE)) for v in exact]
    assert len(set(out.tolist())) > 50


@pytest.mark.parametrize("arch", [20, 21])
def test_a_kernel_that_takes_32_bit_results_for_row_major_fails(
    kernels: dict[tuple[int, bool], Path], arch: int
) -> None:
    out, exact = matmul(kernels[arch, False], arch, "matmul_i8_i32", np.int32, 0)
    assert sorted(out.tolist()) == sorted(exact.tolist())
    assert np.count_nonzero(out != exact) > exact.size // 2


def test_the_order_can_be_made_plain_for_published_kernels(kernels: dict[tuple[int, bool], Path]) -> None:
    out, exact = matmul(kernels[20, True], 20, "matmul_i8_i32", np.int32, 0)
    assert out.tolist() == exact.tolist()


@pytest.mark.parametrize("arch", [20, 21])
def test_small_kernels_in_the_public_style(kernels: dict[tuple[int, bool], Path], arch: int) -> None:
    probe = Probe(kernels[arch, False])
    probe.library.aie_host_reset()
    rng = np.random.default_rng(1)

    data = aligned(rng.integers(0, 256, 128).astype(np.uint8))
    copy = aligned(np.zeros(128, np.uint8))
    probe.call("passthrough", data, copy, 128)
    assert copy.tolist() == data.tolist()

    probe.call("threshold", data, copy, 100, 200)
    assert copy[:64].tolist() == np.where(data[:64] > 100, 200, 0).tolist()

    words = aligned(rng.integers(-(2**31), 2**31, 64).astype(np.int32))
    assert probe.call("reduce_add", words, 64) == int(words.sum(dtype=np.int32))

    halves = aligned(rng.integers(-1000, 1000, 64).astype(np.int16))
    scaled = aligned(np.zeros(64, np.int16))
    probe.call("scale", halves, scaled, 7, 64)
    assert scaled.tolist() == (halves * 7).tolist()

    floats = aligned((rng.integers(-100, 100, 64).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    kept = aligned(np.zeros(64, np.uint16))
    probe.call("relu_bf16", floats, kept, 64)
    assert kept.tolist() == np.where(floats >> 15, 0, floats).tolist()
