"""Rules on the folder as a whole: hashes."""

import re
from collections.abc import Iterator
from typing import Final

from bringup.lint.model import INDEX, Folder
from manifest.io import sha256_hex

_SHA: Final = re.compile(r"\b(manifest|design) sha256 ([0-9a-f]{64})\b")
_TEXTS: Final = (".cc", ".h", ".py", ".md", "Makefile")


def hashes(folder: Folder) -> Iterator[tuple[str, int, str]]:
    """(file, line, text): files are those that `generated.json` lists, made for its manifest and design."""
    index = folder.index()
    if not index:
        yield INDEX, 0, "it is missing or no JSON object"
        return
    listed = index.get("files", {})
    for name in sorted(folder.files):
        if name == INDEX:
            continue
        if name not in listed:
            yield name, 0, "generated.json does not list it"
        elif sha256_hex(folder.files[name]) != listed[name]:
            yield name, 0, "it was changed since it was generated"
        if name.endswith(_TEXTS):
            yield from _header(folder, name)
    for name in sorted(set(listed) - set(folder.files)):
        yield name, 0, "generated.json lists it and it is missing"


def _header(folder: Folder, name: str) -> Iterator[tuple[str, int, str]]:
    index = folder.index()
    found = dict(_SHA.findall(folder.text(name)[:2000]))
    for what in ("manifest", "design"):
        if found.get(what) != index.get(f"{what}_sha256"):
            got = found.get(what, "none")
            yield name, 1, f"its header names {what} {got}, generated.json {index.get(f'{what}_sha256')}"
