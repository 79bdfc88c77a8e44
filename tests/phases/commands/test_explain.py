"""`explain`: every item and every error code of the source has words."""

from pathlib import Path

import pytest

from phases import docs
from phases.__main__ import main
from phases.error_codes import error_codes
from phases.pipeline import item_codes


def test_every_code_of_the_source_is_explained(root: Path) -> None:
    assert set(error_codes()) == set(docs.problem_codes(root))
    for code, places in error_codes().items():
        assert any(place.rule or place.texts for place in places), code


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
