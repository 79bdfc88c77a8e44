"""Helpers of the tests: a design file from a text, lowered."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import dedent

from presim.child_process import ROOT
from presim.iron.lowered import Lowered
from presim.iron.run import STAND_IN, lower_file

HEAD = """
import sys
import numpy as np
import aie.iron as iron
from aie.iron import *
from aie.iron import Buffer, CascadeFlow, Kernel, ObjectFifo, Program, Runtime, TaskGroup, Worker, WorkerRuntimeBarrier
from aie.iron.controlflow import range_
from aie.iron.device import NPU1, NPU1Col1, NPU2, AnyMemTile, Tile
from aie.helpers.taplib import TensorAccessPattern
ty = np.ndarray[(8,), np.dtype[np.int32]]
host = np.ndarray[(32,), np.dtype[np.int32]]
def simple(core, workers=None, *args, device=None, **kw):
    of_in, of_out = ObjectFifo(ty, name="in"), ObjectFifo(ty, name="out")
    def sequence(x, y, i, o):
        i.fill(x)
        o.drain(y, wait=True)
    worker = Worker(core, [of_in.cons(), of_out.prod(), *args], **kw)
    rt = Runtime(sequence, [host, host, of_in.prod(), of_out.cons()])
    return Program(device or NPU2(), rt, workers=[worker]).resolve_program()
"""


def lowered(tmp_path: Path, text: str, *, argv: Sequence[str] = (), device: str = "npu2") -> Lowered:
    """Lower a design file that begins with common imports."""
    path = tmp_path / "design.py"
    path.write_text(HEAD + dedent(text), encoding="utf-8")
    return lower_file(path, argv=argv, timeout_s=60, device=device)


FIRST_LINE = HEAD.count("\n") + 1
"""Line of a design file on which its own text begins."""


def refusals(folder: Path, texts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """(where, what) that each of many files is refused with, in one process with a fork for each."""
    cases = {f"{i:03}": text for i, text in enumerate(texts)}
    for name, text in cases.items():
        (folder / name).mkdir()
        (folder / name / "design.py").write_text(HEAD + text + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(STAND_IN), str(ROOT)))}
    script = Path(__file__).parent / "batch.py"
    subprocess.run([sys.executable, str(script), str(folder)], env=environment, capture_output=True, check=True)
    found = {}
    for name, text in cases.items():
        problem = json.loads((folder / name / "error.json").read_text(encoding="utf-8"))
        found[text] = (problem["where"], problem["what"])
    return found
