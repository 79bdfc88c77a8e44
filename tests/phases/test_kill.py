"""`kill -9` at random moments: what is left is a port before or after, or one that says interrupted and heals."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phases.__main__ import main as phases
from phases.baseline.__main__ import main as baseline
from phases.integrity import Condition, inspect
from phases.lock import is_busy
from phases.state import JOURNAL
from tests.ports import contents
from tests.real_port import write_model

COMMITS = """
import sys
from pathlib import Path
from phases.port import write_phase, writing
from phases.record import PortInfo, Source
root, model = Path(sys.argv[1]), Path(sys.argv[2])
info = PortInfo(tool_version="0", model=Source.of(model, port=root), device="npu2", options={})
number = 0
while True:
    number += 1
    names = [f"{folder}/{k}" for folder in ("reports", "gates", "data") for k in range(number % 3 + 1)]
    files = {name: f"{number} {name}".encode() * 5000 for name in names}
    with writing(root):
        write_phase(root, "baseline", {**files, "port.json": info.to_bytes()}, {})
    print(number, flush=True)
"""

RUNS = """
import itertools, sys
from phases.baseline.__main__ import main
for number in itertools.count():
    if main([*sys.argv[1:], "--max-samples", str(9 + number % 3)]) != 0:
        raise SystemExit("not PASS")
"""


def start(root: Path, code: str, *arguments: object, stdout: int) -> subprocess.Popen[bytes]:
    """A process whose stdout nobody has to drain unless it is a pipe that says little."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=root, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ})


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill after some time."""
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a running process has made a file."""
    while not path.exists():
        assert process.poll() is None, process.communicate()


def kill_commits(root: Path, folder: Path, kills: int) -> dict[Condition, int]:
    """Kill a loop of commits again and again; every port in between is whole or says that it is not."""
    chance = random.Random(kills)
    model, port = folder / "m.onnx", folder / "m.port"
    model.write_bytes(b"model")
    seen = dict.fromkeys(Condition, 0)
    for _ in range(kills):
        process = start(root, COMMITS, port, model, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        kill_after(process, chance.uniform(0, 0.06))
        assert not is_busy(port)
        found = inspect(port)
        seen[found.condition] += 1
        assert found.condition in (Condition.OK, Condition.INTERRUPTED), found.faults
        assert phases(["check", str(port)]) == 3
        if found.condition is Condition.OK:
            numbers = {data.split()[0] for name, data in contents(port).items() if "/" in name}
            assert len(numbers) == 1
    return seen


def kill_runs(root: Path, folder: Path, kills: int) -> dict[Condition, int]:
    """Kill phase 1 itself, at any moment and, every second time, while it writes; then `check`, now and then a run."""
    chance = random.Random(kills)
    model = write_model(folder)
    port = folder / "m.port"
    seen = dict.fromkeys(Condition, 0)
    given = (model, "--data", folder / "real.npz", "--out", port)
    for number in range(kills):
        process = start(root, RUNS, *given, stdout=subprocess.DEVNULL)
        if number % 2:
            wait_for(port / JOURNAL, process)
        kill_after(process, chance.uniform(0, 0.02 if number % 2 else 1.5))
        if not port.exists():
            assert phases(["check", str(port)]) == 2
            continue
        found = inspect(port)
        seen[found.condition] += 1
        assert found.condition in (Condition.OK, Condition.INTERRUPTED), found.faults
        assert phases(["check", str(port)]) == (0 if found.condition is Condition.OK else 3)
        if number % 3 == 0:
            assert baseline([str(a) for a in given]) == 0
            assert phases(["check", str(port)]) == 0
            assert inspect(port).unknown == ()
    assert baseline([str(a) for a in given]) == 0
    assert phases(["check", str(port)]) == 0
    return seen


def test_15_kills_in_a_loop_of_commits(tmp_path: Path, root: Path) -> None:
    seen = kill_commits(root, tmp_path, 15)
    assert sum(seen.values()) == 15
    assert seen[Condition.INTERRUPTED] > 0


def test_6_kills_of_phase_1(tmp_path: Path, root: Path) -> None:
    kill_runs(root, tmp_path, 6)


@pytest.mark.slow
def test_100_kills_in_a_loop_of_commits(tmp_path: Path, root: Path) -> None:
    seen = kill_commits(root, tmp_path, 100)
    assert seen[Condition.INTERRUPTED] > 5


@pytest.mark.slow
def test_100_kills_of_phase_1(tmp_path: Path, root: Path) -> None:
    seen = kill_runs(root, tmp_path, 100)
    assert sum(seen.values()) > 50
    assert seen[Condition.INTERRUPTED] > 5
