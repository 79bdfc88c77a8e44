"""`python -m phases explain`: what a checklist item asks for, what an error code means."""

import difflib

import click

from checklists.model import CheckItem
from manifest.errors import Problem, RefusedError
from phases.error_codes import Meaning, Raised, error_codes, meanings
from phases.exit_codes import OK
from phases.pipeline import PHASES

EPILOG = """\b
Examples:
  python -m phases explain BL009
  python -m phases explain ONNX-SCALE-ZERO
  python -m phases explain --all --markdown
"""


@click.command(epilog=EPILOG)
@click.argument("code", required=False)
@click.option("--all", "everything", is_flag=True, help="Every checklist item and every error code.")
@click.option("--markdown", is_flag=True, help="As Markdown, for the documentation.")
def explain(code: str | None, everything: bool, markdown: bool) -> int:
    """Explain a checklist item (BL009) or an error code (ONNX-SCALE-ZERO)."""
    if (code is None) == (not everything):
        msg = "give a code, or --all"
        raise click.UsageError(msg)
    texts = _all_texts(markdown)
    if everything:
        click.echo("\n".join(texts.values()).rstrip("\n"))
        return OK
    wanted = str(code).upper()
    if wanted not in texts:
        near = difflib.get_close_matches(wanted, texts, 3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "python -m phases explain --all lists them"
        raise RefusedError((Problem(code="OPTION-CODE", where=str(code), what="no such code", remedy=remedy),))
    click.echo(texts[wanted].rstrip("\n"))
    return OK


def _all_texts(markdown: bool) -> dict[str, str]:
    items = {item.code: _item(item, phase.name, markdown) for phase in PHASES for item in phase.items}
    known = meanings()
    return items | {code: _error(code, known.get(code), places, markdown) for code, places in error_codes().items()}


def _item(item: CheckItem[object], phase: str, markdown: bool) -> str:
    head = f"## {item.code} {item.title}\n" if markdown else f"{item.code} {item.title}"
    facts = f"Phase {phase}, level {item.level}. Basis: {item.basis}. Source: {item.source}."
    return f"{head}\n{item.rule}\n{'' if not markdown else chr(10)}{facts}\n"


def _error(code: str, known: Meaning | None, places: tuple[Raised, ...], markdown: bool) -> str:
    """Meaning and remedy as in docs/errors.md, then where it is said and in which words."""
    lines = [f"## {code}\n" if markdown else code]
    if known is not None:
        lines += [
            known.meaning,
            *([""] if markdown else []),
            f"What to do: {known.remedy}",
            *([""] if markdown else []),
        ]
    for place in places:
        words = "; ".join(place.texts)
        said = f"said by {place.module}{': ' if words else ''}{words}"
        lines.append(f"- {said}" if markdown else f"  {said}")
    return "\n".join(lines) + "\n"
