"""`waivers.toml`: read strictly, written without losing a person's comments."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.model import Waiver
from manifest.errors import RefusedError
from phases.waivers import MAX_TEXT, SUBJECTS, Subject, add_waiver, is_text, parse_waivers

CODES = frozenset({"BL003", "BL011"})
ONE = Waiver(code="BL011", reason="fine", owner="me", until=date(2030, 1, 31), subject="conv_q")
WORDS = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=40).filter(is_text)


def row(**changes: str) -> bytes:
    fields = {
        "code": '"BL011"',
        "tensor": '"conv_q"',
        "reason": '"fine"',
        "owner": '"me"',
        "until": "2030-01-31",
    } | changes
    lines = [f"{key} = {value}" for key, value in fields.items() if value]
    return "\n".join(["[[waiver]]", *lines, ""]).encode()


def test_a_waiver_is_read() -> None:
    assert parse_waivers(row(), CODES) == (ONE,)
    assert parse_waivers(row(until='"2030-01-31"'), CODES) == (ONE,)
    assert parse_waivers(row(tensor="", op='"conv_q"'), CODES) == (ONE,)
    assert parse_waivers(row(tensor=""), CODES)[0].subject is None
    assert parse_waivers(None, CODES) == parse_waivers(b"", CODES) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"code": '"BL999"'}, "code: bad value"),
        ({"code": ""}, "code: bad value"),
        ({"reason": '" "'}, "reason: bad value"),
        ({"reason": ""}, "got nothing"),
        ({"reason": '"a\\nb"'}, "reason: bad value"),
        ({"owner": "3"}, "owner: bad value"),
        ({"until": '"soon"'}, "until: bad value"),
        ({"until": "2030-01-31T00:00:00"}, "until: bad value"),
        ({"until": "2030"}, "until: bad value"),
        ({"tensor": '""'}, "tensor: bad value"),
        ({"op": '"conv"'}, "not several"),
        ({"reasno": '"x"'}, "did you mean 'reason'"),
    ],
)
def test_a_bad_field_is_named(changes: dict[str, str], words: str) -> None:
    with pytest.raises(RefusedError, match=words) as caught:
        parse_waivers(row(**changes), CODES, "p/waivers.toml")
    assert "p/waivers.toml: waiver 1" in str(caught.value)


def test_all_problems_at_once() -> None:
    with pytest.raises(RefusedError) as caught:
        parse_waivers(b"extra = 1\n" + row(code='"no"') + row(owner='""') + row() + row(), CODES)
    assert [p.code for p in caught.value.problems] == ["TOML-KEY", "WAIVER-FIELD", "WAIVER-FIELD", "WAIVER-TWICE"]


@pytest.mark.parametrize("text", [b"waiver = 3", b"waiver = [3]", b"[[waiver]", b"\xff"])
def test_another_shape_of_file_is_refused(text: bytes) -> None:
    with pytest.raises(RefusedError):
        parse_waivers(text, CODES)


@given(subject=WORDS, reason=WORDS, owner=WORDS, kind=st.sampled_from(SUBJECTS))
def test_what_is_written_is_read_back(subject: str, reason: str, owner: str, kind: Subject) -> None:
    waiver = Waiver(code="BL003", reason=reason, owner=owner, until=date(2031, 2, 3), subject=subject)
    data, renewed = add_waiver(None, waiver, kind)
    assert not renewed
    assert parse_waivers(data, CODES) == (waiver,)
    data, _ = add_waiver(row(), waiver, kind)
    assert parse_waivers(data, CODES) == (ONE, waiver)


def test_comments_survive_and_the_same_subject_is_renewed() -> None:
    before = b"# why we do this\n\n" + row(reason='"old"  # still true') + b"\n# the end\n"
    data, renewed = add_waiver(before, ONE, "tensor")
    assert renewed
    assert parse_waivers(data, CODES) == (ONE,)
    for comment in (b"# why we do this", b"# the end"):
        assert comment in data


def test_an_inline_list_can_be_added_to() -> None:
    before = b'waiver = [{code = "BL003", reason = "x", owner = "y", until = "2030-01-01"}]\n'
    data, _ = add_waiver(before, ONE, "tensor")
    assert [w.code for w in parse_waivers(data, CODES)] == ["BL003", "BL011"]


def test_the_length_of_a_reason() -> None:
    assert is_text("x" * MAX_TEXT)
    assert not is_text("x" * (MAX_TEXT + 1))
