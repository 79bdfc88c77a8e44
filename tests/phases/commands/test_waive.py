"""`waive`: nonsense is refused, all of it at once; the rest is written and makes the gate stale."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from phases.__main__ import main
from phases.lock import port_lock
from phases.pipeline import item_codes
from phases.waivers import parse_waivers
from tests.ports import contents, make_port

UNTIL = (date.today() + timedelta(days=30)).isoformat()


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return make_port(tmp_path)


def waive(port: Path, *arguments: str, code: str = "BL011", **options: str) -> int:
    given = {"reason": "fine", "owner": "me", "until": UNTIL, **options}
    return main(["waive", str(port), code, *arguments, *(f"--{k}={v}" for k, v in given.items())])


def test_a_waiver_is_recorded_and_the_gate_is_stale(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert waive(port, "--tensor", "image_q") == 0
    assert "python -m phases.baseline" in capsys.readouterr().out
    (found,) = parse_waivers((port / "waivers.toml").read_bytes(), item_codes())
    assert (found.code, found.subject, found.reason, found.owner) == ("BL011", "image_q", "fine", "me")
    assert found.until.isoformat() == UNTIL
    assert main(["check", str(port)]) == 3
    assert "waivers.toml: stale" in capsys.readouterr().out
    make_port(port.parent)
    assert main(["check", str(port)]) == 0


def test_an_op_a_figure_or_nothing_may_be_named(port: Path) -> None:
    assert waive(port, "--op", "dq") == 0
    assert waive(port, "--figure", "memtile_bytes", code="BL004") == 0
    assert waive(port, code="BL003") == 0
    assert len(parse_waivers((port / "waivers.toml").read_bytes(), item_codes())) == 3


def test_the_same_again_is_renewed(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert waive(port, "--tensor", "image_q") == 0
    assert waive(port, "--tensor", "image_q", reason="better") == 0
    assert capsys.readouterr().out.splitlines()[-3].startswith("renewed")
    (found,) = parse_waivers((port / "waivers.toml").read_bytes(), item_codes())
    assert found.reason == "better"


def test_today_is_the_last_day_that_is_taken(port: Path) -> None:
    assert waive(port, until=date.today().isoformat()) == 0
    assert waive(port, until=(date.today() - timedelta(days=1)).isoformat()) == 2


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((), {"code": "BL999"}, "no checklist item of this code"),
        ((), {"code": "bl011"}, "did you mean BL011"),
        ((), {"reason": " "}, "--reason: says nothing"),
        ((), {"owner": ""}, "--owner: says nothing"),
        ((), {"until": "tomorrow"}, "not a date"),
        (("--tensor", "image"), {}, ""),
        (("--tensor", "image_x"), {}, "did you mean 'image_q'"),
        (("--op", "image_q"), {}, "no op of this name"),
        (("--op", "q", "--tensor", "y"), {}, "several subjects"),
    ],
)
def test_nonsense_is_refused(
    port: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], options: dict[str, str], words: str
) -> None:
    before = contents(port)
    assert waive(port, *arguments, **options) == (2 if words else 0)
    assert words in capsys.readouterr().err
    if words:
        assert contents(port) == before


def test_all_problems_at_once(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port / "waivers.toml").write_text("x = 1\n[[waiver]]\n")
    assert waive(port, "--op", "nope", code="X", reason="", owner="\t", until="2020-01-01") == 2
    err = capsys.readouterr().err
    assert "10 problems; nothing was written" in err


def test_a_tampered_port_is_exit_3_a_busy_one_2(port: Path) -> None:
    with port_lock(port):
        assert waive(port) == 2
    (port / "manifest.json").write_bytes(b"{}\n")
    assert waive(port) == 3
    assert not (port / "waivers.toml").exists()


def test_what_is_no_port_is_left_alone(tmp_path: Path) -> None:
    assert waive(tmp_path / "absent") == 2
    (tmp_path / "mine").write_text("")
    assert waive(tmp_path) == 2
    assert sorted(contents(tmp_path)) == ["mine"]


def test_a_link_is_not_followed(port: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text("# mine")
    (port / "waivers.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert waive(port) in (2, 3)
    assert (tmp_path / "elsewhere.toml").read_text() == "# mine"
