from pathlib import Path

import numpy as np
import pytest

from tests.bringup.aie_api_host import host_api as api
from tests.bringup.aie_api_host.host_api import Array, Probe


def test_a_tile_starts_with_floor_and_no_saturation(probe: Probe) -> None:
    assert probe.current_modes() == (api.FLOOR, api.NONE)
    probe.call("aie_host_select_tile", 17)
    assert probe.current_modes() == (api.FLOOR, api.NONE)


def test_modes_stick_to_their_tile(probe: Probe) -> None:
    probe.call("aie_host_select_tile", 1)
    probe.modes(api.EVEN, api.SATURATE)
    probe.call("aie_host_select_tile", 2)
    assert probe.current_modes() == (api.FLOOR, api.NONE)
    probe.modes(api.SYM_CEIL, api.SYMMETRIC)
    probe.call("aie_host_select_tile", 1)
    assert probe.current_modes() == (api.EVEN, api.SATURATE)
    probe.call("aie_host_select_tile", 2)
    assert probe.current_modes() == (api.SYM_CEIL, api.SYMMETRIC)


def test_a_kernel_that_sets_no_modes_uses_those_left_on_its_tile(probe: Probe) -> None:
    lanes, out = np.full(16, 300, np.int64), np.zeros(16, np.int8)
    for tile, mode in ((1, api.NONE), (2, api.SATURATE)):
        probe.call("aie_host_select_tile", tile)
        probe.modes(api.FLOOR, mode)
    for tile, want in ((1, 44), (2, 127)):
        probe.call("aie_host_select_tile", tile)
        probe.call("probe_srs", 0, 32, -1, lanes, 0, out)
        assert out.tolist() == [want] * 16


def test_reset_forgets_modes_events_and_cascades(probe: Probe) -> None:
    probe.modes(api.CEIL, api.SATURATE)
    probe.call("probe_events", 1, 1)
    probe.call("aie_host_cascade_set_input", np.zeros(64, np.uint8), 64)
    probe.call("aie_host_reset")
    assert probe.current_modes() == (api.FLOOR, api.NONE)
    assert events(probe) == (0, 0)
    assert probe.call("aie_host_cascade_unread") == 0


def events(probe: Probe) -> tuple[int, int]:
    first, second = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
    probe.call("aie_host_get_events", first, second)
    return int(first[0]), int(second[0])


def test_events_are_counted_by_tile(probe: Probe) -> None:
    probe.call("aie_host_select_tile", 4)
    probe.call("probe_events", 3, 2)
    assert events(probe) == (3, 2)
    probe.call("aie_host_select_tile", 5)
    assert events(probe) == (0, 0)


def taken(probe: Probe, capacity: int = 4096) -> Array:
    block = np.zeros(capacity, np.uint8)
    count = probe.call("aie_host_cascade_take_output", block, capacity)
    return block[:count].view(np.int32)


def test_the_cascade_hands_on_accumulators_in_order(probe: Probe) -> None:
    words = np.arange(32, dtype=np.int32) - 7
    probe.call("aie_host_cascade_set_input", words, words.nbytes)
    for word in words.reshape(2, 16):
        lanes = np.full(16, 1000, np.int64)
        probe.call("probe_cascade", lanes)
        assert lanes.tolist() == (word + 1000).tolist()
    assert probe.call("aie_host_cascade_unread") == 0
    assert taken(probe).tolist() == (words + 1000).tolist()
    assert taken(probe).size == 0


def test_cascade_words_that_nobody_reads_are_counted(probe: Probe) -> None:
    probe.call("aie_host_cascade_set_input", np.zeros(192, np.uint8), 192)
    probe.call("probe_cascade", np.zeros(16, np.int64))
    assert probe.call("aie_host_cascade_unread") == 128


def test_cascade_output_is_taken_in_parts(probe: Probe) -> None:
    probe.call("aie_host_cascade_set_input", np.arange(16, dtype=np.int32), 64)
    probe.call("probe_cascade", np.zeros(16, np.int64))
    assert [*taken(probe, 24), *taken(probe)] == list(range(16))


def test_two_libraries_do_not_share_tiles(probe_path: Path, probe: Probe, tmp_path: Path) -> None:
    copy = tmp_path / "copy.so"
    copy.write_bytes(probe_path.read_bytes())
    probe.modes(api.ODD, api.SATURATE)
    assert Probe(copy).current_modes() == (api.FLOOR, api.NONE)


@pytest.mark.parametrize("mode", api.ROUNDINGS)
def test_codes_of_the_modes_are_those_of_the_hardware(probe: Probe, mode: int) -> None:
    probe.modes(mode, api.SYMMETRIC)
    assert probe.current_modes() == (mode, api.SYMMETRIC)
