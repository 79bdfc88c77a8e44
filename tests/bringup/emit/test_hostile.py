"""Names of any characters stay names: nothing of them becomes code."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bringup.emit import original
from bringup.emit.roundtrip import differences
from bringup.lint.design import read_design
from bringup.lint.iron import imports
from presim.iron.run import lower_file
from tests.bringup.emit.kinds import KINDS, constants_of, design_of
from tests.bringup.emit.printing import printed
from tests.bringup.emit.printing import write as write_files
from tests.presim.sketches import Sketch, move

NAMES = (
    'a"); import os; ("',
    "a\nimport os\n",
    "a\\",
    "?? #error",
    "é漢\u202e",
    "class",
    "__import__('os')",
    "{x!r}",
    "-rf",
)


@pytest.mark.parametrize("name", NAMES)
def test_design_files(name: str, tmp_path: Path, doubles: Any) -> None:
    sketch = Sketch().kernel(f"{name}k").fifo(name, "shim0", name).fifo(f"{name}2", name, "shim1")
    design = sketch.worker(name, *move(name, f"{name}2", kernel=f"{name}k")).fill(name, 1).drain(f"{name}2", 1).design()
    files = printed(design, None, doubles)[1]
    text = files["design.py"].decode()
    assert text.isascii()
    assert list(imports(read_design(text))) == []
    module = ast.parse(text)
    assert all(not isinstance(n, ast.Import) or n.names[0].name in {"sys", "numpy"} for n in ast.walk(module))
    found = lower_file(write_files(tmp_path, files), argv=["npu2"]).design
    assert differences(design, found) == ()
    assert [original(f.name) for f in found.fifos] == [name, f"{name}2"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kernel_sources(kind: str) -> None:
    design = design_of(KINDS[kind])
    hostile = tuple(replace(k, op="op\n#error */ \\") for k in design.kernels)
    (source,) = printed(replace(design, kernels=hostile), constants_of(KINDS[kind]))[0].sources.values()
    assert not any(line.lstrip().startswith("#error") for line in source.text.splitlines())
    assert source.text.isascii()
    assert not any(line.rstrip().endswith("\\") for line in source.text.splitlines())
