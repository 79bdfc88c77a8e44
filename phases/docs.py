"""`python -m phases.docs --check | --write`: the documents that are made from the source, and whether they are fresh.

Why generated: a hand-kept table of ops, devices or items is wrong one change later, and nobody notices.
"""

import ast
import dataclasses
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from checklists.items.words import counted
from checklists.model import CheckItem
from manifest.device import DEVICES, Device, load_device
from manifest.opset import OPSET, YES, OpRow
from phases import cli
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.pipeline import PHASES

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("phases", "checklists", "optimize", "bringup", "presim", "oracle", "manifest")
HEADER: Final = "<!-- Made by `python -m phases.docs --write`; edit the source and run it again. -->\n\n"
CODE: Final = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
NOT_CODES: Final = frozenset({"UTF-8", "YYYY-MM-DD"})
ERRORS_ROW: Final = re.compile(r"^\| `([A-Z0-9-]+)` \| (\S.*?) (?<!\\)\| (\S.*) \|$", re.MULTILINE)


def checklists_md() -> str:
    """Every checklist item, from its docstring."""
    lines = ["# Checklists", "", "What each gate asks. `python -m phases explain CODE` prints one item.", ""]
    for phase in PHASES:
        if phase.items:
            lines += [f"## {phase.name.capitalize()}: {phase.question}", ""]
            lines += [line for item in phase.items for line in _item_lines(item)]
    return HEADER + "\n".join(lines).rstrip() + "\n"


def coverage_ops_md() -> str:
    """What each layer does with every known op."""
    lines = [
        "# Ops",
        "",
        "What each layer does with an ONNX op: `yes`, or why not. An op that is not listed is refused by name.",
        "",
        "| op | importer | oracle | presim | bring-up | types of activations | `--host-ops` | what to do |",
        "|---|---|---|---|---|---|---|---|",
        *(_op_row(key, row) for key, row in sorted(OPSET.items(), key=_by_name)),
    ]
    return HEADER + "\n".join(lines) + "\n"


def devices_md() -> str:
    """Every figure of every device, with its source."""
    devices = [load_device(name) for name in DEVICES]
    lines = [
        "# Devices",
        "",
        "Figures are quoted from the sources below each table; `unknown` was not found in any.",
        "",
    ]
    lines += [f"- `{d.name}`: {d.title} ({d.arch})" for d in devices]
    lines += ["", f"| figure | {' | '.join(d.name for d in devices)} |", "|---" * (len(devices) + 1) + "|"]
    tables = [dict(_figures(device)) for device in devices]
    names = list(dict.fromkeys(name for table in tables for name in table))
    for name in names:
        cells = (table[name][0] if name in table else "unknown" for table in tables)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for device, table in zip(devices, tables, strict=True):
        lines += ["", f"## Sources of `{device.name}`", ""]
        lines += [f"- {_cell(source)}: {', '.join(figures)}" for source, figures in _by_source(table).items()]
    return HEADER + "\n".join(lines) + "\n"


def generated() -> dict[str, str]:
    """Text of every generated document by its path in the project."""
    return {
        "docs/checklists.md": checklists_md(),
        "docs/coverage-ops.md": coverage_ops_md(),
        "docs/devices.md": devices_md(),
    }


def problem_codes(root: Path) -> dict[str, str]:
    """Code of every problem or note that the source can raise -> the first file that has it."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                value = node.value if isinstance(node, ast.Constant) else None
                if isinstance(value, str) and CODE.fullmatch(value) and value not in NOT_CODES:
                    found.setdefault(value, path.relative_to(root).as_posix())
    return found


def error_faults(root: Path) -> list[str]:
    """Codes without a row in `docs/errors.md`, rows without a code in the source, and rows twice."""
    path = root / "docs" / "errors.md"
    listed = [code for code, _, _ in rows(path.read_text(encoding="utf-8"))] if path.is_file() else []
    codes = problem_codes(root)
    faults = [f"docs/errors.md: no row for {code} ({codes[code]})" for code in sorted(set(codes) - set(listed))]
    faults += [f"docs/errors.md: {code} is nowhere in the source" for code in sorted(set(listed) - set(codes))]
    return faults + [f"docs/errors.md: {code} has two rows" for code in sorted(set(listed)) if listed.count(code) > 1]


def rows(text: str) -> list[tuple[str, str, str]]:
    """Code, meaning and what to do of every row of `docs/errors.md`, as written."""
    return ERRORS_ROW.findall(text)


def stale(root: Path) -> list[str]:
    """Generated documents that are not what the source gives."""
    return [
        f"{name}: stale: run `python -m phases.docs --write`"
        for name, text in generated().items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]


@click.command()
@click.option("--check/--write", required=True, help="Say what is stale (exit 1), or write the documents.")
def command(check: bool) -> int:
    """Check or write the documents that are made from the source."""
    if not check:
        for name, text in generated().items():
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
    faults = stale(ROOT) + error_faults(ROOT)
    for fault in faults:
        click.echo(fault)
    click.echo(f"{counted(len(generated()), 'document')}, {counted(len(faults), 'fault')}")
    return GATE_NOT_PASSED if faults else OK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return cli.main(command, arguments, "python -m phases.docs")


def _item_lines(item: CheckItem[Any]) -> list[str]:
    about = f"Source: {item.source}. Figures: {item.basis}. Level: {item.level}."
    return [f"### {item.code} {item.title}", "", item.rule, "", about, ""]


def _by_name(entry: tuple[str, OpRow]) -> tuple[str, str]:
    domain, name = entry[0].rsplit(":", 1)
    return name.lower(), domain


def _op_row(key: str, row: OpRow) -> str:
    domain, name = key.rsplit(":", 1)
    op = f"{name} ({domain})" if domain else name
    layers = (row.importer, row.oracle, row.presim, row.bringup)
    told = [x if x == YES or x not in layers[:n] else "same" for n, x in enumerate(layers)]
    cells = (op, *told, ", ".join(row.dtypes) or "none", "yes" if row.host else "no", row.remedy)
    return f"| {' | '.join(map(_cell, cells))} |"


def _figures(device: Device) -> Iterator[tuple[str, tuple[str, str]]]:
    """(name, (value in words, source)) of every figure of a device."""
    for field in dataclasses.fields(device):
        value = getattr(device, field.name)
        if hasattr(value, "source"):
            yield field.name, (_value(value.value), value.source)
    for pair, shapes in device.mmul.items():
        yield f"mmul {pair}", (_value(shapes.value), shapes.source)


def _value(value: object) -> str:
    if value is None:
        return "unknown"
    if not isinstance(value, tuple):
        return str(value)
    return ", ".join("x".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value)


def _by_source(table: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Source -> names of the figures that come from it."""
    found: dict[str, list[str]] = {}
    for name, (_, source) in table.items():
        found.setdefault(source, []).append(name)
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
