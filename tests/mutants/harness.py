"""Applies one mutation to a copy of the packages, runs phase 1 there, and says which gate item noticed."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.mutants import models

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("phases", "checklists", "optimize", "bringup", "presim", "oracle", "manifest")
TIMEOUT_SECONDS: Final = 300
GATE: Final = "gates/baseline.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One replacement; `find` occurs exactly once in the file."""

    file: str
    find: str
    replace: str


def change(file: str, find: str, replace: str) -> tuple[Edit, ...]:
    """One edit; further ones are added behind it."""
    return (Edit(file=file, find=find, replace=replace),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """Something broken on purpose, and who has to notice it with which words.

    Attributes:
        id: short name.
        breaks: what is wrong, in words.
        edits: of the source; none where `touch` breaks the files of a port.
        model: key of `models.MADE`, or `models.DIGITS`.
        items: codes of the items that must be FAIL.
        words: all of them must stand in the summary of each of `items`, or in the output for an exit code.
        args: more arguments of phase 1.
        touch: file changed between a sound run and `phases check`, relative to the model's folder.
        rerun: the mutation comes after a sound run, and `phases check --rerun` must notice.
        exit: expected exit code.
        survives: why no gate can notice, "" where one must.
        unit_test: test file that notices instead; it is run on the broken copy.
    """

    id: str
    breaks: str
    edits: tuple[Edit, ...] = ()
    model: str
    items: tuple[str, ...] = ()
    words: tuple[str, ...]
    args: tuple[str, ...] = ()
    touch: str = ""
    rerun: bool = False
    exit: int = 1
    survives: str = ""
    unit_test: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a gate."""

    verdict: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a command said.

    Attributes:
        exit: its exit code.
        output: stdout and stderr.
        verdict: of the gate, "" where none was written.
        items: of the gate by code.
    """

    exit: int
    output: str
    verdict: str = ""
    items: Mapping[str, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A mutant and what noticed it.

    Attributes:
        mutant: what was broken.
        run: what the broken copy said.
        missing: what it ought to have said and did not; empty = caught.
        noticed: items that are FAIL.
    """

    mutant: Mutant
    run: Run
    missing: tuple[str, ...]
    noticed: tuple[str, ...]

    @property
    def as_expected(self) -> bool:
        """Whether the right item named the right things, or a known survivor survived."""
        return not self.missing

    @property
    def caught(self) -> bool:
        """Whether a gate item, a refusal or `check` noticed."""
        return self.as_expected and not self.mutant.survives

    @property
    def excerpt(self) -> str:
        """What the first expected item, or the first line of the output, said."""
        code = next((c for c in (*self.mutant.items, *self.noticed) if c in self.run.items), "")
        return self.run.items[code].summary if code else self._line()

    def _line(self) -> str:
        lines = [line for line in self.run.output.splitlines() if all(w in line for w in self.mutant.words)]
        return (lines or self.run.output.splitlines() or [""])[0]


class MutationError(AssertionError):
    """The mutation cannot be applied: the source has moved on."""


class Bench:
    """A copy of the packages and one sound run per model, in a scratch folder.

    Args:
        scratch: an empty folder.
        source: where the packages are.

    Attributes:
        runs: the sound runs so far, by model and arguments.
    """

    def __init__(self, scratch: Path, source: Path = ROOT) -> None:
        self._scratch = scratch
        self._source = source
        self.runs: dict[tuple[str, tuple[str, ...]], Run] = {}
        self._count = 0

    def try_mutant(self, mutant: Mutant) -> Outcome:
        """Break a copy, run it, judge what it says against a sound run on the same model.

        Raises:
            MutationError: an edit does not fit the source, or the sound run is not PASS.
        """
        if not (mutant.touch or mutant.rerun):  # these begin with a sound run of their own
            self._require_sound(mutant)
        folder = self._folder()
        files = models.write(mutant.model, folder)
        code = self._copy(folder, mutant.edits)
        if mutant.touch or mutant.rerun:
            run = self._changed_afterwards(mutant, files, code)
        else:
            run = self._baseline(files, code, mutant.args)
        outcome = judge(mutant, run)
        if mutant.unit_test:
            passed = self._unit_test(mutant.unit_test, self._copy(folder / "sound", ()))
            failed = self._unit_test(mutant.unit_test, code)
            if (passed, failed) != (0, 1):
                words = (
                    f"{mutant.unit_test} passes on a sound copy and fails on this one, got exit {passed} and {failed}"
                )
                outcome = replace(outcome, missing=(*outcome.missing, words))
        shutil.rmtree(folder)
        return outcome

    def _require_sound(self, mutant: Mutant) -> None:
        sound = self.sound(mutant.model, mutant.args)
        if sound.verdict != "PASS":
            failing = "; ".join(f"{c} {i.verdict}: {i.summary}" for c, i in sound.items.items() if i.verdict != "PASS")
            where = f"{mutant.id}: without a mutation {mutant.model!r} is not PASS (exit {sound.exit})"
            msg = f"{where}: {failing}\n{sound.output}"
            raise MutationError(msg)

    def sound(self, model: str, args: tuple[str, ...] = ()) -> Run:
        """The run without a mutation, once per model and arguments."""
        key = (model, args)
        if key not in self.runs:
            folder = self._folder()
            self.runs[key] = self._baseline(models.write(model, folder), self._copy(folder, ()), args)
            shutil.rmtree(folder)
        return self.runs[key]

    def _folder(self) -> Path:
        self._count += 1
        folder = self._scratch / str(self._count)
        folder.mkdir()
        return folder

    def _copy(self, folder: Path, edits: tuple[Edit, ...]) -> Path:
        """The packages without byte code, mutated."""
        code = folder / "code"
        for package in PACKAGES:
            shutil.copytree(self._source / package, code / package, ignore=shutil.ignore_patterns("__pycache__"))
        for edit in edits:
            apply(edit, code)
        return code

    def _unit_test(self, name: str, code: Path) -> int:
        """Exit code of pytest over a test file on a copy: 0 passed, 1 failed."""
        shutil.copytree(self._source / "tests", code / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(self._source / "pyproject.toml", code)
        return _run(["pytest", "-q", "-x", "-p", "no:cacheprovider", name], code).exit

    def _changed_afterwards(self, mutant: Mutant, files: models.Files, code: Path) -> Run:
        """A sound run, then the change, then `check`."""
        sound = self._copy(files.port.parent / "sound", ()) if mutant.rerun else code
        before = self._baseline(files, sound, mutant.args)
        if before.exit:
            msg = f"{mutant.id}: the run before the change ended with exit {before.exit}\n{before.output}"
            raise MutationError(msg)
        if mutant.touch:
            flip(files.port.parent / mutant.touch)
        more = ["--rerun"] if mutant.rerun else []
        return _run(["phases", "check", str(files.port), *more], code)

    @staticmethod
    def _baseline(files: models.Files, code: Path, args: tuple[str, ...]) -> Run:
        command = ["phases.baseline", str(files.model), "--data", str(files.data), "--out", str(files.port), *args]
        run = _run(command, code)
        path = files.port / GATE
        if not path.exists():
            return run
        gate: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        items = {i["code"]: Item(verdict=i["verdict"], summary=i["summary"]) for i in gate["items"]}
        return Run(exit=run.exit, output=run.output, verdict=gate["verdict"], items=items)


def apply(edit: Edit, code: Path) -> None:
    """Change one file of a copy.

    Raises:
        MutationError: the text to be replaced does not occur exactly once.
    """
    path = code / edit.file
    source = path.read_text(encoding="utf-8")
    found = source.count(edit.find)
    if found != 1:
        msg = f"{edit.file}: expected once, found {found} times: {edit.find!r}"
        raise MutationError(msg)
    path.write_text(source.replace(edit.find, edit.replace), encoding="utf-8")


def flip(path: Path) -> None:
    """Change the lowest bit of the middle byte of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def judge(mutant: Mutant, run: Run) -> Outcome:
    """Compare what was said with what has to be said."""
    if mutant.survives:
        return _judge_survivor(mutant, run)
    missing = [] if run.exit == mutant.exit else [f"exit {mutant.exit}, got {run.exit}"]
    for code in mutant.items:
        item = run.items.get(code, Item(verdict="absent", summary=""))
        if item.verdict != "FAIL":
            missing.append(f"{code} FAIL, got {item.verdict}")
        missing += [f"{code}: the words {w!r}" for w in mutant.words if w not in item.summary]
    if not mutant.items:
        missing += [f"the words {w!r}" for w in mutant.words if w not in run.output]
    if "Traceback" in run.output:
        missing.append("no traceback")
    noticed = tuple(code for code, item in run.items.items() if item.verdict == "FAIL")
    return Outcome(mutant=mutant, run=run, missing=tuple(missing), noticed=noticed)


def _judge_survivor(mutant: Mutant, run: Run) -> Outcome:
    """A survivor that a gate notices is no survivor any more."""
    noticed = tuple(code for code, item in run.items.items() if item.verdict == "FAIL")
    missing = [f"survives, but {', '.join(noticed) or f'exit {run.exit}'} noticed"] if noticed or run.exit else []
    missing += [f"the words {w!r}" for w in mutant.words if w not in run.output]
    return Outcome(mutant=mutant, run=run, missing=tuple(missing), noticed=noticed)


def _run(command: list[str], code: Path) -> Run:
    """`python -m ...` with the copy as the only source of the packages, no byte code written or read elsewhere."""
    environment = {k: v for k, v in os.environ.items() if k not in ("GITHUB_STEP_SUMMARY", "PYTHONPATH")}
    environment |= {"PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=code,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    return Run(exit=done.returncode, output=done.stdout + done.stderr)
