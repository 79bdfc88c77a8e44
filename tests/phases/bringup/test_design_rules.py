"""What bring-up learned reaches the next plan, under what the person asks."""

import json
import shutil
from pathlib import Path

import pytest

from bringup.evidence import MemoryRow
from manifest.errors import UpstreamError
from manifest.io import manifest_from_json
from phases.design_rules import RULES_FILE, learned, read_rules, rules_file
from phases.port import open_port, write_phase, writing
from phases.presim.__main__ import main as presim
from phases.presim.options import Arguments, resolve


def row(split: str = '{"/f/f.6/Gemm": {"parallelism": {"cas_num": 2, "cas_length": 1}}}') -> MemoryRow:
    return MemoryRow(dispatch="d0", place="core tile (0, 2)", need=65537, have=65536, split=split)


def with_rules(port: Path, data: bytes) -> None:
    with writing(port):
        write_phase(port, "bringup", {RULES_FILE: data}, {})


def test_an_overflow_with_a_split_becomes_a_rule_and_is_kept(port: Path) -> None:
    opened = open_port(port)
    assert rules_file(opened, ()) is None
    assert rules_file(opened, (row(split=""),)) is None
    first = rules_file(opened, (row(),))
    assert first is not None
    with_rules(port, first)
    again = open_port(port)
    assert rules_file(again, ()) == first
    assert rules_file(again, (row(),)) == first
    assert len(read_rules(again)) == 1


def test_rules_add_to_directives_and_the_person_wins(port: Path) -> None:
    data = rules_file(open_port(port), (row(),))
    assert data is not None
    with_rules(port, data)
    opened = open_port(port)
    more, words = learned(opened, {})
    assert more["/f/f.6/Gemm"]["parallelism"]["cas_num"] == 2
    assert "65537 of 65536" in words[0]
    assert learned(opened, {"/f/f.6/Gemm": {}}) == ({}, ())


def test_phase_2_follows_a_rule_and_says_so_in_the_design(port: Path, tmp_path: Path) -> None:
    data = rules_file(open_port(port), (row(),))
    assert data is not None
    with_rules(port, data)
    manifest = manifest_from_json((port / "manifest.json").read_bytes())
    options = resolve(Arguments(port=port), open_port(port), manifest)
    assert options.directives.of("/f/f.6/Gemm").parallelism is not None
    assert options.asked == {}
    assert presim([str(port)]) == 0
    (design,) = json.loads((port / "design.json").read_bytes())
    assert any("65537 of 65536" in rule for rule in design["rules"])
    splits = {(s["op"], s["kind"]): s["parts"] for s in design["splits"]}
    assert splits["/f/f.6/Gemm", "output_channels"] == 2
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)


def test_a_file_that_is_none_of_ours_is_tampered(port: Path) -> None:
    with_rules(port, b'{\n "schema_version": 9\n}\n')
    with pytest.raises(UpstreamError, match="tampered"):
        read_rules(open_port(port))
