"""What an arm's file has to be: form, provenance, nothing of a simulation."""

import json
from typing import Any

import pytest

from manifest.errors import RefusedError
from optimize.comparator import read_arm

PROVENANCE = {
    "commit": "0a1b2c3",
    "compiler": "peano 19.0",
    "kernel_sha256": "a" * 64,
    "timestamp": "2026-01-31T12:00:00+00:00",
    "host": "box",
    "device": "npu2",
    "session": "one",
}


def value(**changed: Any) -> dict[str, Any]:
    plain = {
        "schema_version": 1,
        "arm": "before",
        "basis": "measured",
        "metric": "traced_cycles",
        "kernel": "gemm_0",
        "calls": 20,
        "truncated": False,
        "values": [1000] * 20,
        "unchanged": {"kernel": "relu_0", "cycles": 310},
        "provenance": PROVENANCE,
    }
    return {k: v for k, v in {**plain, **changed}.items() if v is not ...}


def codes(data: bytes) -> set[str]:
    with pytest.raises(RefusedError) as caught:
        read_arm(data, "a.json")
    return {p.code for p in caught.value.problems}


def refused(**changed: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        read_arm(json.dumps(value(**changed)).encode(), "a.json")
    assert "\n" not in caught.value.problems[0].line()
    return str(caught.value)


def test_an_arm_is_read_as_it_is_written() -> None:
    arm = read_arm(json.dumps(value()).encode(), "a.json")
    assert (arm.name, arm.metric, arm.calls, len(arm.values)) == ("before", "traced_cycles", 20, 20)
    assert arm.unchanged is not None
    assert (arm.unchanged.kernel, arm.unchanged.cycles, arm.pinned) == ("relu_0", 310, False)
    assert arm.provenance.commit == "0a1b2c3"


def test_wall_clock_has_pinned_instead_of_an_unchanged_kernel() -> None:
    arm = read_arm(json.dumps(value(metric="wall_ns", unchanged=..., pinned=True)).encode(), "a.json")
    assert arm.pinned
    assert arm.unchanged is None
    assert "does not belong to metric wall_ns" in refused(metric="wall_ns", pinned=True)
    assert "a.json: pinned: missing" in refused(metric="wall_ns", unchanged=...)
    assert "does not belong to metric traced_cycles" in refused(pinned=True)


@pytest.mark.parametrize("basis", ["simulated", "predicted", "static"])
def test_what_is_not_measured_is_refused(basis: str) -> None:
    assert codes(json.dumps(value(basis=basis)).encode()) == {"AB-SIMULATED"}
    assert "a prediction" in refused(basis=basis)


@pytest.mark.parametrize("key", sorted(PROVENANCE))
def test_every_field_of_the_provenance_is_needed(key: str) -> None:
    left = {k: v for k, v in PROVENANCE.items() if k != key}
    assert codes(json.dumps(value(provenance=left)).encode()) == {"AB-PROVENANCE"}
    assert f"provenance.{key}" in refused(provenance=left)
    assert codes(json.dumps(value(provenance={**PROVENANCE, key: " "})).encode()) == {"AB-PROVENANCE"}


def test_numbers_without_any_provenance_are_refused() -> None:
    assert codes(json.dumps(value(provenance=...)).encode()) == {"AB-PROVENANCE"}


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("commit", "0a1b2c"),
        ("commit", "main"),
        ("kernel_sha256", "a" * 63),
        ("timestamp", "2026-01-31T12:00:00"),
        ("timestamp", "yesterday"),
        ("timestamp", 5),
    ],
)
def test_provenance_has_a_form(key: str, bad: object) -> None:
    assert codes(json.dumps(value(provenance={**PROVENANCE, key: bad})).encode()) == {"AB-PROVENANCE"}


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"schema_version": 2}, "another version"),
        ({"schema_version": True}, "another version"),
        ({"arm": ""}, "arm: in another form"),
        ({"metric": "seconds"}, "metric"),
        ({"metric": []}, "metric"),
        ({"calls": 19}, "more values than calls"),
        ({"calls": 0}, "calls"),
        ({"calls": True}, "calls"),
        ({"truncated": 0}, "truncated"),
        ({"values": []}, "values"),
        ({"values": [1000.5] * 20}, "values"),
        ({"values": [0] * 20}, "values"),
        ({"values": ...}, "values: missing"),
        ({"unchanged": ...}, "unchanged: missing"),
        ({"unchanged": {"kernel": "relu_0"}}, "unchanged"),
        ({"unchanged": {"kernel": "gemm_0", "cycles": 1}}, "is the kernel that was changed"),
        ({"speedup": 2}, "an unknown key"),
        ({"provenance": {**PROVENANCE, "by": "x"}}, "an unknown key"),
    ],
)
def test_another_form_is_refused(changed: dict[str, Any], text: str) -> None:
    assert text in refused(**changed)


def test_all_problems_come_at_once() -> None:
    assert codes(json.dumps(value(calls=0, basis="simulated", provenance=...)).encode()) == {
        "AB-FORM",
        "AB-SIMULATED",
        "AB-PROVENANCE",
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"arm": "a", "arm": "b"}',
        b'{"calls": NaN}',
        b"[" * 100_000,
        b" " * ((16 << 20) + 1),
    ],
)
def test_what_is_no_arm_is_one_problem(data: bytes) -> None:
    assert codes(data) == {"AB-FORM"}
