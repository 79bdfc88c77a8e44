"""`python -m phases presim-design`: verdicts, results, refusals, exit codes."""

import shutil
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from phases.__main__ import main

DESIGNS: Final = Path(__file__).parents[2] / "presim" / "iron" / "designs"
TWIN = "def scale(context, taken, made):\n    made[...] = taken * context.scalars['s0']\n"
CODE = """
#include <cstdint>
extern "C" void scale(const int32_t *taken, int32_t *made, int32_t factor) {
  for (int i = 0; i < 8; i++) made[i] = taken[i] * factor;
}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with inputs and results of the designs `passthrough` and `split_join`, and kernels."""
    x = np.arange(128, dtype=np.int16)
    np.savez(tmp_path / "x.npz", x=x)
    np.savez(tmp_path / "y.npz", y=x + 1)
    wrong = x + 1
    wrong[77] += 1
    np.savez(tmp_path / "wrong.npz", y=wrong)
    many = np.arange(3 * 96, dtype=np.int32).reshape(3, 4, 24)
    np.savez(tmp_path / "many.npz", x=many)
    np.savez(tmp_path / "scaled.npz", y=many * np.repeat([2, 3, 4], 8).astype(np.int32))
    (tmp_path / "twin.py").write_text(TWIN)
    (tmp_path / "scale.cc").write_text(CODE)
    return tmp_path


def run(design: str, *options: str | Path) -> int:
    return main(["presim-design", str(DESIGNS / f"{design}.py"), *map(str, options)])


def test_right_results(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("passthrough", "--inputs", files / "x.npz", "--expect", files / "y.npz", "--outputs", files / "o.npz")
    out = capsys.readouterr().out
    assert code == 0, out
    assert "verdict: completes 1 inferences" in out
    assert "compared: 128 elements of 'y'" in out
    assert np.array_equal(np.load(files / "o.npz")["y"], np.arange(128) + 1)


def test_wrong_results_are_exit_1_and_write_nothing(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        "passthrough", "--inputs", files / "x.npz", "--expect", files / "wrong.npz", "--outputs", files / "o.npz"
    )
    out = capsys.readouterr().out
    assert code == 1
    assert "verdict: wrong data" in out
    assert "element [77] is 78, expected 79" in out
    assert not (files / "o.npz").exists()


def test_hang_is_exit_1_with_the_cycle_and_a_fix(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("passthrough", "--inputs", files / "x.npz", "--arg=hang")
    out = capsys.readouterr().out
    assert code == 1
    assert "verdict: deadlock: " in out
    assert "depth 6 in place of 2 for fifo 'in'" in out


def test_python_kernel_and_several_inferences(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options: list[str | Path] = [
        "--inputs",
        files / "many.npz",
        "--expect",
        files / "scaled.npz",
        "--outputs",
        files / "o.npz",
    ]
    assert run("split_join", *options, "--kernel", f"scale={files / 'twin.py'}", "--device", "npu1") == 0
    assert "completes 3 inferences" in capsys.readouterr().out
    assert np.load(files / "o.npz")["y"].shape == (3, 4, 24)


def test_named_function_of_a_python_file(files: Path) -> None:
    (files / "other.py").write_text(TWIN.replace("def scale", "def other"))
    options: list[str | Path] = ["--inputs", files / "many.npz", "--expect", files / "scaled.npz"]
    assert run("split_join", *options, "--kernel", f"scale={files / 'other.py'}:other") == 0


def test_compiled_kernel(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    options: list[str | Path] = ["--inputs", files / "many.npz", "--expect", files / "scaled.npz"]
    assert run("split_join", *options, "--kernel", f"scale={files / 'scale.cc'}") == 0
    assert "completes 3 inferences" in capsys.readouterr().out


def test_compiled_kernel_that_writes_beyond_its_object(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    (files / "scale.cc").write_text(CODE.replace("i < 8", "i < 9"))
    options: list[str | Path] = ["--inputs", files / "many.npz", "--kernel", f"scale={files / 'scale.cc'}"]
    assert run("split_join", *options) == 1
    assert "scale" in capsys.readouterr().out


REFUSED = {
    "no kernel": (["split_join", "--inputs", "many.npz"], "no code for scale"),
    "kernel of another name": (
        ["split_join", "--inputs", "many.npz", "--kernel", "scall=twin.py"],
        "there is no function",
    ),
    "kernel that nothing calls": (
        ["passthrough", "--inputs", "x.npz", "--kernel", "f=twin.py"],
        "calls no such kernel",
    ),
    "option of another form": (["passthrough", "--inputs", "x.npz", "--kernel", "scale"], "SYMBOL=FILE.cc"),
    "absent inputs": (["passthrough", "--inputs", "none.npz"], "no such file"),
    "inputs of another name": (["passthrough", "--inputs", "y.npz"], "array 'x': is absent"),
    "inputs of another size": (["passthrough", "--inputs", "many.npz"], "does not fit"),
    "results of another count": (
        ["split_join", "--inputs", "many.npz", "--expect", "one.npz", "--kernel", "scale=twin.py"],
        "results of 1 inferences",
    ),
    "results over the inputs": (["passthrough", "--inputs", "x.npz", "--outputs", "x.npz"], "would replace"),
    "file that is none": (["none", "--inputs", "x.npz"], "there is no such file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_exit_2(
    files: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    np.savez(files / "one.npz", y=np.zeros((4, 24), np.int32))
    (design, *options), text = REFUSED[case]
    if case == "kernel of another name":
        options = [o.replace("scall", "scale") for o in options]
        (files / "twin.py").write_text(TWIN.replace("def scale", "def scall"))
    before = sorted(p.name for p in files.iterdir())
    assert run(design, *options) == 2
    assert text in capsys.readouterr().err
    assert sorted(p.name for p in files.iterdir()) == before


def test_design_inside_a_port_is_never_run(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = files / "m.port" / "generated"
    port.mkdir(parents=True)
    (files / "m.port" / "state.json").write_text("{}")
    shutil.copy(DESIGNS / "passthrough.py", port / "design.py")
    assert main(["presim-design", str(port / "design.py"), "--inputs", str(files / "x.npz")]) == 2
    assert "inside a port" in capsys.readouterr().err
