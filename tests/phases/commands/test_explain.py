"""`explain`: every item and every error code of the source has words."""

from pathlib import Path

import pytest

from phases import docs
from phases.__main__ import main
from phases.error_codes import error_codes, meanings
from phases.pipeline import item_codes


def test_every_code_of_the_source_is_explained(root: Path) -> None:
    assert set(error_codes()) == set(docs.problem_codes(root))
    for code, places in error_codes().items():
        assert places, code


def test_every_meaning_is_the_row_of_the_document(root: Path) -> None:
    """The file that `explain` reads is the document, and the document has a row for what is raised."""
    assert (root / "phases/errors.md").read_bytes() == (root / "docs/errors.md").read_bytes()
    known = meanings()
    listed = {code: (meaning, remedy) for code, meaning, remedy in docs.rows((root / "docs/errors.md").read_text())}
    assert set(known) == set(listed)
    assert len(known) > 200
    assert listed["ONNX-CHECKER"] == (known["ONNX-CHECKER"].meaning, known["ONNX-CHECKER"].remedy)
    assert not [code for code, known_ in known.items() if not known_.meaning or not known_.remedy]


def test_an_error_is_explained_by_its_row_and_not_by_a_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "onnx-scale-zero"]) == 0
    lines = capsys.readouterr().out.splitlines()
    known = meanings()["ONNX-SCALE-ZERO"]
    assert lines[:3] == ["ONNX-SCALE-ZERO", known.meaning, f"What to do: {known.remedy}"]
    assert all(line.startswith("  said by manifest.onnx_import.") for line in lines[3:])
    assert "rule:" not in "".join(lines)


def test_a_cell_is_read_as_a_person_reads_it() -> None:
    text = "| `A-B` | *Note*: a \\| b | Do c \\| d. |\n| `C-D` | only two |\n"
    assert docs.rows(text) == [("A-B", "*Note*: a \\| b", "Do c \\| d.")]


def test_all_lists_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--all"]) == 0
    plain = capsys.readouterr().out
    assert main(["explain", "--all", "--markdown"]) == 0
    markdown = capsys.readouterr().out
    for code in (*item_codes(), *error_codes()):
        assert f"\n{code}" in f"\n{plain}"
        assert f"## {code}" in markdown


def test_an_item_and_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "bl009"]) == 0
    assert "The oracle equals onnxruntime on real data" in capsys.readouterr().out
    assert main(["explain", "PORT-OUT-TAKEN"]) == 0
    assert "choose another folder with --out" in capsys.readouterr().out


def test_an_unknown_code_is_exit_2_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "BL0099"]) == 2
    assert "did you mean BL009" in capsys.readouterr().err
    assert main(["explain"]) == 2
    assert main(["explain", "BL001", "--all"]) == 2
