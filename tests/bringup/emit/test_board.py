"""Makefile and test.py of the generated folder, without board and tool chain."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.emit import write

FAKE = '''
"""A driver that answers with what the test put beside it."""
import json
import pathlib

import numpy as np

PLAN = json.loads((pathlib.Path(__file__).parent / "plan.json").read_text())


class ert_cmd_state:
    ERT_CMD_STATE_COMPLETED = "completed"


class xrt_info_device:
    name = "name"


class xclBOSyncDirection:
    XCL_BO_SYNC_BO_TO_DEVICE = 0
    XCL_BO_SYNC_BO_FROM_DEVICE = 1


class device:
    def __init__(self, index):
        self.index = index

    def get_info(self, what):
        return PLAN["device"]

    def register_xclbin(self, file):
        pass


class _Named:
    def get_name(self):
        return "MLIR_AIE"


class xclbin:
    def __init__(self, path):
        self.path = path

    def get_uuid(self):
        return "uuid"

    def get_kernels(self):
        return [_Named()]


class hw_context:
    def __init__(self, device, uuid):
        pass


class bo:
    cacheable, host_only = 1, 2

    def __init__(self, device, size, flags, group):
        self.data = bytearray(size)

    def write(self, data, offset):
        self.data[offset : offset + len(data)] = data

    def read(self, size, offset):
        return np.frombuffer(bytes(self.data[offset : offset + size]), np.uint8)

    def sync(self, direction):
        pass


class kernel:
    calls = 0

    def __init__(self, context, name):
        pass

    def group_id(self, index):
        return index

    def __call__(self, opcode, insts, size, *buffers):
        assert opcode == 3
        answer = bytes.fromhex(PLAN["answers"][kernel.calls])
        kernel.calls += 1
        buffers[-1].write(answer, 0)
        return self

    def wait(self):
        return PLAN["state"]
'''


@pytest.fixture
def board(emitted: Mapping[str, bytes], tmp_path: Path) -> Path:
    out = tmp_path / "out"
    write(emitted, out)
    for name in ("final.xclbin", "insts.bin"):
        path = out / "build/d0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\0" * 16)
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/pyxrt.py").write_text(FAKE)
    return out


def run(
    board: Path, arrays: list[Any], *, device: str = "NPU Strix", state: str = "completed", fake: bool = True
) -> Any:
    plan = {"device": device, "state": state, "answers": [a.tobytes().hex() for a in arrays]}
    (board.parent / "fake/plan.json").write_text(json.dumps(plan))
    environment = {"PYTHONPATH": str(board.parent / "fake")} if fake else {}
    command = [sys.executable, str(board / "test.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def answers(digits: Any) -> list[Any]:
    return [digits.given.golden[f"d0/{i}/y_quantized"].copy() for i in range(2)]


def test_equal(board: Path, digits: Any) -> None:
    ended = run(board, answers(digits))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "d0: 2 inferences, 0 tensors differ\n"


def test_first_difference_is_named(board: Path, digits: Any) -> None:
    arrays = answers(digits)
    arrays[1][5] += 1
    arrays[1][7] += 1
    ended = run(board, arrays)
    assert ended.returncode == 1
    expected = f"object 0, element (5,): expected {arrays[1][5] - 1}, got {arrays[1][5]}"
    assert f"inference 1, tensor y_quantized: 2 of 16 elements differ; first: {expected}" in ended.stdout


@pytest.mark.parametrize("device", ["NPU Phoenix", "RyzenAI-npu1", "NPU Gorgon Point 1", "something"])
def test_another_or_an_unknown_device_is_refused(board: Path, digits: Any, device: str) -> None:
    ended = run(board, answers(digits), device=device)
    assert ended.returncode == 2
    assert ended.stderr == f"device: expected npu2 (npu4, npu5, npu6, Strix, Krackan), got {device}\n"


def test_a_run_that_does_not_complete(board: Path, digits: Any) -> None:
    ended = run(board, answers(digits), state="ERT_CMD_STATE_TIMEOUT")
    assert (ended.returncode, ended.stderr) == (3, "d0: the device ended in ERT_CMD_STATE_TIMEOUT\n")


def test_what_is_missing_is_named(board: Path, digits: Any) -> None:
    assert "pyxrt: not installed" in run(board, [], fake=False).stderr
    (board / "build/d0/insts.bin").unlink()
    ended = run(board, answers(digits))
    assert ended.returncode == 2
    assert "insts.bin: missing; run make first" in ended.stderr


def test_a_golden_array_of_another_form_is_refused(board: Path, digits: Any) -> None:
    path = board / "d0/golden/0_x_quantized.npy"
    np.save(path, np.zeros(3, np.int8))
    ended = run(board, answers(digits))
    assert ended.returncode == 2
    assert "expected int8 (512,), got int8 (3,)" in ended.stderr


def test_pickles_are_not_read(board: Path, digits: Any) -> None:
    np.save(board / "d0/golden/0_x_quantized.npy", np.array([{}], dtype=object), allow_pickle=True)
    ended = run(board, answers(digits))
    assert ended.returncode == 2
    assert ended.stderr.startswith("0_x_quantized.npy: no array (")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_makefile_builds_each_kernel_and_design_once(board: Path, digits: Any) -> None:
    shutil.rmtree(board / "build")
    variables = ["MLIR_AIE_DIR=aie", "PEANO_INSTALL_DIR=peano"]
    ended = subprocess.run(
        ["make", "-n", "-C", str(board), *variables, "all", "steps"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    compiled = [line for line in lines if line.startswith("peano/bin/clang++")]
    assert len(compiled) == len(digits.given.designs[0].kernels)
    assert all("--target=aie2p-none-unknown-elf" in line and "-I aie/include -I kernels" in line for line in compiled)
    built = [line for line in lines if "aiecc --get-npu-insts --get-xclbin" in line]
    assert len(built) == 1 + len(digits.given.steps)
    assert sum("design.py npu2 >" in line for line in lines) == len(built)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_build_that_fails_leaves_nothing_that_looks_built_from_the_new_sources(board: Path) -> None:
    shutil.rmtree(board / "build")
    tools = board.parent / "tools"
    (tools / "bin").mkdir(parents=True)
    scripts = {"bin/clang++": 'while [ "$1" != -o ]; do shift; done; touch "$2"', "python": "echo module"}
    scripts["aiecc"] = f"touch insts.bin; [ ! -e {tools}/fails ] || exit 1; echo built > final.xclbin"
    for name, text in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    variables = [f"PYTHON={tools}/python", f"AIECC={tools}/aiecc", "MLIR_AIE_DIR=aie", f"PEANO_INSTALL_DIR={tools}"]
    command = ["make", "-s", "-C", str(board), *variables, "all"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    built = board / "build/d0"
    link = (built / "sources.sha256").read_text()
    assert " generated.json\n" in link
    assert " d0/design.py\n" in link
    assert (built / "final.xclbin").is_file()
    (tools / "fails").touch()
    design = board / "d0/design.py"
    design.write_text(design.read_text() + "# edited\n")
    later = (built / "final.xclbin").stat().st_mtime_ns + 10**9
    os.utime(design, ns=(later, later))
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
    assert not (built / "final.xclbin").exists()
    assert not (built / "sources.sha256").exists()


def test_readme_says_what_is_not_in_it(board: Path) -> None:
    text = " ".join((board / "README.md").read_text().split())
    assert "`python -m phases.bringup` does both" in text
    assert "1 dispatches, 12 pieces, 7 kernels" in text
