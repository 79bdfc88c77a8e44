"""Changes of generated files: each takes sound ones and gives some with a fault in them."""

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.emit import EmitInput
from bringup.emit.emit import npy_bytes
from manifest.io import canonical_json, sha256_hex

Array = NDArray[Any]
Files = dict[str, bytes]
Emitted = Callable[[Files], Files]
Given = Callable[[EmitInput], EmitInput]
Change = Callable[[Array], Array]
INDEX: Final = "generated.json"
_STORED: Final = re.compile(r"# (?:buffer|fifo) '(?P<name>[^']+)'\n[^\n]*stored\(\"(?P<path>[^\"]+)\"\)")


class EditError(AssertionError):
    """The edit does not fit the files: what it changes is not there."""


def sealed(before: Mapping[str, bytes], after: Files) -> Files:
    """The changed files with an index that knows their hashes, as if they had been emitted so.

    Raises:
        EditError: nothing was changed.
    """
    if dict(before) == after:
        msg = "the edit changes nothing"
        raise EditError(msg)
    index = json.loads(after[INDEX])
    index["files"] = {name: sha256_hex(after[name]) for name in index["files"] if name in after}
    return {**after, INDEX: canonical_json(index)}


def kernel(part: str, *pairs: tuple[str, str]) -> Emitted:
    """Other text in the one kernel source that has `part` in its name."""

    def edit(files: Files) -> Files:
        name = _one(part, [n for n in files if n.startswith("kernels/") and n.endswith(".cc")])
        text = files[name].decode()
        for old, new in pairs:
            text = _replaced(text, old, new, name)
        return {**files, name: text.encode()}

    return edit


def header(name: str, old: str, new: str) -> Emitted:
    """Other text everywhere in a header."""

    def edit(files: Files) -> Files:
        path = f"kernels/{name}"
        text = files.get(path, b"").decode()
        _replaced(text, old, new, path)
        return {**files, path: text.replace(old, new).encode()}

    return edit


def call(part: str, code: str, *, given: tuple[str, str] = ("", ""), behind: str = "") -> Emitted:
    """Code in front of and behind the call of a kernel's template, which is given another argument."""

    def edit(files: Files) -> Files:
        name = _one(part, [n for n in files if n.startswith("kernels/") and n.endswith(".cc")])
        lines = files[name].decode().split("\n")
        at = next(i for i, line in enumerate(lines) if line.startswith("    port::"))
        if given[0]:
            head, _, arguments = lines[at].partition("(")
            lines[at] = f"{head}({_replaced(arguments, *given, name)}"
        made = [*lines[:at], *([code] if code else []), lines[at], *([behind] if behind else []), *lines[at + 1 :]]
        return {**files, name: "\n".join(made).encode()}

    return edit


def design(old: str, new: str, *, where: str = "") -> Emitted:
    """Other text in every design file that has it, or in those with `where` in their path."""

    def edit(files: Files) -> Files:
        names = [n for n in files if n.endswith("design.py") and where in n and old in files[n].decode()]
        if not names:
            msg = f"no design file has {old!r}"
            raise EditError(msg)
        return {**files, **{n: files[n].decode().replace(old, new).encode() for n in names}}

    return edit


def program(old: str, new: str, *, function: str, where: str = "") -> Emitted:
    """Other text, `old` being a pattern, in the function of one worker, in every design file that has the worker."""

    def edit(files: Files) -> Files:
        made = {}
        for name, data in files.items():
            text = data.decode() if name.endswith("design.py") and where in name else ""
            head, found, rest = text.partition(f"def core_{function}(")
            if found:
                body, end, tail = rest.partition("\n\n\n")
                made[name] = (head + found + re.sub(old, new, body, count=1) + end + tail).encode()
        if not made:
            msg = f"no design file has a worker {function!r}"
            raise EditError(msg)
        return {**files, **made}

    return edit


def packed(buffer: str, change: Change) -> Emitted:
    """Other content of the `.npy` that a buffer starts with."""

    def edit(files: Files) -> Files:
        name = path_of(files, buffer)
        array = np.load(io.BytesIO(files[name]), allow_pickle=False)
        return {**files, name: npy_bytes(change(array.copy()))}

    return edit


def taken(buffer: str, other: str) -> Emitted:
    """The packed content of another buffer."""
    return lambda files: {**files, path_of(files, buffer): files[path_of(files, other)]}


def path_of(files: Mapping[str, bytes], buffer: str) -> str:
    """The `.npy` of a buffer of the first dispatch."""
    found = {m["name"]: m["path"] for m in _STORED.finditer(files["d0/design.py"].decode())}
    if buffer not in found:
        msg = f"no stored buffer {buffer!r}, there are {', '.join(found)}"
        raise EditError(msg)
    return f"d0/{found[buffer]}"


def golden(change: Change, *, part: str = "0_y") -> Emitted:
    """Another golden array."""

    def edit(files: Files) -> Files:
        name = _one(part, [n for n in files if "/golden/" in n])
        array = np.load(io.BytesIO(files[name]), allow_pickle=False)
        return {**files, name: npy_bytes(change(array.copy()))}

    return edit


def constants(key: str, change: Change) -> Given:
    """Other planned constants than the manifest's go into the packing."""

    def edit(given: EmitInput) -> EmitInput:
        first, *_ = given.constants
        arrays = given.constants[first]
        if key not in arrays:
            msg = f"no constants {key!r}, there are {', '.join(arrays)}"
            raise EditError(msg)
        made = {**arrays, key: change(arrays[key].copy())}
        return replace(given, constants={**given.constants, first: made})

    return edit


def on_disk(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Another content of the one file with `name` in its path, after it was written."""

    def edit(root: Path) -> None:
        files = [p for p in sorted(root.rglob("*")) if p.is_file()]
        path = root / _one(name, [p.relative_to(root).as_posix() for p in files])
        path.write_bytes(change(path.read_bytes()))

    return edit


def _one(part: str, names: list[str]) -> str:
    found = [n for n in names if part in n]
    if len(found) != 1:
        msg = f"{len(found)} of {', '.join(names)} have {part!r}, expected one"
        raise EditError(msg)
    return found[0]


def _replaced(text: str, old: str, new: str, where: str) -> str:
    if old not in text:
        msg = f"{where} does not have {old!r}"
        raise EditError(msg)
    return text.replace(old, new, 1)
