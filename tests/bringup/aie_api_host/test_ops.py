from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bringup.aie_api_host import host_api as api
from tests.bringup.aie_api_host.host_api import Array, Probe, of_type, saturate, srs_exact, wrap

BITS = {np.dtype(t): np.iinfo(t).bits for t in api.TYPES}
Ints = list[int]


def lanes_of(dtype: type, count: int = 16) -> st.SearchStrategy[Array]:
    """Lanes with the corners of the type among them."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    corner = st.sampled_from((low, low + 1, 0, 1, high - 1, high))
    near = st.integers(max(low, -3), 3)
    one = st.integers(low, high) | corner | near
    return st.lists(one, min_size=count, max_size=count).map(lambda v: np.array(v, dtype))


def signed(dtype: type) -> bool:
    return bool(np.iinfo(dtype).min < 0)


@pytest.mark.parametrize("dtype", api.TYPES)
@given(data=st.data(), mode=st.sampled_from(api.SATURATIONS))
@settings(max_examples=20)
def test_binary_operations(probe_path: Path, dtype: type, data: st.DataObject, mode: int) -> None:
    probe = Probe(probe_path)
    probe.modes(api.FLOOR, mode)
    a, b = data.draw(lanes_of(dtype)), data.draw(lanes_of(dtype))
    x, y = a.tolist(), b.tolist()
    bits = np.iinfo(dtype).bits
    want = [
        [of_type(p + q, dtype) for p, q in zip(x, y, strict=True)],
        [of_type(p - q, dtype) for p, q in zip(x, y, strict=True)],
        [max(p, q) for p, q in zip(x, y, strict=True)],
        [min(p, q) for p, q in zip(x, y, strict=True)],
        [p & q for p, q in zip(x, y, strict=True)],
        [p | q for p, q in zip(x, y, strict=True)],
        [p ^ q for p, q in zip(x, y, strict=True)],
        [saturate(p + q, bits, signed(dtype), mode) for p, q in zip(x, y, strict=True)],
        [saturate(p - q, bits, signed(dtype), mode) for p, q in zip(x, y, strict=True)],
        [of_type(p - q, dtype) if p > q else 0 for p, q in zip(x, y, strict=True)],
        [of_type(x[3] + q, dtype) for q in y],
        [of_type(p - y[3], dtype) for p in x],
    ]
    for op, expected in enumerate(want):
        out: Array = np.zeros(16, dtype)
        probe.call("probe_binary", op, api.TYPES.index(dtype), a, b, out)
        assert out.tolist() == expected, op


@pytest.mark.parametrize("dtype", api.TYPES)
@given(data=st.data(), rounding=st.sampled_from(api.ROUNDINGS), mode=st.sampled_from(api.SATURATIONS))
@settings(max_examples=20)
def test_unary_operations(probe_path: Path, dtype: type, data: st.DataObject, rounding: int, mode: int) -> None:
    probe = Probe(probe_path)
    probe.modes(rounding, mode)
    a, shift = data.draw(lanes_of(dtype)), data.draw(st.integers(0, 15))
    bits, sign = np.iinfo(dtype).bits, signed(dtype)
    held = 64 if bits == 32 else 32
    x = a.tolist()
    up = [saturate(saturate(v << shift, held, True, mode), bits, sign, mode) for v in x]
    down = [srs_exact(v, shift, bits, sign, (rounding, mode)) for v in x]
    logical = [of_type(srs_exact(wrap(v, bits, False), shift, bits, False, (rounding, mode)), dtype) for v in x]
    want = [
        [of_type(-v, dtype) if sign else v for v in x],
        [of_type(abs(v), dtype) for v in x],
        [of_type(~v, dtype) for v in x],
        up,
        down,
        logical,
        [x[shift]] * 16,
        [0] * 16,
    ]
    for op, expected in enumerate(want):
        out: Array = np.zeros(16, dtype)
        probe.call("probe_unary", op, api.TYPES.index(dtype), a, shift, out)
        assert out.tolist() == expected, op


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("dtype", api.TYPES)
@given(data=st.data(), mode=st.sampled_from(api.SATURATIONS))
@settings(max_examples=8)
def test_pack_and_unpack(probe_path: Path, dtype: type, sign: int, data: st.DataObject, mode: int) -> None:
    probe = Probe(probe_path)
    probe.modes(api.FLOOR, mode)
    a = data.draw(lanes_of(dtype))
    bits = np.iinfo(dtype).bits
    kind = "i" if signed(dtype) else "u"
    chosen = signed(dtype) if sign < 0 else bool(sign)
    small, big = np.zeros(16, f"{kind}{max(bits // 16, 1)}"), np.zeros(16, f"{kind}{min(bits // 4, 4)}")
    probe.call("probe_resize", api.TYPES.index(dtype), a, sign, small, big)
    if bits > 8:
        want = [of_type(saturate(v, bits // 2, chosen, mode), small.dtype) for v in a.tolist()]
        assert small.tolist() == want
    if bits < 32:
        assert big.tolist() == [of_type(wrap(v, bits, chosen), big.dtype) for v in a.tolist()]


@pytest.mark.parametrize("dtype", api.TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_compare_and_select(probe_path: Path, dtype: type, data: st.DataObject) -> None:
    probe = Probe(probe_path)
    a, b = data.draw(lanes_of(dtype)), data.draw(lanes_of(dtype))
    for op, want in enumerate((a < b, a <= b, a > b, a >= b, a == b, a != b)):
        mask = np.zeros(1, np.uint32)
        out: Array = np.zeros(16, dtype)
        probe.call("probe_compare", op, api.TYPES.index(dtype), a, b, mask, out)
        assert [bool(int(mask[0]) >> i & 1) for i in range(16)] == want.tolist(), op
        assert out.tolist() == np.where(want, b, a).tolist(), op


@pytest.mark.parametrize("dtype", api.TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_reductions(probe_path: Path, dtype: type, data: st.DataObject) -> None:
    probe = Probe(probe_path)
    a = data.draw(lanes_of(dtype))
    got = [probe.call("probe_reduce", op, api.TYPES.index(dtype), a) for op in range(3)]
    assert got == [of_type(sum(a.tolist()), dtype), max(a.tolist()), min(a.tolist())]


# Pairs of widths that the API multiplies (is_valid_mul_op) and the bits of its default accumulator.
PAIRS = {(8, 8): 32, (8, 16): 32, (16, 16): 32, (16, 32): 64, (32, 32): 64}


@pytest.mark.parametrize(("left", "right"), list(product(api.TYPES, api.TYPES)))
def test_which_products_exist_and_how_wide_they_are(probe: Probe, left: type, right: type) -> None:
    bits = (min(np.iinfo(left).bits, np.iinfo(right).bits), max(np.iinfo(left).bits, np.iinfo(right).bits))
    got = probe.call("probe_default_bits", api.TYPES.index(left), api.TYPES.index(right))
    assert got == PAIRS.get(bits, 0)


@pytest.mark.parametrize("bits", [32, 64])
@given(data=st.data(), scalar=st.booleans())
@settings(max_examples=60)
def test_products_wrap_in_the_accumulator(probe_path: Path, bits: int, data: st.DataObject, scalar: bool) -> None:
    probe = Probe(probe_path)
    left, right = data.draw(st.sampled_from(api.TYPES)), data.draw(st.sampled_from(api.TYPES))
    a, b = data.draw(lanes_of(left)), data.draw(lanes_of(right))
    start = data.draw(lanes_of(np.int64 if bits == 64 else np.int32)).astype(np.int64)
    factors = [b.tolist()[2]] * 16 if scalar else b.tolist()
    exact = [p * q for p, q in zip(a.tolist(), factors, strict=True)]
    bases: list[tuple[Ints, int]] = [([0] * 16, 1), ([0] * 16, -1), (start.tolist(), 1), (start.tolist(), -1)]
    for op, (base, sign) in enumerate(bases):
        lanes = start.copy()
        valid = probe.call("probe_mul", op, scalar, api.TYPES.index(left), api.TYPES.index(right), bits, a, b, lanes)
        if valid:
            want = [wrap(v + sign * p, bits, True) for v, p in zip(base, exact, strict=True)]
            assert lanes.tolist() == want, op


@pytest.mark.parametrize(("bits", "dtype"), list(product([32, 64], api.TYPES)))
@given(data=st.data())
@settings(max_examples=10)
def test_accumulators_add_and_wrap(probe_path: Path, bits: int, dtype: type, data: st.DataObject) -> None:
    probe = Probe(probe_path)
    wide = np.int64 if bits == 64 else np.int32
    v, x, y = data.draw(lanes_of(dtype)), data.draw(lanes_of(wide)), data.draw(lanes_of(wide))
    pairs = list(zip(x.tolist(), y.tolist(), v.tolist(), strict=True))
    want = [
        [wrap(p + q, bits, True) for p, q, _ in pairs],
        [wrap(p - q, bits, True) for p, q, _ in pairs],
        [wrap(-p, bits, True) for p, _, _ in pairs],
        [wrap(p + r, bits, True) for p, _, r in pairs],
        [wrap(p - v.tolist()[5], bits, True) for p, _, _ in pairs],
        y.tolist(),
        [0] * 16,
    ]
    for op, expected in enumerate(want):
        lanes = x.astype(np.int64)
        probe.call("probe_accum", op, bits, api.TYPES.index(dtype), v, y.astype(np.int64), lanes)
        assert lanes.tolist() == expected, op


@given(data=st.data(), start=st.integers(0, 13))
@settings(max_examples=20)
def test_accumulate_takes_a_coefficient_for_each_vector(probe_path: Path, data: st.DataObject, start: int) -> None:
    probe = Probe(probe_path)
    coeff, rows = data.draw(lanes_of(np.int16)), data.draw(lanes_of(np.int8, 48))
    base = data.draw(lanes_of(np.int32)).astype(np.int64)
    lanes = base.copy()
    probe.call("probe_accumulate", coeff, start, rows, lanes)
    c, r = coeff.tolist(), rows.reshape(3, 16).tolist()
    want = [wrap(base.tolist()[i] + sum(c[start + k] * r[k][i] for k in range(3)), 32, True) for i in range(16)]
    assert lanes.tolist() == want


@given(data=st.data(), first=st.integers(0, 15), offset=st.integers(0, 63))
@settings(max_examples=20)
def test_sliding_multiplication(probe_path: Path, data: st.DataObject, first: int, offset: int) -> None:
    probe = Probe(probe_path)
    coeff, samples = data.draw(lanes_of(np.int8)), data.draw(lanes_of(np.uint8, 64))
    lanes = np.zeros(16, np.int64)
    probe.call("probe_sliding", coeff, first, samples, offset, lanes)
    c, d = coeff.tolist(), samples.tolist()
    want = [sum(c[(first + 2 * p) % 16] * d[(offset + p + 3 * lane) % 64] for p in range(4)) for lane in range(16)]
    assert lanes.tolist() == want


def reshape(probe: Probe, op: int, n: int, a: Array, b: Array) -> tuple[Ints, Ints]:
    first, second = np.zeros(16, np.int16), np.zeros(16, np.int16)
    count = probe.call("probe_reshape", op, n, a, b, first, second)
    return first[:count].tolist(), second.tolist()


A = np.arange(100, 116, dtype=np.int16)
B = np.arange(200, 216, dtype=np.int16)
X, Y = A.tolist(), B.tolist()
UNDEFINED = int(np.array([0xA5A5], np.uint16).view(np.int16)[0])


@pytest.mark.parametrize("step", [1, 2, 4, 8, 16])
def test_interleave_and_its_inverse(probe: Probe, step: int) -> None:
    blocks = [(X[i : i + step], Y[i : i + step]) for i in range(0, 16, step)]
    want = [v for pair in blocks for block in pair for v in block]
    low, high = reshape(probe, 0, step, A, B)
    assert low + high == want
    back = reshape(probe, 1, step, np.array(low, np.int16), np.array(high, np.int16))
    assert back == (X, Y)


@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_filters(probe: Probe, step: int) -> None:
    blocks = [X[i : i + step] for i in range(0, 16, step)]
    assert reshape(probe, 2, step, A, B)[0] == [v for block in blocks[::2] for v in block]
    assert reshape(probe, 3, step, A, B)[0] == [v for block in blocks[1::2] for v in block]


@pytest.mark.parametrize("n", [0, 1, 7, 15, 16])
def test_shuffles(probe: Probe, n: int) -> None:
    gap = [UNDEFINED] * n
    want = {
        4: gap + X[: 16 - n],
        5: X[n:] + gap,
        6: X[16 - n :] + X[: 16 - n],
        7: X[n:] + X[:n],
        8: Y[16 - n :] + X[: 16 - n],
        9: X[n:] + Y[:n],
        10: [X[0]] * n + X[: 16 - n],
        11: X[n:] + [X[15]] * n,
        12: X[::-1],
    }
    for op, expected in want.items():
        assert reshape(probe, op, n, A, B)[0] == expected, op


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
def test_transpose(probe: Probe, rows: int) -> None:
    assert reshape(probe, 13, rows, A, B)[0] == A.reshape(rows, -1).T.ravel().tolist()


def test_parts_of_vectors(probe: Probe) -> None:
    assert reshape(probe, 14, 0, A, B)[0] == X
    assert reshape(probe, 14, 1, A, B)[0] == Y
    assert [reshape(probe, 15, n, A, B)[0] for n in range(4)] == [X[:8], X[8:], Y[:8], Y[8:]]
    assert reshape(probe, 16, 4, A, B)[0] == X[2:] + Y[:2]
    assert reshape(probe, 17, 1, A, B)[0] == X[8:]
    assert reshape(probe, 18, 0, A, B)[0] == [Y[0], *X[:15]]
    assert reshape(probe, 19, 1, A, B)[0] == X[8:] * 2


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_iterators(probe: Probe, kind: int) -> None:
    block = np.zeros(16 * 6 + 64, np.int8)
    start = -block.ctypes.data % 64 + (1 if kind == 2 else 0)
    source = block[start : start + 64]
    source[:] = np.arange(64)
    target = np.zeros(128 + 64, np.int8)
    first = -target.ctypes.data % 64 + (3 if kind == 2 else 0)
    out = target[first : first + 64]
    probe.call("probe_iterators", kind, source, out, 4)
    want = source[np.arange(64) % 32] if kind == 3 else source
    assert out.tolist() == (want + 1).tolist()
    assert not target[first + 64 :].any()


def test_undefined_contents_are_neither_zero_nor_small(probe: Probe) -> None:
    out = np.zeros(64, np.uint8)
    poison = probe.call("probe_undefined", out)
    assert poison == 0xA5
    assert set(out.tolist()) == {poison}


def test_address_generator_walks_rows(probe: Probe) -> None:
    offsets = np.zeros(7, np.int64)
    probe.call("probe_address", 3, 8, 100, 7, offsets)
    assert offsets.tolist() == [0, 8, 16, 100, 108, 116, 200]
    probe.call("probe_address", 3, 8, 0, 7, offsets)
    assert offsets.tolist() == [0, 8, 16, 0, 8, 16, 0]
