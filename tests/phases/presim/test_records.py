import json
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import RefusedError, UpstreamError
from manifest.io import canonical_json
from phases.__main__ import main
from phases.port import open_port
from phases.presim.__main__ import main as presim
from phases.presim.records import (
    EQUIVALENCES,
    PROBES,
    equivalences_of,
    file_name,
    probes_of,
    record,
    record_files,
)


def found(port: Path) -> dict[str, bytes]:
    opened = open_port(port)
    return record_files(opened.read, opened.state.files)


PROBE = {"text": "completes", "passed": True}
EQUIVALENCE = {
    "decomposition": "chunked_softmax",
    "elements": 4,
    "mismatches": 0,
    "largest_difference": 0.5,
    "allowed": 1.0,
}


def test_records_are_files_of_the_port_and_stay_when_a_phase_runs_again(port: Path) -> None:
    record(port, PROBES, "ring", PROBE)
    record(port, EQUIVALENCES, "softmax", EQUIVALENCE)
    assert main(["check", str(port)]) == 0
    assert presim([str(port)]) == 0
    assert sorted(name.rsplit("/", 1)[0] for name in found(port)) == ["evidence/equivalences", "evidence/probes"]
    gate = json.loads((port / "gates/presim.json").read_text())
    assert set(found(port)) <= set(gate["inputs"])
    assert {i["code"]: i["verdict"] for i in gate["items"]}["PS011"] == "PASS"


def test_a_record_of_the_same_name_is_replaced_and_makes_the_gate_stale(
    port: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record(port, PROBES, "ring", PROBE)
    assert presim([str(port)]) == 0
    assert record(port, PROBES, "ring", {**PROBE, "passed": False}) == name
    assert [r.passed for r in probes_of(found(port)).values()] == [False]
    assert main(["check", str(port)]) == 3
    assert f"{name}: stale" in capsys.readouterr().out


def test_an_equivalence_that_does_not_hold_fails_the_gate(port: Path) -> None:
    record(port, EQUIVALENCES, "softmax", {**EQUIVALENCE, "mismatches": 1})
    assert presim([str(port)]) == 1
    gate = json.loads((port / "gates/presim.json").read_text())
    assert {i["code"]: i["verdict"] for i in gate["items"]}["PS011"] == "FAIL"


def test_names_become_files_that_stay_apart() -> None:
    names = ["ring", "Ring", "../../x", "ü", "a" * 500, ""]
    files = [file_name(PROBES, n) for n in names]
    assert len(set(files)) == len(names)
    assert all(f.startswith(PROBES) and ".." not in f and len(f) < 120 for f in files)


def test_a_changed_record_is_tampered(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = record(port, PROBES, "ring", PROBE)
    (port / name).write_bytes((port / name).read_bytes().replace(b"true", b"false"))
    assert main(["check", str(port)]) == 3
    assert f"{name}: tampered" in capsys.readouterr().out


@pytest.mark.parametrize("value", [{}, {"schema_version": 2, "name": "x", "text": "", "passed": True}, []])
def test_a_record_of_another_version_is_refused(value: Any) -> None:
    with pytest.raises(UpstreamError, match="expected a record"):
        probes_of({f"{PROBES}x.json": canonical_json(value)})


def test_both_kinds_are_read_apart() -> None:
    files = {
        f"{PROBES}a.json": canonical_json({"schema_version": 1, "name": "a", **PROBE}),
        f"{EQUIVALENCES}b.json": canonical_json({"schema_version": 1, "name": "b", **EQUIVALENCE}),
    }
    assert list(probes_of(files)) == ["a"]
    assert [row.name for row in equivalences_of(files)] == ["b"]


def test_no_port_no_record(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        record(tmp_path / "none", PROBES, "ring", PROBE)
