"""Devices, drivers, built files and recordings with something wrong about them."""

import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from manifest.io import canonical_json
from tests.bringup_faults.board import Driver
from tests.bringup_faults.edits import Array
from tests.bringup_faults.harness import Fault

STAGE: Final = "01_stage_second"


def _zeros(data: Array, _: int) -> None:
    data[:] = 0


def _another_each_time(data: Array, number: int) -> None:
    data[3] = np.uint8(number)


def _one_wrong(data: Array, _: int) -> None:
    data[3] ^= 1


def _another_source(folder: Path) -> None:
    path = folder / "sources.sha256"
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(".cc"))
    lines[at] = "0" * 64 + lines[at][64:]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _later(path)


def _later(path: Path) -> None:
    """Newer than everything else in the folder."""
    newest = max(p.stat().st_mtime_ns for p in path.parent.iterdir())
    os.utime(path, ns=(newest, newest))


def _half_a_word(folder: Path) -> None:
    path = folder / "insts.bin"
    path.write_bytes(path.read_bytes()[:-1])
    _later(path)


def _gone(folder: Path) -> None:
    (folder / "final.xclbin").unlink()


def _old(folder: Path) -> None:
    os.utime(folder / "final.xclbin", ns=(1, 1))


def _recorded(**fields: Any) -> Any:
    """Other fields in every recording."""

    def edit(folder: Path) -> None:
        for path in folder.rglob("recording.json"):
            value = json.loads(path.read_bytes())
            path.write_bytes(canonical_json({**value, **fields}))

    return edit


def _other_array(folder: Path) -> None:
    path = sorted(folder.rglob("*.npy"))[0]
    path.write_bytes(path.read_bytes()[:-1] + b"\7")


def _one_missing(folder: Path) -> None:
    next(p for p in sorted(folder.rglob("recording.json")) if "01_stage" in str(p)).unlink()


DEVICES: Final = (
    Fault(
        id="unknown-device",
        breaks="the driver gives a name that nobody has seen",
        base="zero points",
        driver=Driver(reported="RyzenAI-npu9"),
        items=("BU012", "BU013"),
        verdict="BLOCKED",
        words=("'RyzenAI-npu9'", "no device of the catalogue"),
        exit=4,
    ),
    Fault(
        id="no-device",
        breaks="the driver finds no device",
        base="zero points",
        driver=Driver(present=False),
        items=("BU012", "BU013"),
        verdict="BLOCKED",
        words=("No such device",),
        exit=4,
    ),
    Fault(
        id="another-device",
        breaks="an npu1 runs what was built for npu2",
        base="zero points",
        driver=Driver(reported="RyzenAI-npu1"),
        items=("BU012", "BU013"),
        words=("npu2", "RyzenAI-npu1"),
    ),
    Fault(
        id="device-timeout",
        breaks="a stage does not come to its end on the device",
        base="zero points",
        driver=Driver(states={"01_stage": "TIMEOUT"}),
        items=("BU017", "BU013"),
        words=(STAGE, "ERT_CMD_STATE_TIMEOUT"),
    ),
    Fault(
        id="device-abort",
        breaks="the driver gives a run up",
        base="zero points",
        driver=Driver(states={"01_stage": "ABORT"}),
        items=("BU017", "BU013"),
        words=(STAGE, "ERT_CMD_STATE_ABORT"),
    ),
    Fault(
        id="device-zeros",
        breaks="every output of the device is zero",
        base="zero points",
        driver=Driver(spoil=_zeros),
        items=("BU013", "BU010"),
        words=("00_stage", "is 0"),
        cause="zeros: wrong device, or never written",
    ),
    Fault(
        id="device-writes-nothing",
        breaks="the device completes and writes nothing",
        base="zero points",
        driver=Driver(keep=1 << 20),
        items=("BU013", "BU010"),
        words=("00_stage", "was written"),
    ),
    Fault(
        id="device-writes-a-part",
        breaks="the last bytes of every output are not written",
        base="zero points",
        driver=Driver(keep=8),
        items=("BU013",),
        words=("00_stage", "were not written"),
    ),
    Fault(
        id="device-repeats-differ",
        breaks="two runs of the same inputs differ in one byte",
        base="zero points",
        driver=Driver(spoil=_another_each_time),
        items=("BU017", "BU013"),
        words=("00_stage", "two runs with the same inputs differ"),
    ),
    Fault(
        id="device-one-element",
        breaks="one element of every output is wrong",
        base="zero points",
        driver=Driver(spoil=_one_wrong),
        items=("BU013",),
        words=("00_stage", "expected"),
    ),
    Fault(
        id="stale-xclbin",
        breaks="the xclbin was built from another kernel",
        base="zero points",
        driver=Driver(built=_another_source),
        items=("BU013",),
        words=("00_stage", "built from another kernels/"),
    ),
    Fault(
        id="old-xclbin",
        breaks="the xclbin is older than the sources",
        base="zero points",
        driver=Driver(built=_old),
        items=("BU013",),
        words=("00_stage", "older than the sources"),
    ),
    Fault(
        id="no-xclbin",
        breaks="the build left no xclbin",
        base="zero points",
        driver=Driver(built=_gone),
        items=("BU013",),
        words=("00_stage", "final.xclbin: absent"),
    ),
    Fault(
        id="cut-instructions",
        breaks="the instructions are no whole number of words",
        base="zero points",
        driver=Driver(built=_half_a_word),
        items=("BU013",),
        words=("00_stage", "no whole number of instruction words"),
    ),
    Fault(
        id="recording-of-another-manifest",
        breaks="recordings were made from another manifest",
        base="zero points",
        recording=_recorded(manifest_sha256="0" * 64),
        items=("BU013",),
        words=("00_stage", "manifest_sha256"),
    ),
    Fault(
        id="recording-of-another-device",
        breaks="recordings were made on an npu1",
        base="zero points",
        recording=_recorded(device_reported="RyzenAI-npu1", device_architecture="aie2"),
        items=("BU012", "BU013"),
        words=("npu2", "RyzenAI-npu1"),
    ),
    Fault(
        id="recording-run-once",
        breaks="the board ran every job once",
        base="zero points",
        recording=_recorded(repeats=1),
        items=("BU013",),
        words=("00_stage", "was run once"),
    ),
    Fault(
        id="recording-changed",
        breaks="an array of a recording was changed afterwards",
        base="zero points",
        recording=_other_array,
        items=("BU012", "BU013"),
        verdict="BLOCKED",
        words=("not the file that was recorded",),
        exit=4,
    ),
    Fault(
        id="recording-with-a-gap",
        breaks="one stage was not recorded",
        base="zero points",
        recording=_one_missing,
        items=("BU013",),
        verdict="NOT_RUN",
        words=("01_stage", "no recording of this job"),
    ),
)
