"""What comes of a design file: the design, its arrays, the kernels that it needs; and its way between processes."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from presim.design import Design
from presim.design_io import design_from_json, design_to_json
from presim.iron.traced import Function, TracedKernel, function_of

Array = NDArray[Any]
ArgumentType = str | tuple[str, tuple[int, ...]]
DESIGN: Final = "design.json"
ARRAYS: Final = "arrays.npz"
REST: Final = "lowered.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A kernel in C++ that the design calls.

    Attributes:
        symbol: of the `extern "C"` function, and of its row in the design.
        object_file: that it is linked from.
        source_file: of an `ExternalFunction`, as the design file gives it.
        source_string: likewise.
        arg_types: in the order of the C parameters: (dtype, shape) of memory, or numpy's name of a number.
        include_dirs: of its compilation.
        compile_flags: likewise.
    """

    symbol: str
    object_file: str
    source_file: str | None = None
    source_string: str | None = None
    arg_types: tuple[ArgumentType, ...] = ()
    include_dirs: tuple[str, ...] = ()
    compile_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A design file, lowered.

    Attributes:
        design: a Worker has the name of its core function, with a number where several have the same; calls have
            pointers in C order as arguments and numbers in C order as scalars `s0`, `s1`, ...
        arrays: initial values by key, and host tensors that the tool adds.
        externals: kernels in C++.
        traced: kernels of plain Python in core functions.
        device: file of this project.
        columns: that the design's device class has.
        argument_types: (name, dtype, shape) of the host tensors, in the order of the sequence's parameters.
        output: what the file printed, its end.
    """

    design: Design
    arrays: Mapping[str, Array]
    externals: tuple[External, ...]
    traced: tuple[TracedKernel, ...]
    device: str
    columns: int
    argument_types: tuple[tuple[str, str, tuple[int, ...]], ...]
    output: str = field(default="", compare=False)

    def kernels(self, functions: Mapping[str, Function]) -> dict[str, Function]:
        """Every kernel of the design, given those in C++.

        Args:
            functions: by symbol, each called with the context and the arrays of the pointers.
        """
        return {**functions, **{k.symbol: function_of(k, functions) for k in self.traced}}


def write_lowered(lowered: Lowered, folder: Path) -> None:
    """Write to a folder, for another process."""
    (folder / DESIGN).write_bytes(design_to_json([lowered.design]))
    rest = {
        "externals": [_fields(e) for e in lowered.externals],
        "traced": [_fields(t) for t in lowered.traced],
        "device": lowered.device,
        "columns": lowered.columns,
        "argument_types": lowered.argument_types,
        "arrays": list(lowered.arrays),
    }
    (folder / REST).write_text(json.dumps(rest), encoding="utf-8")
    with zipfile.ZipFile(folder / ARRAYS, "w") as archive:
        for index, array in enumerate(lowered.arrays.values()):
            data = io.BytesIO()
            np.lib.format.write_array(data, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(f"a{index}.npy", data.getvalue())


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def read_lowered(folder: Path, where: str) -> Lowered:
    """Read what `write_lowered` wrote; `where` names the design file in refusals."""
    rest = json.loads((folder / REST).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS, allow_pickle=False) as archive:
        arrays = {key: archive[f"a{i}"] for i, key in enumerate(rest["arrays"])}
    return Lowered(
        design=design_from_json((folder / DESIGN).read_bytes(), where)[0],
        arrays=arrays,
        externals=tuple(_external(e) for e in rest["externals"]),
        traced=tuple(_traced(t) for t in rest["traced"]),
        device=rest["device"],
        columns=rest["columns"],
        argument_types=tuple((n, d, tuple(s)) for n, d, s in rest["argument_types"]),
    )


def _external(value: dict[str, Any]) -> External:
    types = tuple(t if isinstance(t, str) else (t[0], tuple(t[1])) for t in value["arg_types"])
    return External(
        **{
            **value,
            "arg_types": types,
            "include_dirs": tuple(value["include_dirs"]),
            "compile_flags": tuple(value["compile_flags"]),
        }
    )


def _traced(value: dict[str, Any]) -> TracedKernel:
    return TracedKernel(
        symbol=value["symbol"],
        parameters=tuple((d, tuple(s), w) for d, s, w in value["parameters"]),
        counters=tuple(value["counters"]),
        statements=tuple(value["statements"]),
    )
