"""Elementwise kernels, pools and layouts of planned models: compiled, equal to the simulator's on random objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bringup.emit.rows import Parts, row_of
from bringup.kernels import KERNELS
from bringup.kernels.elementwise import by_role
from bringup.kernels.model import Row
from manifest.device import Device, load_device
from manifest.model import Manifest
from presim.design import Design
from presim.packing import pack_constants
from presim.steps import steps_of
from tests.bringup.kernels.emitted import Call, Case, differences
from tests.bringup.kernels.objects import Array, codes, poisoned
from tests.presim.plan.harness import plan_of
from tests.presim.plan.models import FIVE, real

PRODUCTS = ("conv", "gemm", "gemm_rows", "gemm_finish", "matmul")
INTEGER_BITS = 20


def planned_cases(design: Design, manifest: Manifest, arrays: Any, device: Device) -> Iterator[Case]:
    """One case for every kernel that differs from those before in more than its name."""
    constants = pack_constants(design, manifest, arrays)
    seen = set()
    parts = Parts(design, manifest)
    for kernel in design.kernels:
        if kernel.type in PRODUCTS:
            continue
        row = row_of(kernel, parts, device)
        held = held_constants(row, design, constants)
        shapes = tuple((p.name, p.dtype, p.shape) for p in row.parameters)
        contents = tuple((name, array.tobytes()) for name, array in held.items())
        key = (row.type, tuple(sorted(row.attributes.items())), shapes, contents, row.rounding, row.saturation)
        if key not in seen:
            seen.add(key)
            yield Case(module=KERNELS[row.type], row=row, calls=list(calls_of(row, held)))


def held_constants(row: Row, design: Design, constants: Any) -> dict[str, Array]:
    """Constants of a kernel by name of the parameter."""
    call = next(s for w in design.workers for s in steps_of(w.program) if getattr(s, "kernel", None) == row.name)
    buffers = [a.name for a in call.arguments if a.kind == "buffer"]  # type: ignore[union-attr]
    names = [p.name for p in row.parameters if p.role not in ("object_in", "object_out")]
    keys = {b.name: b.array for b in design.buffers}
    found = {}
    for name, buffer in zip(names, buffers, strict=True):
        key = keys[buffer]
        if key is not None:
            found[name] = constants[key]
    return found


def calls_of(row: Row, held: dict[str, Array]) -> Iterator[Call]:
    """Calls with random objects, at all borders of a window."""
    inputs = len(by_role(row, "object_in"))
    for number, scalars in enumerate(scalars_of(row, inputs)):
        arrays = []
        for index, parameter in enumerate(row.parameters):
            if parameter.name in held:
                arrays.append(held[parameter.name])
            elif parameter.role == "object_out":
                arrays.append(poisoned(parameter.shape, parameter.dtype))
            else:
                bits = INTEGER_BITS if parameter.dtype in ("int32", "int64") else 0
                arrays.append(codes(parameter.shape, parameter.dtype, 100 * number + index, bits=bits))
        yield Call(arrays=arrays, scalars=scalars)


def scalars_of(row: Row, inputs: int) -> list[dict[str, int]]:
    if row.scalars == ("pad_top", "pad_bottom"):
        pads: Any = row.attributes.get("pads", (1, 0, 1, 0))
        tops = {0, min(pads[0], inputs - 1)}
        bottoms = {0, min(pads[2], inputs - 1)}
        return [{"pad_top": t, "pad_bottom": b} for t in sorted(tops) for b in sorted(bottoms) if t + b < inputs]
    if row.scalars == ("row",):
        return [{"row": n} for n in range(2)]
    return [{}, {}]


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("model", FIVE)
def test_equal(shared: Path, tmp_path: Path, model: str, device: str) -> None:
    del shared
    imported = real(model, device)
    array = load_device(device)
    design = plan_of(imported.manifest, array)
    cases = list(planned_cases(design, imported.manifest, imported.arrays, array))
    if not cases:
        pytest.skip("the design has products alone")
    names = [case.row.name for case in cases]
    arch = cases[0].row.arch
    assert dict(zip(names, differences(cases, tmp_path, arch=arch), strict=True)) == dict.fromkeys(names, 0)
