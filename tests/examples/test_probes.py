"""Shipped probes: one per known mechanism, each finds what it expects, and would not if it were broken."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phases.__main__ import main
from phases.presim.mechanisms import KNOWN, mechanisms_of
from phases.presim.probe import read_probe, run_probe

FOLDER = Path(__file__).resolve().parents[2] / "examples/probes"
PROBES = sorted(p for p in FOLDER.glob("*.json") if "decomposition" not in json.loads(p.read_text()))


def test_the_files_are_what_the_builder_writes(root: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "examples.probes.build", str(tmp_path)], cwd=root, check=True)
    made = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    kept = {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.suffix in (".json", ".npz")}
    assert set(made) == set(kept)
    for name, data in made.items():
        if name.endswith(".json"):
            assert data == kept[name], name


@pytest.mark.parametrize("path", PROBES, ids=[p.stem for p in PROBES])
def test_every_probe_finds_what_it_expects(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", str(path)]) == 0
    assert "as expected" in capsys.readouterr().out


def test_every_known_mechanism_has_a_probe_that_uses_it_and_compares_values() -> None:
    read = {probe.name: probe for probe in map(read_probe, PROBES)}
    assert set(KNOWN) <= set(read)
    assert sorted(KNOWN) == list(KNOWN)
    for name in KNOWN:
        assert name in mechanisms_of(read[name].design), name
        data = read[name].data
        assert data is not None
        assert len(data.inputs) == len(data.outputs) == 3
        assert len({row.tobytes() for inputs in data.inputs for key, row in inputs.items() if key != "w"}) >= 3


@pytest.mark.parametrize("name", KNOWN)
def test_a_probe_notices_one_wrong_element(name: str) -> None:
    probe = next(p for p in map(read_probe, PROBES) if p.name == name)
    assert probe.data is not None
    last = {key: array.copy() for key, array in probe.data.outputs[-1].items()}
    changed = next(iter(last.values()))
    changed.flat[-1] ^= 1
    broken = replace(probe, data=replace(probe.data, outputs=[*probe.data.outputs[:-1], last]))
    outcome = run_probe(broken)
    assert not outcome.passed
    assert "got wrong_data" in outcome.why


def test_the_equivalence_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["equivalence", str(FOLDER / "chunked_softmax.json")]) == 0
    out = capsys.readouterr().out
    assert out.count("8192 elements, equal") == 3
    assert np.load(FOLDER / "scores.npz", allow_pickle=False)["scores"].shape == (4, 32, 64)
