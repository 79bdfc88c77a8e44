"""`python -m phases waive`: record that a deviation is accepted, by whom, why and until when."""

import difflib
from datetime import date
from pathlib import Path

import click

from checklists.model import Verdict, Waiver
from manifest.errors import Problem, RefusedError
from manifest.io import manifest_from_json
from phases import cli
from phases.exit_codes import OK
from phases.pipeline import PHASES, item_codes
from phases.port import Port, open_port, read_person, write_person, writing
from phases.runner import survey
from phases.state import WAIVERS_TOML
from phases.waivers import Subject, add_waiver, is_text, parse_waivers

EPILOG = """\b
Example:
  python -m phases waive digits.port BL011 --tensor conv1_out_q --owner me@example.org \\
      --reason "one code in 10,000 elements, accuracy unchanged" --until 2027-06-30

The gate takes it in at the next run of its phase. It is shown in every report.
"""


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.argument("code")
@click.option("--tensor", help="The tensor that it is about.")
@click.option("--op", help="The op that it is about.")
@click.option("--figure", help="The device figure that it is about.")
@click.option("--reason", required=True, help="Why it is acceptable.")
@click.option("--owner", required=True, help="Who answers for it.")
@click.option("--until", required=True, metavar="YYYY-MM-DD", help="Last day on which it holds.")
def waive(port: Path, code: str, reason: str, owner: str, until: str, **about: str | None) -> int:
    """Accept the finding of checklist item CODE in PORT: adds to waivers.toml, or renews what is there."""
    named: dict[Subject, str] = {k: v for k, v in about.items() if v is not None}  # type: ignore[misc]
    with writing(port):
        opened = open_port(port)
        problems = [
            *_code_problems(code),
            *_subject_problems(opened, named),
            *(
                Problem(code="WAIVER-FIELD", where=f"--{name}", what="says nothing", expected="words, on one line")
                for name, text in (("reason", reason), ("owner", owner))
                if not is_text(text)
            ),
        ]
        day = _day(until, problems)
        before = read_person(port, (WAIVERS_TOML,)).get(WAIVERS_TOML)
        try:
            parse_waivers(before, item_codes(), str(port / WAIVERS_TOML))
        except RefusedError as error:
            problems += error.problems
        if problems:
            raise RefusedError(tuple(problems))
        kind, subject = next(iter(named.items()), (None, None))
        waiver = Waiver(code=code, reason=reason, owner=owner, until=day, subject=subject)
        data, renewed = add_waiver(before, waiver, kind)
        parse_waivers(data, item_codes(), str(port / WAIVERS_TOML))
        write_person(port, WAIVERS_TOML, data)
    click.echo(f"{'renewed' if renewed else 'recorded'} in {port / WAIVERS_TOML}: {waiver.line()}")
    _say_what_it_does(port, code)
    return OK


def _code_problems(code: str) -> list[Problem]:
    codes = sorted(item_codes())
    if code in codes:
        return []
    near = difflib.get_close_matches(code.upper(), codes, 1)
    remedy = f"did you mean {near[0]}?" if near else "python -m phases explain --all lists them"
    what = "no checklist item of this code"
    return [Problem(code="WAIVER-CODE", where=repr(code), what=what, expected=", ".join(codes), remedy=remedy)]


def _subject_problems(port: Port, named: dict[Subject, str]) -> list[Problem]:
    if len(named) > 1:
        what = "several subjects"
        return [Problem(code="WAIVER-SUBJECT", where="--tensor, --op, --figure", what=what, expected="one of them")]
    for kind, name in named.items():
        if kind == "figure":
            continue
        manifest = manifest_from_json(port.read("manifest.json"))
        known = [row.name for row in (manifest.tensors if kind == "tensor" else manifest.ops)]
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            remedy = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
            what = f"the manifest has no {kind} of this name"
            return [Problem(code="WAIVER-SUBJECT", where=f"--{kind}", what=what, got=repr(name), remedy=remedy)]
    return []


def _day(text: str, problems: list[Problem]) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        what = "not a date"
        problems.append(Problem(code="WAIVER-UNTIL", where="--until", what=what, expected="YYYY-MM-DD", got=repr(text)))
        return date.max
    if day < date.today():
        what, expected = "the day is over", f"{date.today().isoformat()} or later"
        problems.append(Problem(code="WAIVER-UNTIL", where="--until", what=what, expected=expected, got=text))
    return day


def _say_what_it_does(root: Path, code: str) -> None:
    """Whether there is anything to waive now, and what makes the gate take it in."""
    phase = next(phase for phase in PHASES if any(item.code == code for item in phase.items))
    report = survey(root).gate(phase.name).report
    found = [item.found for item in report.items if item.code == code] if report is not None else []
    if found and found[0] not in (Verdict.FAIL, Verdict.NOT_RUN):
        click.echo(f"note: {code} is {found[0]} now, there is nothing to waive")
    above = [row.command for row in PHASES[: PHASES.index(phase)]]
    commands = ", ".join(f"{command} {root}" for command in (*above, phase.command))
    click.echo(f"next: {commands} takes it in; until then the gate is STALE")
