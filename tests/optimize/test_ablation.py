"""Ablation on a chain of cores whose times can be worked out by hand."""

import dataclasses
from itertools import pairwise

import pytest

from manifest.device import load_device
from optimize.ablation import MOVEMENT, AblationRow, ablate, ranked
from presim.design import (
    Acquire,
    Argument,
    Call,
    Cascade,
    Design,
    Endpoint,
    Fifo,
    Kernel,
    Loop,
    Release,
    Transfer,
    Worker,
)
from presim.timing import Calibration, load_calibration, time_design

DEVICE = load_device("npu2")
OBJECTS = 4
OBJECT = 64
LOCKS = 4 * 10
CALL = 100
RATE = 256
"""Multiply-accumulates per cycle: half of the device's 512."""


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    """A lock 10, a call 100, transfers next to nothing, half of the peak."""
    values = {
        "lock_cycles": 10.0,
        "call_cycles": float(CALL),
        "descriptor_cycles": 0.0,
        "hop_cycles": 0.0,
        "shim_derate": 1.0,
        "mac_utilisation": 0.5,
        "vector_passes": 8.0,
    }
    real = load_calibration()
    rows = {n: dataclasses.replace(row, value=values.get(n, row.value)) for n, row in real.coefficients.items()}
    return dataclasses.replace(real, coefficients=rows)


def chain(*ops: tuple[str, str, int]) -> Design:
    """Shim, one worker per (op, type, multiply-accumulates of a call), shim; 4 objects each."""
    shim = Endpoint(actor="shim", kind="shim")
    ends = [shim, *(Endpoint(actor=f"w{i}") for i in range(len(ops))), shim]
    fifos = tuple(
        Fifo(name=f"f{i}", shape=(OBJECT,), dtype="int8", producer=a, consumers=(b,))
        for i, (a, b) in enumerate(pairwise(ends))
    )
    workers = []
    for i, (_, _, macs) in enumerate(ops):
        arguments = (Argument(kind="fifo", name=f"f{i}"), Argument(kind="fifo", name=f"f{i + 1}"))
        body = (
            Acquire(fifo=f"f{i}", count=1),
            Acquire(fifo=f"f{i + 1}", count=1),
            Call(kernel=f"k{i}", arguments=arguments, macs=macs),
            Release(fifo=f"f{i}", count=1),
            Release(fifo=f"f{i + 1}", count=1),
        )
        workers.append(Worker(name=f"w{i}", tile=None, program=(Loop(times=OBJECTS, body=body),)))
    return Design(
        dispatch="d0",
        device="npu2",
        workers=tuple(workers),
        fifos=fifos,
        kernels=tuple(Kernel(name=f"k{i}", op=op, type=kind) for i, (op, kind, _) in enumerate(ops)),
        sequence=(
            Transfer(fifo="f0", direction="fill", tensor="x", objects=OBJECTS),
            Transfer(fifo=f"f{len(ops)}", direction="drain", tensor="y", objects=OBJECTS, wait=True),
        ),
    )


def by_group(rows: tuple[AblationRow, ...], kind: str = "op") -> dict[str, AblationRow]:
    return {row.group: row for row in rows if row.kind == kind}


def test_the_slowest_op_gains_up_to_the_next_one_and_the_others_nothing(calibration: Calibration) -> None:
    design = chain(("small", "gemm", 10 * RATE), ("large", "conv", 500 * RATE), ("middle", "gemm", 200 * RATE))
    rows = ablate(design, DEVICE, calibration)
    ops = by_group(rows)
    assert [row.group for row in rows if row.kind == "op"] == ["large", "middle", "small"]
    assert ops["large"].interval_cycles == OBJECTS * (500 - 200)
    assert ops["large"].share == pytest.approx(OBJECTS * 300 / (OBJECTS * (500 + CALL + LOCKS)), abs=1e-3)
    assert ops["middle"].interval_cycles == ops["small"].interval_cycles == 0
    assert ops["large"].latency_cycles == OBJECTS * 500 - (OBJECTS - 1) * 200
    assert ops["middle"].latency_cycles == 200
    assert ops["small"].latency_cycles == 10
    assert [row.rank for row in rows] == [1, 2, 3, 1, 2]


def test_types_gain_together_what_their_ops_do_not_alone(calibration: Calibration) -> None:
    rows = ablate(chain(("a", "gemm", 300 * RATE), ("b", "gemm", 300 * RATE)), DEVICE, calibration)
    assert {row.interval_cycles for row in rows if row.kind == "op"} == {0}
    assert by_group(rows, "type")["gemm"].interval_cycles == OBJECTS * 300


def test_what_is_left_of_a_no_op_is_its_call_its_locks_and_its_transfers(calibration: Calibration) -> None:
    design = chain(("a", "gemm", 300 * RATE))
    (op, _) = ablate(design, DEVICE, calibration)
    whole = time_design(design, DEVICE, calibration, inferences=3).interval_cycles
    assert whole - op.interval_cycles == pytest.approx(OBJECTS * (CALL + LOCKS))
    assert op.busy_cycles == whole
    idle = time_design(design, DEVICE, calibration, inferences=3, idle=["k0"])
    busy = time_design(design, DEVICE, calibration, inferences=3)
    assert [a.moved_bytes for a in idle.actors] == [a.moved_bytes for a in busy.actors]
    assert [a.locks for a in idle.actors] == [a.locks for a in busy.actors]


def test_a_kernel_that_only_moves_contributes_too(calibration: Calibration) -> None:
    rows = ablate(chain(("", "copy", 0)), DEVICE, calibration)
    row = by_group(rows)[MOVEMENT]
    assert row.interval_cycles == OBJECTS * 8 * 2 * OBJECT * 8 // (DEVICE.load_bits.value or 1)
    assert ranked(rows) == ()


def test_a_cascade_still_waits_for_its_source(calibration: Calibration) -> None:
    design = chain(("a", "gemm", 300 * RATE), ("b", "gemm", 100 * RATE))
    without = dataclasses.replace(design, cascades=(Cascade(source="w0", target="w1"),))
    assert by_group(ablate(without, DEVICE, calibration))["a"].interval_cycles == OBJECTS * 200


def test_rankings_by_interval_and_by_latency(calibration: Calibration) -> None:
    rows = ablate(chain(("a", "gemm", 100 * RATE), ("b", "gemm", 400 * RATE)), DEVICE, calibration, kinds=("op",))
    assert ranked(rows) == ranked(rows, "latency") == ("b", "a")
    turned = [dataclasses.replace(row, latency_cycles=1000 * row.rank) for row in rows]
    assert ranked(turned, "latency") == ("a", "b")


def test_one_inference_has_no_interval(calibration: Calibration) -> None:
    with pytest.raises(ValueError, match="inferences: expected 2 or more, got 1"):
        ablate(chain(("a", "gemm", 1)), DEVICE, calibration, inferences=1)
