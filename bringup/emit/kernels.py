"""Kernel sources of a design, its constants as they read them, and the design with these packed shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

import bringup.kernels
from bringup.emit.rows import Parts, Use, row_of, window_arguments
from bringup.kernels.model import KernelModule, Parameter, Row, Source
from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.model import Manifest
from presim.design import Argument, Design

Array = NDArray[Any]
INCLUDE: Final = Path(bringup.kernels.__file__).resolve().parent / "include"


@dataclass(slots=True)
class Kernels:
    """What a design calls.

    Attributes:
        rows: by name of the kernel.
        sources: by name of the kernel.
        design: with the packed shapes of buffers and of fifos with weights.
        packed: contents as the kernels read them, by name of the buffer or fifo.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    design: Design | None = None
    packed: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Form:
    """Shape and dtype that a buffer or a fifo with weights has in the emitted design."""

    shape: tuple[int, ...]
    dtype: str


def kernels_of(
    design: Design,
    manifest: Manifest,
    device: Device,
    constants: Mapping[str, Array],
    modules: Mapping[str, KernelModule],
) -> Kernels:
    """Emit the kernels of a design and pack its constants.

    Args:
        design: as planned.
        manifest: says which fifos carry weights.
        device: of the port.
        constants: planned arrays by key.
        modules: emitters by type.

    Raises:
        RefusedError: every kernel that cannot be emitted.
    """
    out = Kernels()
    parts = Parts(design, manifest)
    problems: list[Problem] = []
    for kernel in design.kernels:
        if next(parts.uses(kernel.name), None) is None:
            continue
        try:
            out.rows[kernel.name] = row = row_of(kernel, parts, device)
            out.sources[kernel.name] = _module(row, modules).source(row)
        except RefusedError as error:
            problems += error.problems
    if problems:
        raise RefusedError(tuple(problems))
    packer = _Packer(out, parts, constants)
    for name, row in out.rows.items():
        for use in parts.uses(name):
            packer.bind(row, use, _module(row, modules))
    out.design = _with_forms(design, packer.forms)
    return out


def _module(row: Row, modules: Mapping[str, KernelModule]) -> KernelModule:
    if row.type not in modules:
        where, what = f"kernel {row.name!r}", f"no emitter for kernels of type {row.type!r}"
        raise RefusedError((Problem(code="EMIT-KERNEL", where=where, what=what, expected=", ".join(modules)),))
    return modules[row.type]


def bindings(row: Row, use: Use, parts: Parts) -> list[tuple[Parameter, Argument]]:
    """Parameters with the argument that stands for each; rows of a window are left out."""
    arguments = list(use.call.arguments)
    parameters = list(row.parameters)
    if parameters and parameters[0].name == "row0":
        arguments = arguments[len(window_arguments(use, parts)) :]
        parameters = [p for p in parameters if not p.name.startswith("row")]
    return list(zip(parameters, arguments, strict=True))


class _Packer:
    """Packs what calls read; what several calls read has to come out the same."""

    def __init__(self, out: Kernels, parts: Parts, constants: Mapping[str, Array]) -> None:
        self.out = out
        self.parts = parts
        self.constants = constants
        self.forms: dict[str, Form] = {}
        self.done: set[tuple[str, tuple[tuple[str, str], ...]]] = set()

    def bind(self, row: Row, use: Use, module: KernelModule) -> None:
        """Pack the constants of one call."""
        bound = {p.name: a for p, a in bindings(row, use, self.parts)}
        keys = {name: _key(argument, self.parts) for name, argument in bound.items()}
        arrays = {name: key for name, key in keys.items() if key is not None}
        mark = row.name, tuple(sorted((n, a.name) for n, a in bound.items()))
        if mark in self.done:
            return
        self.done.add(mark)
        packed = module.pack(row, {name: self.constants[key] for name, key in arrays.items()}) if arrays else {}
        for parameter in self.out.sources[row.name].parameters:
            argument = bound.get(parameter.name)
            if argument is None or parameter.role in {"object_in", "object_out"}:
                continue
            form = Form(parameter.shape, parameter.dtype)
            if self.forms.setdefault(argument.name, form) != form:
                raise _differs(argument.name, row)
            if parameter.name in arrays:
                self.keep(argument, packed[parameter.name], form, row)

    def keep(self, argument: Argument, array: Array, form: Form, row: Row) -> None:
        """Keep packed contents; of a fifo all its objects."""
        shape = array.shape[1:] if argument.kind == "fifo" else array.shape
        if shape != form.shape or array.dtype.name != form.dtype:
            msg = f"{row.name}: {argument.name}: declared {form.dtype} {form.shape}, packed {array.dtype} {array.shape}"
            raise ValueError(msg)
        old = self.out.packed.setdefault(argument.name, array)
        if old.tobytes() != array.tobytes():
            raise _differs(argument.name, row)


def _differs(name: str, row: Row) -> RefusedError:
    what = f"kernel {row.name!r} reads it in another layout than a kernel before"
    return RefusedError((Problem(code="EMIT-BUFFER", where=f"buffer {name!r}", what=what),))


def _key(argument: Argument, parts: Parts) -> str | None:
    """Key of the planned contents; None = none, or no constant."""
    if argument.kind == "buffer":
        return parts.buffer(argument.name).array
    if argument.kind != "fifo":
        return None
    fifo = parts.fifo(argument.name)
    if not parts.is_constant(fifo):
        return None
    if fifo.init_array is None:
        what = "weights that the host fills are not packed for the kernel that reads them"
        remedy = "keep them in a buffer or in a memory tile"
        raise RefusedError((Problem(code="EMIT-WEIGHTS", where=f"fifo {fifo.name!r}", what=what, remedy=remedy),))
    return fifo.init_array


def _with_forms(design: Design, forms: Mapping[str, Form]) -> Design:
    buffers = tuple(
        replace(b, shape=forms[b.name].shape, dtype=forms[b.name].dtype) if b.name in forms else b
        for b in design.buffers
    )
    fifos = tuple(
        replace(f, shape=forms[f.name].shape, dtype=forms[f.name].dtype) if f.name in forms else f for f in design.fifos
    )
    return replace(design, buffers=buffers, fifos=fifos)
