"""The process that runs a design file: bounds, environment, files of a port."""

import json
import time
from pathlib import Path

import pytest

from manifest.errors import RefusedError
from presim.iron.run import lower_file
from tests.presim.iron.lowering import lowered

CORE = """
def core(i, o):
    i.acquire(1), o.acquire(1)
    i.release(1), o.release(1)
"""


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(RefusedError) as caught:
        lower_file(path, **options)  # type: ignore[arg-type]
    return caught.value.problems[0].line()


@pytest.mark.parametrize("mark", ["state.json", "port.json"])
@pytest.mark.parametrize("below", ["", "generated/d0"])
def test_file_inside_a_port_is_refused(tmp_path: Path, mark: str, below: str) -> None:
    folder = tmp_path / "model.port" / below
    folder.mkdir(parents=True)
    (tmp_path / "model.port" / mark).write_text("{}")
    (folder / "design.py").write_text("raise SystemExit(0)")
    assert "lies inside a port" in refusal(folder / "design.py")


def test_link_into_a_port_is_refused(tmp_path: Path) -> None:
    port = tmp_path / "model.port"
    port.mkdir()
    (port / "state.json").write_text("{}")
    (port / "design.py").write_text("raise SystemExit(0)")
    (tmp_path / "link.py").symlink_to(port / "design.py")
    assert "lies inside a port" in refusal(tmp_path / "link.py")


def test_absent_file_and_folder(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "none.py")
    assert "is no file" in refusal(tmp_path)


def test_unknown_device(tmp_path: Path) -> None:
    (tmp_path / "design.py").write_text("")
    assert "no device for 'vek385'" in refusal(tmp_path / "design.py", device="vek385")


def test_endless_file_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "design.py"
    path.write_text("while True: pass")
    begin = time.monotonic()
    assert "still runs after 1 s" in refusal(path, timeout_s=1.0)
    assert time.monotonic() - begin < 20


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "design.py"
    path.write_text("x = bytearray(8 << 30)")
    assert "MemoryError" in refusal(path)


def test_output_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "design.py"
    path.write_text("import os\nwhile True: os.write(1, b'x' * (1 << 20))")
    line = refusal(path, timeout_s=60.0)
    assert "File too large" in line
    assert len(line) < 500


def test_dying_process_is_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "design.py"
    path.write_text("import os\nprint('last words', flush=True)\nos._exit(9)")
    assert "ended without a result: last words" in refusal(path)


def test_environment_is_clean_and_the_folder_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKER_OF_THE_TEST", "1")
    text = """
import json, os
print(json.dumps({"env": sorted(os.environ), "files": os.listdir("."), "argv": sys.argv}))
"""
    made = lowered(tmp_path, text + CORE + "simple(core)\n", argv=["--dev", "npu2"])
    found = json.loads(made.output.splitlines()[0])
    assert "MARKER_OF_THE_TEST" not in found["env"]
    assert found["files"] == []
    assert found["argv"] == [str(tmp_path / "design.py"), "--dev", "npu2"]


def test_design_file_leaves_nothing_beside_itself(tmp_path: Path) -> None:
    lowered(tmp_path, CORE + "simple(core)\n")
    assert [p.name for p in tmp_path.iterdir()] == ["design.py"]


def test_files_beside_it_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("N = 8\n")
    made = lowered(tmp_path, "from sizes import N\n" + CORE + "simple(core)\n")
    assert made.design.fifos[0].shape == (8,)


def test_call_of_a_jitted_design_is_the_end(tmp_path: Path) -> None:
    text = """
    from aie.iron import CompileTime, In, Out
    @iron.jit
    def design(x: In, y: Out, *, times: CompileTime[int] = 1):
        def core(i, o):
            for _ in range_(times):
                i.acquire(1), o.acquire(1)
                i.release(1), o.release(1)
        return simple(core)
    design(iron.arange(32, dtype=np.int32), iron.zeros(32, dtype=np.int32), times=3)
    raise RuntimeError("not reached")
    """
    made = lowered(tmp_path, text)
    assert made.design.workers[0].program[0].times == 3  # type: ignore[union-attr]


def test_failure_behind_the_program_is_no_refusal(tmp_path: Path) -> None:
    made = lowered(tmp_path, CORE + "simple(core)\nraise RuntimeError('no device here')\n")
    assert "no device here" in made.output


def test_same_file_twice_gives_the_same(tmp_path: Path) -> None:
    text = CORE + "simple(core)\n"
    assert lowered(tmp_path, text).design == lowered(tmp_path, text).design


@pytest.mark.parametrize(
    "code",
    [
        "open('../result/lowered.json', 'w').write('{')",
        "open('../result/lowered.json', 'w').write('[]')",
        "open('../result/lowered.json', 'w').write('{\"design\": {}}'); open('../result/arrays.npz', 'w').write('PK')",
        "open('../result/lowered.json', 'w').write('[' * 100000)",
        "open('../result/lowered.json', 'wb').write(b'\\xff')",
        "open('../result/error.json', 'w').write('{')",
        "open('../result/error.json', 'w').write('[]')",
        "os.remove('../output.txt')",
        "shutil.rmtree('..', ignore_errors=True)",
    ],
)
def test_a_file_that_writes_where_the_result_goes_is_refused_on_one_line(tmp_path: Path, code: str) -> None:
    (tmp_path / "design.py").write_text(f"import os, shutil\n{code}\nos._exit(0)\n")
    assert "left a result that is not readable" in refusal(tmp_path / "design.py")


def test_a_long_error_is_cut(tmp_path: Path) -> None:
    (tmp_path / "design.py").write_text("raise SystemExit('x' * 100000)")
    assert len(refusal(tmp_path / "design.py")) < 1500
