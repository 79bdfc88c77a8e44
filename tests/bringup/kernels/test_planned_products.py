"""Convolutions and products of planned designs: compiled, equal to the simulator's, with the design's own constants."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.emit.kernels import bindings
from bringup.emit.rows import Parts, Use, row_of
from bringup.kernels import KERNELS
from bringup.kernels.model import Parameter, Row
from manifest.device import Device, load_device
from manifest.model import Manifest
from presim.design import Argument, Call, Design
from presim.packing import pack_constants
from presim.steps import steps_of
from tests.bringup.kernels import heavy
from tests.bringup.kernels.heavy import Book
from tests.bringup.kernels.objects import codes
from tests.presim.plan.harness import NPU2, plan_of
from tests.presim.plan.models import FIVE, real
from tests.presim.plan.test_spread import convolution, dense, room

PRODUCTS = ("conv", "gemm", "gemm_rows", "gemm_finish", "matmul")
Calls = list[heavy.Call]


@dataclass(kw_only=True)
class Planned:
    """Kernels of a design and a call of each for every set of scalars."""

    design: Design
    manifest: Manifest
    arrays: Mapping[str, Any]
    device: Device
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = Parts(self.design, self.manifest)
        self.constants = pack_constants(self.design, self.manifest, self.arrays)
        self.slots: dict[str, int] = {}

    def calls(self) -> Calls:
        """Calls in an order in which every reader of a cascade follows its writer."""
        by_worker = {w.name: list(self.calls_of(w.name)) for w in self.design.workers}
        followers = {c.source: c.target for c in self.design.cascades}
        found: Calls = []
        for head in [n for n in by_worker if n not in followers.values()]:
            chain = [head]
            while chain[-1] in followers:
                chain.append(followers[chain[-1]])
            if len(chain) == 1:
                found += by_worker[head]
                continue
            assert len({len(by_worker[n]) for n in chain}) == 1
            found += [call for step in zip(*(by_worker[n] for n in chain), strict=True) for call in step]
        return found

    def calls_of(self, worker: str) -> Iterator[heavy.Call]:
        """Calls of a worker that differ; accumulators go through all their rows."""
        seen = set()
        for step in steps_of(next(w for w in self.design.workers if w.name == worker).program):
            if not isinstance(step, Call) or self.kind(step.kernel) not in PRODUCTS:
                continue
            for scalars in self.scalars_of(step):
                key = step.kernel, tuple(sorted(scalars.items()))
                if key not in seen:
                    seen.add(key)
                    yield self.call(Use(worker=worker, call=step), scalars)

    def kind(self, kernel: str) -> str:
        """Type of a kernel."""
        return next(k.type for k in self.design.kernels if k.name == kernel)

    def scalars_of(self, step: Call) -> Iterator[dict[str, int]]:
        """Values of the scalars; a loop counter stands for the second and the last row of a `gemm_rows`."""
        fixed = {name: value for name, value in step.scalars if isinstance(value, int)}
        counted = [name for name, value in step.scalars if not isinstance(value, int)]
        buffers = [self.parts.buffer(a.name) for a in step.arguments if a.kind == "buffer"]
        rows = [b.shape[0] for b in buffers if (b.array or "").startswith("weights")]
        for value in sorted({1, rows[0] - 1}) if counted else (0,):
            yield {**fixed, **dict.fromkeys(counted, value)}

    def call(self, use: Use, scalars: dict[str, int]) -> heavy.Call:
        """One call with random objects."""
        kernel = next(k for k in self.design.kernels if k.name == use.call.kernel)
        names = [r.name for r in self.rows]
        if kernel.name not in names:
            self.rows.append(row_of(kernel, self.parts, self.device))
            names.append(kernel.name)
        row = self.rows[names.index(kernel.name)]
        bound = {p.name: a for p, a in bindings(row, use, self.parts)}
        made = heavy.Call(
            kernel=names.index(kernel.name),
            arrays={},
            scalars={**dict.fromkeys(row.scalars, 0), **scalars},
            reads_cascade=any(p.role == "cascade_in" for p in row.parameters),
        )
        slots: dict[str, int] = {}
        for number, p in enumerate(row.parameters):
            if p.role == "acc":
                slots[p.name] = self.slots.setdefault(bound[p.name].name, len(self.slots))
            elif not p.role.startswith("cascade"):
                made.arrays[p.name] = self.array(p, bound.get(p.name), 31 * len(names) + number)
        streamed = next((p for p in row.parameters if p.role == "weights"), None)
        if streamed is not None and made.arrays[streamed.name].ndim > len(streamed.shape):
            chunk = streamed.shape[0 if row.type == "conv" else 1]
            made = replace(made, object_number=made.scalars["out_offset"] // chunk)
        return replace(made, slots=slots)

    def array(self, p: Parameter, argument: Argument | None, seed: int) -> Any:
        """The design's constant, or a random object."""
        if p.role == "object_out":
            return np.full(p.shape, 85, p.dtype)
        key = None
        if argument is not None and argument.kind == "buffer":
            key = self.parts.buffer(argument.name).array
        elif argument is not None and argument.kind == "fifo":
            key = self.parts.fifo(argument.name).init_array
        return self.constants[key] if key is not None else codes(p.shape, p.dtype, seed)


def check(planned: Planned, folder: Path) -> list[Any]:
    calls = planned.calls()
    book = Book(folder)
    book.add(planned.rows)
    return book.check(calls)


@pytest.mark.parametrize(
    ("model", "device"), [*((m, "npu1") for m in FIVE), ("mnist_resnet.quark_xint8", "npu2"), (FIVE[4], "npu2")]
)
def test_the_five_models(shared: Path, tmp_path: Path, model: str, device: str) -> None:
    del shared
    imported, array = real(model, device), load_device(device)
    planned = Planned(
        design=plan_of(imported.manifest, array), manifest=imported.manifest, arrays=imported.arrays, device=array
    )
    wanted = check(planned, tmp_path)
    assert sum(w[0].size for w in wanted if w) > 50
    assert all(KERNELS[row.type].source(row).vectorized for row in planned.rows)


def test_weights_as_a_stream(tmp_path: Path) -> None:
    imported = dense(inner=64, outer=1024)
    device = room(9000)
    planned = Planned(
        design=plan_of(imported.manifest, device), manifest=imported.manifest, arrays=imported.arrays, device=device
    )
    check(planned, tmp_path)
    assert len({c.object_number for c in planned.calls()}) > 1


@pytest.mark.parametrize("kind", ["gemm", "conv"])
def test_summands_over_a_cascade(tmp_path: Path, kind: str) -> None:
    imported = dense(inner=512, outer=8) if kind == "gemm" else convolution((64, 8), width=32)
    device = room(3200 if kind == "gemm" else 3 * 64 * 32)
    planned = Planned(
        design=plan_of(imported.manifest, device), manifest=imported.manifest, arrays=imported.arrays, device=device
    )
    check(planned, tmp_path)
    assert planned.design.cascades
    assert [r.type for r in planned.rows] == [kind] * len(planned.rows)


@pytest.mark.parametrize(("group", "channels"), [(32, (32, 32)), (2, (32, 32))])
def test_groups(tmp_path: Path, group: int, channels: tuple[int, int]) -> None:
    imported = convolution(channels, group=group)
    planned = Planned(
        design=plan_of(imported.manifest), manifest=imported.manifest, arrays=imported.arrays, device=NPU2
    )
    check(planned, tmp_path)
