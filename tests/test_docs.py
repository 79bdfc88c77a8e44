"""Documents that are made from the source are fresh; lists that are kept by hand agree with it."""

import re
import tomllib
from pathlib import Path

import pytest

from checklists.items.baseline import ITEMS
from manifest.device import DEVICES
from manifest.opset import OPSET
from phases import docs


def listed_in_pyproject(root: Path) -> set[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (line for group in project["optional-dependencies"].values() for line in group)
    names = {re.split(r"[\[<>=!~; ]", line)[0] for line in [*project["dependencies"], *extras]}
    return names - {project["name"]}


def test_generated_documents_are_fresh(root: Path) -> None:
    assert docs.stale(root) == []


def test_every_problem_code_has_one_row_and_every_row_a_code(root: Path) -> None:
    assert docs.error_faults(root) == []


def test_every_dependency_has_its_reason_and_no_other(root: Path) -> None:
    text = (root / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| .{10,} \|$", text, re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == listed_in_pyproject(root)


def test_every_runtime_dependency_is_imported(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = "\n".join(
        path.read_text(encoding="utf-8") for package in docs.PACKAGES for path in (root / package).rglob("*.py")
    )
    for line in project["dependencies"]:
        name = re.split(r"[<>=!~; ]", line)[0]
        assert re.search(rf"^\s*(?:import|from) {name}\b", source, re.MULTILINE), f"{name} is never imported"


def test_every_file_that_the_readme_names_is_there(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\((?!https?:)([^)#]+)\)", text) + re.findall(r"\bexamples/[\w./-]+\w", text)
    assert len(named) > 10
    assert [name for name in named if not (root / name).exists()] == []


def test_every_item_op_and_device_is_in_its_document() -> None:
    made = docs.generated()
    for item in ITEMS:
        assert f"### {item.code} {item.title}\n\n{item.rule}\n" in made["docs/checklists.md"]
    rows = [line for line in made["docs/coverage-ops.md"].splitlines() if line.startswith("| ")]
    assert len(rows) == len(OPSET) + 1
    for name in DEVICES:
        assert f"## Sources of `{name}`" in made["docs/devices.md"]


def test_tables_have_as_many_cells_in_every_row() -> None:
    for name, text in docs.generated().items():
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            widths = {line.replace("\\|", "").count("|") for line in block.splitlines()}
            assert len(widths) == 1, name


def test_a_stale_or_missing_document_is_named(tmp_path: Path) -> None:
    assert len(docs.stale(tmp_path)) == len(docs.generated())
    for name, text in docs.generated().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert docs.stale(tmp_path) == []
    (tmp_path / "docs" / "devices.md").write_text("old", encoding="utf-8")
    assert [line.split(":")[0] for line in docs.stale(tmp_path)] == ["docs/devices.md"]


def test_a_code_without_a_row_a_row_without_a_code_and_a_second_row_are_named(tmp_path: Path) -> None:
    for package in docs.PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "phases" / "a.py").write_text(
        '"""NOT-THIS one."""\nX = ("AREA-ONE", "AREA-TWO", "UTF-8")\n', encoding="utf-8"
    )
    (tmp_path / "docs").mkdir()
    rows = "| `AREA-ONE` | what | do |\n| `AREA-ONE` | what | do |\n| `AREA-OLD` | what | do |\n| `AREA-TWO` | |\n"
    (tmp_path / "docs" / "errors.md").write_text(rows, encoding="utf-8")
    assert docs.error_faults(tmp_path) == [
        "docs/errors.md: no row for AREA-TWO (phases/a.py)",
        "docs/errors.md: AREA-OLD is nowhere in the source",
        "docs/errors.md: AREA-ONE has two rows",
    ]


def test_check_says_the_count_and_exits_with_the_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    assert docs.main(["--check"]) == 1
    assert "docs/devices.md: stale" in capsys.readouterr().out
    assert not (tmp_path / "docs").exists()
    docs.main(["--write"])
    assert docs.stale(tmp_path) == []


def test_every_document_that_the_source_mentions_is_there(root: Path) -> None:
    for package in docs.PACKAGES:
        for path in (root / package).rglob("*.py"):
            for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
                assert (root / name).is_file(), f"{path.relative_to(root)} mentions {name}"
