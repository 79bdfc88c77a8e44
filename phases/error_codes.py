"""The error codes of the whole tool: what each one means, and the texts at the places that say it.

Meanings and remedies are the rows of `docs/errors.md`, which a check holds against the source: no code without a row.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from phases.docs import CODE, NOT_CODES, PACKAGES, rows

FIELDS: Final = ("what", "expected", "got", "remedy", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """One place that says a code: module and its texts."""

    module: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A row of `docs/errors.md`: what a code means and what to do about it, as plain text."""

    meaning: str
    remedy: str


@cache
def meanings() -> dict[str, Meaning]:
    """The rows of `docs/errors.md` by code."""
    text = (Path(__file__).resolve().parent / "errors.md").read_text(encoding="utf-8")
    return {code: Meaning(meaning=_plain(meaning), remedy=_plain(remedy)) for code, meaning, remedy in rows(text)}


def _plain(cell: str) -> str:
    """A cell of a Markdown table as a person reads it."""
    return cell.replace("\\|", "|").replace("*Note*:", "Note:").strip()


@cache
def error_codes() -> dict[str, tuple[Raised, ...]]:
    """Every code with the places that say it, codes sorted."""
    found: dict[str, list[Raised]] = {}
    root = Path(__file__).resolve().parent.parent
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            for code, raised in _scan(ast.parse(path.read_text(encoding="utf-8")), module):
                places = found.setdefault(code, [])
                if raised not in places:
                    places.append(raised)
    return {code: tuple(found[code]) for code in sorted(found)}


def _scan(tree: ast.Module, module: str) -> Iterator[tuple[str, Raised]]:
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.Module):
            values = _assigned(scope) if isinstance(scope, ast.FunctionDef) else {}
            for code, beside in _codes(scope):
                texts = tuple(dict.fromkeys(_texts(beside, values)))
                yield code, Raised(module=module, texts=texts)


def _codes(scope: ast.FunctionDef | ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """(code, the call or tuple that it stands in) of a scope, without the functions inside it."""
    stack: list[tuple[ast.AST, ast.AST]] = [(node, node) for node in scope.body]
    while stack:
        node, beside = stack.pop()
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.Constant) and _is_code(node.value):
            yield str(node.value), beside
        if isinstance(node, ast.Call | ast.Tuple):
            beside = node
        stack += [(child, beside) for child in ast.iter_child_nodes(node)]


def _is_code(value: object) -> bool:
    return isinstance(value, str) and CODE.fullmatch(value) is not None and value not in NOT_CODES


def _assigned(scope: ast.FunctionDef) -> dict[str, ast.expr]:
    """The last text given to each local name."""
    values: dict[str, ast.expr] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name):
                values[target.id] = value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = zip(target.elts, value.elts, strict=True)
                values |= {name.id: part for name, part in pairs if isinstance(name, ast.Name)}
    return values


def _texts(node: ast.AST, values: dict[str, ast.expr]) -> Iterator[str]:
    """The words beside a code: plain and formatted strings, with `...` for what is filled in."""
    named: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.Tuple):
        named = [("", part) for part in node.elts]
    elif isinstance(node, ast.Call):
        named = [*(("", part) for part in node.args), *((k.arg or "", k.value) for k in node.keywords)]
    for name, part in named:
        if name and name not in FIELDS:
            continue
        text = _text(values.get(part.id, part) if isinstance(part, ast.Name) else part)
        if text and " " in text.strip() and not _is_code(text):
            yield f"{name}: {text}" if name not in ("", "what", "text") else text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "..." for v in node.values)
        return "".join(str(part) for part in parts)
    return ""
