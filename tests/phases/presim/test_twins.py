"""A twin in its process: what it computes, raises, leaves, and how long it takes."""

from pathlib import Path

import numpy as np
import pytest

from bringup.execute.task import HostTask
from bringup.kernels.custom import Code, Custom
from phases.presim.twins import TwinResult, run_twin, twin_results
from tests.presim_designs import copy_design

GOOD = "def run(context, x, y):\n    y[...] = x\n"
VALUES = np.arange(32, dtype=np.int8)


def task(*, compared: bool = True) -> HostTask:
    outputs = ({"y": VALUES},) if compared else ()
    return HostTask(name="copy", design=copy_design(), inputs=({"x": VALUES},), outputs=outputs, schedules=0)


def twin(text: str, *, compared: bool = True, timeout_s: float = 60.0) -> TwinResult:
    code = Code(path="kernels/copy/twin.py", text=text)
    return run_twin("copy", code, {"copy": "run"}, task(compared=compared), timeout_s=timeout_s)


def test_an_exact_twin_says_how_much_was_compared() -> None:
    found = twin(GOOD)
    assert (found.exact, found.elements) == (True, 32)
    assert found.line() == (
        "kernels/copy/twin.py in place of the simulator's kernel of op 'copy' "
        "(your code, run in a limited process): exact, 32 elements"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("= x", "= x + (x == 31)"), "wrong data"),
        (GOOD.replace("= x", "= x[:3]"), "ValueError"),
        ("def run(context, x): ...", "TypeError"),
        ("import sys\ndef run(context, x, y): sys.exit(3)", "ended without a result"),
        ("1 / 0\ndef run(context, x, y): ...", "ZeroDivisionError"),
        ("import os\nrun = os.open(os.devnull, 0)", "not callable"),
        ("import numpy as np\nblock = np.ones(1 << 33, np.int8)\n" + GOOD, "Memory"),
    ],
)
def test_a_twin_that_fails_is_not_exact_and_says_why(text: str, words: str) -> None:
    found = twin(text)
    assert not found.exact
    assert words in found.text
    assert "\n" not in found.line()


def test_a_twin_that_does_not_end_is_ended() -> None:
    found = twin("def run(context, x, y):\n    while True: pass\n", timeout_s=4.0)
    assert (found.exact, found.text) == (False, "it still runs after 4 s")


def test_nothing_compared_is_not_exact() -> None:
    assert twin(GOOD, compared=False) == TwinResult(
        op="copy", path="kernels/copy/twin.py", exact=False, elements=0, text="nothing was compared"
    )


def test_a_twin_gets_no_environment_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    check = "import os\nassert 'SECRET' not in os.environ and os.listdir() == []\nopen('left', 'w').close()\n"
    monkeypatch.chdir(tmp_path)
    assert twin(check + GOOD).exact
    assert list(tmp_path.iterdir()) == []


def test_twins_of_other_ops_are_not_run() -> None:
    code = Code(path="kernels/add/twin.py", text="1 / 0")
    assert twin_results(task(), Custom(twins={"add": code}, functions={"add": {"add": "run"}})) == ()
