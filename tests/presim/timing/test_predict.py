"""The timing model on small designs whose times can be worked out by hand."""

import dataclasses
import json
from pathlib import Path

import pytest

from manifest.device import load_device
from manifest.errors import RefusedError
from presim.design import (
    Acquire,
    Argument,
    Call,
    Design,
    Endpoint,
    Fifo,
    Kernel,
    Loop,
    Release,
    Transfer,
    Worker,
)
from presim.timing import Calibration, load_calibration, regimes, time_design, trace_json
from presim.timing.calibration import DIRECTORY

DEVICE = load_device("npu2")
OBJECT = 64
"""int8 elements of an object."""


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    """Round figures: a lock 10, a call 100, a descriptor 6, no hops, the shim at full rate."""
    values = {
        "lock_cycles": 10.0,
        "call_cycles": 100.0,
        "descriptor_cycles": 6.0,
        "hop_cycles": 0.0,
        "shim_derate": 1.0,
        "mac_utilisation": 0.5,
        "vector_passes": 0.0,
    }
    real = load_calibration()
    rows = {
        name: dataclasses.replace(row, value=values.get(name, row.value)) for name, row in real.coefficients.items()
    }
    return dataclasses.replace(real, coefficients=rows)


def stage(name: str, source: str, target: str, objects: int, macs: int = 0) -> Worker:
    body = (
        Acquire(fifo=source, count=1),
        Acquire(fifo=target, count=1),
        Call(
            kernel="k",
            arguments=(Argument(kind="fifo", name=source), Argument(kind="fifo", name=target)),
            macs=macs,
        ),
        Release(fifo=source, count=1),
        Release(fifo=target, count=1),
    )
    return Worker(name=name, tile=None, program=(Loop(times=objects, body=body),))


def fifo(name: str, producer: Endpoint, consumer: Endpoint, depth: int = 2) -> Fifo:
    return Fifo(name=name, shape=(OBJECT,), dtype="int8", producer=producer, consumers=(consumer,), depth=depth)


def chain(workers: int, objects: int, macs: int = 0, depth: int = 2) -> Design:
    """Shim, workers in a row, shim."""
    shim = Endpoint(actor="shim", kind="shim")
    names = [f"w{i}" for i in range(workers)]
    ends = [shim, *(Endpoint(actor=n) for n in names), shim]
    fifos = tuple(fifo(f"f{i}", ends[i], ends[i + 1], depth) for i in range(workers + 1))
    return Design(
        dispatch="d0",
        device="npu2",
        workers=tuple(stage(n, f"f{i}", f"f{i + 1}", objects, macs) for i, n in enumerate(names)),
        fifos=fifos,
        kernels=(Kernel(name="k", op="", type="copy"),),
        sequence=(
            Transfer(fifo="f0", direction="fill", tensor="x", objects=objects),
            Transfer(fifo=f"f{workers}", direction="drain", tensor="y", objects=objects, wait=True),
        ),
    )


MOVE = 6 + OBJECT / 4
"""Cycles to move an object: a descriptor and 4 bytes per cycle."""
WORK = 4 * 10 + 100
"""Cycles of a stage per object: four locks and a call."""


def test_one_object_through_one_worker(calibration: Calibration) -> None:
    timing = time_design(chain(1, 1), DEVICE, calibration)
    assert timing.latency_cycles == MOVE + WORK + MOVE
    (worker,) = [a for a in timing.actors if a.kind == "worker"]
    assert (worker.busy, worker.locks) == (100, 40)
    assert worker.stall == MOVE
    assert worker.stalled_on == "f0"


def test_a_pipeline_ends_at_the_pace_of_its_slowest_stage(calibration: Calibration) -> None:
    objects = 20
    timing = time_design(chain(3, objects), DEVICE, calibration)
    assert timing.latency_cycles == pytest.approx(4 * MOVE + 3 * WORK + (objects - 1) * WORK)


def test_macs_count_where_they_are_more_than_the_loads(calibration: Calibration) -> None:
    macs = DEVICE.int8_macs_per_cycle.value
    assert macs is not None
    slow = time_design(chain(1, 1, macs=macs * 1000), DEVICE, calibration)
    assert slow.latency_cycles == pytest.approx(MOVE + WORK + 2000 + MOVE)
    loads = 2 * OBJECT / 128
    few = time_design(chain(1, 1, macs=1), DEVICE, calibration)
    assert few.latency_cycles == pytest.approx(MOVE + WORK + loads + MOVE)


def test_depth_one_serialises_what_depth_two_overlaps(calibration: Calibration) -> None:
    deep, flat = (time_design(chain(2, 16, depth=d), DEVICE, calibration).latency_cycles for d in (2, 1))
    assert flat == deep + 15 * (MOVE - 10), "each object waits for the move of the one before, less one lock"


def test_interval_is_the_pace_and_latency_the_way(calibration: Calibration) -> None:
    timing = time_design(chain(2, 4), DEVICE, calibration, inferences=5)
    assert timing.interval_cycles == pytest.approx(4 * WORK)
    assert timing.latency_cycles == pytest.approx(3 * MOVE + 2 * WORK + 3 * WORK)


def test_what_a_regime_is_bound_by(calibration: Calibration) -> None:
    compute = regimes([chain(2, 4)], DEVICE, calibration, batch=4)
    assert [r.bound for r in compute] == ["compute", "compute"]
    assert [r.batch for r in compute] == [1, 4]
    rows = {
        n: dataclasses.replace(c, value=0.01) if n == "shim_derate" else c for n, c in calibration.coefficients.items()
    }
    starved = regimes([chain(2, 4)], DEVICE, dataclasses.replace(calibration, coefficients=rows), batch=4)
    assert [r.bound for r in starved] == ["dram", "dram"]
    assert starved[1].interval_cycles > compute[1].interval_cycles


def test_a_design_that_hangs_has_no_times(calibration: Calibration) -> None:
    good = chain(1, 4)
    hungry = dataclasses.replace(good, sequence=(dataclasses.replace(good.sequence[0], objects=3), good.sequence[1]))
    with pytest.raises(RefusedError, match=r"TIMING-STUCK.*'f1'"):
        time_design(hungry, DEVICE, calibration)


def test_an_unknown_figure_is_named(calibration: Calibration) -> None:
    blind = dataclasses.replace(DEVICE, load_bits=dataclasses.replace(DEVICE.load_bits, value=None))
    with pytest.raises(RefusedError, match="load_bits is not published"):
        time_design(chain(1, 1), blind, calibration)


def test_trace_opens_as_chrome_trace_and_says_what_it_is(calibration: Calibration) -> None:
    timing = time_design(chain(2, 2), DEVICE, calibration)
    value = json.loads(trace_json([timing]))
    assert "not measured" in value["otherData"]["basis"]
    work = [e for e in value["traceEvents"] if e["ph"] == "X"]
    assert {e["name"] for e in work} == {"k", "f0", "f1", "f2"}
    assert all(e["dur"] > 0 for e in work)
    assert max(e["ts"] + e["dur"] for e in work) * (DEVICE.clock_mhz.value or 1) == pytest.approx(
        timing.latency_cycles, abs=1
    )
    assert trace_json([timing]) == trace_json([time_design(chain(2, 2), DEVICE, calibration)])


def test_calibrations_name_source_and_clock_of_every_figure() -> None:
    for file in DIRECTORY.glob("*.json"):
        for row in load_calibration(file).coefficients.values():
            assert row.source
            assert row.clock
            assert row.basis != "measured"


def test_everything_wrong_with_a_calibration_at_once(tmp_path: Path) -> None:
    value = json.loads((DIRECTORY / "assumed-1.json").read_text())
    value["coefficients"]["shim_derate"]["value"] = 1.5
    value["coefficients"]["speed"] = value["coefficients"].pop("lock_cycles")
    path = tmp_path / "c.json"
    path.write_text(json.dumps(value))
    with pytest.raises(RefusedError) as caught:
        load_calibration(path)
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    assert all(word in text for word in ("'speed'", "'lock_cycles'", "at most 1"))
