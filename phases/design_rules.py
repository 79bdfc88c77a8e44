"""`design-rules.json`: what bring-up learned and the next plan uses.

Each rule is a directive for one node, with what made it necessary. `phases.presim` puts them under the person's own
directives and names those that it used in the design; no gate hashes the file, since the design carries what was used.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bringup.evidence import MemoryRow, RuleEvidence
from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical
from phases.port import Port

RULES_FILE: Final = "design-rules.json"
SCHEMA_VERSION: Final = 1


def rules_file(port: Port, overflows: Sequence[MemoryRow]) -> bytes | None:
    """The rules known before and those of these overflows; None where there are none.

    Raises:
        UpstreamError: the file was tampered with.
    """
    rules = {str(rule["why"]): dict(rule) for rule in read_rules(port)}
    for row in overflows:
        if row.split:
            why = why_of(row)
            rules[why] = {"why": why, "directives": json.loads(row.split)}
    if not rules:
        return None
    return canonical_json({"schema_version": SCHEMA_VERSION, "rules": [rules[why] for why in sorted(rules)]})


def why_of(row: MemoryRow) -> str:
    """What made a rule necessary, by which it is known."""
    return f"{row.place}: packed buffers need {row.need} of {row.have} bytes"


def rule_evidence(data: bytes | None, overflows: Sequence[MemoryRow]) -> tuple[RuleEvidence, ...]:
    """Each overflow, and whether the bytes that are about to be written hold a rule for it.

    Args:
        data: of `design-rules.json`, None = no such file.
        overflows: tiles that the packed buffers do not fit.
    """
    kept = set() if data is None else {rule["why"] for rule in parse_canonical(data, RULES_FILE)["rules"]}
    return tuple(RuleEvidence(event=f"{r.dispatch}: {why_of(r)}", recorded=why_of(r) in kept) for r in overflows)


def read_rules(port: Port) -> list[Mapping[str, Any]]:
    """The rules of a port, each with `why` and `directives` by node.

    Raises:
        UpstreamError: the file is not what this version writes.
    """
    if RULES_FILE not in port.state.files:
        return []
    value = parse_canonical(port.read(RULES_FILE), RULES_FILE)
    rules = value.get("rules") if isinstance(value, dict) and value.get("schema_version") == SCHEMA_VERSION else None
    if not isinstance(rules, list) or not all(isinstance(r, dict) and {"why", "directives"} <= set(r) for r in rules):
        msg = f"{RULES_FILE}: tampered: expected rules of schema_version {SCHEMA_VERSION}"
        raise UpstreamError(msg)
    return list(rules)


def learned(port: Port, asked: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Directives that rules add to those of the person, and the rules that they come from, in words.

    Args:
        port: read.
        asked: the person's own directives by node; they win.

    Raises:
        UpstreamError: the file is not what this version writes.
    """
    found: dict[str, Any] = {}
    used = []
    for rule in read_rules(port):
        mine = {node: value for node, value in rule["directives"].items() if node not in asked}
        if mine:
            found |= mine
            used.append(f"{rule['why']}: {json.dumps(mine, sort_keys=True)}")
    return found, tuple(used)
