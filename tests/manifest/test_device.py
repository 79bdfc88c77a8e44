"""The device catalogue: every file has every figure with a source, and the figures agree with each other."""

import copy
import json
from typing import Any

import pytest

from manifest.device import DEFAULT_DEVICE, DEVICES, DIRECTORY, Figure, device_from_json, load_device
from manifest.errors import RefusedError


def raw(name: str) -> Any:
    return json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))


def value(figure: Figure) -> int:
    assert figure.value is not None
    return figure.value


def test_the_five_devices_are_there() -> None:
    assert set(DEVICES) >= {"npu1", "npu2", "vek280", "vek385", "vc1902"}
    assert DEFAULT_DEVICE in DEVICES


@pytest.mark.parametrize("name", DEVICES)
def test_every_file_satisfies_the_schema_and_is_named_as_it_says(name: str) -> None:
    device = load_device(name)
    assert device.name == name
    assert all(f["source"].strip() for f in raw(name)["figures"].values())


@pytest.mark.parametrize("name", DEVICES)
def test_rows_and_tiles_add_up(name: str) -> None:
    d = load_device(name)
    assert value(d.rows) == value(d.shim_rows) + value(d.mem_rows) + value(d.core_rows)
    assert value(d.core_tiles) == value(d.columns) * value(d.core_rows)
    assert value(d.memtiles) == value(d.columns) * value(d.mem_rows)
    if d.shim_dma_columns.value is not None:
        assert all(0 <= c < value(d.columns) for c in d.shim_dma_columns.value)


@pytest.mark.parametrize("name", DEVICES)
def test_mmul_shapes_agree_with_the_rate_of_the_core(name: str) -> None:
    """No native block needs less than one cycle, and the first is a whole number of cycles."""
    d = load_device(name)
    for pair, figure in (("int8xint8", d.int8_macs_per_cycle), ("int16xint16", d.int16_macs_per_cycle)):
        shapes = d.mmul[pair].value
        if shapes is None or figure.value is None:
            continue
        r, s, t = shapes[0]
        assert (r * s * t) % figure.value == 0 or figure.value % (r * s * t) == 0, (name, pair)


def test_what_the_facts_say() -> None:
    npu1, npu2, vek280, vek385, vc1902 = (load_device(n) for n in ("npu1", "npu2", "vek280", "vek385", "vc1902"))
    assert [value(d.core_tiles) for d in (npu1, npu2, vek280, vek385, vc1902)] == [16, 32, 304, 144, 400]
    assert [value(d.l1_bytes) for d in (npu1, npu2, vek280, vek385, vc1902)] == [65536] * 4 + [32768]
    assert [value(d.memtile_bytes) * value(d.memtiles) for d in (npu1, npu2, vc1902)] == [4 << 19, 8 << 19, 0]
    assert npu1.mmul["int8xint8"].value == ((4, 8, 8), (2, 8, 8))
    assert npu2.mmul["int8xint8"].value is not None
    assert npu2.mmul["int8xint8"].value[0] == (8, 8, 8)
    assert vek280.shim_dma_columns.value == (2, 3, 6, 7, 14, 15, 22, 23, 30, 31, 34, 35)


def test_unknown_figures_are_listed() -> None:
    unknown = load_device("vek385").unknown()
    assert {"shim_dma_columns", "shim_mm2s", "mmul.int8xint8"} <= set(unknown)
    assert load_device("npu1").unknown() == ()


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(RefusedError, match=r"\[DEVICE-UNKNOWN\] --device: no such device; expected npu1, npu2.*'npu9'"):
        load_device("npu9")
    with pytest.raises(RefusedError, match="DEVICE-UNKNOWN"):
        load_device("../devices/npu1")


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["figures"].pop("l1_bytes"),
        lambda v: v["figures"].update(extra={"value": 1, "source": "here"}),
        lambda v: v["figures"]["l1_bytes"].pop("source"),
        lambda v: v["figures"]["l1_bytes"].update(source=""),
        lambda v: v["figures"]["l1_bytes"].update(value=-1),
        lambda v: v["figures"]["l1_bytes"].update(value="64K"),
        lambda v: v["mmul"].pop("int8xint8"),
        lambda v: v["mmul"]["int8xint8"].update(value=[[4, 8]]),
        lambda v: v.update(arch="aie9"),
        lambda v: v.pop("shim_dma_columns"),
    ],
)
def test_a_file_with_a_gap_is_a_defect(change: Any) -> None:
    good = raw("npu1")
    assert device_from_json(good).name == "npu1"
    bad = copy.deepcopy(good)
    change(bad)
    with pytest.raises(ValueError, match=r"l1_bytes|figures|mmul|arch|shim_dma_columns"):
        device_from_json(bad)
