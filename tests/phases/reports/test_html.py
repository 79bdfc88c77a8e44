import re
from dataclasses import replace
from html.parser import HTMLParser

from checklists.model import GateReport
from manifest.model import Manifest
from phases.reports.html import render_html


class Reader(HTMLParser):
    """Tags and text of a page; fails on what is never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: bytes) -> Reader:
    reader = Reader()
    reader.feed(page.decode("utf-8"))
    assert reader.open == []
    return reader


def test_shows_verdict_items_and_decisions(gate: GateReport, manifest: Manifest) -> None:
    text = " ".join("".join(read(render_html([gate], manifest)).words).split())
    assert "Baseline gate: FAIL at host level" in text
    for item in gate.items:
        assert f"{item.code} {item.title} {item.verdict} {item.summary}" in text
    assert "because conv_out (owner ann, until 2031-01-01)" in text
    assert "measured on this host's CPU with onnxruntime" in text
    assert "99 of 2147483647 (32 bits)" in text


def test_is_self_contained(gate: GateReport, manifest: Manifest) -> None:
    reader = read(render_html([gate], manifest))
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert not {"src", "href", "onclick", "onerror"} & set(reader.attributes)


def test_same_input_same_bytes(gate: GateReport, manifest: Manifest) -> None:
    assert render_html([gate], manifest) == render_html([gate], manifest)


def test_hostile_names_are_text_and_add_no_tag(
    gate: GateReport, manifest: Manifest, hostile_gate: GateReport, hostile_manifest: Manifest
) -> None:
    plain, page = read(render_html([gate], manifest)), render_html([hostile_gate], hostile_manifest)
    hostile = read(page)
    assert hostile.tags == plain.tags
    assert b"\x1b" not in page
    assert "<script>alert(1)</script>" in "".join(hostile.words)


def test_every_gate_has_its_section(gate: GateReport, manifest: Manifest) -> None:
    page = render_html([gate, replace(gate, phase="presim")], manifest).decode()
    assert re.findall(r"<h1>(\w+) gate", page) == ["Baseline", "Presim"]
    assert "<title>presim gate" in page
