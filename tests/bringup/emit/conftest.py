"""A planned port of the digits model with everything that emitting it takes, and a double for the kernel emitters."""

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bringup.emit import EmitInput, StepDesign, emit
from bringup.kernels.model import Row, Source, symbol_of
from manifest.clearance import Clearance, issue
from manifest.device import load_device
from phases.baseline.__main__ import main as baseline
from phases.port import open_port
from phases.presim.__main__ import main as presim
from phases.presim.simulation import Bench, bench_of, host_form
from phases.presim.source import different_inputs, source_of, target_tensors
from phases.presim.stages import cut, units_of
from presim.design_io import DESIGN_FILE, design_from_json

Array = NDArray[Any]
C_TYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t"}


@dataclass(frozen=True, slots=True)
class Double:
    """A kernel emitter that packs nothing, or what `changed` says."""

    changed: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)

    def source(self, row: Row) -> Source:
        symbol = symbol_of(row.name)
        parameters = tuple(p for p in row.parameters if not p.role.startswith("cascade"))
        for role, change in self.changed.items():
            parameters = tuple(
                replace(p, shape=change(np.zeros(p.shape, p.dtype)).shape) if p.role == role else p for p in parameters
            )
        pointers = [f"{'' if p.writes else 'const '}{C_TYPES[p.dtype]}* __restrict {p.name}" for p in parameters]
        arguments = ", ".join([*pointers, *(f"int32_t {name}" for name in row.scalars)])
        body = "event0(); aie::set_rounding(aie::rounding_mode::conv_even); "
        body += "aie::set_saturation(aie::saturation_mode::saturate); event1();"
        return Source(
            symbol=symbol,
            text=f'#include <aie_api/aie.hpp>\nextern "C" void {symbol}({arguments}) {{ {body} }}\n',
            headers=(),
            parameters=parameters,
            scalars=row.scalars,
            vectorized=False,
            notes=("a double",),
        )

    def pack(self, row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
        roles = {p.name: p.role for p in row.parameters}
        return {name: self.changed.get(roles[name], np.asarray)(array) for name, array in constants.items()}


class Doubles(dict[str, Double]):
    """The double for every type."""

    def __missing__(self, key: str) -> Double:
        return Double()

    def __contains__(self, key: object) -> bool:
        return True


@pytest.fixture
def doubles() -> Doubles:
    return Doubles()


@pytest.fixture
def make_double() -> Callable[[Mapping[str, Callable[[Array], Array]]], Double]:
    return Double


def made_port(model: Path, data: Path, folder: Path, device: str) -> Path:
    port = folder / f"{model.stem}.port"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert baseline([str(model), "--data", str(data), "--device", device, "--out", str(port)]) == 0
        assert presim([str(port)]) == 0
    return port


@pytest.fixture(scope="session")
def planned_port(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = root / "examples/digits"
    return made_port(folder / "digits_cnn.onnx", folder / "digits.npz", tmp_path_factory.mktemp("emit"), "npu2")


@dataclass(frozen=True, slots=True)
class Ready:
    """A port, what to emit from it, and the right to."""

    port: Path
    given: EmitInput
    clearance: Clearance
    benches: tuple[Bench, ...]


def ready(port: Path) -> Ready:
    """Everything that emitting a planned port takes."""
    source = source_of(open_port(port))
    design_bytes = (port / DESIGN_FILE).read_bytes()
    designs = design_from_json(design_bytes)
    inputs = different_inputs(source, 2)
    tensors = target_tensors(source, inputs.feeds)
    benches = tuple(bench_of(d, source.manifest, source.arrays, tensors, inputs) for d in designs)
    steps: list[StepDesign] = []
    golden: dict[str, Array] = {}
    for bench in benches:
        design = bench.design
        units = units_of(design, bench.manifest)
        for number, unit in enumerate(units):
            chain = frozenset().union(*(u.workers for u in units[: number + 1]))
            for kind, workers in (("stage", unit.workers), ("chain", chain)):
                piece = cut(design, workers, bench.manifest, bench.counts).design
                order = len(steps)
                steps.append(
                    StepDesign(dispatch=design.dispatch, name=unit.name, kind=kind, order=order, design=piece)  # type: ignore[arg-type]
                )
        fifos = {f.name: f for f in design.fifos}
        for transfer in design.sequence:
            for index, row in enumerate(bench.tensors):
                values = host_form(row[transfer.tensor], fifos[transfer.fifo])
                golden[f"{design.dispatch}/{index}/{transfer.tensor}"] = values
    given = EmitInput(
        manifest_bytes=source.files["manifest.json"],
        design_bytes=design_bytes,
        manifest=source.manifest,
        designs=designs,
        device=load_device(source.manifest.target.device),
        constants={b.design.dispatch: b.constants for b in benches},
        steps=tuple(steps),
        golden=golden,
    )
    return Ready(port, given, issue(port, "presim", given.manifest_bytes, design_bytes), benches)


@pytest.fixture(scope="session")
def digits(planned_port: Path) -> Ready:
    return ready(planned_port)


@pytest.fixture(scope="session")
def emitted(digits: Ready) -> Mapping[str, bytes]:
    """The generated folder, made by the real emitters."""
    return emit(digits.given, digits.clearance)
