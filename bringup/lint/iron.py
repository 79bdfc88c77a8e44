"""Rules on design files: what they import and call, depths, windows, splits, host transfers, declared weights."""

import ast
import io
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from bringup.lint.design import (
    DesignFile,
    Made,
    array_form,
    call_name,
    dtype_name,
    elements,
    form_of,
    keyword,
    list_names,
    literal,
    names_in,
    receiver,
)
from presim.iron import api

Found = Iterator[tuple[int, str]]
"""(line, text)."""

PACKAGES: Final = frozenset({"aie", "numpy"})
POSITIONAL: Final[Mapping[str, int]] = {"acquire": 1, "release": 1, "fill": 1, "drain": 1, "range_": 1}
"""Arguments without a keyword that documented designs write so, and that have no other meaning in any version."""

METHODS: Final[Mapping[str, str]] = {
    "prod": "aie.iron.ObjectFifo.prod",
    "cons": "aie.iron.ObjectFifo.cons",
    "set_iter_count": "aie.iron.ObjectFifo.set_iter_count",
    "acquire": "aie.iron.ObjectFifoHandle.acquire",
    "release": "aie.iron.ObjectFifoHandle.release",
    "fill": "aie.iron.ObjectFifoHandle.fill",
    "drain": "aie.iron.ObjectFifoHandle.drain",
    "split": "aie.iron.ObjectFifoHandle.split",
    "join": "aie.iron.ObjectFifoHandle.join",
    "forward": "aie.iron.ObjectFifoHandle.forward",
    "finish": "aie.iron.TaskGroup.finish",
    "resolve_program": "aie.iron.Program.resolve_program",
}
WIDEST_AIE2: Final = 32
WIDEST_AIE2P: Final = 64
"""Bytes of the widest vector access (aie_api, detail/ld_st.hpp; Xilinx/mlir-aie 2579, 3662)."""
QUEUE: Final = 4
"""Tasks that the queue of a host channel takes (AM020; mlir-aie PR 3734)."""

MAX_TURNS: Final = 1 << 16


def imported(file: DesignFile) -> dict[str, str]:
    """Dotted name of everything that is imported from `aie`, by the name that it has in the file."""
    found: dict[str, str] = {}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aie":
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or a.name: a.name for a in node.names if a.name.split(".")[0] == "aie"}
    return found


def imports(file: DesignFile) -> Found:
    """Only IRON, numpy and the standard library: the file has to run where this tool is not."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or "." * node.level]
        elif isinstance(node, ast.Import):
            modules = [a.name for a in node.names]
        else:
            continue
        for module in modules:
            root = module.split(".")[0]
            if root not in PACKAGES and root not in sys.stdlib_module_names:
                yield node.lineno, f"imports {module}"


def names(file: DesignFile) -> Found:
    """Every name of IRON is one of 1.4 (presim/iron/api-1.4.json)."""
    rows, _ = api.load()
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aie":
            for alias in node.names:
                if f"{node.module}.{alias.name}" not in rows:
                    yield node.lineno, f"{node.module}.{alias.name} is no name of IRON 1.4"
    for call in _calls(file.tree):
        method = _method(call)
        if method is not None and method not in rows:
            yield call.lineno, f"{method} is no name of IRON 1.4"


def keywords(file: DesignFile) -> Found:
    """IRON is called with keywords alone, and with those that 1.4 has: orders differ between its versions."""
    rows, _ = api.load()
    known = imported(file)
    for call in _calls(file.tree):
        name = call_name(call)
        row = known.get(name) if isinstance(call.func, ast.Name) else _method(call)
        if row is None or row not in rows:
            continue
        if len(call.args) > POSITIONAL.get(name, 0):
            yield call.lineno, f"{name}: {len(call.args)} arguments without a keyword"
        accepted = {p.name for p in rows[row].parameters}
        for given in call.keywords:
            if given.arg not in accepted and rows[row].parameters:
                yield call.lineno, f"{name}: {given.arg} is no keyword of IRON 1.4"


def _method(call: ast.Call) -> str | None:
    """Row of a method of IRON; None = of something else, such as `join` of a text."""
    if not isinstance(call.func, ast.Attribute) or isinstance(call.func.value, ast.Constant):
        return None
    return METHODS.get(call.func.attr)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.Call))


def depths(file: DesignFile) -> Found:
    """No worker acquires or releases more objects than the depth of its end."""
    for worker in file.made("Worker"):
        function, bound = _bound(file, worker)
        for call in _calls(function) if function is not None else ():
            handle = file.handles.get(bound.get(receiver(call) or "", ""))
            count = literal(call.args[0]) if call.args else None
            depth = handle.depth if handle is not None and call_name(call) in {"acquire", "release"} else None
            if depth is not None and isinstance(count, int) and count > depth:
                yield call.lineno, f"{call_name(call)} of {count} objects at an end of depth {depth}"


def _bound(file: DesignFile, worker: Made) -> tuple[ast.FunctionDef | None, dict[str, str]]:
    """The function of a worker, and the variable that each of its parameters stands for."""
    named = keyword(worker.call, "core_fn")
    function = file.functions.get(named.id) if isinstance(named, ast.Name) else None
    if function is None:
        return None, {}
    given = list_names(keyword(worker.call, "fn_args"))
    return function, dict(zip((a.arg for a in function.args.args), given, strict=False))


def balance(file: DesignFile) -> Found:
    """A worker holds nothing when its program ends and gives back nothing that it does not hold."""
    for worker in file.made("Worker"):
        function, _ = _bound(file, worker)
        if function is None:
            continue
        held: dict[str, int] = {}
        turns = [0]
        for line, text in _walk(function.body, held, turns):
            yield line, f"{function.name}: {text}"
        for name, count in held.items():
            if count:
                yield function.lineno, f"{function.name}: {count} objects of {name} are held at its end"


def _walk(body: list[ast.stmt], held: dict[str, int], turns: list[int]) -> Found:
    """Run the acquires and releases of a body; loops until nothing changes from turn to turn."""
    for node in body:
        if isinstance(node, ast.For):
            for _ in range(_turns(node)):
                before = dict(held)
                yield from _walk(node.body, held, turns)
                turns[0] += 1
                if held == before or turns[0] > MAX_TURNS:
                    break
            continue
        for call in _calls(node):
            name, count = receiver(call), literal(call.args[0]) if call.args else None
            if name is None or not isinstance(count, int):
                continue
            if call_name(call) == "acquire":
                held[name] = max(held.get(name, 0), count)
            elif call_name(call) == "release":
                if count > held.get(name, 0):
                    yield call.lineno, f"{count} objects of {name} are given back and {held.get(name, 0)} are held"
                held[name] = max(0, held.get(name, 0) - count)


def _turns(loop: ast.For) -> int:
    count = literal(loop.iter.args[0]) if isinstance(loop.iter, ast.Call) and loop.iter.args else None
    return count if isinstance(count, int) else 1


def splits(file: DesignFile) -> Found:
    """The parts of a split or join follow one another and cover the object: what they leave out is lost silently."""
    for made in file.calls:
        name = call_name(made.call)
        if name not in {"split", "join"}:
            continue
        handle = file.handles.get(receiver(made.call) or "")
        whole = file.forms.get(handle.fifo) if handle is not None else None
        offsets, types = literal(keyword(made.call, "offsets")), keyword(made.call, "obj_types")
        if whole is None or not isinstance(offsets, list) or not isinstance(types, ast.List):
            continue
        at = 0
        for offset, element in zip(offsets, types.elts, strict=False):
            form = form_of(element, file)
            if offset != at:
                yield made.call.lineno, f"{name}: a part begins at {offset}, expected {at}"
            at = offset + (elements(form) if form is not None else 0)
        if at != elements(whole):
            yield made.call.lineno, f"{name}: the parts end at {at} of {elements(whole)} elements"


def words(file: DesignFile) -> Found:
    """Objects are whole words of 4 bytes, the least that a DMA moves."""
    for variable, (dtype, shape) in file.forms.items():
        size = elements((dtype, shape)) * np.dtype(dtype).itemsize
        if size % 4:
            line = next((m.call.lineno for m in file.calls if variable in m.variable.split(",")), 0)
            yield line, f"objects of {size} bytes, no multiple of 4"


def stacks(file: DesignFile) -> Found:
    """Stacks are whole vectors: buffers come behind them, and a vector access elsewhere reads other bytes."""
    devices = {alias.name for node in ast.walk(file.tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    whole = WIDEST_AIE2P if any(name.startswith("NPU2") for name in devices) else WIDEST_AIE2
    for made in file.made("Worker"):
        size = literal(keyword(made.call, "stack_size"))
        if isinstance(size, int) and size % whole:
            yield made.call.lineno, f"{made.variable}: a stack of {size} bytes, no multiple of {whole}"


def filled(file: DesignFile) -> Found:
    """Every end that the host has is filled or drained: cores wait for ever on what nobody fills."""
    used = {name for _, name, _ in _transfers(file)}
    users = {n for m in file.calls for n in names_in(keyword(m.call, "fn_args")) if call_name(m.call) == "Worker"}
    linked = {receiver(m.call) or "" for m in file.calls if call_name(m.call) in {"split", "join", "forward"}}
    linked |= {n for c in _calls(file.tree) if call_name(c) == "ObjectFifoLink" for n in names_in(c)}
    static = set(_with_endpoint(file))
    for variable, handle in file.handles.items():
        if variable in used | users | linked | static:
            continue
        what = "nothing fills it" if handle.producer else "nothing takes from it"
        yield handle.line, f"{variable}: neither a worker, a link nor the sequence has this end: {what}"


def _with_endpoint(file: DesignFile) -> Iterator[str]:
    """Handles that are given their endpoint by hand: memory tiles that only hold values."""
    for node in ast.walk(file.tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                yield target.value.id


def _transfers(file: DesignFile) -> Iterator[tuple[ast.Call, str, str]]:
    """(call, variable of the handle, fill or drain) of the sequence, handles as the design calls them."""
    function = file.functions.get("sequence")
    runtime = next(file.made("Runtime"), None)
    if function is None or runtime is None:
        return
    given = list_names(keyword(runtime.call, "fn_args"))
    bound = dict(zip((a.arg for a in function.args.args), given, strict=False))
    for call in _calls(function):
        if call_name(call) in {"fill", "drain"}:
            yield call, bound.get(receiver(call) or "", ""), call_name(call)


def drained(file: DesignFile) -> Found:
    """The host waits for every drain, or for a later one of the same end."""
    drains = [(call, handle) for call, handle, verb in _transfers(file) if verb == "drain"]
    for index, (call, handle) in enumerate(drains):
        if not any(_waits(later) for later, other in drains[index:] if other == handle):
            yield call.lineno, f"drain of {handle} that nothing waits for"


def queued(file: DesignFile) -> Found:
    """No end of the host has more tasks outstanding than its queue takes: the next one is dropped without an error."""
    runtime = next(file.made("Runtime"), None)
    function = file.functions.get("sequence")
    if function is None or runtime is None:
        return
    order = [c for c in sorted(_calls(function), key=lambda c: (c.lineno, c.col_offset))]
    ends = {id(call): handle for call, handle, _ in _transfers(file)}
    outstanding: dict[str, list[ast.Call]] = {}
    for call in order:
        if id(call) in ends:
            tasks = outstanding.setdefault(ends[id(call)], [])
            tasks.append(call)
            if len(tasks) == QUEUE + 1:
                yield call.lineno, f"{ends[id(call)]}: {len(tasks)} tasks are outstanding and the queue takes {QUEUE}"
        elif call_name(call) == "finish":
            _retire(outstanding, receiver(call))


def _retire(outstanding: dict[str, list[ast.Call]], group: str | None) -> None:
    """Finishing a group retires its awaited tasks and what was queued in front of them."""
    for tasks in outstanding.values():
        waited = [i for i, t in enumerate(tasks) if _waits(t) and names_in(keyword(t, "group")) == [group]]
        if waited:
            del tasks[: waited[-1] + 1]


def _waits(call: ast.Call) -> bool:
    return literal(keyword(call, "wait")) is True


def weights(file: DesignFile, folder: str, files: Mapping[str, bytes]) -> Found:
    """Stored arrays have the type that the buffer or fifo declares."""
    for made in file.calls:
        name = call_name(made.call)
        declared = form_of(keyword(made.call, "type" if name == "Buffer" else "obj_type"), file)
        node = keyword(made.call, "initial_value" if name == "Buffer" else "init_values")
        for call in _calls(node) if node is not None and declared is not None else ():
            path = literal(call.args[0]) if call.args and call_name(call) == "stored" else None
            if not isinstance(path, str):
                continue
            full = resolved(folder, path)
            if full not in files:
                yield call.lineno, f"{path}: there is no such file"
                continue
            found = stored_form(files[full])
            if found is None or declared is None:
                yield call.lineno, f"{path}: it is no array"
                continue
            shape = found[1] if name == "Buffer" else found[1][1:]
            if (found[0], shape) != declared:
                yield call.lineno, f"{path}: {found[0]} {shape}, declared {declared[0]} {declared[1]}"


def resolved(folder: str, path: str) -> str:
    """A relative path from a folder of the generated files."""
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def stored_form(data: bytes) -> tuple[str, tuple[int, ...]] | None:
    """(dtype, shape) of a stored array, from its header."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except ValueError:
        return None
    return dtype.name, tuple(int(n) for n in shape)


def kernel_arguments(file: DesignFile) -> Iterator[tuple[int, str, tuple[tuple[str, bool], ...]]]:
    """(line, symbol, (dtype, is an array) of each argument) of every kernel that is declared."""
    for made in file.made("Kernel"):
        symbol, types = literal(keyword(made.call, "name")), keyword(made.call, "arg_types")
        if not isinstance(symbol, str) or not isinstance(types, ast.List):
            continue
        found = []
        for element in types.elts:
            form = form_of(element, file) or array_form(element)
            found.append((form[0], True) if form is not None else (dtype_name(element), False))
        yield made.call.lineno, symbol, tuple(found)
