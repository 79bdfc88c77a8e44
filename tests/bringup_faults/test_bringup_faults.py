"""The bring-up gate notices broken generated code at its place, and the document says what it says.

Some faults are tried here, others by the day, all on one small model; all of them on all models in the nightly tier.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from manifest.io import sha256_hex
from tests.bringup_faults import edits
from tests.bringup_faults.bases import BASES
from tests.bringup_faults.catalogue import FAULTS
from tests.bringup_faults.harness import Bench, Fault, Said, judge
from tests.bringup_faults.table import row_of, rows_of, sound_row, table

SEEDS = 10
BY_ID = {f.id: f for f in FAULTS}
SMALL = tuple(f.id for f in FAULTS if f.base == "zero points")
ROTATING = 2
"""Faults of the day in the fast tier."""

FIRST = date.today().toordinal() * ROTATING
FAST = tuple(dict.fromkeys(SMALL[(FIRST + i) % len(SMALL)] for i in range(ROTATING)))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def document(root: Path) -> dict[str, str]:
    """Rows of the document by fault and base."""
    return rows_of((root / "docs" / "bringup-faults.md").read_text(encoding="utf-8"))


def check(bench: Bench, name: str, document: Mapping[str, str]) -> None:
    """What is said is what has to be, and what the document says."""
    outcome = bench.try_fault(BY_ID[name])
    assert outcome.missing == ()
    assert outcome.caught == (not BY_ID[name].survives)
    assert row_of(outcome) == document[name]


@pytest.mark.parametrize("name", FAST)
def test_faults_of_the_day_are_caught_as_the_document_says(
    bench: Bench, name: str, document: Mapping[str, str]
) -> None:
    check(bench, name, document)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in BY_ID if n not in FAST])
def test_every_fault_is_caught_as_the_document_says(bench: Bench, name: str, document: Mapping[str, str]) -> None:
    check(bench, name, document)


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_sound_files_are_never_flagged(bench: Bench, base: str, document: Mapping[str, str]) -> None:
    said = bench.sound(base, seeds=SEEDS)
    assert (said.exit, said.verdict, said.failed) == (0, "PASS", ())
    assert sound_row(base, said.verdict, said.failed) == document[base]


def test_the_catalogue_is_broad_and_every_fault_says_what_it_wants() -> None:
    assert max(Counter(f.id for f in FAULTS).values()) == 1
    assert sum(not f.survives for f in FAULTS) >= 22
    assert len(SMALL) > ROTATING
    for fault in FAULTS:
        assert fault.base in BASES
        assert bool(fault.words) != bool(fault.survives)
        assert bool(fault.items) != bool(fault.survives)
        parts = (fault.given, fault.emitted, fault.disk, fault.driver, fault.recording)
        assert sum(part is not None for part in parts) == 1


def test_the_table_has_a_row_for_every_fault(root: Path, document: Mapping[str, str]) -> None:
    assert sorted(document) == sorted([*BY_ID, *BASES])
    text = (root / "docs" / "bringup-faults.md").read_text(encoding="utf-8")
    survive = [f.id for f in FAULTS if f.survives]
    assert f"{len(FAULTS)} faults: {len(FAULTS) - len(survive)} caught, {len(survive)} known survivors." in text
    assert sorted(rows_of(text.split("\n## Survivors\n")[1].split("\n## Sound files\n")[0])) == sorted(survive)
    for private in ("/tmp", "/work", "/home", "/root"):
        assert private not in text


CAUGHT = Fault(
    id="made-up", breaks="words", emitted=lambda f: f, items=("BU005", "BU009"), words=("conv",), cause="shift 7"
)
SAID = Said(exit=1, verdict="FAIL", items={"BU005": ("FAIL", "stage 'conv': shift 7"), "BU009": ("FAIL", "hangs")})
SOUND = Said(exit=0, verdict="PASS", items={"BU005": ("PASS", "")})
SURVIVOR = Fault(id="survivor", breaks="nothing", emitted=lambda f: f, survives="it is right", exit=0)


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        (SAID, ()),
        (replace(SAID, exit=0), ("exit 1, got 0",)),
        (replace(SAID, items={**SAID.items, "BU009": ("PASS", "")}), ("BU009 FAIL, got PASS",)),
        (replace(SAID, items={**SAID.items, "BU005": ("FAIL", "stage 'conv'")}), ("BU005: the words 'shift 7'",)),
        (replace(SAID, items={**SAID.items, "BU005": ("FAIL", "shift 7")}), ("BU005: the words 'conv'",)),
        (replace(SAID, items={"BU005": SAID.items["BU005"]}), ("BU009 FAIL, got absent",)),
    ],
)
def test_judging_is_strict(said: Said, missing: tuple[str, ...]) -> None:
    outcome = judge(CAUGHT, said)
    assert outcome.missing == missing
    assert outcome.caught == (not missing)


def test_a_blocked_item_is_no_failed_one() -> None:
    fault = replace(CAUGHT, items=("BU012",), verdict="BLOCKED", words=("no device",), cause="", exit=4)
    said = Said(exit=4, items={"BU012": ("BLOCKED", "no device")})
    assert judge(fault, said).missing == ()
    assert judge(fault, replace(said, items={"BU012": ("FAIL", "no device")})).missing == ("BU012 BLOCKED, got FAIL",)


def test_a_survivor_that_is_noticed_is_told() -> None:
    assert judge(SURVIVOR, SOUND).missing == ()
    assert not judge(SURVIVOR, SOUND).caught
    assert judge(SURVIVOR, SAID).missing == (
        "survives, but BU005 noticed",
        "survives, but BU009 noticed",
        "survives, but exit 1",
    )


def test_an_edit_that_does_not_fit_fails() -> None:
    files = {"generated.json": b'{"files": {}}', "d0/design.py": b"x = 1\n", "kernels/k_a.cc": b"    port::f(a);\n"}
    with pytest.raises(edits.EditError, match="changes nothing"):
        edits.sealed(files, dict(files))
    for edit in (
        edits.kernel("absent", ("a", "b")),
        edits.kernel("k_a", ("absent", "b")),
        edits.call("k_a", "", given=("absent", "b")),
        edits.design("absent", "b"),
        edits.program("a", "b", function="absent"),
        edits.packed("absent", np.negative),
        edits.golden(np.negative),
    ):
        with pytest.raises(edits.EditError):
            edit(dict(files))


def test_an_edit_keeps_the_hashes_of_the_index_in_step() -> None:
    files = {"generated.json": b'{"files": {"kernels/k_a.cc": ""}}', "kernels/k_a.cc": b"    port::f(a);\n"}
    made = edits.sealed(files, edits.call("k_a", "    int b = a;", given=("a", "b"))(dict(files)))
    assert made["kernels/k_a.cc"] == b"    int b = a;\n    port::f(b);\n"
    assert sha256_hex(made["kernels/k_a.cc"]).encode() in made["generated.json"]


def test_the_table_tells_caught_from_surviving() -> None:
    text = table([judge(CAUGHT, SAID), judge(SURVIVOR, SOUND)], {"digits_cnn": ("PASS", ())})
    assert "2 faults: 1 caught, 1 known survivors." in text
    assert "| made-up |" in text.split("## Survivors", maxsplit=1)[0]
    assert "| survivor |" in text.split("## Survivors")[1]
    assert "| digits_cnn | PASS | none |" in text


def test_a_document_that_says_another_outcome_is_noticed() -> None:
    other = replace(SAID, items={**SAID.items, "BU005": ("FAIL", "stage 'conv': shift 7, and more")})
    assert row_of(judge(CAUGHT, SAID)) != row_of(judge(CAUGHT, other))
