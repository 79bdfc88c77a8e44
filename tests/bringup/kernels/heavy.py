"""Compiles emitted convolutions and products into one sanitized program and holds them against the simulator's kernels.

Beside what `emitted` does: cascades (what one call puts on it the next one may read), accumulators that outlive a call,
weights that come as objects of a stream.
"""

import io
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from bringup.execute.abi import C_TYPES
from bringup.kernels import KERNELS
from bringup.kernels.elementwise import ROUNDINGS
from bringup.kernels.model import Parameter, Row, Source
from presim.kernels import KERNELS as SIMULATED
from tests.bringup.kernels.emitted import ARCHES, FLAGS, HOST, SATURATIONS, WARNINGS, copy_headers
from tests.presim.kernels.driver import Cascade, Tile

Array = NDArray[Any]
SCALARS: Final = {"conv": ("pad_top", "pad_bottom", "out_offset"), "gemm": ("out_offset",), "gemm_rows": ("row",)}
CONSTANTS: Final = ("weights", "bias", "requant", "constant")
MMUL: Final = {
    "aie2": (("int8", "int8", (4, 8, 8)), ("int8", "int8", (2, 8, 8)), ("int16", "int8", (2, 8, 8))),
    "aie2p": (("int8", "int8", (8, 8, 8)), ("int8", "int8", (4, 8, 8)), ("int16", "int8", (4, 8, 8))),
}


@dataclass(kw_only=True)
class Call:
    """One call of a kernel.

    Attributes:
        kernel: number of the row.
        arrays: planned, by name: objects, constants, outputs as they were before.
        scalars: by name.
        slots: accumulators, by name of the parameter: those of the same number are the same memory.
        reads_cascade: takes what the call in front put there.
        modes: of the tile before the call.
        object_number: of the stream that the weights are.
    """

    kernel: int
    arrays: dict[str, Array]
    scalars: Mapping[str, int] = field(default_factory=dict)
    slots: Mapping[str, int] = field(default_factory=dict)
    reads_cascade: bool = False
    modes: tuple[str, str] = ("floor", "none")
    object_number: int = -1


def simulated(rows: Sequence[Row], calls: Sequence[Call]) -> list[list[Array]]:
    """What the simulator's kernels write into objects, for every call."""
    found: list[list[Array]] = []
    kept: dict[int, Array] = {}
    wire: Array | None = None
    for call in calls:
        row = rows[call.kernel]
        for p in row.parameters:
            if p.role == "acc":
                given = call.arrays.get(p.name, np.full(p.shape, 77, p.dtype))
                kept.setdefault(call.slots[p.name], np.array(given))
        out = Cascade()
        arguments = list(_arguments(row, call, kept, wire, out))
        tile = Tile(
            attributes=row.attributes,
            scalars=call.scalars,
            rounding=row.rounding or call.modes[0],
            saturation=row.saturation or call.modes[1],
        )
        SIMULATED[row.type](tile, *arguments)
        wire = out.block
        found.append([a for a, p in zip(arguments, _held(row, call), strict=True) if p.role == "object_out"])
    return found


def _held(row: Row, call: Call) -> list[Parameter]:
    """Parameters that the simulator's kernel is given: rows outside the image are none."""
    if row.type != "conv":
        return list(row.parameters)
    rows = [p for p in row.parameters if p.role == "object_in"]
    held = rows[call.scalars["pad_top"] : len(rows) - call.scalars["pad_bottom"]]
    return [p for p in row.parameters if p.role != "object_in" or p in held]


def _arguments(row: Row, call: Call, kept: Mapping[int, Array], wire: Array | None, out: Cascade) -> Any:
    for p in _held(row, call):
        if p.role == "acc":
            yield kept[call.slots[p.name]]
        elif p.role == "cascade_in":
            assert wire is not None
            yield wire
        elif p.role == "cascade_out":
            yield out
        elif p.role == "weights" and call.object_number >= 0:
            yield call.arrays[p.name][call.object_number]
        else:
            yield np.array(call.arrays[p.name])


def compiled(
    rows: Sequence[Row], calls: Sequence[Call], folder: Path, *, edits: Sequence[tuple[str, str]] = ()
) -> list[list[Array]]:
    """What the compiled kernels write into objects, for every call; `edits` change headers (mutants)."""
    return run(rows, build(rows, folder, edits=edits), calls, folder)


def build(rows: Sequence[Row], folder: Path, *, edits: Sequence[tuple[str, str]] = ()) -> list[Source]:
    """One program of all kernels; sanitized unless headers are edited."""
    sources = [KERNELS[row.type].source(row) for row in rows]
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    copy_headers(folder, edits)
    headers = sorted({header for source in sources for header in source.headers})
    texts = [_boxed(source, number) for number, source in enumerate(sources)]
    includes = [f'#include "{header}"' for header in headers]
    (folder / "program.cc").write_text("\n".join([*includes, *texts, program(sources)]))
    flags = ["-O0" if f == "-O1" else f for f in (*FLAGS, *WARNINGS)] if not edits else ["-std=c++20", "-O0"]
    command = [compiler, *flags, f"-DAIE_HOST_ARCH={ARCHES[rows[0].arch]}", "-I", str(HOST / "include")]
    command += ["-I", str(folder), str(folder / "program.cc"), str(HOST / "aie_host_runtime.cc")]
    done = subprocess.run([*command, "-o", str(folder / "program")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return sources


def _boxed(source: Source, number: int) -> str:
    """The text in a namespace of its own, so that several fit into one file."""
    lines = [line for line in source.text.splitlines() if not line.startswith("#include")]
    text = "\n".join(lines).replace(f"void {source.symbol}(", f"void kernel_{number}(")
    return f"namespace box_{number} {{\n{text}\n}}"


def program(sources: Sequence[Source]) -> str:
    """Reads calls from standard input and writes all arrays as they are afterwards."""
    cases = []
    for number, source in enumerate(sources):
        pointers = [f"reinterpret_cast<{C_TYPES[p.dtype][0]} *>(a[{i}])" for i, p in enumerate(source.parameters)]
        scalars = [f"s[{i}]" for i in range(len(source.scalars))]
        cases.append(f"case {number}: box_{number}::kernel_{number}({', '.join(pointers + scalars)}); break;")
    roundings = ", ".join(f"aie::rounding_mode::{name}" for name in ROUNDINGS.values())
    saturations = ", ".join(f"aie::saturation_mode::{name}" for name in SATURATIONS)
    return PROGRAM.format(roundings=roundings, saturations=saturations, cases="\n".join(cases))


PROGRAM: Final = """
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

extern "C" {{
void aie_host_cascade_set_input(const std::uint8_t *data, std::size_t bytes);
std::size_t aie_host_cascade_take_output(std::uint8_t *out, std::size_t capacity);
std::size_t aie_host_cascade_unread(void);
}}

static const aie::rounding_mode roundings[] = {{{roundings}}};
static const aie::saturation_mode saturations[] = {{{saturations}}};

template <typename T> static bool take(T *to, std::size_t count) {{
  return std::fread(to, sizeof(T), count, stdin) == count;
}}

static unsigned char *block_of(std::size_t bytes) {{
  void *block = nullptr;
  if (posix_memalign(&block, 64, bytes)) std::abort();
  return static_cast<unsigned char *>(block);
}}

int main() {{
  std::int32_t head[6];
  std::map<std::int64_t, unsigned char *> kept;
  std::vector<std::uint8_t> wire;
  while (take(head, 6)) {{
    std::vector<std::int32_t> s(head[3]);
    std::vector<std::int64_t> sizes(2 * head[4]);
    std::vector<unsigned char *> a(head[4]);
    take(s.data(), s.size());
    take(sizes.data(), sizes.size());
    for (std::size_t i = 0; i < a.size(); ++i) {{
      const std::int64_t slot = sizes[2 * i + 1];
      const bool known = slot >= 0 && kept.count(slot) != 0;
      a[i] = known ? kept[slot] : block_of(sizes[2 * i]);
      if (slot >= 0) kept[slot] = a[i];
      std::vector<unsigned char> given(sizes[2 * i]);
      take(given.data(), given.size());
      if (!known) std::memcpy(a[i], given.data(), given.size());
    }}
    aie::set_rounding(roundings[head[1]]);
    aie::set_saturation(saturations[head[2]]);
    if (head[5]) aie_host_cascade_set_input(wire.data(), wire.size());
    switch (head[0]) {{
{cases}
    }}
    if (head[5] && aie_host_cascade_unread()) return 3;
    wire.assign(1 << 20, 0);
    wire.resize(aie_host_cascade_take_output(wire.data(), wire.size()));
    for (std::size_t i = 0; i < a.size(); ++i) {{
      std::fwrite(a[i], 1, sizes[2 * i], stdout);
      if (sizes[2 * i + 1] < 0) std::free(a[i]);
    }}
  }}
  for (auto &entry : kept) std::free(entry.second);
  return 0;
}}
"""


def run(rows: Sequence[Row], sources: Sequence[Source], calls: Sequence[Call], folder: Path) -> list[list[Array]]:
    """Objects that the built program writes; what is only read has to be as it was."""
    given = [_packed(rows[c.kernel], sources[c.kernel], c) for c in calls]
    blob = bytearray()
    for call, arrays in zip(calls, given, strict=True):
        source = sources[call.kernel]
        modes = [list(ROUNDINGS).index(call.modes[0]), SATURATIONS.index(call.modes[1])]
        scalars = [call.scalars.get(n, 0) for n in source.scalars]
        head = [call.kernel, *modes, len(scalars), len(arrays), int(call.reads_cascade), *scalars]
        sizes = [(a.nbytes, call.slots.get(p.name, -1)) for a, p in zip(arrays, source.parameters, strict=True)]
        blob += np.array(head, np.int32).tobytes() + np.array(sizes, np.int64).tobytes()
        blob += b"".join(a.tobytes() for a in arrays)
    done = subprocess.run([str(folder / "program")], input=bytes(blob), capture_output=True, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr.decode()[:4000]}"
    stream = io.BytesIO(done.stdout)
    return [_taken(sources[c.kernel], arrays, stream) for c, arrays in zip(calls, given, strict=True)]


def _packed(row: Row, source: Source, call: Call) -> list[Array]:
    """Arrays as the code reads them."""
    constants = {p.name: call.arrays[p.name] for p in row.parameters if p.role in CONSTANTS}
    made = KERNELS[row.type].pack(row, constants)
    assert set(made) == set(constants)
    arrays = []
    for p in source.parameters:
        value = made.get(p.name, call.arrays.get(p.name))
        if p.role == "acc":
            planned, value = value, np.full(p.shape, 77, p.dtype)
            if planned is not None:
                value[: planned.size] = planned
        assert value is not None
        if p.role == "weights" and call.object_number >= 0:
            value = value[call.object_number]
        assert (value.dtype.name, value.shape) == (p.dtype, p.shape), (p, value.dtype, value.shape)
        arrays.append(np.ascontiguousarray(value))
    return arrays


def _taken(source: Source, arrays: Sequence[Array], stream: io.BytesIO) -> list[Array]:
    found = []
    for p, before in zip(source.parameters, arrays, strict=True):
        after = np.frombuffer(stream.read(before.nbytes), before.dtype).reshape(before.shape)
        if p.role == "object_out":
            found.append(after)
        elif not p.writes and p.role != "acc":
            np.testing.assert_array_equal(after, before, err_msg=f"{p.name} is only read")
    return found


class Book:
    """Kernels of several tests in one program, which is built at the first call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[Row] = []
        self.sources: list[Source] = []

    def add(self, rows: Sequence[Row]) -> int:
        """Kernels under names of their own; returns the number of the first one."""
        assert not self.sources
        first = len(self.rows)
        self.rows += [renamed(row, first + i) for i, row in enumerate(rows)]
        return first

    def check(self, calls: Sequence[Call]) -> list[list[Array]]:
        """What the calls write, in the program and in the simulator alike."""
        self.sources = self.sources or build(self.rows, self.folder)
        got, wanted = run(self.rows, self.sources, calls, self.folder), simulated(self.rows, calls)
        assert differing(got, wanted) == [0] * len(calls)
        return wanted


def shifted(calls: Sequence[Call], first: int) -> list[Call]:
    """Calls of kernels that are numbered from `first` on."""
    return [replace(c, kernel=c.kernel + first) for c in calls]


def differing(got: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> list[int]:
    """Elements that differ, for every call."""
    counts = []
    for gs, ws in zip(got, wanted, strict=True):
        assert [(g.shape, g.dtype) for g in gs] == [(w.shape, w.dtype) for w in ws]
        counts.append(sum(int((g != w).sum()) for g, w in zip(gs, ws, strict=True)))
    return counts


def renamed(row: Row, number: int) -> Row:
    """The row under a name of its own."""
    return replace(row, name=f"{row.type}_{number}")
