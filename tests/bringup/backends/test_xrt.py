"""The xrt backend against a driver with the documented behaviour: whatever goes wrong, it is no pass."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.backends import BackendOptions, XrtBackend
from bringup.backends.devices import architecture_of, device_of
from bringup.model import DeviceIdentity, Outcome, Unavailable
from tests.bringup.backends.fake_pyxrt import Board, copy, ert_cmd_state
from tests.bringup.backends.folders import equal, inputs, job_in, write_build, write_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_folder(tmp_path / "g")
    write_build(tmp_path / "g")
    return tmp_path / "g"


def run(root: Path, device: str = "npu2", **options: Any) -> Outcome:
    return XrtBackend(device, BackendOptions(**options)).run(job_in(root, device=device), inputs())


def test_calls_and_buffers_are_those_of_the_driver(root: Path, board: Board) -> None:
    outcome = run(root, timeout_s=1.5)
    assert outcome.status == "completed", outcome.text
    assert outcome.driver_status == "ERT_CMD_STATE_COMPLETED"
    assert equal(outcome)
    buffers = [entry[1:] for entry in board.log if entry[0] == "bo"]
    assert buffers[:3] == [(16, "cacheable", 101), (64, "host_only", 103), (64, "host_only", 104)]
    calls = [entry for entry in board.log if entry[0] == "call"]
    assert len(calls) == 2 * len(inputs())
    assert set(calls) == {("call", 3, b"\1\0\0\0" * 4, 16, 2)}
    assert ("wait", 1500) in board.log


def test_without_pyxrt_it_is_unavailable() -> None:
    found = XrtBackend("npu2", BackendOptions(), module="pyxrt_that_nobody_has").identity()
    assert isinstance(found, Unavailable)
    assert "pyxrt" in found.looked_for


def test_without_a_device_it_is_unavailable(root: Path, board: Board) -> None:
    board.present = False
    found = XrtBackend("npu2", BackendOptions()).identity()
    assert isinstance(found, Unavailable)
    assert "No such device" in found.what
    assert run(root).status == "wrong_device"


@pytest.mark.parametrize(
    ("reported", "report", "device"),
    [
        ("RyzenAI-npu1", "", "npu1"),
        ("NPU Phoenix", "{}", "npu1"),
        ("RyzenAI-npu4", "{}", "npu2"),
        ("NPU Strix Halo", "{}", "npu2"),
        ("NPU Krackan 2", "not json", "npu2"),
        ("NPU Gorgon Point 1", "{}", "npu2"),
        ("Something new", '{"platforms": [{"static_region": {"aie_architecture_version": "aie2p"}}]}', "npu2"),
        ("Something new", '{"platforms": [{"static_region": {"aie_architecture_version": "aie2"}}]}', "npu1"),
        ("NPU Strix", '{"platforms": [{"static_region": {"aie_architecture_version": "N/A"}}]}', "npu2"),
    ],
)
def test_the_device_is_known_by_architecture_and_else_by_its_whole_name(
    board: Board, reported: str, report: str, device: str
) -> None:
    board.name, board.platform = reported, report
    found = XrtBackend("npu2", BackendOptions()).identity()
    assert isinstance(found, DeviceIdentity)
    assert found.name == device
    assert reported in found.reported


@pytest.mark.parametrize(
    ("reported", "report"),
    [
        ("NPU Gorgon Point 9", "{}"),
        ("RyzenAI-npu11", "{}"),
        ("RyzenAI-npu7", "{}"),
        ("", "{}"),
        ("NPU", "{}"),
        ("NPU Strix", '{"aie_architecture_version": "aie4"}'),
        ("RyzenAI-npu4", '{"aie_architecture_version": "aie2ps"}'),
    ],
)
def test_an_unknown_device_is_blocked_and_nothing_is_run(root: Path, board: Board, reported: str, report: str) -> None:
    board.name, board.platform = reported, report
    found = XrtBackend("npu2", BackendOptions()).identity()
    assert isinstance(found, Unavailable)
    assert "no device of the catalogue" in found.what
    assert run(root).status == "wrong_device"
    assert not [entry for entry in board.log if entry[0] in {"call", "context", "register"}]


def test_an_architecture_is_found_wherever_the_report_has_it() -> None:
    assert architecture_of(json.dumps([{"a": [{"b": {"aie_architecture_version": "aie2"}}]}])) == "aie2"
    assert architecture_of("[" * 100_000) == ""
    assert device_of("RyzenAI-npu1", "aie2p") == "npu2"


def test_files_for_another_device_are_refused(tmp_path: Path, board: Board) -> None:
    write_folder(tmp_path, device="npu1")
    write_build(tmp_path)
    outcome = run(tmp_path, device="npu1")
    assert outcome.status == "wrong_device"
    assert "built for npu1, the device is npu2 (RyzenAI-npu4)" in outcome.text
    assert not [entry for entry in board.log if entry[0] == "call"]
    board.name = "RyzenAI-npu1"
    assert run(tmp_path, device="npu1").status == "completed"
    mixed = XrtBackend("npu1", BackendOptions()).run(job_in(tmp_path, device="npu2"), inputs())
    assert mixed.status == "wrong_device"


@pytest.mark.parametrize("which", [0, 1, 3, 5])
def test_a_timeout_is_a_timeout_in_whatever_run_it_comes(root: Path, board: Board, which: int) -> None:
    board.states = [ert_cmd_state.ERT_CMD_STATE_COMPLETED] * which + [ert_cmd_state.ERT_CMD_STATE_TIMEOUT]
    outcome = run(root)
    assert (outcome.status, outcome.driver_status) == ("timeout", "ERT_CMD_STATE_TIMEOUT")
    assert not outcome.outputs


def test_what_follows_a_timeout_is_known_as_such_and_ends_with_a_job_that_completes(root: Path, board: Board) -> None:
    backend = XrtBackend("npu2", BackendOptions())
    first = replace(job_in(root), name="d0/first")
    board.states = [ert_cmd_state.ERT_CMD_STATE_TIMEOUT, ert_cmd_state.ERT_CMD_STATE_ABORT]
    assert backend.run(first, inputs()).status == "timeout"
    second = backend.run(job_in(root), inputs())
    assert (second.status, second.driver_status) == ("device_error", "ERT_CMD_STATE_ABORT")
    assert "the device was lost before, by job d0/first" in second.text
    assert backend.run(job_in(root), inputs()).status == "completed"
    board.states = [ert_cmd_state.ERT_CMD_STATE_ABORT]
    assert "was lost before" not in backend.run(job_in(root), inputs()).text
    assert [entry for entry in board.log if entry[0] == "device"] == [("device", 0)]
    assert len([entry for entry in board.log if entry[0] == "context"]) == 4


@pytest.mark.parametrize("state", ["ERROR", "NORESPONSE", "NEW", "ABORT"])
def test_any_state_but_completed_is_a_device_error(root: Path, board: Board, state: str) -> None:
    board.states = [ert_cmd_state[f"ERT_CMD_STATE_{state}"]]
    outcome = run(root)
    assert (outcome.status, outcome.driver_status) == ("device_error", f"ERT_CMD_STATE_{state}")


def test_an_output_that_is_zero_everywhere_is_no_result(root: Path, board: Board) -> None:
    board.compute = lambda data: data[1].fill(0)
    outcome = run(root)
    assert (outcome.status, outcome.place.tensor) == ("mismatch", "y")
    assert "every element of tensor 'y' is 0" in outcome.text


def test_an_output_that_is_expected_to_be_uniform_may_be(root: Path, board: Board) -> None:
    board.compute = lambda data: data[1].fill(7)
    wanted = [{"y": np.full(16, 7, np.int32)}] * 3
    outcome = XrtBackend("npu2", BackendOptions()).run(job_in(root, outputs=wanted), inputs())
    assert outcome.status == "completed"


def test_an_output_that_nobody_writes_holds_what_was_there(root: Path, board: Board) -> None:
    board.compute = lambda _: None
    outcome = run(root)
    assert outcome.status == "mismatch"
    assert "nothing of tensor 'y' was written" in outcome.text


def test_a_part_that_nobody_writes_is_named(root: Path, board: Board) -> None:
    def part(data: list[np.ndarray]) -> None:
        data[1][:13] = data[0][:13]

    board.compute = part
    outcome = run(root)
    assert (outcome.status, outcome.place.index) == ("mismatch", (13,))
    assert "3 of 16 elements of tensor 'y' were not written, the first is element 13" in outcome.text


def test_a_value_that_happens_to_be_the_pattern_is_a_value(root: Path, board: Board) -> None:
    def pattern(data: list[np.ndarray]) -> None:
        copy(data)
        data[1][5] = np.frombuffer(b"\xa5\xa5\xa5\xa5", np.int32)[0]

    board.compute = pattern
    assert run(root).status == "completed"


def test_two_runs_that_differ_are_no_result(root: Path, board: Board) -> None:
    runs = iter(range(100))

    def drifting(data: list[np.ndarray]) -> None:
        copy(data)
        data[1][2] += next(runs)

    board.compute = drifting
    outcome = run(root)
    assert (outcome.status, outcome.place.index) == ("mismatch", (2,))
    assert "two runs with the same inputs differ" in outcome.text


@pytest.mark.parametrize("name", ["final.xclbin", "insts.bin", "sources.sha256"])
def test_a_built_file_that_is_absent_or_empty_is_stale(root: Path, board: Board, name: str) -> None:
    path = root / "build/d0" / name
    path.write_bytes(b"")
    assert run(root).status == "stale"
    path.unlink()
    outcome = run(root)
    assert outcome.status == "stale"
    assert name in outcome.text
    assert "run make" in outcome.text


def test_a_source_changed_after_it_was_emitted_is_stale(root: Path, board: Board) -> None:
    path = root / "kernels/move.cc"
    path.write_text(path.read_text() + "// edited\n")
    outcome = run(root)
    assert (outcome.status, outcome.text) == ("stale", "kernels/move.cc: not as it was emitted; generate again")


def test_artifacts_of_other_sources_are_stale_even_when_they_are_newer(root: Path, board: Board) -> None:
    write_folder(root, kernel="// regenerated\n")
    newest = max(p.stat().st_mtime_ns for p in root.rglob("*"))
    for path in (root / "build/d0").iterdir():
        os.utime(path, ns=(newest + 1, newest + 1))
    outcome = run(root)
    assert outcome.status == "stale"
    assert "built from another generated.json" in outcome.text


@pytest.mark.parametrize("left_out", ["generated.json", "kernels/move.cc", "d0/design.py"])
def test_a_link_that_leaves_a_source_out_is_stale(root: Path, board: Board, left_out: str) -> None:
    names = [n for n in ("generated.json", "kernels/move.cc", "d0/design.py") if n != left_out]
    write_build(root, link=names)
    outcome = run(root)
    assert outcome.status == "stale"
    assert f"does not name {left_out}" in outcome.text


def test_an_artifact_older_than_a_source_is_stale(root: Path, board: Board) -> None:
    path = root / "build/d0/final.xclbin"
    os.utime(path, ns=(1, 1))
    outcome = run(root)
    assert outcome.status == "stale"
    assert "final.xclbin: older than the sources" in outcome.text


def test_an_artifact_as_old_as_the_sources_is_not_stale(root: Path, board: Board) -> None:
    newest = max((root / n).stat().st_mtime_ns for n in ("generated.json", "kernels/move.cc", "d0/design.py"))
    for name in ("final.xclbin", "insts.bin"):
        os.utime(root / "build/d0" / name, ns=(newest, newest))
    assert run(root).status == "completed"


@pytest.mark.parametrize("size", [1, 15, 17])
def test_instructions_that_are_no_whole_words_are_stale(root: Path, board: Board, size: int) -> None:
    write_build(root, insts=b"\1" * size)
    outcome = run(root)
    assert outcome.status == "stale"
    assert f"insts.bin: {size} bytes, no whole number of instruction words" in outcome.text


def test_an_xclbin_that_takes_fewer_buffers_is_refused_before_the_driver_ends_the_process(
    root: Path, board: Board
) -> None:
    board.arguments = 4
    outcome = run(root)
    assert outcome.status == "device_error"
    assert "the xclbin takes 1 buffers, the design has 2" in outcome.text
    board.arguments = 5
    assert run(root).status == "completed"


def test_an_xclbin_that_cannot_be_loaded_is_a_device_error(root: Path, board: Board) -> None:
    board.load_error = "failed to load\nxclbin"
    outcome = run(root)
    assert (outcome.status, outcome.text) == ("device_error", "the design cannot be loaded: failed to load xclbin")
    board.load_error, board.kernels = "", 2
    assert "has 2 kernels" in run(root).text


def test_the_build_folder_can_be_elsewhere(root: Path, board: Board, tmp_path: Path) -> None:
    (root / "build").rename(tmp_path / "elsewhere")
    assert run(root).status == "stale"
    assert run(root, build=tmp_path / "elsewhere").status == "completed"


def test_times_of_a_fresh_copy_of_the_sources_say_nothing_and_hashes_still_do(root: Path, board: Board) -> None:
    build, copied = root / "build", root.parent / "copied"
    for name in ("final.xclbin", "insts.bin"):
        os.utime(build / "d0" / name, ns=(1, 1))
    write_folder(copied)
    assert run(copied, build=build).status == "stale"
    assert run(copied, build=build, dated=False).status == "completed"
    write_folder(copied, kernel="// regenerated\n")
    assert run(copied, build=build, dated=False).status == "stale"
