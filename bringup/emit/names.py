"""Names of a design as identifiers, and back.

Why: ONNX names hold slashes, dots and colons; a symbol in MLIR, a linker script and Python takes none of them. The way
back is needed to hold a lowered design against the planned one.
"""

import builtins
import hashlib
import keyword
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from presim.design import Argument, Buffer, Call, Design, Endpoint, Fifo, Loop, Release, Step, Worker

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_]|_(?=u)")
_ESCAPE: Final = re.compile(r"_u([0-9a-f]+)_")
_TAKEN: Final = frozenset(keyword.kwlist) | frozenset(dir(builtins))

CORE: Final = "core_"
"""In front of a worker's name, that of its function in design.py."""

FOLDER_CHARACTERS: Final = 48


def identifier(name: str) -> str:
    """A Python identifier for a name of any characters; `original` gives the name back.

    What an identifier cannot hold becomes `_u<hexadecimal>_`, so `a/b` is `a_u2f_b`; letters, digits and underscores
    stay, except where that would read as such a code, and a first character that makes it no name of its own.
    """
    text = _FOREIGN.sub(lambda found: _code(found.group()), name)
    if text and (text[0].isdigit() or text in _TAKEN):
        return _code(text[0]) + text[1:]
    return text


def original(text: str) -> str:
    """The name that `identifier` was given."""
    return _ESCAPE.sub(lambda found: chr(int(found.group(1), 16)), text)


def _code(character: str) -> str:
    return f"_u{ord(character):x}_"


def folder_name(name: str) -> str:
    """A short folder name, unique by a hash where it is not the name itself."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    if plain == name and 0 < len(plain) <= FOLDER_CHARACTERS:
        return plain
    return f"{plain[:FOLDER_CHARACTERS]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def emitted_names(design: Design) -> Design:
    """A design under the names that design.py gives its parts."""
    return _renamed(design, identifier)


def planned_names(design: Design) -> Design:
    """A lowered design under the names of the planned one; workers may be named as their functions are."""
    return _renamed(design, lambda name: original(name.removeprefix(CORE)))


def _renamed(design: Design, new: Callable[[str], str]) -> Design:
    return replace(
        design,
        workers=tuple(_worker(w, new) for w in design.workers),
        fifos=tuple(_fifo(f, new) for f in design.fifos),
        links=tuple(
            replace(k, sources=tuple(map(new, k.sources)), targets=tuple(map(new, k.targets))) for k in design.links
        ),
        buffers=tuple(_buffer(b, new) for b in design.buffers),
        cascades=tuple(replace(c, source=new(c.source), target=new(c.target)) for c in design.cascades),
        sequence=tuple(replace(t, fifo=new(t.fifo), tensor=new(t.tensor)) for t in design.sequence),
    )


def _worker(worker: Worker, new: Callable[[str], str]) -> Worker:
    return replace(worker, name=new(worker.name), program=tuple(_step(s, new) for s in worker.program))


def _step(step: Step, new: Callable[[str], str]) -> Step:
    if isinstance(step, Loop):
        return replace(step, body=tuple(_step(s, new) for s in step.body))
    if isinstance(step, Call):
        return replace(step, arguments=tuple(_argument(a, new) for a in step.arguments))
    if isinstance(step, Release):
        return replace(step, fifo=new(step.fifo))
    return replace(step, fifo=new(step.fifo))


def _argument(argument: Argument, new: Callable[[str], str]) -> Argument:
    return replace(argument, name=new(argument.name)) if argument.name else argument


def _fifo(fifo: Fifo, new: Callable[[str], str]) -> Fifo:
    ends = tuple(_end(c, new) for c in fifo.consumers)
    return replace(fifo, name=new(fifo.name), producer=_end(fifo.producer, new), consumers=ends)


def _end(end: Endpoint, new: Callable[[str], str]) -> Endpoint:
    return replace(end, actor=new(end.actor)) if end.kind == "worker" else end


def _buffer(buffer: Buffer, new: Callable[[str], str]) -> Buffer:
    return replace(buffer, name=new(buffer.name))
