"""A person's `kernels/<op>/twin.py` in the place of the simulator's kernel, held against the oracle.

This runs the person's code: in a process of its own with an empty working directory, a clean environment and bounds on
memory, files and time. That keeps accidents small; it is no protection against a hostile file.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bringup.execute import task as files
from bringup.execute.task import HostTask
from bringup.kernels.custom import Called, Code, Custom, custom_of
from phases.port import read_person
from phases.state import KERNELS
from presim.child_process import run_module
from presim.design import Design

TIMEOUT_S: Final = 120.0
WORDS: Final = "your code, run in a limited process"
OUTPUT_BYTES: Final = 1 << 14
LINE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinResult:
    """What a stage with a twin in it showed.

    Attributes:
        op: whose twin.
        path: of the file in the port.
        exact: every element that was compared is the oracle's, and some were.
        elements: that were compared.
        text: of the simulator, or why there is none; one line.
    """

    op: str
    path: str
    exact: bool
    elements: int
    text: str

    def line(self) -> str:
        """The result on one line."""
        what = f"exact, {self.elements} elements" if self.exact else self.text
        return f"{self.path} in place of the simulator's kernel of op {self.op!r} ({WORDS}): {what}"


def called_by(designs: Sequence[Design]) -> tuple[Called, ...]:
    """Kernels of designs."""
    return tuple(Called(name=k.name, op=k.op, type=k.type) for d in designs for k in d.kernels)


def person_kernels(root: Path, designs: Sequence[Design]) -> Custom:
    """The person's kernels in a port as they are now.

    Raises:
        RefusedError: a file that stands for nothing.
    """
    return custom_of(read_person(root, (KERNELS,)), called_by(designs))


def twin_results(task: HostTask, custom: Custom) -> tuple[TwinResult, ...]:
    """Every twin of an op whose kernels a task calls, one after the other.

    Args:
        task: a stage with its data; expected objects and outputs are the oracle's.
        custom: of the person.
    """
    names = {kernel.name for kernel in task.design.kernels}
    return tuple(
        run_twin(op, code, custom.functions[op], task)
        for op, code in custom.twins.items()
        if names & custom.functions[op].keys()
    )


def run_twin(
    op: str, code: Code, functions: Mapping[str, str], task: HostTask, *, timeout_s: float = TIMEOUT_S
) -> TwinResult:
    """Run a stage with a twin in it.

    Args:
        op: whose twin.
        code: the file.
        functions: kernel of the design -> function of the file.
        task: the stage with its data.
        timeout_s: seconds that it may take.
    """
    with tempfile.TemporaryDirectory(prefix="twin-") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        (folder / "twin.py").write_text(code.text, encoding="utf-8")
        (folder / "twin.json").write_text(json.dumps(dict(functions)), encoding="utf-8")
        files.write_task(folder / "task", task, Path("none"), (), tiles=False)
        ended = run_module("phases.presim.twin_child", [str(folder)], folder, timeout_s=timeout_s)
        read = files.read_result(folder / "task") if ended else None
        if read is None:
            text = _last(folder / "output.txt") if ended else f"it still runs after {timeout_s:g} s"
            return TwinResult(op=op, path=code.path, exact=False, elements=0, text=text)
    value = read[0]
    exact = bool(value["sound"]) and value["elements"] > 0
    text = str(value["text"]) if value["elements"] or not value["sound"] else "nothing was compared"
    return TwinResult(op=op, path=code.path, exact=exact, elements=int(value["elements"]), text=text)


def _last(path: Path) -> str:
    """The last line of what the child printed."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - OUTPUT_BYTES))
        lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    return f"it ended without a result: {(lines or ['it says nothing'])[-1][-LINE:]}"
