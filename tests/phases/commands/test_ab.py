"""`python -m phases ab`: prints a verdict, exits 0 whatever it is, 2 for what is no measurement."""

import json
from pathlib import Path
from typing import Any

import pytest

from phases.__main__ import main


def write(folder: Path, name: str, digest: str, values: list[int], **changed: Any) -> str:
    arm = {
        "schema_version": 1,
        "arm": name,
        "basis": "measured",
        "metric": "traced_cycles",
        "kernel": "gemm_0",
        "calls": len(values),
        "truncated": False,
        "values": values,
        "unchanged": {"kernel": "relu_0", "cycles": 310},
        "provenance": {
            "commit": "0a1b2c3",
            "compiler": "peano 19.0",
            "kernel_sha256": digest * 64,
            "timestamp": "2026-01-31T12:00:00+00:00",
            "host": "box",
            "device": "npu2",
            "session": "one",
        },
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**arm, **changed}))
    return str(path)


@pytest.mark.parametrize(
    ("values", "word"),
    [([900] * 20, "confirmed"), ([1000] * 20, "no change"), ([1100] * 20, "rejected"), ([900] * 19, "void")],
)
def test_every_verdict_is_exit_0(
    values: list[int], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = write(tmp_path, "before", "a", [1000] * 20), write(tmp_path, "after", "b", values)
    assert main(["ab", before, after]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"verdict: {word}"
    assert main(["ab", before, after]) == 0
    assert capsys.readouterr().out == out


def test_problems_of_both_files_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = write(tmp_path, "before", "a", [1000] * 20, basis="simulated")
    after = write(tmp_path, "after", "b", [900] * 20, provenance={})
    assert main(["ab", before, after]) == 2
    err = capsys.readouterr().err
    assert "[AB-SIMULATED]" in err
    assert "[AB-PROVENANCE]" in err
    assert main(["ab", before, str(tmp_path / "nowhere.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_help_explains_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ab", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f'"{key}"' in out for key in ("metric", "values", "unchanged", "truncated", "provenance", "session"))
    assert all(word in out for word in ("confirmed", "rejected", "no change", "void"))
