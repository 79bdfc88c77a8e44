"""The stand-in and `api-1.4.json` say the same, both ways; other names and keywords are refused in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import RefusedError
from presim.child_process import ROOT
from presim.iron import api
from presim.iron.run import STAND_IN
from tests.presim.iron.lowering import FIRST_LINE, lowered, refusals


@pytest.fixture(scope="module")
def surface() -> dict[str, Any]:
    """Rows of the stand-in as it is."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(STAND_IN), str(ROOT)))}
    script = Path(__file__).parent / "surface.py"
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, check=True)
    rows = json.loads(done.stdout)
    assert len({r["name"] for r in rows}) == len(rows)
    return {r["name"]: r for r in rows}


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    """Rows of the file."""
    value = json.loads(api.FILE.read_text(encoding="utf-8"))
    return {r["name"]: {k: v for k, v in r.items() if k not in {"page", "note"}} for r in value["rows"]}


def test_every_name_of_the_stand_in_is_a_row(surface: dict[str, Any], table: dict[str, Any]) -> None:
    assert sorted(set(surface) - set(table)) == []


def test_every_row_is_a_name_of_the_stand_in(surface: dict[str, Any], table: dict[str, Any]) -> None:
    assert sorted(set(table) - set(surface)) == []


def test_parameters_are_those_of_the_rows(surface: dict[str, Any], table: dict[str, Any]) -> None:
    assert {n: r for n, r in surface.items() if table[n] != r} == {}


def test_rows_name_a_public_page() -> None:
    rows, pages = api.load()
    assert len(rows) > 150
    assert {r.page for r in rows.values()} == set(pages)
    assert all(
        p.startswith(("https://github.com/Xilinx/mlir-aie/", "https://xilinx.github.io/")) for p in pages.values()
    )


REFUSED = {
    "from aie.iron.placers import SequentialPlacer": "there is no module 'aie.iron.placers' in 1.4.0",
    "from aie.iron import GlobalBuffer": "aie.iron has no 'GlobalBuffer' in 1.4.0",
    "from aie.iron import placers": "aie.iron has no 'placers'",
    "iron.nonsense()": "aie.iron has no 'nonsense'",
    "from aie.dialects.aie import device": "there is no module 'aie.dialects'",
    "ObjectFifo(ty, to_stream=None)": "ObjectFifo(): got an unexpected keyword argument 'to_stream'; 1.4.0 takes",
    "ObjectFifo(ty, default_depth=3)": "default_depth",
    "ObjectFifo()": "missing a required argument: 'obj_type'",
    "Worker(None, placement=Tile(0, 2))": "Worker(): got an unexpected keyword argument 'placement'",
    "Runtime()": "missing a required argument: 'sequence_fn'",
    "Program(NPU2(), Runtime(lambda: None, [])).resolve_program(placer=1)": "unexpected keyword argument 'placer'",
    "ObjectFifo(ty).prod(channel=1)": "unexpected keyword argument 'channel'",
    "ObjectFifo(ty).cons().forward(placement=None)": "unexpected keyword argument 'placement'",
    "Buffer(ty, address=4)": "unexpected keyword argument 'address'",
    "iron.jit(lambda a: a, sizes=3)": "neither options",
    "TensorAccessPattern((4,), offsets=1)": "unexpected keyword argument 'offsets'",
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What each line is refused with."""
    return refusals(tmp_path_factory.mktemp("refused"), REFUSED)


@pytest.mark.parametrize("line", REFUSED)
def test_other_names_and_keywords_are_refused_with_place_and_what_there_is(
    refused: dict[str, tuple[str, str]], line: str
) -> None:
    where, what = refused[line]
    assert REFUSED[line] in what
    assert where == f"design.py:{FIRST_LINE}"
    assert "\n" not in what


def test_refusal_reaches_the_caller(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=rf"design.py:{FIRST_LINE}: .*unexpected keyword argument 'placement'"):
        lowered(tmp_path, "Worker(None, placement=Tile(0, 2))")


def test_missing_name_can_be_guarded_like_an_import(tmp_path: Path) -> None:
    made = lowered(
        tmp_path,
        """
        try:
            from aie.iron import GlobalBuffer
        except ImportError:
            GlobalBuffer = Buffer
        def core(i, o):
            i.acquire(1), o.acquire(1)
            i.release(1), o.release(1)
        simple(core)
        """,
    )
    assert [w.name for w in made.design.workers] == ["core"]


def test_row_is_found_by_name() -> None:
    rows, _ = api.load()
    row = rows["aie.iron.ObjectFifo"]
    assert [p.name for p in row.parameters[:3]] == ["obj_type", "depth", "name"]
    assert [p.default for p in row.parameters[:3]] == [None, "2", "None"]
