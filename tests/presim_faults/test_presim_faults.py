"""The presim gate notices a broken design at its place, and the document says what it says.

Some faults are tried here, others by the day; all of them in the nightly tier.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from presim.design import Design
from tests.presim_faults import edits
from tests.presim_faults.catalogue import FAULTS
from tests.presim_faults.harness import BASES, Bench, Said, judge
from tests.presim_faults.table import row_of, rows_of, sound_row, table

SEEDS = 10
BY_ID = {f.id: f for f in FAULTS}
ROTATING = 3
"""Faults of the day in the fast tier, beside those that are always there."""

ALWAYS = ("depth-one-less", "stale-weights", "clamp-not-reached")
FIRST = date.today().toordinal() * ROTATING
FAST = tuple(dict.fromkeys((*ALWAYS, *(FAULTS[(FIRST + i) % len(FAULTS)].id for i in range(ROTATING)))))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def document(root: Path) -> dict[str, str]:
    """Rows of the document by fault and sound design."""
    return rows_of((root / "docs" / "presim-faults.md").read_text(encoding="utf-8"))


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
def test_a_sound_design_is_never_flagged(bench: Bench, base: str, document: Mapping[str, str]) -> None:
    said = bench.say(base, seeds=SEEDS)
    assert (said.exit, said.verdict, said.failed) == (0, "PASS", ())
    assert sound_row(base, said.verdict, said.failed) == document[base]


def test_a_document_that_says_another_outcome_is_noticed(document: Mapping[str, str]) -> None:
    said = Said(exit=1, verdict="FAIL", items={"PS001": ("FAIL", SUMMARY), "PS003": ("FAIL", SUMMARY)})
    assert row_of(judge(BY_ID["stale-weights"], said)) != document["stale-weights"]


def test_the_catalogue_is_broad_and_every_fault_says_what_it_wants() -> None:
    assert max(Counter(f.id for f in FAULTS).values()) == 1
    assert sum(not f.survives for f in FAULTS) >= 15
    for fault in FAULTS:
        assert fault.base in BASES
        assert bool(fault.words) != bool(fault.survives)
        assert bool(fault.items) + bool(fault.survives) + (fault.exit in (2, 3)) == 1
        assert (fault.edit is None) != (fault.repack is None)


def test_the_table_has_a_row_for_every_fault(root: Path, document: Mapping[str, str]) -> None:
    assert sorted(document) == sorted([*BY_ID, *BASES])
    text = (root / "docs" / "presim-faults.md").read_text(encoding="utf-8")
    survive = [f.id for f in FAULTS if f.survives]
    assert f"{len(FAULTS)} faults: {len(FAULTS) - len(survive)} caught, {len(survive)} known survivors." in text
    assert sorted(rows_of(text.split("\n## Survivors\n")[1].split("\n## Sound designs\n")[0])) == sorted(survive)
    for private in ("/tmp", "/work", "/home", "/root"):
        assert private not in text


SUMMARY = "stage 'b2_fc2': wrong data: object 0 of fifo 'b2_fc2_out_q'"
SAID = Said(exit=1, verdict="FAIL", items={"PS001": ("FAIL", SUMMARY), "PS003": ("FAIL", SUMMARY)})


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        (SAID, ()),
        (replace(SAID, exit=0), ("exit 1, got 0",)),
        (
            replace(SAID, items={"PS001": ("FAIL", SUMMARY), "PS003": ("PASS", SUMMARY)}),
            ("PS003 FAIL, got PASS",),
        ),
        (
            replace(SAID, items={"PS001": ("FAIL", "stage 'b2_fc2'"), "PS003": ("FAIL", SUMMARY)}),
            ("PS001: the words 'b2_fc2_out_q'",),
        ),
        (
            replace(SAID, items={"PS001": ("FAIL", SUMMARY)}),
            ("PS003 FAIL, got absent", "PS003: the words 'b2_fc2_out_q'"),
        ),
    ],
)
def test_judging_is_strict(said: Said, missing: tuple[str, ...]) -> None:
    outcome = judge(BY_ID["stale-weights"], said)
    assert outcome.missing == missing
    assert outcome.caught == (not missing)


def test_a_refusal_is_judged_by_its_words() -> None:
    fault = replace(BY_ID["stale-weights"], items=(), exit=2)
    assert judge(fault, Said(exit=2, refusal="fifo 'b2_fc2_out_q'")).missing == ()
    assert judge(fault, Said(exit=2, refusal="other")).missing == ("refusal: the words 'b2_fc2_out_q'",)


def test_a_survivor_that_is_noticed_is_told() -> None:
    survivor = BY_ID["acquires-swapped-in-body"]
    assert judge(survivor, Said(exit=0, verdict="PASS")).missing == ()
    assert not judge(survivor, Said(exit=0, verdict="PASS")).caught
    assert judge(survivor, SAID).missing == (
        "survives, but PS001 noticed",
        "survives, but PS003 noticed",
        "survives, but exit 1",
    )


def test_an_edit_that_does_not_fit_fails() -> None:
    design = Design(dispatch="d0", device="npu2", workers=(), fifos=())
    with pytest.raises(edits.EditError, match="changes nothing"):
        edits.fifo("absent", depth=1)(design)
    with pytest.raises(edits.EditError, match="no constants 'absent'"):
        edits.constants("absent", lambda a: a)({})


def test_the_table_tells_caught_from_surviving() -> None:
    caught = judge(BY_ID["stale-weights"], SAID)
    left = judge(BY_ID["acquires-swapped-in-body"], Said(exit=0, verdict="PASS"))
    text = table([caught, left], {"digits_cnn": ("PASS", ())})
    assert "2 faults: 1 caught, 1 known survivors." in text
    assert "| stale-weights |" in text.split("## Survivors", maxsplit=1)[0]
    assert "| acquires-swapped-in-body |" in text.split("## Survivors")[1]
    assert "| digits_cnn | PASS | none |" in text
