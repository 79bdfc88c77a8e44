"""A timing as `trace.json`, which Perfetto and chrome://tracing open."""

import json
from collections.abc import Sequence
from typing import Any

from presim.timing.model import Timing


def trace_json(timings: Sequence[Timing]) -> bytes:
    """One process per dispatch, one thread per worker or DMA.

    Times are microseconds of the array clock where the device's clock is published, else cycles; what they are stands
    in `otherData`.
    """
    events: list[dict[str, Any]] = []
    clocks = {t.clock_mhz for t in timings}
    clock = clocks.pop() if len(clocks) == 1 else None
    for process, timing in enumerate(timings, 1):
        events.append(_named("process_name", process, 0, f"dispatch {timing.design} (simulated)"))
        threads = {actor.actor: number for number, actor in enumerate(timing.actors, 1)}
        events += [_named("thread_name", process, number, name) for name, number in threads.items()]
        events += [
            {
                "name": span.what,
                "ph": "X",
                "pid": process,
                "tid": threads[span.actor],
                "ts": _time(span.begin, clock),
                "dur": _time(span.end - span.begin, clock),
            }
            for span in timing.spans
        ]
    other = {
        "basis": "simulated: predicted by a timing model, not measured on hardware",
        "unit": "cycles" if clock is None else f"microseconds at {clock} MHz",
    }
    value = {"displayTimeUnit": "ns", "otherData": other, "traceEvents": events}
    return (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _time(cycles: float, clock: int | None) -> float:
    return round(cycles if clock is None else cycles / clock, 4)
