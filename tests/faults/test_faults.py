"""Every seeded fault is caught by the gate items named for it, with the right place; sound designs never are."""

import re
from pathlib import Path

import pytest

from checklists.model import Verdict
from tests.faults.bench import Made, examples, gate, judge
from tests.faults.catalogue import FAULTS, Broken


@pytest.fixture(scope="module")
def made(root: Path, tmp_path_factory: pytest.TempPathFactory, shared: Path) -> dict[str, Made]:
    return examples(root, tmp_path_factory.mktemp("faults"), shared)


@pytest.mark.parametrize("broken", FAULTS, ids=[b.id for b in FAULTS])
def test_a_seeded_fault_fails_the_gate_at_its_place(
    made: dict[str, Made], broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = judge(made[broken.example], broken, monkeypatch)
    found = {item.code: item for item in report.items}
    told = "\n".join(f"{i.code} {i.verdict} {i.summary}" for i in report.items)
    assert {code: found[code].verdict for code in broken.items} == dict.fromkeys(broken.items, Verdict.FAIL), told
    assert broken.place in found[broken.items[0]].summary, told
    assert report.verdict is Verdict.FAIL


@pytest.mark.parametrize("example", ["digits", "branching", "joined", "resnet"])
def test_a_sound_design_passes_under_ten_seeds(made: dict[str, Made], example: str) -> None:
    report = gate(made[example], made[example].designs, schedules=10)
    assert report.words == "PASS at host level", [i.summary for i in report.items if i.verdict is Verdict.FAIL]


def test_there_are_at_least_fifteen_kinds() -> None:
    assert len({b.id for b in FAULTS}) == len(FAULTS) >= 15


def test_the_page_has_one_row_per_fault_and_none_missed(root: Path) -> None:
    text = (root / "docs/faults.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([a-z-]+) \|", text, re.MULTILINE)[1:] == [b.id for b in FAULTS]
    assert f"{len(FAULTS)} faults, 0 missed." in text
