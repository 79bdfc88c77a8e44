"""Bandwidth tables: what they say of themselves, what is refused, what follows from them."""

import json
from pathlib import Path
from typing import Any

import pytest

from manifest.device import load_device
from manifest.errors import RefusedError
from optimize.bandwidth import boundary_cycles, default_table, read_json, shares, state_bytes, table_from
from presim.timing import load_calibration

NPU2 = load_device("npu2")
ROW = {"fill_bytes_per_cycle": 8, "drain_bytes_per_cycle": 4}
GOOD: dict[str, Any] = {
    "schema_version": 1,
    "name": "mine",
    "device": "npu2",
    "basis": "measured",
    "source": "memcpy of 16 Mi",
    "columns": {"0": ROW, "3": {**ROW, "fill_bytes_per_cycle": 4}},
}


def table(folder: Path, **changes: Any) -> Any:
    path = folder / "b.json"
    path.write_text(json.dumps({**GOOD, **changes}))
    return table_from(read_json(path), NPU2)


def test_the_default_table_says_that_it_is_assumed_and_has_every_column() -> None:
    found = default_table(NPU2, load_calibration())
    assert found.basis == "assumed"
    assert [c.column for c in found.columns] == list(NPU2.shim_dma_columns.value or ())
    assert all(0 < c.fill <= 8 and 0 < c.drain <= 8 for c in found.columns)


def test_a_device_without_figures_is_refused_by_their_names() -> None:
    with pytest.raises(RefusedError, match="TIMING-UNKNOWN") as error:
        default_table(load_device("vek385"), load_calibration())
    assert "shim_dma_columns" in str(error.value)


def test_a_persons_table_is_taken_as_it_is(tmp_path: Path) -> None:
    found = table(tmp_path)
    assert (found.name, found.basis) == ("mine", "measured")
    assert [(c.column, c.fill, c.drain) for c in found.columns] == [(0, 8, 4), (3, 4, 4)]
    assert found.sha256 != table(tmp_path, source="another").sha256


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"basis": "felt"}, "measured, quoted, assumed"),
        ({"device": "npu1"}, "another device"),
        ({"schema_version": 2}, "schema_version"),
        ({"more": 1}, "key 'more' is unknown"),
        ({"columns": {}}, "no object with a column"),
        ({"columns": {"99": ROW}}, "reaches no external memory"),
        ({"columns": {"0": {"fill_bytes_per_cycle": 1}}}, "its two figures"),
        ({"columns": {"0": {**ROW, "fill_bytes_per_cycle": 0}}}, "no positive number"),
        ({"columns": {"0": {**ROW, "fill_bytes_per_cycle": True}}}, "no positive number"),
        ({"columns": {"0": {**ROW, "fill_bytes_per_cycle": float("nan")}}}, "no positive number"),
        ({"source": " "}, "source is no text"),
    ],
)
def test_what_is_malformed_is_refused_by_place(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="OPTIMIZE-BANDWIDTH") as error:
        table(tmp_path, **changes)
    assert words in str(error.value)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    for name, text in (("a.json", "{"), ("b.json", "[]"), ("c.json", "[" * 100_000)):
        (tmp_path / name).write_text(text)
        with pytest.raises(RefusedError, match="OPTIMIZE-BANDWIDTH"):
            table_from(read_json(tmp_path / name), NPU2)
    with pytest.raises(RefusedError, match="cannot be read"):
        read_json(tmp_path / "absent.json")
    with pytest.raises(RefusedError, match="it is no file"):
        read_json(tmp_path)


def test_a_boundary_goes_out_and_in_again(tmp_path: Path) -> None:
    assert boundary_cycles(96, table(tmp_path)) == 96 / 8 + 96 / 12


def test_transfers_are_sized_in_proportion_and_add_up(tmp_path: Path) -> None:
    found = table(tmp_path)
    assert shares(120, found, [0, 3]) == {0: 80, 3: 40}
    for size in range(0, 400, 4):
        given = shares(size, found, [0, 3])
        assert sum(given.values()) == size
        assert all(v % 4 == 0 for v in given.values())
        assert abs(given[0] - size * 2 / 3) <= 4
    with pytest.raises(ValueError, match="shares"):
        shares(6, found, [0, 3])
    with pytest.raises(ValueError, match="shares"):
        shares(8, found, [0, 1])


def test_state_grows_with_the_context() -> None:
    one = state_bytes(1, layers=2, heads=4, width=64)
    assert one == 1024
    assert state_bytes(100, layers=2, heads=4, width=64) == 100 * one
    assert state_bytes(0, layers=2, heads=4, width=64) == 0
