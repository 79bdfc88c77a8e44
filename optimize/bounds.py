"""Lower bounds of what a spread of an op costs: cores, cycles between inferences, cycles of one.

Why bounds and no plans: a plan builds every fifo and program; multiplications over rate, weights over load width and
bytes over streams are known from the shares alone, and a candidate whose bounds are already beaten needs no plan. Every
bound is at most what the timing model says of the finished design.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifest.device import Device
from presim.blocks import object_count
from presim.kernels.attributes import Forms
from presim.plan.graph import Graph, Value
from presim.plan.limits import JOIN_LIMIT
from presim.plan.share import Share, fired_of, input_shape, input_total, kernels_of, macs_of, output_shape
from presim.plan.spread import Spread
from presim.timing import Calibration
from presim.timing.predict import rates_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the timing model charges, at its cheapest.

    Attributes:
        macs: multiply-accumulates per cycle.
        load_bytes: that a core reads per cycle.
        stream_bytes: that a stream moves per cycle.
        host_bytes: that a stream of the host moves per cycle.
        call: cycles of every call.
        lock: cycles of an acquire or release.
        descriptor: cycles from one descriptor of a DMA to the next.
        passes: reads of every byte by a kernel that multiplies nothing.
    """

    macs: float
    load_bytes: float
    stream_bytes: float
    host_bytes: float
    call: float
    lock: float
    descriptor: float
    passes: float


def costs_of(device: Device, calibration: Calibration) -> Costs:
    """The costs on a device.

    Raises:
        RefusedError: a figure that no prediction can do without is unknown.
    """
    rates = rates_of(device, calibration)
    return Costs(
        macs=max(rates.int8_macs, rates.int16_macs or 0.0),
        load_bytes=rates.load_bytes,
        stream_bytes=rates.stream_bytes,
        host_bytes=rates.stream_bytes * calibration.value("shim_derate"),
        call=calibration.value("call_cycles"),
        lock=calibration.value("lock_cycles"),
        descriptor=calibration.value("descriptor_cycles"),
        passes=calibration.value("vector_passes"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """At least what one op takes in a spread.

    Attributes:
        workers: exactly so many.
        interval: cycles of the busiest worker or stream per inference.
        first: cycles from its first input object to its first output object.
        resource: what the interval is of: compute, loads, calls, on chip or host.
    """

    workers: int
    interval: float
    first: float
    resource: str


def bound_of(spread: Spread, forms: Forms, costs: Costs, graph: Graph) -> Bound:
    """The bound of one op.

    Args:
        spread: of the op.
        forms: of the tensors.
        costs: of the device.
        graph: that the op is in, for what the host brings and takes.
    """
    alike = {_alike(share): share for share in reversed(spread.shares)}
    calls = [_calls(share, forms, costs) for share in alike.values()]
    busiest = max(calls, key=lambda row: row[0])
    rows = [(busiest[0], busiest[2]), *_streams(spread, forms, costs, graph)]
    interval, resource = max(rows, key=lambda row: row[0])
    length = max(share.cascade[1] for share in spread.shares)
    first = min(row[1] for row in calls) * length
    return Bound(workers=len(spread.shares), interval=interval, first=first, resource=resource)


def _alike(share: Share) -> tuple[object, ...]:
    """What tells shares apart that take different times."""
    part = share.part
    return part.in_count, part.out_count, part.operand, share.chunk, share.makes[1], share.last


def _calls(share: Share, forms: Forms, costs: Costs) -> tuple[float, float, str]:
    """(cycles of a worker per inference, cycles of its cheapest object, what they are of)."""
    fired = fired_of(share)
    kernels = kernels_of(share, forms)
    macs = macs_of(share, forms)
    multiplies = any(kind in ("conv", "gemm", "gemm_rows", "matmul") for kind, _, _ in kernels.parts)
    weights = _bytes_of_weights(share, forms)
    made = elements_bytes(output_shape(share), forms.of(share.node.output.tensor).dtype) if share.last else 0
    pieces = kernels.stream.count if kernels.stream is not None else 1
    total, cheapest, loads = 0.0, math.inf, 0.0
    for firing in fired:
        taken = sum(
            len(needs) * elements_bytes(input_shape(share, port), forms.of(value.tensor).dtype)
            for port, (needs, value) in enumerate(zip(firing.needs, share.node.inputs, strict=False))
        )
        if firing.kernel or not multiplies:
            work = 0.0 if firing.kernel else costs.passes * min(taken, made or taken) / costs.load_bytes
        else:
            load = weights / costs.load_bytes / (len(fired) if share.node.kind == "gemm_rows" else 1)
            work, loads = max(macs / costs.macs, load), loads + max(0.0, load - macs / costs.macs)
        cycles = costs.call * pieces + work
        cheapest = min(cheapest, cycles)
        total += cycles + 2 * costs.lock * (bool(firing.gives and share.last) + (share.node.kind == "gemm"))
    if share.outer:
        total += 2 * costs.lock * max(0, input_total(share, 0) - len(fired))
    called = len(fired) * costs.call * pieces
    names = {"calls": called, "loads": loads, "compute": total - called - loads}
    return total, cheapest if fired else 0.0, max(names, key=lambda name: names[name])


def _bytes_of_weights(share: Share, forms: Forms) -> int:
    """Bytes of the weights that one output object needs; streamed ones all pass once."""
    kernels = kernels_of(share, forms)
    if kernels.stream is not None:
        return kernels.stream.count * elements_bytes(kernels.stream.shape, kernels.stream.dtype)
    return sum(elements_bytes(s.shape, s.dtype) for _, _, specs in kernels.parts for s in specs if s.kind == "weights")


def elements_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of so many elements."""
    return math.prod(shape) * np.dtype(dtype).itemsize


def _streams(spread: Spread, forms: Forms, costs: Costs, graph: Graph) -> list[tuple[float, str]]:
    """(cycles per inference, what of) of the streams that an op cannot do without."""
    share = spread.shares[0]
    rows = []
    for value in share.node.inputs:
        if value in graph.inputs:
            ways = min(share.host_streams, share.cascade[1]) if share.sliced else 1
            switches = object_count(value.form) * costs.descriptor
            rows.append((value_bytes(value, forms) / ways / costs.host_bytes + switches, "host"))
    outputs = {value for _, value in graph.outputs}
    out, makers = share.node.output, len(spread.makers)
    several = share.host_streams > 1 and not share.outer
    ways = min(max(share.host_streams, -(-makers // JOIN_LIMIT)), makers) if several else 1
    joined = -(-makers // ways)
    pieces = joined if joined <= JOIN_LIMIT else -(-joined // JOIN_LIMIT)
    objects = object_count(out.form) // (makers if share.outer else 1)
    switches = objects * costs.descriptor * (pieces if pieces <= JOIN_LIMIT else 1)
    if out in outputs:
        rows.append((value_bytes(out, forms) / ways / costs.host_bytes + switches, "host"))
    elif makers > 1:
        rows.append((value_bytes(out, forms) / costs.stream_bytes + switches, "on chip"))
    if share.chunk:
        weights = _bytes_of_weights(share, forms) * object_count(out.form)
        rows.append((weights / costs.stream_bytes, "on chip"))
    return rows


def value_bytes(value: Value, forms: Forms) -> int:
    """Bytes of a tensor without padding."""
    return elements_bytes(value.form, forms.of(value.tensor).dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """At least what a whole dispatch takes: cores, cycles between inferences, cycles of the first one."""

    tiles: int
    interval: float
    latency: float

    @property
    def triple(self) -> tuple[float, float, float]:
        """(tiles, interval, latency)."""
        return self.tiles, self.interval, self.latency


def whole_of(graph: Graph, bounds: Mapping[str, Bound]) -> Whole:
    """The bound of a dispatch from those of its ops.

    Args:
        graph: of the dispatch.
        bounds: by name of the op; an op that is not there costs nothing.
    """
    ready: dict[Value, float] = {}
    for node in graph.nodes:
        before = max((ready.get(value, 0.0) for value in node.inputs), default=0.0)
        bound = bounds.get(node.op.name)
        ready[node.output] = before + (bound.first if bound else 0.0)
    behind: dict[Value, float] = {}
    latency = 0.0
    for node in reversed(graph.nodes):
        bound = bounds.get(node.op.name)
        tail = behind.get(node.output, 0.0)
        head = max((ready.get(value, 0.0) for value in node.inputs), default=0.0)
        if bound:
            latency = max(latency, head + bound.interval + tail)
        for value in node.inputs:
            behind[value] = max(behind.get(value, 0.0), tail + (bound.first if bound else 0.0))
    return Whole(
        tiles=sum(bound.workers for bound in bounds.values()),
        interval=max((bound.interval for bound in bounds.values()), default=0.0),
        latency=latency,
    )
