"""The gate notices a broken oracle or importer: a few mutants here, all of them in the nightly tier."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import models
from tests.mutants.catalogue import MUTANTS
from tests.mutants.harness import PACKAGES, Bench, Edit, Item, MutationError, Run, apply, flip, judge
from tests.mutants.table import table

FAST = ("half-up-srs", "conv-padded-with-zero", "bound-too-small", "data-changed")
BY_ID = {m.id: m for m in MUTANTS}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("mutants"))


@pytest.mark.parametrize("name", FAST)
def test_a_mutant_is_caught_by_the_right_item_with_the_right_words(bench: Bench, name: str) -> None:
    outcome = bench.try_mutant(BY_ID[name])
    assert outcome.missing == ()
    assert outcome.caught


@pytest.mark.slow
def test_every_mutant(root: Path, tmp_path: Path) -> None:
    written = tmp_path / "mutants.md"
    command = [sys.executable, "-m", "tests.mutants.run", "--write", str(written)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert written.read_text(encoding="utf-8").count("\n| ") == len(MUTANTS) + 2


def test_every_edit_fits_the_source_exactly_once(root: Path) -> None:
    for mutant in MUTANTS:
        for edit in mutant.edits:
            found = (root / edit.file).read_text(encoding="utf-8").count(edit.find)
            assert found == 1, f"{mutant.id}: {edit.file}: {found} times {edit.find!r}"
            assert edit.find != edit.replace


def test_the_catalogue_is_broad_and_every_mutant_says_what_it_wants() -> None:
    assert max(Counter(m.id for m in MUTANTS).values()) == 1
    assert sum(not m.survives for m in MUTANTS) >= 60
    for mutant in MUTANTS:
        assert mutant.model in models.MADE or mutant.model == models.DIGITS
        assert mutant.words or mutant.survives
        assert bool(mutant.items) + bool(mutant.survives) + (mutant.exit in (2, 3)) == 1
        assert bool(mutant.edits) + bool(mutant.touch) == 1
        assert bool(mutant.survives) == bool(mutant.unit_test)


def test_the_table_has_a_row_for_every_mutant(root: Path) -> None:
    text = (root / "docs" / "mutants.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row != "mutant"] == [m.id for m in MUTANTS]
    for private in ("/tmp", "/work", "/home", "/root"):
        assert private not in text


def test_an_edit_that_does_not_fit_fails(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n", encoding="utf-8")
    for find in ("x = 2", "x = 1"):
        with pytest.raises(MutationError, match=r"a\.py: expected once, found [02] times"):
            apply(Edit(file="a.py", find=find, replace="y"), tmp_path)
    apply(Edit(file="a.py", find="x = 1\nx", replace="x = 2\nx"), tmp_path)
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 2\nx = 1\n"


def test_a_mutant_on_a_model_that_is_not_sound_is_not_judged(tmp_path: Path) -> None:
    unsound = replace(BY_ID["half-up-srs"], args=("--max-samples", "1"), model="qop_wrap")
    bench = Bench(tmp_path)
    bench.runs[("qop_wrap", unsound.args)] = Run(exit=1, output="", verdict="FAIL")
    with pytest.raises(MutationError, match="without a mutation 'qop_wrap' is not PASS"):
        bench.try_mutant(unsound)


def test_one_bit_is_flipped(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    flip(path)
    assert path.read_bytes() == b"acc"


def test_the_broken_copy_is_what_runs(bench: Bench) -> None:
    title = Edit(file="checklists/items/baseline.py", find='title="Layouts round trip"', replace='title="mutated"')
    mutant = replace(BY_ID["half-up-srs"], edits=(title,), items=(), words=("mutated",), exit=0)
    outcome = bench.try_mutant(mutant)
    assert outcome.missing == ()
    assert outcome.noticed == ()


def test_all_packages_are_copied(root: Path) -> None:
    assert {path.parent.name for path in root.glob("*/__init__.py")} == set(PACKAGES)


SAID = Run(exit=1, output="", verdict="FAIL", items={"BL008": Item(verdict="FAIL", summary="tensor 'y' half up")})


@pytest.mark.parametrize(
    ("run", "missing"),
    [
        (SAID, ()),
        (replace(SAID, exit=0), ("exit 1, got 0",)),
        (replace(SAID, output="Traceback"), ("no traceback",)),
        (replace(SAID, items={}), ("BL008 FAIL, got absent", "BL008: the words \"'y'\"", "BL008: the words 'half up'")),
        (
            replace(SAID, items={"BL008": Item(verdict="FAIL", summary="tensor 'y'")}),
            ("BL008: the words 'half up'",),
        ),
        (
            replace(SAID, items={"BL008": Item(verdict="PASS", summary="tensor 'y' half up")}),
            ("BL008 FAIL, got PASS",),
        ),
    ],
)
def test_judging_is_strict(run: Run, missing: tuple[str, ...]) -> None:
    mutant = replace(BY_ID["half-up-srs"], items=("BL008",), words=("'y'", "half up"))
    outcome = judge(mutant, run)
    assert outcome.missing == missing
    assert outcome.caught == (not missing)


def test_a_survivor_that_is_noticed_is_told() -> None:
    survivor = replace(BY_ID["other-rounding-mode"], words=())
    quiet = Run(exit=0, output="", verdict="PASS")
    assert judge(survivor, quiet).missing == ()
    assert not judge(survivor, quiet).caught
    assert judge(survivor, SAID).missing == ("survives, but BL008 noticed",)
    assert judge(survivor, Run(exit=2, output="")).missing == ("survives, but exit 2 noticed",)


def test_the_table_tells_caught_from_surviving() -> None:
    caught = judge(replace(BY_ID["half-up-srs"], items=("BL008",), words=("'y'",)), SAID)
    left = judge(BY_ID["other-rounding-mode"], Run(exit=0, output="", verdict="PASS"))
    text = table([caught, left])
    assert "2 mutants: 1 caught, 1 known survivors." in text
    assert "| half-up-srs |" in text.split("## Survivors", maxsplit=1)[0]
    assert "| other-rounding-mode |" in text.split("## Survivors")[1]
    assert "gate FAIL | BL008 | tensor 'y' half up |" in text
    assert "## Survivors" not in table([caught])
