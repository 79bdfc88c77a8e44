"""`requantize`, `relu`, `clip` and `lut`: compiled kernels against the simulator's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.kernels import clip, quantize_linear, relu
from bringup.kernels.elementwise import normal_pair, normal_shift
from manifest.errors import RefusedError
from oracle.fixedpoint import ROUNDINGS
from presim.kernels.finish import scaled
from tests.bringup.kernels.emitted import Case, compiled, differences, fewer
from tests.bringup.kernels.objects import codes, make_case, multipliers, output, poisoned, shape_of

CALLS = 2


def case(
    kind: str = "requantize",
    *,
    extents: tuple[int, int | None, int] = (2, 5, 13),
    dtypes: tuple[str, str] = ("int8", "uint8"),
    zero_points: tuple[int, int] = (-3, 130),
    requant: Any = ((1 << 30,), (31,)),
    along: str = "",
    minimum: tuple[int, ...] = (),
    maximum: tuple[int, ...] = (),
    bits: int = 0,
    finish: str = "round",
    inside: bool = False,
    bounds: tuple[int, int] | None = None,
    **changes: Any,
) -> Case:
    """An object requantized."""
    blocks, width, channels = extents
    shape = shape_of(blocks, width)
    out = poisoned(shape, dtypes[1])
    attributes = {
        **output(out, channels, finish=finish, zero_point=zero_points[1], inside=inside, bounds=bounds),
        "x_zero_point": zero_points[0],
        "along": along,
        "minimum": minimum,
        "maximum": maximum,
    }
    pairs = np.array(requant)
    pairs = pairs.astype(np.int64 if np.abs(pairs).max() >= 1 << 31 else np.int32)
    inputs = [codes(shape, dtypes[0], seed, bits=bits) for seed in range(CALLS)]
    named = {"in0": inputs, **({"requant": [pairs]} if finish == "round" else {}), "out": [out]}
    module: Any = {"relu": relu, "clip": clip}.get(kind, quantize_linear)
    return make_case(module, kind, attributes, named, **changes)


def table(dtypes: tuple[str, str], width: int | None) -> Case:
    """Codes looked up; some entries lie beyond the clamp."""
    entries = codes((1 << (8 * np.dtype(dtypes[0]).itemsize),), dtypes[1], 5)
    shape = shape_of(2, width)
    out = poisoned(shape, dtypes[1])
    attributes = {**output(out, 12, bounds=(2, 90)), "lowest": int(np.iinfo(dtypes[0]).min)}
    inputs = [codes(shape, dtypes[0], seed) for seed in range(CALLS)]
    return make_case(quantize_linear, "lut", attributes, {"in0": inputs, "lut": [entries], "out": [out]})


def rounded() -> dict[str, Case]:
    integers: Any = {"dtypes": ("int32", "int8"), "zero_points": (0, 5), "bits": 24}
    long: Any = {"dtypes": ("int64", "int16"), "zero_points": (0, -5), "bits": 50}
    found = {
        "odd width": case(),
        "vector": case(extents=(3, None, 17), dtypes=("uint8", "int8"), zero_points=(128, 0)),
        "eight lanes": case(extents=(1, None, 3)),
        "16 to 8 bits": case(dtypes=("uint16", "uint8"), requant=((1431655765,), (39,)), zero_points=(65535, 1)),
        "8 to 16 bits": case(dtypes=("int8", "int16"), requant=((3,), (-5,)), zero_points=(-128, 300)),
        "16 to 16 bits": case(dtypes=("int16", "uint16"), requant=((7 << 28,), (31,)), zero_points=(0, 40000)),
        "accumulators": case(**integers, requant=((1 << 30,), (47,))),
        "per channel": case(**integers, along="channel", requant=multipliers(1, 13, shift=46, spread=5)),
        "per channel, vector": case(**integers, along="channel", extents=(3, None, 20), requant=multipliers(2, 20)),
        "per channel, even width": case(**integers, along="channel", extents=(1, 4, 8), requant=multipliers(3, 8)),
        "per place": case(**integers, along="width", requant=multipliers(4, 5, shift=45)),
        "bounds": case("clip", **integers, requant=((1 << 30,), (47,)), minimum=(-100000,), maximum=(700000,)),
        "shift out": case(requant=((3,), (61,)), rounding="ceil"),
        "shift of 100": case(requant=((3,), (100,)), rounding="floor", zero_points=(0, 1)),
        "64 bits": case(**long, requant=((2147483647,), (66,))),
        "64 bits, even shifts": case(**long, along="channel", requant=multipliers(5, 13, shift=64, spread=6)),
        "64 bits, per place": case(**long, along="width", requant=multipliers(6, 5, shift=65)),
        "64 bits, no rounding": case(**long, requant=((1,), (0,)), saturation="symmetric"),
        "64 bits, low bits": case(**long, requant=((1,), (2,)), saturation="none"),
        "a multiplier of 40 bits": case(requant=((5 << 38,), (43,))),
    }
    for rounding in ROUNDINGS:
        found[rounding] = case(requant=((1,), (3,)), zero_points=(0, 128), rounding=rounding)
        found[f"inside, {rounding}"] = case(requant=((1,), (3,)), inside=True, zero_points=(0, 129), rounding=rounding)
    for saturation in ("none", "saturate", "symmetric"):
        modes: Any = {"dtypes": ("int8", "int8"), "zero_points": (100, -1), "saturation": saturation}
        found[saturation] = case(**modes, requant=((3,), (1,)))
        found[f"{saturation} of the tile"] = case(
            **{**modes, "saturation": ""}, requant=((3,), (1,)), rounding="", modes=("sym_inf", saturation)
        )
    return found


def others() -> dict[str, Case]:
    plain: Any = {"finish": "clamp", "dtypes": ("uint8", "uint8"), "zero_points": (9, 9), "bounds": (9, 200)}
    exact: Any = {"finish": "exact", "dtypes": ("int32", "int32"), "zero_points": (0, 0), "bits": 24}
    many = tuple(range(-500, 800, 100))
    return {
        "clamp": case("relu", **plain),
        "clamp, 16 bits": case("clip", finish="clamp", dtypes=("int16", "int16"), bounds=(-1000, 20000)),
        "clamp, other type": case("clip", finish="clamp", dtypes=("int8", "uint8"), bounds=(0, 90)),
        "exact relu": case("relu", **exact, minimum=(0,)),
        "exact clip": case("clip", **exact, minimum=(-(1 << 20),), maximum=(1 << 22,)),
        "bounds per channel": case("clip", **exact, minimum=many, maximum=(700,)),
        "codes to integers": case(
            "relu", finish="exact", dtypes=("uint8", "int32"), zero_points=(130, 0), minimum=(0,)
        ),
        "64 bits": case("relu", finish="exact", dtypes=("int64", "int64"), zero_points=(0, 0), minimum=(0,)),
        "table": table(("int8", "int8"), 5),
        "table of unsigned": table(("uint8", "int16"), None),
        "table of 16 bits": table(("int16", "uint8"), 3),
    }


@pytest.mark.parametrize("arch", ["aie2", "aie2p"])
def test_rounded(tmp_path: Path, arch: str) -> None:
    found = fewer(rounded(), arch)
    assert dict(zip(found, differences(list(found.values()), tmp_path, arch=arch), strict=True)) == dict.fromkeys(
        found, 0
    )


def test_others(tmp_path: Path) -> None:
    found = others()
    assert dict(zip(found, differences(list(found.values()), tmp_path), strict=True)) == dict.fromkeys(found, 0)


def test_faults_are_seen(tmp_path: Path) -> None:
    edits = {
        "zero point of the input": ("x_zero_point = -3", "x_zero_point = -2"),
        "zero point of the output": ("Output<uint8_t, 130", "Output<uint8_t, 131"),
        "rounding": ("conv_even", "positive_inf"),
        "no rounding": ("    aie::set_rounding(aie::rounding_mode::conv_even);\n", ""),
        "no saturation": ("    aie::set_saturation(aie::saturation_mode::saturate);\n", ""),
        "padding": ("channels = 13", "channels = 14"),
        "upper bound": ("0, 255, false", "0, 190, false"),
    }
    found = [case(requant=((1,), (1,))) if name != "no saturation" else case(requant=((3,), (1,))) for name in edits]
    for one, edit in zip(found, edits.values(), strict=True):
        one.edit = edit
    assert dict(zip(edits, map(bool, differences(found, tmp_path)), strict=True)) == dict.fromkeys(edits, True)


def test_an_overrun_is_seen(tmp_path: Path) -> None:
    one = case(extents=(1, None, 8))
    one.edit = ("blocks = 1", "blocks = 2")
    with pytest.raises(AssertionError, match="AddressSanitizer"):
        compiled([one], tmp_path)


def test_refused() -> None:
    row = case().row
    with pytest.raises(RefusedError, match="33 bits"):
        normal_pair(row, (1 << 32) + 1, 5, 255)
    with pytest.raises(RefusedError, match="shift of 61"):
        normal_shift(row, 1 << 60 | 1, 61, 255)
    with pytest.raises(RefusedError, match="products of 65 bits"):
        normal_shift(row, (1 << 57) - 1, 1, 255)
    with pytest.raises(RefusedError, match="does not set"):
        quantize_linear.source(case(dtypes=("int64", "int8"), saturation="").row)
    with pytest.raises(RefusedError, match="minimum"):
        quantize_linear.source(case("clip", finish="exact", dtypes=("int32", "int32"), minimum=(1 << 40,)).row)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("inside", [0, 7])
def test_a_normal_pair_has_the_same_results(rounding: str, inside: int) -> None:
    one = case(inside=bool(inside), zero_points=(0, inside)).row
    values = np.arange(-255, 256)
    for multiplier, shift in ((3, -4), (1 << 30, 62), (3, 61), (1, 100), (255, 52), (5 << 38, 43), ((1 << 31) - 1, 39)):
        found = normal_pair(one, multiplier, shift, 255)
        assert 0 <= found[1] <= 59
        got, wanted = (
            scaled(values.astype(object), np.array([m], object), np.array([s]), rounding, inside)
            for m, s in (found, (multiplier, shift))
        )
        np.testing.assert_array_equal(got, wanted)
