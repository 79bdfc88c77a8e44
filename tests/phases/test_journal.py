"""The commit point: a run that dies after any single step, or loses what was not synced, leaves a port that heals."""

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.errors import PortError, RefusedError, UpstreamError
from phases import journal
from phases.disk import Disk
from phases.integrity import Condition, inspect, is_port
from phases.port import write_phase, writing
from phases.record import PortInfo, Source
from phases.state import JOURNAL, STATE, State

FIRST = {"gates/a.json": b"{}\n", "tensors.npz": b"one", "reports/run.json": b"clock 1", "data/canary.npz": b"canary"}
SECOND = {"gates/a.json": b"[]\n", "tensors.npz": b"two", "reports/new.md": b"new", "deep/er/file": b"x"}


class KilledError(BaseException):
    """The process is gone: nothing after this runs."""


class DyingDisk(Disk):
    """Dies after `steps` steps; a file that it dies in is half written, every second time."""

    def __init__(self, steps: int, *, half: bool = False) -> None:
        self.left = steps
        self.half = half

    def _count(self) -> None:
        if self.left == 0:
            raise KilledError
        self.left -= 1

    def mkdir(self, path: Path) -> None:
        self._count()
        super().mkdir(path)

    def write(self, path: Path, data: bytes) -> None:
        if self.left == 0 and self.half:
            path.write_bytes(data[: len(data) // 2])
        self._count()
        super().write(path, data)

    def replace(self, source: Path, target: Path) -> None:
        self._count()
        super().replace(source, target)

    def unlink(self, path: Path) -> None:
        self._count()
        super().unlink(path)

    def rmdir(self, path: Path) -> None:
        self._count()
        super().rmdir(path)

    def sync(self, folder: Path) -> None:
        self._count()
        super().sync(folder)


class VolatileDisk(DyingDisk):
    """A disk whose power fails: names in folders that were not synced may be as before, each folder by itself."""

    def __init__(self, steps: int, chance: random.Random) -> None:
        super().__init__(steps, half=chance.random() < 0.5)
        self.chance = chance
        self.undo: dict[Path, list[Callable[[], object]]] = {}

    def _note(self, folder: Path, undo: Callable[[], object]) -> None:
        self.undo.setdefault(folder, []).append(undo)

    def mkdir(self, path: Path) -> None:
        super().mkdir(path)
        self._note(path.parent, lambda: _remove_tree(path))

    def write(self, path: Path, data: bytes) -> None:
        super().write(path, data)
        self._note(path.parent, lambda: path.unlink(missing_ok=True))

    def replace(self, source: Path, target: Path) -> None:
        old, data = (target.read_bytes() if target.exists() else None), source.read_bytes()
        super().replace(source, target)

        def undo() -> None:
            target.unlink() if old is None else target.write_bytes(old)
            source.write_bytes(data)

        self._note(target.parent, undo)

    def unlink(self, path: Path) -> None:
        old = path.read_bytes() if path.exists() else None
        super().unlink(path)
        if old is not None:
            self._note(path.parent, lambda: path.write_bytes(old))

    def sync(self, folder: Path) -> None:
        super().sync(folder)
        self.undo.pop(folder, None)

    def power_fails(self) -> None:
        for steps in self.undo.values():
            for step in reversed(steps[self.chance.randint(0, len(steps)) :]):
                with suppress(FileNotFoundError, NotADirectoryError):
                    step()


def _remove_tree(path: Path) -> None:
    for inner in sorted(path.rglob("*"), reverse=True):
        inner.rmdir() if inner.is_dir() else inner.unlink()
    path.rmdir()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    return path


def port_files(files: Mapping[str, bytes], model: Path, root: Path) -> dict[str, bytes]:
    info = PortInfo(tool_version="0", model=Source.of(model, port=root), device="npu2", options={})
    return {**files, "port.json": info.to_bytes()}


def contents(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def write(root: Path, files: Mapping[str, bytes], disk: Disk | None = None) -> None:
    with writing(root):
        write_phase(root, "baseline", files, {}, disk=disk or Disk())


def count_steps(root: Path, files: Mapping[str, bytes]) -> int:
    disk = DyingDisk(10_000)
    write(root, files, disk)
    return 10_000 - disk.left


def judge_and_heal(root: Path, before: dict[str, bytes] | None, after: dict[str, bytes]) -> None:
    """What a reader says is OK or INTERRUPTED, and healing gives the port before or after, nothing between."""
    if not root.exists():
        assert before is None
        return
    found = inspect(root)
    assert found.condition in (Condition.OK, Condition.INTERRUPTED), found.faults
    if found.condition is Condition.OK:
        left = {n: d for n, d in contents(root).items() if n not in found.unknown}
        assert left in (before, after)
        assert all(journal.is_leftover(name) for name in found.unknown)
    with writing(root):
        pass
    healed = contents(root) if root.exists() else {}
    assert healed in (before or {}, after)
    if healed:
        assert inspect(root).condition is Condition.OK
        assert not inspect(root).unknown


def test_death_after_every_step_of_a_first_commit_heals(tmp_path: Path, model: Path) -> None:
    whole = tmp_path / "whole"
    steps = count_steps(whole, port_files(FIRST, model, whole))
    after = contents(whole)
    assert steps > 20
    for step, half in itertools.product(range(steps), (False, True)):
        root = tmp_path / f"p{step}{half}"
        with suppress(KilledError):
            write(root, port_files(FIRST, model, root), DyingDisk(step, half=half))
        judge_and_heal(root, None, after)
        write(root, port_files(FIRST, model, root))
        assert contents(root) == after


def test_death_after_every_step_of_a_later_commit_heals(tmp_path: Path, model: Path) -> None:
    whole = tmp_path / "whole"
    write(whole, port_files(FIRST, model, whole))
    before = contents(whole)
    steps = count_steps(whole, port_files(SECOND, model, whole))
    after = contents(whole)
    assert "reports/run.json" not in after
    assert before != after
    outcomes = set()
    for step, half in itertools.product(range(steps), (False, True)):
        root = tmp_path / f"p{step}{half}"
        write(root, port_files(FIRST, model, root))
        with suppress(KilledError):
            write(root, port_files(SECOND, model, root), DyingDisk(step, half=half))
        outcomes.add(inspect(root).condition)
        judge_and_heal(root, before, after)
        write(root, port_files(SECOND, model, root))
        assert contents(root) == after
    assert outcomes == {Condition.OK, Condition.INTERRUPTED}


def test_death_while_healing_heals(tmp_path: Path, model: Path) -> None:
    root = tmp_path / "p"
    write(root, port_files(FIRST, model, root))
    before = contents(root)
    steps = count_steps(root, port_files(SECOND, model, root))
    after = contents(root)
    _remove_tree(root)
    for step in range(3, steps, 3):
        for inner_step in range(12):
            write(root, port_files(FIRST, model, root))
            with suppress(KilledError):
                write(root, port_files(SECOND, model, root), DyingDisk(step))
            with suppress(KilledError):
                journal.heal(root, disk=DyingDisk(inner_step))
            judge_and_heal(root, before, after)
            _remove_tree(root)


@given(seed=st.integers(0, 2**32), at=st.floats(0, 1), heal_at=st.integers(0, 15), folders=st.booleans())
def test_power_failure_heals(
    tmp_path_factory: pytest.TempPathFactory, seed: int, at: float, heal_at: int, folders: bool
) -> None:
    folder = tmp_path_factory.mktemp("power")
    model = folder / "m.onnx"
    model.write_bytes(b"model")
    root, whole = folder / "p", folder / "whole"
    later = SECOND if folders else {name: data for name, data in SECOND.items() if "deep" not in name}
    write(whole, port_files(FIRST, model, whole))
    before = contents(whole)
    steps = count_steps(whole, port_files(later, model, whole))
    after = contents(whole)
    write(root, port_files(FIRST, model, root))
    disk = VolatileDisk(int(at * steps), random.Random(seed))
    with suppress(KilledError):
        write(root, port_files(later, model, root), disk)
    disk.power_fails()
    disk = VolatileDisk(heal_at, random.Random(seed + 1))
    with suppress(KilledError):
        journal.heal(root, disk=disk)
    disk.power_fails()
    judge_and_heal(root, before, after)


def interrupted(root: Path, model: Path, step: int) -> None:
    write(root, port_files(FIRST, model, root))
    with suppress(KilledError):
        write(root, port_files(SECOND, model, root), DyingDisk(step))
    assert (root / JOURNAL).exists()


@pytest.mark.parametrize("step", [4, 12, 24])
def test_a_changed_byte_in_an_interrupted_port_is_tampered(tmp_path: Path, model: Path, step: int) -> None:
    root = tmp_path / "p"
    interrupted(root, model, step)
    names = [n for n in contents(root) if not n.endswith(".new")]
    assert JOURNAL in names
    for name in names:
        original = (root / name).read_bytes()
        (root / name).write_bytes(original[:-1] + bytes([original[-1] ^ 1]))
        found = inspect(root)
        assert found.condition is Condition.TAMPERED, name
        assert name in [f.name for f in found.tampered]
        if name in (JOURNAL, STATE):
            with pytest.raises(PortError), writing(root):
                pass
        (root / name).write_bytes(original)
    assert inspect(root).condition is Condition.INTERRUPTED


def test_heal_refuses_what_someone_else_changed(tmp_path: Path, model: Path) -> None:
    root = tmp_path / "p"
    interrupted(root, model, 20)
    (root / "tensors.npz").write_bytes(b"mine")
    with pytest.raises(UpstreamError, match=r"tensors\.npz: tampered"), writing(root):
        pass
    assert (root / "tensors.npz").read_bytes() == b"mine"
    assert (root / JOURNAL).exists()


class FullDisk(Disk):
    """No space left after a number of files."""

    def __init__(self, files: int) -> None:
        self.left = files

    def write(self, path: Path, data: bytes) -> None:
        if self.left == 0:
            raise OSError(28, "No space left on device")
        self.left -= 1
        super().write(path, data)


@pytest.mark.parametrize("files", range(7))
def test_a_full_disk_leaves_the_port_as_it_was(tmp_path: Path, model: Path, files: int) -> None:
    fresh, old = tmp_path / "fresh", tmp_path / "old"
    with pytest.raises(RefusedError, match="No space left"):
        write(fresh, port_files(FIRST, model, fresh), FullDisk(min(files, 5)))
    assert not fresh.exists()
    write(old, port_files(FIRST, model, old))
    before = contents(old)
    if files < 6:
        with pytest.raises(RefusedError, match="No space left"):
            write(old, port_files(SECOND, model, old), FullDisk(files))
        assert contents(old) == before


def test_the_same_content_again_changes_nothing(tmp_path: Path, model: Path) -> None:
    root = tmp_path / "p"
    write(root, port_files(FIRST, model, root))
    times = {p: p.stat().st_mtime_ns for p in root.rglob("*")}
    assert count_steps(root, port_files(FIRST, model, root)) == 0
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*")} == times


def flips(data: bytes) -> Iterator[bytes]:
    for index in range(len(data)):
        for bit in (0x01, 0x20, 0x80):
            yield data[:index] + bytes([data[index] ^ bit]) + data[index + 1 :]


def test_every_flipped_bit_of_state_and_journal_is_noticed() -> None:
    sealed = State(files={"gates/a.json": "a" * 64}, owners={"baseline": ("gates/a.json",)}).to_bytes()
    pending = journal.Journal(
        token="0" * 16, changes={"a": journal.Change(old=None, new="b" * 64)}, folders=(".",)
    ).to_bytes()
    for data, read in ((sealed, State.from_bytes), (pending, journal.Journal.from_bytes)):
        read(data)
        for changed in flips(data):
            with pytest.raises(UpstreamError):
                read(changed)
        for shorter in (
            data[:-1],
            data + b"\n",
            data + b" ",
            b"",
            re.sub(rb'"self_sha256": "', b'"self_sha256": "0', data),
        ):
            with pytest.raises(UpstreamError):
                read(shorter)


def test_a_folder_with_only_a_leftover_is_no_port_and_can_be_used(tmp_path: Path, model: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()
    (root / f".{JOURNAL}.{'0' * 16}.new").write_bytes(b"half")
    assert not is_port(root)
    assert inspect(root).condition is Condition.INTERRUPTED
    write(root, port_files(FIRST, model, root))
    assert inspect(root).condition is Condition.OK
    assert not inspect(root).unknown
