"""A clearance opens only what the gates on disk passed: every way to be wrong is refused, with the file named."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from manifest.clearance import Clearance, issue
from manifest.errors import UpstreamError
from manifest.io import canonical_json, schema_errors, sha256_hex

MANIFEST = b'{"manifest": 1}\n'
DESIGN = b'{"design": 1}\n'
TODAY = date(2030, 6, 15)


def item(code: str = "BL001", verdict: str = "PASS", level: str = "host", until: str | None = None) -> dict[str, Any]:
    waivers = [] if until is None else [
        {"code": code, "subject": None, "reason": "r", "owner": "o", "until": until}
    ]  # fmt: skip
    return {
        "code": code, "title": "t", "source": "s", "basis": "proved", "level": level, "found": verdict,
        "verdict": verdict, "summary": "s", "figures": {"n": 1}, "subjects": [], "waivers": waivers,
    }  # fmt: skip


def gate(phase: str, upstream: dict[str, str], /, **change: Any) -> bytes:
    value = {
        "schema_version": 1, "phase": phase, "verdict": "PASS", "level": "host", "items": [item()],
        "inputs": {"manifest.json": sha256_hex(MANIFEST)}, "upstream": upstream, "tool_version": "1",
        "expired_waivers": [], "unused_waivers": [],
    }  # fmt: skip
    if phase != "baseline":
        value["inputs"]["design.json"] = sha256_hex(DESIGN)  # type: ignore[index]
    value.update(change)
    value.setdefault("self_sha256", sha256_hex(canonical_json({**value, "self_sha256": ""})))
    assert change.get("schema_version") or schema_errors(value, "gate-1") == ()
    return canonical_json(value)


def write(port: Path, baseline: bytes | None = None, presim: bytes | None = None) -> Path:
    folder = port / "gates"
    folder.mkdir(parents=True, exist_ok=True)
    first = baseline or gate("baseline", {})
    (folder / "baseline.json").write_bytes(first)
    (folder / "presim.json").write_bytes(presim or gate("presim", {"gates/baseline.json": sha256_hex(first)}))
    return port


def test_a_good_port_opens_both_phases(tmp_path: Path) -> None:
    port = write(tmp_path)
    one = issue(port, "baseline", MANIFEST, today=TODAY)
    assert one.gates == (("baseline", sha256_hex((port / "gates/baseline.json").read_bytes())),)
    one.verify(MANIFEST, today=TODAY)
    two = issue(port, "presim", MANIFEST, DESIGN, today=TODAY)
    assert [phase for phase, _ in two.gates] == ["baseline", "presim"]
    two.verify(MANIFEST, DESIGN, today=TODAY)
    two.verify(MANIFEST, today=TODAY)


def test_other_bytes_are_refused(tmp_path: Path) -> None:
    port = write(tmp_path)
    one, two = issue(port, "baseline", MANIFEST), issue(port, "presim", MANIFEST, DESIGN)
    with pytest.raises(UpstreamError, match=r"manifest\.json: the clearance is for another manifest"):
        one.verify(MANIFEST + b" ")
    with pytest.raises(UpstreamError, match=r"design\.json: the clearance is for another design"):
        two.verify(MANIFEST, DESIGN + b" ")
    with pytest.raises(UpstreamError, match=r"design\.json: expected a clearance from gates/presim\.json"):
        one.verify(MANIFEST, DESIGN)
    with pytest.raises(UpstreamError, match=r"gates/baseline\.json: it judged another manifest"):
        issue(port, "baseline", MANIFEST + b" ")
    with pytest.raises(UpstreamError, match=r"gates/presim\.json: it judged another design"):
        issue(port, "presim", MANIFEST, DESIGN + b" ")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"verdict": "FAIL"}, "GATE-NOT-PASSED.*expected PASS; got FAIL at host level"),
        ({"verdict": "NOT_RUN"}, "expected PASS; got NOT_RUN"),
        ({"level": "hardware"}, "GATE-LEVEL.*expected host level; got hardware"),
        ({"items": [item(verdict="FAIL"), item()]}, "GATE-TAMPERED.*items that allow PASS; got BL001"),
        ({"items": [item(verdict="BLOCKED"), item()]}, "got BL001"),
        ({"items": [item(verdict="NOT_APPLICABLE")]}, "no item that is PASS"),
        ({"items": [item(), item("BL002", "WAIVED", until="2030-06-14")]}, "GATE-STALE.*waiver of BL002.*2030-06-14"),
        ({"items": [item(), item("BL002", "WAIVED", until="2030-99-99")]}, "GATE-TAMPERED.*expected a date"),
        ({"upstream": {"gates/presim.json": "0" * 64}}, "GATE-STALE.*gate above"),
        ({"inputs": {}}, "GATE-MISMATCH.*another manifest.*got none"),
        ({"phase": "presim"}, "GATE-MISMATCH.*gate of another phase"),
        ({"self_sha256": "0" * 64}, "GATE-MISMATCH.*self_sha256"),
        ({"schema_version": 2}, "GATE-TAMPERED.*schema_version"),
    ],
)
def test_a_gate_that_does_not_hold_is_refused(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    port = write(tmp_path, baseline=gate("baseline", {}, **change))
    with pytest.raises(UpstreamError, match=match) as caught:
        issue(port, "baseline", MANIFEST, today=TODAY)
    assert "gates/baseline.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_waivers_hold_through_their_last_day(tmp_path: Path) -> None:
    items = [item(), item("BL002", "WAIVED", until="2030-06-15")]
    made = issue(write(tmp_path, baseline=gate("baseline", {}, items=items)), "baseline", MANIFEST, today=TODAY)
    with pytest.raises(UpstreamError, match="waiver"):
        made.verify(MANIFEST, today=date(2030, 6, 16))


def test_open_hardware_items_do_not_count_at_host_level(tmp_path: Path) -> None:
    items = [item(), item("BU001", "BLOCKED", level="hardware")]
    first = gate("baseline", {}, items=items)
    assert issue(write(tmp_path, baseline=first), "baseline", MANIFEST).manifest_sha256 == sha256_hex(MANIFEST)


def test_presim_has_to_rest_on_the_baseline_that_is_there(tmp_path: Path) -> None:
    port = write(tmp_path, presim=gate("presim", {"gates/baseline.json": "1" * 64}))
    with pytest.raises(UpstreamError, match=r"GATE-STALE\] gates/presim\.json"):
        issue(port, "presim", MANIFEST, DESIGN)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d[:-1],
        lambda d: d + b"\n",
        lambda d: json.dumps(json.loads(d)).encode(),
        lambda d: d.replace(b'"summary": "s"', b'"summary": "t"'),
        lambda _: b"{}",
        lambda _: b"\xff",
    ],
)
def test_a_changed_gate_is_refused_when_made_and_when_verified(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    port = write(tmp_path)
    made = issue(port, "presim", MANIFEST, DESIGN)
    for name in ("gates/baseline.json", "gates/presim.json"):
        good = (port / name).read_bytes()
        (port / name).write_bytes(spoil(good))
        with pytest.raises(UpstreamError, match=name.replace(".", r"\.")):
            made.verify(MANIFEST, DESIGN)
        with pytest.raises(UpstreamError, match=name.replace(".", r"\.")):
            issue(port, "presim", MANIFEST, DESIGN)
        (port / name).write_bytes(good)
    made.verify(MANIFEST, DESIGN)
    (port / "gates/presim.json").unlink()
    with pytest.raises(UpstreamError, match=r"GATE-MISSING\] gates/presim\.json"):
        made.verify(MANIFEST, DESIGN)


def test_one_made_by_hand_opens_nothing(tmp_path: Path) -> None:
    def by_hand(port: Path, gates: tuple[tuple[str, str], ...]) -> Clearance:
        return Clearance(port=port, manifest_sha256=sha256_hex(MANIFEST), design_sha256=sha256_hex(DESIGN), gates=gates)

    with pytest.raises(UpstreamError, match="GATE-MISSING"):
        by_hand(tmp_path, (("baseline", "0" * 64),)).verify(MANIFEST)
    with pytest.raises(UpstreamError, match="GATE-CHAIN"):
        by_hand(tmp_path, ()).verify(MANIFEST)
    port = write(tmp_path)
    good = issue(port, "presim", MANIFEST, DESIGN)
    with pytest.raises(UpstreamError, match="GATE-CHAIN"):
        replace(good, gates=good.gates[1:]).verify(MANIFEST, DESIGN)
    with pytest.raises(UpstreamError, match="GATE-CHAIN"):
        replace(good, gates=good.gates[:1]).verify(MANIFEST, DESIGN)
    with pytest.raises(UpstreamError, match="GATE-TAMPERED"):
        by_hand(port, (("baseline", "0" * 64), good.gates[1])).verify(MANIFEST)


def test_only_the_runner_makes_one(root: Path) -> None:
    """No module of the project but `phases.runner` (and the definition itself) constructs or issues a clearance."""
    packages = ("manifest", "oracle", "presim", "bringup", "optimize", "checklists", "phases")
    makers = set()
    for package in packages:
        for path in (root / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "Clearance(" in text or "clearance import issue" in text or "clearance.issue(" in text:
                makers.add(path.relative_to(root).as_posix())
    assert makers - {"phases/runner.py"} == {"manifest/clearance.py"}
