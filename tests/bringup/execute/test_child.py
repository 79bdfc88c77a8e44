"""The child: what it must not have in memory is seen, and what it is told comes back as it was."""

import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from bringup.backends.host.outcome import outcome_of
from bringup.execute import HostResult, child
from bringup.execute.events import EventPage, make_page, read_page
from bringup.execute.run import child_environment
from bringup.execute.task import HostTask, read_result, read_task, write_result, write_task
from tests.bringup.backends.folders import job_in
from tests.bringup.execute.compiled import move_abi, move_design, rows


def test_the_modules_of_the_child_are_neither_onnx_nor_onnxruntime() -> None:
    code = "import bringup.execute.child, sys; print(sorted({'onnx', 'onnxruntime'} & set(sys.modules)))"
    environment = child_environment(sanitize=False)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["onnx", "onnxruntime", "onnxruntime.capi"])
def test_one_of_them_in_memory_is_seen_and_fails_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for known in [m for m in sys.modules if m.split(".")[0] in child.FOREIGN]:
        monkeypatch.delitem(sys.modules, known)
    make_page(tmp_path / "events")
    assert child._common(None, EventPage(tmp_path / "events"), 0.0)["foreign"] == []
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    foreign = child._common(None, EventPage(tmp_path / "events"), 0.0)["foreign"]
    assert foreign == [name.split(".", maxsplit=1)[0]]
    good = HostResult(verdict="completes", text="", sound=True, compared={"y": 1})
    assert outcome_of(good, job_in(tmp_path)).status == "completed"
    spoiled = HostResult(verdict="completes", text="", sound=True, compared={"y": 1}, foreign=tuple(foreign))
    assert outcome_of(spoiled, job_in(tmp_path)).status == "crash"


def test_a_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    mask = np.eye(4, dtype=bool)
    task = HostTask(
        name="a/b",
        design=move_design(),
        inputs=[{"x/1": rows()[0]}, {"x/1": rows()[1], "z": np.zeros(0, np.int8)}],
        arrays={"weights:a:b": np.arange(3.0)},
        fifos=[{"y": np.ma.masked_array(rows()[0], mask)}],
        outputs=[{"y": rows()[2]}],
        symbols={"a b": "k_a_b"},
        schedules=7,
        rehearse=False,
        capture=frozenset({"x"}),
    )
    write_task(tmp_path / "t", task, Path("lib.so"), [move_abi()], tiles=True)
    read = read_task(tmp_path / "t")
    assert (read.library, read.externals, read.tiles) == (Path("lib.so"), (move_abi(),), True)
    for name in ("name", "design", "symbols", "schedules", "rehearse", "capture", "max_steps"):
        assert getattr(read.task, name) == getattr(task, name)
    np.testing.assert_array_equal(read.task.arrays["weights:a:b"], np.arange(3.0))
    assert [set(i) for i in read.task.inputs] == [{"x/1"}, {"x/1", "z"}]
    np.testing.assert_array_equal(read.task.inputs[1]["x/1"], rows()[1])
    found = read.task.fifos[0]["y"]
    assert isinstance(found, np.ma.MaskedArray)
    np.testing.assert_array_equal(found.mask, mask)
    np.testing.assert_array_equal(read.task.outputs[0]["y"], rows()[2])


def test_a_result_is_there_only_when_all_of_it_is(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    write_result(tmp_path, {"verdict": "completes"}, [{"y": rows()[0]}, {}], {"x": rows()[1]})
    read = read_result(tmp_path)
    assert read is not None
    value, outputs, captured = read
    assert value["verdict"] == "completes"
    assert [set(o) for o in outputs] == [{"y"}, set()]
    np.testing.assert_array_equal(captured["x"], rows()[1])
    (tmp_path / "result.json").rename(tmp_path / "result.json.part")
    assert read_result(tmp_path) is None


def test_the_page_says_what_ran_last(tmp_path: Path) -> None:
    path = tmp_path / "events"
    make_page(path)
    assert read_page(path, [2]).stage == "starting"
    page = EventPage(path)
    page.stage("simulating")
    page.call(1, 0, (5, -6))
    page.words[64], page.words[65] = 0x1000, 0x2000
    last = read_page(path, [2])
    assert (last.stage, last.worker, last.kernel, last.scalars) == ("kernel", 1, 0, (5, -6))
    assert (last.blocks, last.calls) == ((0x1000, 0x2000), 1)
    page.returned()
    assert read_page(path, [2]).stage == "simulating"
    page.call(0, 9, ())
    assert read_page(path, [2]).blocks == ()
