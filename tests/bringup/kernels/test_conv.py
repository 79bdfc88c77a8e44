"""Emitted convolutions against the simulator's kernel and the scalar twin: ways, finishes, borders, cascades."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.kernels import conv as emitter
from bringup.kernels.elementwise import ROUNDINGS
from bringup.kernels.model import Row
from manifest.errors import RefusedError
from tests.bringup.kernels.draws import Drawn, Finish, Window, conv
from tests.bringup.kernels.emitted import SATURATIONS
from tests.bringup.kernels.heavy import Book, Call, compiled, differing, shifted, simulated
from tests.bringup.kernels.twins import Twins

Arch = Literal["aie2", "aie2p"]
Shape = tuple[Window, Finish, tuple[int, int]]

MULTIPLICATIONS: dict[str, Shape] = {
    "1x1": (Window(channels=16, outputs=16, width=8), Finish(zero_point=5), (0, 0)),
    "3x3 top": (
        Window(channels=16, outputs=12, width=7, kernel=(3, 3), pads_lr=(1, 1), x_zero_point=-3),
        Finish(zero_point=-7, bounds=(-90, 100), shift=(38, 42)),
        (1, 0),
    ),
    "strides, dilations, uneven pads": (
        Window(
            channels=20,
            outputs=9,
            width=13,
            kernel=(3, 2),
            strides=(1, 2),
            dilations=(2, 3),
            pads_lr=(3, 1),
            x="uint8",
            w="uint8",
            x_zero_point=200,
            w_zero_points=(128,),
        ),
        Finish(dtype="uint8", zero_point=99, acc_shift=(4,), shift=(45, 47)),
        (2, 1),
    ),
    "first convolution, unsigned weights": (
        Window(channels=1, outputs=10, width=9, kernel=(3, 3), x="uint8", w="uint8", x_zero_point=7),
        Finish(dtype="uint8", shift=(38, 42)),
        (0, 0),
    ),
    "powers of two": (
        Window(channels=3, outputs=8, width=5, kernel=(3, 3), pads_lr=(1, 1)),
        Finish(uniform=True, multiplier=(1, 1), shift=(9, 10), acc_shift=(2,), zero_point=3, inside=True),
        (0, 1),
    ),
    "16 bits": (
        Window(channels=8, outputs=16, width=5, x="uint16", x_zero_point=40000, w_bits=5),
        Finish(dtype="uint16", zero_point=900, shift=(36, 40)),
        (0, 0),
    ),
    "no bias, every shift": (
        Window(channels=8, outputs=24, width=4, x_bits=4, w_bits=2),
        Finish(bias=False, shift=(0, 40), zero_point=3),
        (0, 0),
    ),
    "part of the inputs": (
        Window(channels=24, outputs=8, width=4, in_first=13, in_count=6, x_first=8, x_zero_point=9),
        Finish(shift=(36, 39)),
        (0, 0),
    ),
}
LANES: dict[str, Shape] = {
    "depthwise": (
        Window(channels=12, outputs=12, width=7, kernel=(3, 3), pads_lr=(1, 1), group=12, x="uint8", x_zero_point=77),
        Finish(dtype="uint8", zero_point=5),
        (1, 0),
    ),
    "depthwise, 16 bits": (
        Window(
            channels=8,
            outputs=8,
            width=9,
            kernel=(2, 3),
            strides=(2, 2),
            group=8,
            x="uint16",
            x_zero_point=9000,
            w_bits=5,
        ),
        Finish(dtype="int16", shift=(38, 41)),
        (0, 0),
    ),
    "part of a depthwise one": (
        Window(channels=24, outputs=8, width=5, kernel=(1, 3), group=24, group_outputs=1, in_count=1, out_first=8),
        Finish(shift=(36, 39)),
        (0, 0),
    ),
    "part of the groups": (
        Window(channels=8, outputs=8, width=5, group=3, group_outputs=4, in_count=4, out_first=4, x_first=4),
        Finish(shift=(36, 39)),
        (0, 0),
    ),
    "groups, unsigned weights": (
        Window(
            channels=12,
            outputs=24,
            width=6,
            kernel=(3, 3),
            pads_lr=(0, 1),
            group=4,
            x="uint8",
            x_zero_point=77,
            w="uint8",
            w_zero_points=(99,),
        ),
        Finish(dtype="uint8", zero_point=5, shift=(38, 41)),
        (0, 1),
    ),
    "zero points and promotions of channels": (
        Window(
            channels=5,
            outputs=9,
            width=7,
            kernel=(2, 3),
            pads_lr=(2, 1),
            w="uint8",
            w_zero_points=tuple(range(120, 129)),
            x_zero_point=4,
        ),
        Finish(zero_point=-9, acc_shift=tuple(range(9)), shift=(42, 44)),
        (0, 0),
    ),
    "64 bits": (
        Window(channels=5, outputs=9, width=5, kernel=(3, 3), pads_lr=(2, 1), w="int16", x="int16", x_zero_point=4),
        Finish(zero_point=-9, acc_bits=64, dtype="int16", shift=(47, 50)),
        (0, 0),
    ),
    "64 bits, split codes": (
        Window(channels=5, outputs=9, width=5, kernel=(1, 3), x="uint16", x_zero_point=40000, w="int16"),
        Finish(acc_bits=64, dtype="uint16", zero_point=900, shift=(51, 52), acc_shift=(3,), uniform=True),
        (0, 0),
    ),
    "integers": (
        Window(channels=8, outputs=9, width=5, x="uint8", x_zero_point=3),
        Finish(kind="exact", dtype="int32"),
        (0, 0),
    ),
    "integers of 64 bits": (
        Window(channels=8, outputs=9, width=5, x="uint16", x_zero_point=40000, w="int16"),
        Finish(kind="exact", dtype="int64", acc_bits=64),
        (0, 0),
    ),
}
SHAPES = {**MULTIPLICATIONS, **LANES}


def drawn(name: str, seed: int, arch: Arch = "aie2", **changes: Any) -> Drawn:
    """A kernel of a name, with the arrays of a seed."""
    window, finish, pads = SHAPES[name]
    return conv(window, finish, seed, pads=pads, arch=arch, **changes)


CASCADES: dict[str, tuple[Finish, dict[str, Any]]] = {
    "multiplications": (Finish(shift=(39, 42), zero_point=5), {"x_zero_point": -3}),
    "lanes": (Finish(shift=(40, 44), acc_shift=(1, *range(11))), {"x_zero_point": -3}),
    "64 bits": (Finish(shift=(51, 53), acc_bits=64, dtype="int16"), {"x": "int16", "w": "int16"}),
    "integers": (Finish(kind="exact", dtype="int64", acc_bits=64), {"x": "int16", "w": "int16"}),
}
STREAMED = ("3x3 top", "zero points and promotions of channels")
MODES = ("1x1", "powers of two", "64 bits")


class Kernels:
    """All kernels of this file in one program."""

    def __init__(self, folder: Path) -> None:
        self.book = Book(folder)
        self.first: dict[str, int] = {"shapes": self.book.add([drawn(n, 1).row for n in SHAPES])}
        for name in CASCADES:
            self.first[f"cascade {name}"] = self.book.add(chain(1, name)[0])
        for name in STREAMED:
            self.first[f"stream {name}"] = self.book.add([streamed(name)[0]])
        modeless = [unset(drawn(n, 1).row) for n in MODES]
        # With wrapped 64-bit codes only a kernel that knows of it is right: that is a row of its own.
        self.first["modes"] = self.book.add([*modeless, replace(modeless[2], saturation="none")])


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels(tmp_path_factory.mktemp("kernels"))


def check(book: Book, twins: Twins, seed: int, names: Sequence[str], arch: Arch = "aie2") -> None:
    """Kernel, simulator and twin agree on one call of each."""
    made = [drawn(n, seed + 100 * i, arch) for i, n in enumerate(names)]
    wanted = book.check([Call(kernel=i, arrays=d.arrays, scalars=d.scalars) for i, d in enumerate(made)])
    for name, one, want in zip(names, made, wanted, strict=True):
        np.testing.assert_array_equal(twins.conv(one), want[0], err_msg=name)


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8)
def test_kernel_simulator_and_twin_agree(kernels: Kernels, twins: Twins, seed: int) -> None:
    check(kernels.book, twins, seed, list(SHAPES))


def test_the_other_architecture(tmp_path: Path, twins: Twins) -> None:
    names = ["3x3 top", "strides, dilations, uneven pads", "16 bits", "depthwise"]
    book = Book(tmp_path)
    book.add([drawn(n, 1, "aie2p").row for n in names])
    for seed in (3, 4):
        check(book, twins, seed, names, "aie2p")


@pytest.mark.parametrize("name", SHAPES)
def test_the_way_is_chosen_by_the_attributes(name: str) -> None:
    for arch in ("aie2", "aie2p"):
        row = drawn(name, 1, arch).row
        source = emitter.source(row)
        assert source.headers[0] == ("conv_mmul.h" if name in MULTIPLICATIONS else "conv_lanes.h")
        assert source.vectorized
        assert bool(source.notes) == (name in LANES)
    assert emitter.source(replace(row, mmul=())).headers[0] == "conv_lanes.h"


def test_most_draws_tell_codes_apart() -> None:
    for name in set(SHAPES) - {"no bias, every shift"}:
        one = drawn(name, 1)
        codes = simulated([one.row], [Call(kernel=0, arrays=one.arrays, scalars=one.scalars)])[0][0]
        assert len(np.unique(codes)) > 12, name


def test_every_mode_of_the_tile(kernels: Kernels) -> None:
    calls = []
    for i, name in enumerate(MODES):
        one = drawn(name, 5)
        for mode in [(r, s) for r in ROUNDINGS for s in SATURATIONS]:
            number = 3 if i == 2 and mode[1] == "none" else i
            calls.append(Call(kernel=number, arrays=one.arrays, scalars=one.scalars, modes=mode))
    wanted = kernels.book.check(shifted(calls, kernels.first["modes"]))
    assert len({w[0].tobytes() for c, w in zip(calls, wanted, strict=True) if c.kernel == 1}) > 8


def chain(seed: int, name: str) -> tuple[list[Row], list[Call]]:
    """Convolutions that a cascade joins; every part has its own channels."""
    finish, figures = CASCADES[name]
    parts = [(0, 16), (16, 8), (24, 5)]
    rows, calls = [], []
    for i, (first, count) in enumerate(parts):
        window = Window(
            channels=count,
            outputs=12,
            width=7,
            kernel=(3, 3),
            pads_lr=(1, 1),
            in_first=first,
            in_count=count,
            x_first=first,
            cascade_in=i > 0,
            cascade_out=i + 1 < len(parts),
            **figures,
        )
        one = conv(window, finish, seed + i, pads=(1, 0))
        rows.append(one.row)
        calls.append(Call(kernel=i, arrays=one.arrays, scalars=one.scalars, reads_cascade=i > 0))
    return rows, calls


@pytest.mark.parametrize("name", CASCADES)
def test_cascades(kernels: Kernels, name: str) -> None:
    for seed in range(3):
        wanted = kernels.book.check(shifted(chain(seed, name)[1], kernels.first[f"cascade {name}"]))
        assert len(np.unique(wanted[2][0])) > 12


def streamed(name: str) -> tuple[Row, list[Call]]:
    """A kernel whose weights come as two objects."""
    one = drawn(name, 2)
    whole = one.arrays["weights"]
    objects = np.zeros((2, 8, *whole.shape[1:]), whole.dtype)
    objects.reshape(16, *whole.shape[1:])[: len(whole)] = whole
    parameters = tuple(replace(p, shape=objects.shape[1:]) if p.role == "weights" else p for p in one.row.parameters)
    arrays = {**one.arrays, "weights": objects}
    calls = [
        Call(kernel=0, arrays=arrays, scalars={**one.scalars, "out_offset": 8 * j}, object_number=j) for j in (0, 1)
    ]
    return replace(one.row, parameters=parameters), calls


@pytest.mark.parametrize("name", STREAMED)
def test_streamed_weights(kernels: Kernels, name: str) -> None:
    got = kernels.book.check(shifted(streamed(name)[1], kernels.first[f"stream {name}"]))
    one = drawn(name, 2)
    complete = simulated([one.row], [Call(kernel=0, arrays=one.arrays, scalars=one.scalars)])[0][0]
    np.testing.assert_array_equal(np.concatenate([got[0][0][:1], got[1][0][1:]]), complete)


def unset(row: Row) -> Row:
    return replace(row, rounding="", saturation="")


MUTANTS: dict[str, tuple[str, tuple[str, str] | Callable[[Row], Row]]] = {
    "modes not set": ("powers of two", unset),
    "bias behind the shift": (
        "1x1",
        (
            "rounded<O>(scaled(lanes, scale), scale)",
            "aie::add(rounded<O>(scaled(aie::sub(lanes, with.addend.template extract<LANES>(half)), scale), scale),"
            " with.addend.template extract<LANES>(half))",
        ),
    ),
    "raw lanes taken for row-major": (
        "1x1",
        (
            "return bounded<O>(M(moved).template to_vector<T>(0));",
            "return bounded<O>(aie::accum<acc32, M::size_C>(moved).template to_vector<T>(0));",
        ),
    ),
    "lowest shift for all": ("1x1", ("shift = scale.lowest + 1; shift <=", "shift = scale.lowest + 1; shift <")),
    "zero outside the image": ("3x3 top", ("constexpr X zero = X(C::X_ZERO);", "constexpr X zero = X(0);")),
    "rows outside left out": ("3x3 top", ("} else if (C::X_ZERO != 0) {", "} else if (false) {")),
    "no correction": (
        "3x3 top",
        ("all.addend = HEAD != 0 ? Lanes(aie::add(all.addend, added)) : added;", "all.addend = added;"),
    ),
    "bounds left out": ("3x3 top", ("if constexpr (O::low > least) {", "if constexpr (false) {")),
    "no promotion": ("powers of two", ("lanes = doubled(lanes, C::PROMOTIONS[0]);", "")),
    "wrong lanes": ("zero points and promotions of channels", ("(lane & 7)", "(~lane & 7)")),
    "padding not cleared": (
        "3x3 top",
        ("channel < channels ? all[8 * pixel + channel] : T(0)", "all[8 * pixel + channel]"),
    ),
    "codes not split": ("64 bits, split codes", ("C::SPLITS ? a >> 1 : 0", "0")),
    "sticky bit lost": ("64 bits", ("return kept | int64_t(below);", "return kept;")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_noticed(tmp_path: Path, mutant: str) -> None:
    name, change = MUTANTS[mutant]
    one = drawn(name, 7)
    calls = [Call(kernel=0, arrays=drawn(name, s).arrays, scalars=one.scalars) for s in range(7, 15)]
    if mutant == "sticky bit lost":
        calls = [replace(c, arrays=tie(c.arrays)) for c in calls]
    edits = [change] if isinstance(change, tuple) else []
    row = one.row if isinstance(change, tuple) else change(one.row)
    got = compiled([row], calls, tmp_path, edits=edits)
    assert sum(differing(got, simulated([one.row], calls))) > 0


def tie(arrays: dict[str, Any]) -> dict[str, Any]:
    """Sums just above a half: the bias alone decides."""
    count = len(arrays["bias"])
    return {
        **arrays,
        "weights": np.zeros_like(arrays["weights"]),
        "bias": (np.arange(count, dtype=np.int64) * 4 + 2) * (1 << 20) + 1,
        "requant": np.array([[1 << 30] * count, [52] * count], np.int32),
    }


def test_refusals() -> None:
    one = drawn("64 bits", 1)
    with pytest.raises(RefusedError, match="16 bits without zero point"):
        emitter.source(replace(one.row, attributes={**one.row.attributes, "w_zero_points": (5,)}))
    with pytest.raises(RefusedError, match="not rounded"):
        emitter.source(replace(one.row, attributes={**one.row.attributes, "finish": "clamp"}))
    narrow = drawn("1x1", 1)
    requant = np.array([[(1 << 30) + 1] * 16, [60] * 16], np.int32)
    with pytest.raises(RefusedError, match="shift 60"):
        emitter.pack(narrow.row, {**narrow.arrays, "requant": requant})
