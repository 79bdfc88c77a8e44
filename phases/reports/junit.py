"""Gates as JUnit XML: one suite per gate, one test case per item.

Why NOT_RUN is an error and not skipped: a dashboard shows skipped tests as green, and what was not run did not pass.
"""

from collections.abc import Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from checklists.model import GateReport, ItemResult, Level, Verdict, one_line
from phases.reports.text import figure_rows


def render_junit(gates: Sequence[GateReport]) -> bytes:
    """Return the XML.

    FAIL is a failure; NOT_RUN, and BLOCKED where it counts, is an error; NOT_APPLICABLE, WAIVED and BLOCKED at host
    level are skipped; the message is the item's summary. No times: they are no figures of a gate.
    """
    xml = JUnitXml("gates")
    for gate in gates:
        suite = TestSuite(f"phases.{gate.phase}: {gate.words}")
        suite.add_property("verdict", gate.words)
        suite.add_property("tool_version", one_line(gate.tool_version))
        suite.add_testcases([_case(gate, item) for item in gate.items])
        xml.add_testsuite(suite)
    xml.update_statistics()
    data: bytes = xml.tostring()
    return data.rstrip() + b"\n"


def _case(gate: GateReport, item: ItemResult) -> TestCase:
    """One item as a test case, its figures as system-out."""
    case = TestCase(f"{item.code} {item.title}", classname=f"phases.{gate.phase}", time=0)
    outcome = _outcome(item, gate.level)
    if outcome is not None:
        case.result = [outcome(one_line(item.summary), item.verdict.value)]
    lines = [one_line(item.summary), f"figures are {item.basis}"]
    lines += [f"{name}: {value}" for name, value in figure_rows(item)]
    lines += [f"waiver: {w.line()}" for w in item.waivers]
    case.system_out = "\n".join(lines)
    return case


def _outcome(item: ItemResult, level: Level) -> type[Failure] | type[Error] | type[Skipped] | None:
    """Kind of result element, None for a test that passed."""
    if item.verdict is Verdict.PASS:
        return None
    if item.verdict is Verdict.FAIL:
        return Failure
    counts = level == "hardware" or item.level == "host"
    if counts and item.verdict in (Verdict.NOT_RUN, Verdict.BLOCKED):
        return Error
    return Skipped
