"""Seeded faults of kernels: each is seen by the comparison with the oracle on real data, and none without a fault."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manifest.model import Op
from presim.kernels.attributes import Part
from tests.presim.kernels.models import FEEDS, Real, real

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault: modes of the tile, attributes, contents of buffers, of ops of some types."""

    types: tuple[str, ...]
    model: tuple[str, str] = ("mnist_resnet.quark_xint8", "mnist_resnet")
    modes: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    buffers: dict[str, Callable[[Array], Array]] = field(default_factory=dict)
    part: Part = field(default_factory=Part)


def next_shift(requant: Array) -> Array:
    moved = requant.copy()
    moved[-1] += 1
    return moved


def next_multiplier(requant: Array) -> Array:
    """Multipliers that are 1.6 to 3.1 per cent too small."""
    moved = requant.copy()
    moved[0] -= 1 << 25
    return moved


PRODUCTS = ("Conv", "Gemm")
PER_CHANNEL = ("mnist_resnet.qdq_u8s8_pc", "mnist_resnet")
PER_TENSOR = ("mnist_resnet.qdq_s8s8_pt", "mnist_resnet")
CENTRED = ("digits_cnn.quark_xint8", "digits_cnn")

MUTANTS = {
    "shift off by one": Mutant(types=(*PRODUCTS, "Add", "GlobalAveragePool"), buffers={"requant": next_shift}),
    "multiplier off": Mutant(types=PRODUCTS, model=PER_TENSOR, buffers={"requant": next_multiplier}),
    "ties up": Mutant(types=("Conv", "Add"), modes={"rounding": "pos_inf"}),
    "ties away from zero": Mutant(types=("Conv", "Add"), modes={"rounding": "sym_inf"}),
    "rounding not set": Mutant(types=(*PRODUCTS, "Add", "GlobalAveragePool"), modes={"rounding": "floor"}),
    "saturation not set": Mutant(types=("Conv", "Add"), model=PER_CHANNEL, modes={"saturation": "none"}),
    "bias missing": Mutant(types=PRODUCTS, buffers={"bias": np.zeros_like}),
    "bias of the next channel": Mutant(types=PRODUCTS, buffers={"bias": lambda b: np.roll(b, 1)}),
    "weights of the next channel": Mutant(types=PRODUCTS, buffers={"weights": lambda w: np.roll(w, 1, 0)}),
    "kernel upside down": Mutant(types=("Conv",), buffers={"weights": lambda w: w[:, :, ::-1]}),
    "kernel left to right": Mutant(types=("Conv",), buffers={"weights": lambda w: w[:, :, :, ::-1]}),
    "input zero point forgotten": Mutant(types=PRODUCTS, model=CENTRED, attributes={"x_zero_point": 0}),
    "output zero point forgotten": Mutant(types=PRODUCTS, model=CENTRED, attributes={"y_zero_point": 0}),
    "activation forgotten": Mutant(types=("Conv",), model=CENTRED, attributes={"qmin": 0}),
    "operands swapped": Mutant(types=("Add",), buffers={"requant": lambda r: r[[1, 0, 2]]}, model=PER_TENSOR),
}


def differs(model: Real, op: Op, mutant: Mutant) -> bool:
    bench = model.bench(**mutant.modes, changes=mutant.attributes, edits=mutant.buffers)
    return any(
        not np.array_equal(bench.run(op, model.inputs(op, feed), mutant.part), model.wanted(op, feed))
        for feed in range(FEEDS)
    )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_seen(name: str, shared: Path) -> None:
    assert shared.is_dir()
    mutant = MUTANTS[name]
    model = real(*mutant.model)
    seen = {kind: False for kind in mutant.types}
    for op in model.ops():
        if op.type in seen:
            assert not differs(model, op, Mutant(types=mutant.types))
            seen[op.type] |= differs(model, op, mutant)
    assert all(seen.values()), seen
