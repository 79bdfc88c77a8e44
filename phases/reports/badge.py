"""The last gate as a badge: the JSON that shields.io reads from an endpoint."""

from typing import Final

from checklists.model import GateReport, Verdict
from manifest.io import canonical_json

COLOURS: Final = {Verdict.PASS: "brightgreen", Verdict.FAIL: "red"}


def render_badge(gate: GateReport) -> bytes:
    """Label and message; the message always has the level in it."""
    colour = COLOURS.get(gate.verdict, "lightgrey")
    return canonical_json({"schemaVersion": 1, "label": gate.phase, "message": gate.words, "color": colour})
