"""Compiles emitted kernels into one sanitized program, calls them, and holds them against the simulator's kernels.

Why a program and no library: AddressSanitizer then needs no preloading, and every argument of a call is a block of its
own and of exactly its size.
"""

import io
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bringup.execute.abi import C_TYPES
from bringup.kernels.elementwise import ROUNDINGS
from bringup.kernels.model import KernelModule, Parameter, Role, Row, Source
from presim.design import AttributeValue
from presim.kernels import KERNELS as SIMULATED
from tests.presim.kernels.driver import Tile

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[3]
INCLUDE = ROOT / "bringup" / "kernels" / "include"
HOST = ROOT / "bringup" / "aie_api_host"
FLAGS = ("-std=c++20", "-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-ffp-contract=off")
WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
)
ARCHES = {"aie2": "20", "aie2p": "21"}
SATURATIONS = ("none", "saturate", "symmetric")
CONSTANTS = ("weights", "bias", "requant", "lut", "constant")
WINDOWED = ("max_pool", "average_pool")
SCALARS = {
    "max_pool": ("pad_top", "pad_bottom"),
    "average_pool": ("pad_top", "pad_bottom"),
    "global_average_pool": ("row",),
    "add": ("row",),
    "mul": ("row",),
    "concat": ("row",),
}


def parameter(name: str, role: Role, array: Array, *, writes: bool = False) -> Parameter:
    """A parameter as planned, of an array of its shape."""
    return Parameter(name=name, role=role, dtype=array.dtype.name, shape=array.shape, writes=writes)


@dataclass(kw_only=True)
class Call:
    """One call: arrays in the order of the row's parameters, planned form; outputs hold what was there before."""

    arrays: list[Array]
    scalars: Mapping[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class Case:
    """A kernel and its calls; `modes` of the tile before the first one."""

    module: KernelModule
    row: Row
    calls: list[Call]
    modes: tuple[str, str] = ("floor", "none")
    edit: tuple[str, str] | None = None
    """Replacement in the emitted text or in a header (mutants)."""


def make_row(
    kind: str, attributes: Mapping[str, AttributeValue], parameters: Sequence[Parameter], **changes: Any
) -> Row:
    """A row of a type."""
    fields: dict[str, Any] = {
        "name": f"{kind}_0",
        "op": "op",
        "type": kind,
        "attributes": attributes,
        "rounding": "conv_even",
        "saturation": "saturate",
        "arch": "aie2",
        "mmul": (),
        "parameters": tuple(parameters),
        "scalars": SCALARS.get(kind, ()),
    }
    return Row(**{**fields, **changes})


def simulated(case: Case) -> list[list[Array]]:
    """What the simulator's kernel writes, for every call: the written arrays."""
    found = []
    row = case.row
    for call in case.calls:
        arrays = [np.array(a) for a in call.arrays]
        modes = [row.rounding or case.modes[0], row.saturation or case.modes[1]]
        tile = Tile(attributes=row.attributes, scalars=call.scalars, rounding=modes[0], saturation=modes[1])
        arguments = list(arrays)
        if row.type in WINDOWED:
            rows = [i for i, p in enumerate(row.parameters) if p.role == "object_in"]
            held = rows[call.scalars["pad_top"] : len(rows) - call.scalars["pad_bottom"]]
            arguments = [arrays[i] for i in held] + arrays[len(rows) :]
        SIMULATED[row.type](tile, *arguments)
        found.append([a for a, p in zip(arrays, row.parameters, strict=True) if p.writes])
    return found


def compiled(cases: Sequence[Case], folder: Path, *, arch: str = "aie2") -> list[list[list[Array]]]:
    """What the compiled kernels write, for every case and call: the written arrays, planned shapes."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    sources = [named(case, number) for number, case in enumerate(cases)]
    texts = [own_names(source) for source in sources]
    edits = []
    for number, (case, text) in enumerate(zip(cases, texts, strict=True)):
        if case.edit is not None and case.edit[0] in text:
            texts[number] = text.replace(*case.edit)
        elif case.edit is not None:
            edits.append(case.edit)
    copy_headers(folder, edits)
    (folder / "program.cc").write_text("\n".join(['#include "aie_api/aie.hpp"', *texts, program(sources)]))
    command = [compiler, *FLAGS, *WARNINGS, f"-DAIE_HOST_ARCH={ARCHES[arch]}", "-I", str(HOST / "include")]
    command += ["-I", str(folder), str(folder / "program.cc"), str(HOST / "aie_host_runtime.cc")]
    done = subprocess.run([*command, "-o", str(folder / "program")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return answers(cases, sources, folder)


def copy_headers(folder: Path, edits: Sequence[tuple[str, str]]) -> None:
    """The headers, with replacements that have to find something."""
    shutil.copytree(INCLUDE, folder, dirs_exist_ok=True)
    for old, new in edits:
        found = [path for path in folder.glob("*.h") if old in path.read_text()]
        assert found, f"nothing to edit: {old}"
        for path in found:
            path.write_text(path.read_text().replace(old, new))


def named(case: Case, number: int) -> Source:
    """The source under a name of its own."""
    fields = {name: getattr(case.row, name) for name in Row.__slots__}
    return case.module.source(Row(**{**fields, "name": f"{case.row.type}_{number}"}))


def own_names(source: Source) -> str:
    """The text with structs of its own name, so that several fit into one file."""
    return re.sub(r"\bK(\d*)\b", rf"K\1_{source.symbol}", source.text)


def program(sources: Sequence[Source]) -> str:
    """Reads calls from standard input and writes all arrays as they are afterwards."""
    cases = []
    for number, source in enumerate(sources):
        pointers = [f"reinterpret_cast<{C_TYPES[p.dtype][0]} *>(a[{i}])" for i, p in enumerate(source.parameters)]
        scalars = [f"s[{i}]" for i in range(len(source.scalars))]
        cases.append(f"case {number}: {source.symbol}({', '.join(pointers + scalars)}); break;")
    roundings = ", ".join(f"aie::rounding_mode::{name}" for name in ROUNDINGS.values())
    saturations = ", ".join(f"aie::saturation_mode::{name}" for name in SATURATIONS)
    return PROGRAM.format(roundings=roundings, saturations=saturations, cases="\n".join(cases))


PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <vector>

static const aie::rounding_mode roundings[] = {{{roundings}}};
static const aie::saturation_mode saturations[] = {{{saturations}}};

template <typename T> static bool take(T *to, std::size_t count) {{
  return std::fread(to, sizeof(T), count, stdin) == count;
}}

int main() {{
  std::int32_t head[5];
  while (take(head, 5)) {{
    std::vector<std::int32_t> s(head[3]);
    std::vector<std::int64_t> sizes(head[4]);
    std::vector<unsigned char *> a(head[4]);
    take(s.data(), s.size());
    take(sizes.data(), sizes.size());
    for (std::size_t i = 0; i < a.size(); ++i) {{
      void *block = nullptr;
      if (posix_memalign(&block, 64, sizes[i])) return 1;
      a[i] = static_cast<unsigned char *>(block);
      take(a[i], sizes[i]);
    }}
    aie::set_rounding(roundings[head[1]]);
    aie::set_saturation(saturations[head[2]]);
    switch (head[0]) {{
{cases}
    }}
    for (std::size_t i = 0; i < a.size(); ++i) {{
      std::fwrite(a[i], 1, sizes[i], stdout);
      std::free(a[i]);
    }}
  }}
  return 0;
}}
"""


def answers(cases: Sequence[Case], sources: Sequence[Source], folder: Path) -> list[list[list[Array]]]:
    """Arrays that are written; the others have to be as they were."""
    given: list[list[list[Array]]] = []
    blob = bytearray()
    for number, (case, source) in enumerate(zip(cases, sources, strict=True)):
        given.append([])
        for call in case.calls:
            arrays = packed(case, source, call)
            modes = [list(ROUNDINGS).index(case.modes[0]), SATURATIONS.index(case.modes[1])]
            head = [number, *modes, len(source.scalars), len(arrays), *(call.scalars[n] for n in source.scalars)]
            blob += np.array(head, np.int32).tobytes()
            blob += np.array([a.nbytes for a in arrays], np.int64).tobytes()
            blob += b"".join(a.tobytes() for a in arrays)
            given[-1].append(arrays)
    done = subprocess.run([str(folder / "program")], input=bytes(blob), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:4000]
    assert len(done.stdout) == sum(a.nbytes for calls in given for arrays in calls for a in arrays)
    stream = io.BytesIO(done.stdout)
    return [[taken(source, arrays, stream) for arrays in calls] for source, calls in zip(sources, given, strict=True)]


def packed(case: Case, source: Source, call: Call) -> list[Array]:
    """Arrays as the code reads them."""
    row = case.row
    constants = {p.name: a for p, a in zip(row.parameters, call.arrays, strict=True) if p.role in CONSTANTS}
    made = case.module.pack(row, constants)
    assert set(made) == set(constants)
    arrays = []
    for planned, array, parameter in zip(row.parameters, call.arrays, source.parameters, strict=True):
        assert planned.name == parameter.name
        value = made.get(planned.name, array)
        assert (value.dtype.name, value.shape) == (parameter.dtype, parameter.shape), parameter
        arrays.append(np.ascontiguousarray(value))
    return arrays


def taken(source: Source, arrays: Sequence[Array], stream: io.BytesIO) -> list[Array]:
    """The next call's arrays that are written."""
    found = []
    for parameter, before in zip(source.parameters, arrays, strict=True):
        after = np.frombuffer(stream.read(before.nbytes), before.dtype).reshape(before.shape)
        if parameter.writes:
            found.append(after)
        else:
            np.testing.assert_array_equal(after, before, err_msg=f"{parameter.name} is only read")
    return found


def fewer(found: dict[str, Case], arch: str) -> dict[str, Case]:
    """All cases for the first architecture, every third for another: the code is the same."""
    return found if arch == "aie2" else dict(list(found.items())[::3])


def differences(cases: Sequence[Case], folder: Path, *, arch: str = "aie2") -> list[int]:
    """Elements that differ between compiled and simulated kernels, for every case."""
    got = compiled(cases, folder, arch=arch)
    counts = []
    for case, calls in zip(cases, got, strict=True):
        wanted = simulated(case)
        pairs = [(g, w) for gs, ws in zip(calls, wanted, strict=True) for g, w in zip(gs, ws, strict=True)]
        assert pairs
        assert all(g.shape == w.shape and g.dtype == w.dtype for g, w in pairs)
        counts.append(sum(int((g != w).sum()) for g, w in pairs))
    return counts
