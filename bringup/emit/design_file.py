"""design.py of one dispatch, or of a piece of it: IRON text from a design with packed shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bringup.emit.model import IRON_DEVICES, PROFILE
from bringup.emit.names import CORE, identifier
from bringup.emit.programs import Program, Scene, program_of
from bringup.emit.rows import Parts
from bringup.emit.sequence import Sequence, runtime_of, sequence_of
from bringup.emit.text import (
    call,
    comment,
    indented,
    listing,
    numbered,
    quoted,
    tile_name,
    tile_or_none,
    type_name,
    type_text,
)
from bringup.emit.wiring import Wired, literal_depths, wired
from bringup.kernels.model import Row, Source
from manifest.errors import Problem, RefusedError
from manifest.model import Manifest
from presim.design import Buffer, Call, Design, Tile
from presim.iron import api
from presim.steps import steps_of

MODULES: Mapping[str, str] = {
    "AnyMemTile": "aie.iron.device",
    "Buffer": "aie.iron",
    "CascadeFlow": "aie.iron",
    "Kernel": "aie.iron",
    "ObjectFifo": "aie.iron",
    "ObjectFifoEndpoint": "aie.iron.dataflow.endpoint",
    "ObjectFifoLink": "aie.iron.dataflow.objectfifo",
    "Program": "aie.iron",
    "Runtime": "aie.iron",
    "TaskGroup": "aie.iron",
    "TensorAccessPattern": "aie.helpers.taplib",
    "Tile": "aie.iron.device",
    "Worker": "aie.iron",
    "range_": "aie.iron.controlflow",
}
"""Where every name comes from."""

TABLE = f"names of IRON {PROFILE} (presim/iron/api-1.4.json)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignText:
    """What one design file is made of.

    Attributes:
        design: with packed shapes.
        manifest: that it was planned from.
        arch: of the device.
        rows: by kernel.
        sources: by kernel.
        files: path of the packed contents from the folder of the design file, by name of the buffer or fifo.
        title: what it is, in words.
        header: lines of comment with hashes.
    """

    design: Design
    manifest: Manifest
    arch: str
    rows: Mapping[str, Row]
    sources: Mapping[str, Source]
    files: Mapping[str, str]
    title: str
    header: tuple[str, ...]


def design_file(given: DesignText) -> str:
    """The text of design.py.

    Raises:
        RefusedError: what IRON 1.4 cannot say, all of it.
    """
    return _Writer(given).text()


class _Writer:
    """Puts the parts together; variables are numbered, names are the design's."""

    def __init__(self, given: DesignText) -> None:
        if given.design.device not in IRON_DEVICES:
            what, expected = "IRON 1.4 has no runtime for it", ", ".join(IRON_DEVICES)
            where = f"device {given.design.device!r}"
            raise RefusedError((Problem(code="EMIT-DEVICE", where=where, what=what, expected=expected),))
        self.given = given
        self.design, problems = literal_depths(given.design, given.arch)
        if problems:
            raise RefusedError(tuple(problems))
        self.parts = Parts(self.design, given.manifest, given.rows)
        self.buffers = numbered("buffer", (b.name for b in self.design.buffers))
        self.kernels = numbered("kernel", (k.name for k in self.design.kernels))
        self.workers = numbered("worker", (w.name for w in self.design.workers))
        self.types: set[tuple[str, tuple[int, ...]]] = set()
        self.names = {"Program", "Runtime"}
        self.check_names()

    def check_names(self) -> None:
        """No two parts of a device may be one symbol."""
        symbols = [(s.symbol, f"kernel {name!r}") for name, s in self.given.sources.items() if name in self.kernels]
        symbols += [(identifier(f.name), f"fifo {f.name!r}") for f in self.design.fifos]
        symbols += [(identifier(b.name), f"buffer {b.name!r}") for b in self.design.buffers]
        seen: dict[str, str] = {}
        for symbol, what in symbols:
            if seen.setdefault(symbol, what) != what:
                text = f"has the same symbol as {seen[symbol]}"
                raise RefusedError((Problem(code="EMIT-NAME", where=what, what=text, got=symbol),))

    def text(self) -> str:
        arrays = {
            f.init_array: self.loaded(f.name) for f in self.design.fifos if f.init_array and f.name in self.given.files
        }
        fifos = wired(self.design, arrays)
        scene = Scene(
            parts=self.parts,
            sources=self.given.sources,
            handles=fifos.handles,
            buffers=self.buffers,
            kernels=self.kernels,
        )
        programs = {w.name: program_of(w, scene) for w in self.design.workers}
        sequence = sequence_of(self.design, fifos.handles)
        self.names |= fifos.names | sequence.names
        self.types |= fifos.types | {(t.dtype, (t.elements,)) for t in sequence.tensors}
        body = self.body(fifos, programs, sequence)
        if any("range_(" in line for p in programs.values() for line in p.lines):
            self.names.add("range_")
        functions = [line for p in programs.values() for line in ("", "", *p.lines)]
        return "\n".join([*self.head(), *functions, "", "", *body, "", "", *self.main()]) + "\n"

    def check_api(self) -> None:
        """Only names that are rows of the API table are written."""
        rows, _ = api.load()
        wanted = [f"{MODULES[name]}.{name}" for name in sorted(self.names)]
        problems = [
            Problem(
                code="EMIT-API", where=f"dispatch {self.design.dispatch!r}", what=f"it needs {name}", expected=TABLE
            )
            for name in wanted
            if name not in rows
        ]
        if problems:
            raise RefusedError(tuple(problems))

    def head(self) -> list[str]:
        self.check_api()
        found: dict[str, list[str]] = {}
        for name in sorted(self.names):
            found.setdefault(MODULES[name], []).append(name)
        found.setdefault("aie.iron.device", []).append(IRON_DEVICES[self.design.device])
        lines = [comment(line) for line in self.given.header]
        lines += [
            f'"""{self.given.title}. Prints its MLIR: `python design.py [{self.design.device}]`; IRON {PROFILE}."""',
            "",
            "import sys",
        ]
        lines += ["from pathlib import Path"] if self.given.files else []
        lines += ["", "import numpy as np"]
        lines += [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(found.items())]
        lines += ["", f'DEVICE = "{self.design.device}"']
        if self.given.files:
            lines += ["HERE = Path(__file__).resolve().parent"]
        lines += ["", *(f"{type_name(*t)} = {type_text(*t)}" for t in sorted(self.types))]
        if self.given.files:
            load = "return np.load(HERE / path, allow_pickle=False)"
            lines += ["", "", "def stored(path):", *indented(['"""An array of the generated folder."""', load])]
        return lines

    def loaded(self, name: str) -> str:
        return f"stored({quoted(self.given.files[name])})"

    def body(self, fifos: Wired, programs: Mapping[str, Program], sequence: Sequence) -> list[str]:
        lines = [*self.tiles(), *fifos.lines, *self.kernel_lines()]
        used = {a for p in programs.values() for a in p.arguments}
        for buffer in self.design.buffers:
            if self.buffers[buffer.name] in used:
                lines += self.buffer(buffer)
        for worker in self.design.workers:
            self.names.add("Worker")
            made = call(
                "Worker",
                core_fn=CORE + identifier(worker.name),
                fn_args=listing(programs[worker.name].arguments),
                tile=tile_or_none(worker.tile),
                while_true=str(worker.while_true),
                stack_size=str(worker.stack_bytes),
            )
            lines.append(f"{self.workers[worker.name]} = {made}")
        for cascade in self.design.cascades:
            self.names.add("CascadeFlow")
            lines.append(call("CascadeFlow", src=self.workers[cascade.source], dst=self.workers[cascade.target]))
        lines += ["", *sequence.lines, "", f"runtime = {runtime_of(sequence)}"]
        device = f"{IRON_DEVICES[self.design.device]}()"
        workers = listing(self.workers[w.name] for w in self.design.workers)
        made = call("Program", device=device, rt="runtime", workers=workers)
        lines.append(f"return {made}.resolve_program()")
        return ["def design():", *indented(['"""The module of this design."""', *lines])]

    def tiles(self) -> list[str]:
        found: set[Tile | None] = {w.tile for w in self.design.workers} | {b.tile for b in self.design.buffers}
        found |= {link.tile for link in self.design.links}
        for fifo in self.design.fifos:
            ends = [e for e in (fifo.producer, *fifo.consumers) if e.kind == "shim"]
            linked = any(fifo.name in link.targets for link in self.design.links)
            ends += [fifo.producer] if fifo.producer.kind == "mem" and not linked else []
            found |= {e.tile for e in ends}
        placed = sorted(t for t in found if t is not None)
        self.names |= {"Tile"} if placed else set()
        return [f"{tile_name(t)} = {call('Tile', col=str(t.column), row=str(t.row))}" for t in placed]

    def kernel_lines(self) -> list[str]:
        lines = []
        for kernel in self.design.kernels:
            if kernel.name not in self.given.sources:
                continue
            self.names.add("Kernel")
            source, row = self.given.sources[kernel.name], self.given.rows[kernel.name]
            planned = {p.name: p for p in row.parameters}
            types = []
            for parameter in source.parameters:
                is_object = parameter.role in {"object_in", "object_out"}
                form = planned[parameter.name] if is_object else parameter
                self.types.add((form.dtype, form.shape))
                types.append(type_name(form.dtype, form.shape))
            types += ["np.int32"] * len(source.scalars)
            made = call(
                "Kernel",
                name=quoted(source.symbol),
                object_file_name=quoted(f"{source.symbol}.o"),
                arg_types=listing(types),
            )
            lines += [comment(f"kernel {kernel.name!r}"), f"{self.kernels[kernel.name]} = {made}"]
        return lines

    def buffer(self, buffer: Buffer) -> list[str]:
        self.names.add("Buffer")
        self.types.add((buffer.dtype, buffer.shape))
        made = call(
            "Buffer",
            type=type_name(buffer.dtype, buffer.shape),
            initial_value=self.loaded(buffer.name) if buffer.array is not None else None,
            name=quoted(identifier(buffer.name)),
            tile=tile_or_none(self.home(buffer)),
        )
        return [comment(f"buffer {buffer.name!r}"), f"{self.buffers[buffer.name]} = {made}"]

    def home(self, buffer: Buffer) -> Tile | None:
        """Where a buffer is said to be: its tile, or the first user's where several workers use it."""
        users = [
            worker.tile
            for worker in self.design.workers
            if any(
                a.kind == "buffer" and a.name == buffer.name
                for step in steps_of(worker.program)
                if isinstance(step, Call)
                for a in step.arguments
            )
        ]
        return buffer.tile or (users[0] if len(users) > 1 else None)

    def main(self) -> list[str]:
        refusal = 'f"design.py: expected device {DEVICE}, got {given}; remedy: plan the model for that device"'
        body = [
            '"""Print the module; another device than the one that it was planned for is refused."""',
            'given = " ".join(sys.argv[1:]) or DEVICE',
            "if given != DEVICE:",
            *indented([f"sys.exit({refusal})"]),
            "print(design())",
        ]
        return ["def main():", *indented(body), "", "", 'if __name__ == "__main__":', *indented(["main()"])]


def of_piece(whole: Design, piece: Design) -> Design:
    """A piece with the packed shapes of the whole that it was cut from."""
    buffers = {b.name: b for b in whole.buffers}
    fifos = {f.name: f for f in whole.fifos}
    return replace(
        piece,
        buffers=tuple(
            replace(b, shape=buffers[b.name].shape, dtype=buffers[b.name].dtype) if b.name in buffers else b
            for b in piece.buffers
        ),
        fifos=tuple(
            replace(f, shape=fifos[f.name].shape, dtype=fifos[f.name].dtype) if f.name in fifos else f
            for f in piece.fifos
        ),
    )
