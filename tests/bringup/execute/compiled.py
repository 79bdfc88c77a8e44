"""Small designs run with C++ that a test writes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bringup.execute import ExternalAbi, HostResult, HostTask, Library, PointerAbi, Runner, ScalarAbi, build
from bringup.execute.abi import Access
from presim.design import Design
from tests.presim.sketches import Array, Sketch, acquire, call, loop, release

HEAD = "#include <cstdint>\n"


def pointer(name: str, elements: int = 4, *, dtype: str = "int32", access: Access = "in") -> PointerAbi:
    return PointerAbi(dtype=dtype, elements=elements, access=access, name=name)


def move_abi(**changes: Any) -> ExternalAbi:
    """`move(x, y)` on vectors of 4 int32."""
    own: dict[str, Any] = {
        "symbol": "move",
        "parameters": (pointer("x"), pointer("y", access="out")),
        **changes,
    }
    return ExternalAbi(**own)


def move_design(objects: int = 4, *, scalar: bool = False) -> Design:
    """`x` through one worker `w` with a kernel `move` into `y`."""
    s = Sketch()
    step = call("move", "x", "y", **({"row": "@i"} if scalar else {}))
    body = (acquire("x"), acquire("y"), step, release("x"), release("y"))
    s.fifo("x", "shim0", "w").worker("w", loop(objects, *body, counter="i")).fifo("y", "w", "shim9")
    return s.fill("x", objects).drain("y", objects).design()


def source(body: str, *, signature: str = "std::int32_t *__restrict x, std::int32_t *__restrict y") -> dict[str, bytes]:
    return {"kernels/move.cc": f'{HEAD}extern "C" void move({signature}) {{\n{body}\n}}\n'.encode()}


def compiled(
    out: Path, sources: Mapping[str, bytes], *externals: ExternalAbi, api: Path | None = None, **rest: Any
) -> Library:
    return build(sources, externals or (move_abi(),), out, api=api, **rest)


def rows(count: int = 3, objects: int = 4) -> list[Array]:
    return [np.arange(objects * 4, dtype=np.int32).reshape(objects, 4) + 100 * i + 1 for i in range(count)]


def move_task(name: str = "move", *, offset: int = 0, design: Design | None = None, **changes: Any) -> HostTask:
    """A task whose kernel has to add `offset`."""
    given = rows()
    own: dict[str, Any] = {
        "name": name,
        "design": design or move_design(),
        "inputs": [{"x": x} for x in given],
        "outputs": [{"y": x + offset} for x in given],
        "fifos": [{"y": x + offset} for x in given],
        **changes,
    }
    return HostTask(**own)


def run_body(runner: Runner, out: Path, body: str, **changes: Any) -> HostResult:
    return runner.run(move_task(**changes), compiled(out, source(body)))


def scalars(*dtypes: str) -> Sequence[ScalarAbi]:
    return tuple(ScalarAbi(dtype=d, name=f"s{i}") for i, d in enumerate(dtypes))
