import json
from dataclasses import replace
from datetime import date

import pytest

from checklists.evaluate import evaluate
from checklists.items.bringup import ITEMS
from checklists.model import Verdict
from phases.reports.badge import render_badge
from tests.bringup_evidence import good_bringup

GATE = evaluate(ITEMS, good_bringup(), (), date(2030, 1, 1), "host", phase="bringup")


def test_the_badge_always_says_the_level() -> None:
    assert json.loads(render_badge(GATE))["message"] == "PASS at host level"
    assert json.loads(render_badge(replace(GATE, level="hardware")))["message"] == "PASS at hardware level"
    assert json.loads(render_badge(GATE))["label"] == "bringup"


@pytest.mark.parametrize(("verdict", "colour"), [("PASS", "brightgreen"), ("FAIL", "red"), ("NOT_RUN", "lightgrey")])
def test_only_a_pass_is_green(verdict: str, colour: str) -> None:
    assert json.loads(render_badge(replace(GATE, verdict=Verdict(verdict))))["color"] == colour
