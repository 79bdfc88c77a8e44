"""Recordings: exactly the generated files, inputs and device that they name, or they count for nothing."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.backends import BackendOptions, ReplayBackend, XrtBackend
from bringup.backends.recording import RecordingError, read_recording
from bringup.model import DeviceIdentity, Outcome, Unavailable
from tests.bringup.backends.fake_pyxrt import Board
from tests.bringup.backends.folders import equal, inputs, job_in, write_build, write_folder


@pytest.fixture
def root(tmp_path: Path, board: Board) -> Path:
    del board
    write_folder(tmp_path / "g")
    write_build(tmp_path / "g")
    backend = XrtBackend("npu2", BackendOptions(record=tmp_path / "recorded"))
    assert backend.run(job_in(tmp_path / "g"), inputs()).status == "completed"
    return tmp_path / "g"


def replayed(root: Path, **changes: Any) -> Outcome:
    backend = ReplayBackend("npu2", BackendOptions(recordings=root.parent / "recorded"))
    return backend.run(job_in(root, **changes), inputs())


def edit(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = root.parent / "recorded/d0/recording.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_recording_of_exactly_this_completes(root: Path) -> None:
    outcome = replayed(root)
    assert outcome.status == "completed", outcome.text
    assert equal(outcome)
    assert outcome.driver_status == "ERT_CMD_STATE_COMPLETED"
    assert set(outcome.artifacts) == {"final.xclbin", "insts.bin"}


def test_a_job_that_was_not_recorded_is_absent(root: Path) -> None:
    outcome = replayed(root, design_file="d0/steps/00_stage_a/design.py")
    assert (outcome.status, outcome.text) == ("absent", "d0/steps/00_stage_a: no recording of this job")


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (lambda v: v.update(manifest_sha256="0" * 64), "stale", "manifest_sha256 is 000000000000"),
        (lambda v: v.update(design_sha256="0" * 64), "stale", "design_sha256 is 0"),
        (lambda v: v.update(generated_sha256="0" * 64), "stale", "generated_sha256 is 0"),
        (
            lambda v: v["sources"].update({"kernels/move.cc": "0" * 64}),
            "stale",
            "recorded with another kernels/move.cc",
        ),
        (lambda v: v["sources"].pop("d0/weights/0.npy"), "stale", "recorded with no d0/weights/0.npy"),
        (lambda v: v["artifacts"].pop("insts.bin"), "stale", "does not say which insts.bin was executed"),
        (lambda v: v["inputs"][1].update(sha256="0" * 64), "stale", "another input 'x' in inference 1"),
        (lambda v: v.update(inputs=[]), "stale", "another input 'x' in inference 0"),
        (lambda v: v["outputs"].pop(), "stale", "2 inferences recorded, 3 asked for"),
        (lambda v: v.update(status="ERT_CMD_STATE_TIMEOUT"), "timeout", "ended in ERT_CMD_STATE_TIMEOUT"),
        (lambda v: v.update(status="ERT_CMD_STATE_ABORT"), "device_error", "ended in ERT_CMD_STATE_ABORT"),
        (lambda v: v.update(status=""), "device_error", "expected ERT_CMD_STATE_COMPLETED"),
        (lambda v: v.update(repeats=1), "mismatch", "was run once"),
        (lambda v: v.update(repeats_equal=False), "mismatch", "did not give the same bytes"),
        (lambda v: v.update(device_reported="RyzenAI-npu1"), "wrong_device", "(npu1), for npu2"),
        (lambda v: v.update(device_reported="NPU Unheard"), "wrong_device", "(not known), for npu2"),
        (lambda v: v.update(device_architecture="aie2"), "wrong_device", "(npu1), for npu2"),
        (lambda v: v.update(device_target="npu1"), "wrong_device", "for npu1, npu2"),
    ],
)
def test_a_recording_of_anything_else_does_not_count(
    root: Path, change: Callable[[dict[str, Any]], None], status: str, words: str
) -> None:
    edit(root, change)
    outcome = replayed(root)
    assert outcome.status == status
    assert words in outcome.text
    assert not outcome.outputs


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.update(schema_version=2),
        lambda v: v.pop("status"),
        lambda v: v.update(repeats="2"),
        lambda v: v.update(repeats=True),
        lambda v: v.update(repeats_equal=1),
        lambda v: v.update(sources=[]),
        lambda v: v.update(device_reported=5),
        lambda v: v["outputs"][0].update(file="../../g/generated.json"),
        lambda v: v["outputs"][0].update(file="/etc/passwd"),
        lambda v: v["outputs"][0].update(file="gone.npy"),
        lambda v: v["outputs"][0].update(inference=7),
        lambda v: v["outputs"][0].update(inference=float("inf")),
        lambda v: v["inputs"][0].update(inference=float("-inf")),
    ],
)
def test_a_recording_in_another_form_is_stale(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    edit(root, change)
    assert replayed(root).status == "stale"


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '"x"'])
def test_a_recording_that_is_no_object_is_stale(root: Path, text: str) -> None:
    (root.parent / "recorded/d0/recording.json").write_text(text)
    assert replayed(root).status == "stale"


def test_an_array_other_than_the_recorded_one_is_stale(root: Path) -> None:
    np.save(root.parent / "recorded/d0/000_000.npy", np.zeros(16, np.int32))
    outcome = replayed(root)
    assert outcome.status == "stale"
    assert "its sha256 differs" in outcome.text


def test_an_array_of_objects_is_not_unpickled(root: Path) -> None:
    path = root.parent / "recorded/d0/000_000.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    edit(root, lambda v: v["outputs"][0].update(sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
    with pytest.raises(RecordingError, match="not in the form"):
        read_recording(path.parent)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "U4", "complex64"])
def test_equal_values_of_another_type_are_stale(root: Path, dtype: str) -> None:
    path = root.parent / "recorded/d0/000_000.npy"
    np.save(path, np.load(path).astype(dtype))
    edit(root, lambda v: v["outputs"][0].update(sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
    outcome = replayed(root)
    assert (outcome.status, outcome.outputs) == ("stale", ())
    assert "expected" in outcome.text


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_a_header_that_promises_more_than_the_file_has_is_refused_before_memory_is_asked_for(
    root: Path, version: tuple[int, int]
) -> None:
    path = root.parent / "recorded/d0/000_000.npy"
    header = {"descr": "<i4", "fortran_order": False, "shape": (1 << 50,)}
    with path.open("wb") as file:
        write = np.lib.format.write_array_header_1_0 if version == (1, 0) else np.lib.format.write_array_header_2_0
        write(file, header)
    edit(root, lambda v: v["outputs"][0].update(sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
    outcome = replayed(root)
    assert outcome.status == "stale"
    assert "as many as its header says" in outcome.text


def test_the_device_is_the_one_that_all_recordings_name(root: Path, tmp_path: Path) -> None:
    backend = ReplayBackend("npu2", BackendOptions(recordings=root.parent / "recorded"))
    assert backend.identity() == DeviceIdentity(name="npu2", reported="RyzenAI-npu4", runs="recorded")
    other = root.parent / "recorded/d1"
    other.mkdir()
    for path in (root.parent / "recorded/d0").iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    assert isinstance(backend.identity(), DeviceIdentity)
    edit(root, lambda v: v.update(device_reported="NPU Strix"))
    found = backend.identity()
    assert isinstance(found, Unavailable)
    assert "2 different devices" in found.what


def test_without_recordings_it_is_unavailable(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "gone", tmp_path):
        assert isinstance(ReplayBackend("npu2", BackendOptions(recordings=folder)).identity(), Unavailable)


def test_recordings_of_an_unknown_device_are_blocked(root: Path) -> None:
    edit(root, lambda v: v.update(device_reported="NPU Unheard"))
    found = ReplayBackend("npu2", BackendOptions(recordings=root.parent / "recorded")).identity()
    assert isinstance(found, Unavailable)
    assert "'NPU Unheard'" in found.what


def test_a_failed_run_is_not_recorded_as_a_good_one(tmp_path: Path, board: Board) -> None:
    write_folder(tmp_path / "g")
    write_build(tmp_path / "g")
    board.compute = lambda data: data[1].fill(0)
    backend = XrtBackend("npu2", BackendOptions(record=tmp_path / "recorded"))
    assert backend.run(job_in(tmp_path / "g"), inputs()).status == "mismatch"
    assert replayed(tmp_path / "g").status == "mismatch"
