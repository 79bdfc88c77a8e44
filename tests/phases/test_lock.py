"""One run at a time: the second refuses at once and says who holds the port; nothing is left behind."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from manifest.errors import LockedError, RefusedError
from phases.lock import held_here, is_busy, lock_path, port_lock

HOLD = """
import sys, time
from pathlib import Path
from phases.lock import port_lock
with port_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(port: Path, root: Path) -> subprocess.Popen[str]:
    """A process that holds a port until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(port)], cwd=root, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_refuses_at_once_and_names_the_first(tmp_path: Path, root: Path) -> None:
    port = tmp_path / "m.port"
    with hold(port, root) as process:
        try:
            assert is_busy(port)
            started = time.monotonic()
            with pytest.raises(LockedError, match=f"process {process.pid} on '{os.uname().nodename}'"), port_lock(port):
                pass
            assert time.monotonic() - started < 1
            assert not port.exists()
        finally:
            process.kill()
    assert not is_busy(port)
    with port_lock(port):
        assert held_here(port)


def test_a_killed_run_leaves_no_lock(tmp_path: Path, root: Path) -> None:
    port = tmp_path / "m.port"
    process = hold(port, root)
    process.kill()
    process.communicate()
    assert lock_path(port).exists()
    with port_lock(port):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_leaves_nothing_behind(tmp_path: Path) -> None:
    port = tmp_path / "a" / "b" / "m.port"
    with port_lock(port):
        assert lock_path(port).parent == port.parent
        assert not port.exists()
    assert list(tmp_path.iterdir()) == []


def test_folders_with_something_in_them_stay(tmp_path: Path) -> None:
    port = tmp_path / "a" / "b" / "m.port"
    with port_lock(port):
        port.mkdir()
    assert port.is_dir()
    assert list(port.parent.iterdir()) == [port]


def test_two_spellings_of_one_port_share_a_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with port_lock(tmp_path / "real"):
        for other in (tmp_path / "link", tmp_path / "real" / ".." / "real"):
            with pytest.raises(LockedError, match="this process"), port_lock(other):
                pass


def test_two_ports_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with port_lock(tmp_path / "a.port"), port_lock(tmp_path / "b.port"):
        assert is_busy(tmp_path / "a.port")
        assert is_busy(tmp_path / "b.port")


def test_a_place_that_cannot_hold_a_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RefusedError, match="PORT-LOCK"), port_lock(tmp_path / "file" / "m.port"):
        pass


def test_a_reader_that_asks_does_not_make_a_run_fail(tmp_path: Path) -> None:
    port = tmp_path / "m.port"
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            is_busy(port)
            time.sleep(0.001)

    lock_path(port).write_text("left by a killed run")
    reader = threading.Thread(target=ask)
    reader.start()
    try:
        for _ in range(50):
            with port_lock(port):
                pass
            lock_path(port).write_text("left by a killed run")
    finally:
        stop.set()
        reader.join()


def test_many_at_once_never_two_inside(tmp_path: Path, root: Path) -> None:
    code = """
import sys
from pathlib import Path
from manifest.errors import LockedError
from phases.lock import port_lock
marker = Path(sys.argv[1] + ".inside")
entered = 0
while entered < 40:
    try:
        with port_lock(Path(sys.argv[1])):
            marker.touch(exist_ok=False)
            marker.unlink()
            entered += 1
    except LockedError:
        pass
"""
    port = tmp_path / "m.port"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(port)], cwd=root) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert list(tmp_path.iterdir()) == []
