"""Who may go on: every reason that stops, by file, and a clearance only when there is none."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from checklists.report import load_report, report_to_json
from manifest.errors import UpstreamError
from oracle.evidence import TargetDeviation
from phases import journal
from phases.gates import last_present, read_gates
from phases.integrity import inspect
from phases.port import write_phase, writing
from phases.runner import clear, obstacles, require_passed, survey
from tests.baseline_evidence import good_evidence
from tests.ports import TODAY, contents, make_port, small_manifest

GATE = "gates/baseline.json"
DEVIATING = dataclasses.replace(
    good_evidence(),
    target=TargetDeviation(samples=10, elements=2000, deviating=3, tensors=(("image_q", "q", 3, 1),)),
)
WAIVER = f"""
[[waiver]]
code = "BL011"
tensor = "image_q"
reason = "one code"
owner = "me"
until = {TODAY.isoformat()}
"""


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return make_port(tmp_path)


def reasons(port: Path, through: str | None = None) -> tuple[str, ...]:
    return obstacles(survey(port, TODAY), through)


def test_a_passed_gate_gives_a_clearance_for_exactly_its_bytes(port: Path) -> None:
    assert reasons(port) == ()
    clearance = clear(port, "baseline", today=TODAY)
    manifest = (port / "manifest.json").read_bytes()
    clearance.verify(manifest, today=TODAY)
    with pytest.raises(UpstreamError):
        clearance.verify(manifest + b"\n", today=TODAY)


def test_every_changed_file_stops_the_clearance(port: Path) -> None:
    for name, data in contents(port).items():
        (port / name).write_bytes(data + b"\n")
        with pytest.raises(UpstreamError, match=name):
            clear(port, "baseline", today=TODAY)
        (port / name).write_bytes(data)


def test_a_missing_phase_stops(port: Path) -> None:
    assert reasons(port, "presim") == ("gates/presim.json: missing: `python -m phases.presim` has not been run",)
    assert reasons(port, "bringup")[-1] == "gates/bringup.json: missing: `python -m phases.bringup` has not been run"
    assert reasons(port, "optimize")[-1] == "gates/optimize.json: missing: `python -m phases.optimize` has not been run"
    with pytest.raises(UpstreamError, match=r"gates/presim\.json: missing"):
        clear(port, "presim", today=TODAY)


@pytest.mark.parametrize(("data", "verdict"), [(True, "FAIL"), (False, "NOT_RUN")])
def test_a_gate_that_is_not_pass_stops_and_names_the_item(tmp_path: Path, data: bool, verdict: str) -> None:
    no_data = dataclasses.replace(good_evidence(), data=False, comparisons=(), accuracy=None, target=None, inputs=())
    port = make_port(tmp_path, evidence=DEVIATING if data else no_data)
    (line,) = reasons(port)
    assert line.startswith(f"{GATE}: not PASS: the gate is {verdict} at host level; BL0")
    with pytest.raises(UpstreamError, match="not PASS"):
        clear(port, "baseline", today=TODAY)


def test_a_waiver_opens_the_gate_until_its_last_day(tmp_path: Path) -> None:
    port = make_port(tmp_path, evidence=DEVIATING)
    (port / "waivers.toml").write_text(WAIVER)
    assert reasons(port) == ("waivers.toml: stale: new since the last run",)
    make_port(tmp_path, evidence=DEVIATING)
    assert reasons(port) == ()
    clear(port, "baseline", today=TODAY)
    after = TODAY + timedelta(days=1)
    (line,) = obstacles(survey(port, after))
    assert line.startswith(f"{GATE}: stale: a waiver is over: BL011 for 'image_q'")
    with pytest.raises(UpstreamError, match="a waiver is over"):
        clear(port, "baseline", today=after)


@pytest.mark.parametrize("name", ["port.toml", "waivers.toml"])
def test_a_changed_file_of_the_person_makes_the_gate_stale(tmp_path: Path, name: str) -> None:
    root = tmp_path / "m.port"
    root.mkdir()
    (root / name).write_text("# one")
    make_port(tmp_path)
    assert reasons(root) == ()
    (root / name).write_text("# two")
    seen = survey(root, TODAY)
    assert seen.gate("baseline").verdict == "STALE"
    assert seen.gate("baseline").reasons == (f"{name}: stale: changed since {GATE} was judged",)
    assert [line for line in obstacles(seen, "baseline") if line.startswith(name)]
    (root / name).unlink()
    assert survey(root, TODAY).gate("baseline").verdict == "STALE"
    (root / name).write_text("# one")
    assert reasons(root) == ()


@pytest.mark.parametrize("name", ["port.toml", "waivers.toml"])
def test_a_new_file_of_the_person_makes_the_gate_stale(port: Path, name: str) -> None:
    (port / name).write_text("")
    assert survey(port, TODAY).gate("baseline").verdict == "STALE"
    with pytest.raises(UpstreamError, match=f"{name}: stale"):
        clear(port, "baseline", today=TODAY)


def test_kernels_are_not_read_by_phase_1(port: Path) -> None:
    (port / "kernels").mkdir()
    (port / "kernels" / "kernel.cc").write_text("//")
    assert reasons(port) == ()


@pytest.mark.parametrize("name", ["m.onnx", "real.npz"])
def test_a_changed_source_makes_the_gate_stale(port: Path, name: str) -> None:
    (port.parent / name).write_bytes(b"other")
    (line,) = reasons(port)
    assert line.startswith(f"../{name}: stale: ")
    assert survey(port, TODAY).gate("baseline").verdict == "STALE"
    (port.parent / name).unlink()
    assert reasons(port) == ()


def test_a_gate_of_other_inputs_is_stale(port: Path) -> None:
    files = {name: (port / name).read_bytes() for name in contents(port) if name != "state.json"}
    files["tensors.npz"] = b"another"
    with writing(port):
        write_phase(port, "baseline", files, {})
    (line,) = reasons(port)
    assert line == f"tensors.npz: stale: {GATE} was judged on another content of it"


def test_a_gate_that_contradicts_itself_is_tampered(port: Path) -> None:
    files = {name: (port / name).read_bytes() for name in contents(port) if name != "state.json"}
    files[GATE] = files[GATE].replace(b'"verdict": "PASS"', b'"verdict": "FAIL"')
    with writing(port):
        write_phase(port, "baseline", files, {})
    view = survey(port, TODAY).gate("baseline")
    assert view.verdict == "TAMPERED"
    assert "self_sha256" in view.reasons[0]


def test_a_gate_that_no_run_wrote_is_tampered(port: Path) -> None:
    (port / "gates" / "presim.json").write_bytes((port / GATE).read_bytes())
    seen = survey(port, TODAY)
    assert seen.gate("presim").verdict == "TAMPERED"
    assert last_present(seen.gates) == "presim"
    assert reasons(port, "baseline") == ()
    assert reasons(port)[0] == "gates/presim.json: tampered: no run of this port wrote it"


def test_the_gate_of_another_phase_is_tampered(port: Path) -> None:
    with writing(port):
        write_phase(port, "presim", {"gates/presim.json": (port / GATE).read_bytes()}, {})
    assert survey(port, TODAY).gate("presim").reasons == ("gates/presim.json: tampered: it is the gate of 'baseline'",)


def presim_gate(port: Path) -> bytes:
    """A gate of phase 2 that rests on the baseline gate as it is now."""
    report = load_report((port / GATE).read_bytes())
    above = require_passed(port, "baseline", TODAY).state.files[GATE]
    inputs = {"manifest.json": report.inputs["manifest.json"]}
    return report_to_json(dataclasses.replace(report, phase="presim", inputs=inputs, upstream={GATE: above}))


def test_a_phase_below_goes_stale_with_the_gate_above(port: Path) -> None:
    with writing(port):
        write_phase(port, "presim", {"gates/presim.json": presim_gate(port)}, {})
    assert reasons(port) == ()
    make_port(port.parent, manifest=small_manifest(0.25))
    seen = survey(port, TODAY)
    assert seen.gate("baseline").verdict == "PASS"
    assert seen.gate("presim").verdict == "STALE"
    assert f"{GATE}: stale: gates/presim.json was judged on another content of it" in seen.gate("presim").reasons
    assert reasons(port, "baseline") == ()
    assert reasons(port, "presim")


def test_a_rerun_keeps_the_files_of_other_phases_and_drops_its_own_old_ones(port: Path) -> None:
    with writing(port):
        write_phase(port, "presim", {"design.json": b"[]\n"}, {})
        files = {"port.json": (port / "port.json").read_bytes(), "manifest.json": b"{}\n"}
        write_phase(port, "baseline", files, {})
    assert set(contents(port)) == {"state.json", "port.json", "manifest.json", "design.json"}


def test_the_gate_is_the_same_bytes_on_the_same_inputs(tmp_path: Path) -> None:
    gates = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        gates.append((make_port(tmp_path / name) / GATE).read_bytes())
    assert gates[0] == gates[1]


def test_an_interrupted_port_stops(port: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr(journal, "_finish", dies)
    with writing(port), pytest.raises(SystemExit):
        write_phase(port, "baseline", {"port.json": (port / "port.json").read_bytes()}, {})
    lines = reasons(port)
    assert lines[0].startswith("journal.json: interrupted: ")
    monkeypatch.undo()
    with writing(port) as healed:
        assert healed == "an interrupted run was finished"
    assert read_gates(port, inspect(port), TODAY)[0].verdict == "MISSING"


def test_writing_outside_the_lock_is_a_fault(port: Path) -> None:
    with pytest.raises(RuntimeError, match="outside writing"):
        write_phase(port, "baseline", {}, {})
