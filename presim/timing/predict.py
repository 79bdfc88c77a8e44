"""Builds the timed network of a design and runs it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from operator import itemgetter
from typing import Final, Literal

import numpy as np

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from presim.design import Call, Design, Fifo, Tile
from presim.pools import Pool, Stream, StreamEnd, Wiring, wire
from presim.timing.actors import Clock, End, Spans, TimedStream, TimedWorker
from presim.timing.calibration import Calibration
from presim.timing.lanes import HOST_DEPTH, HostSink, HostSource, TimedLane
from presim.timing.model import ActorTime, Span, Timing

MAX_SPANS: Final = 20_000
MAX_TURNS: Final = 1_000_000
WIDE: Final = frozenset({"int16", "uint16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a core and a stream of the device do per cycle, with the calibration in it."""

    int8_macs: float
    int16_macs: float | None
    load_bytes: float
    stream_bytes: float


NEEDED: Final = ("int8_macs_per_cycle", "load_bits", "stream_bits")
"""Device figures that no prediction can do without."""


def unknown_figures(device: Device) -> tuple[str, ...]:
    """Names of the figures that a prediction for a device needs and that are not published."""
    return tuple(name for name in NEEDED if getattr(device, name).value is None)


def rates_of(device: Device, calibration: Calibration) -> Rates:
    """The device's rates.

    Raises:
        RefusedError: a figure that no prediction can do without is unknown.
    """
    needed = {name: getattr(device, name).value for name in NEEDED}
    unknown = unknown_figures(device)
    if unknown:
        raise RefusedError(
            tuple(
                Problem(code="TIMING-UNKNOWN", where=f"device {device.name}", what=f"{name} is not published")
                for name in unknown
            )
        )
    utilisation = calibration.value("mac_utilisation")
    wide = device.int16_macs_per_cycle.value
    return Rates(
        int8_macs=utilisation * float(needed["int8_macs_per_cycle"] or 0),
        int16_macs=None if wide is None else utilisation * wide,
        load_bytes=float(needed["load_bits"] or 0) / 8,
        stream_bytes=float(needed["stream_bits"] or 0) / 8,
    )


def time_design(
    design: Design,
    device: Device,
    calibration: Calibration,
    *,
    inferences: int = 1,
    idle: Collection[str] = (),
) -> Timing:
    """Predict the times of a design.

    Args:
        design: placed or not; what is not placed needs a DMA between any two workers.
        device: its figures.
        calibration: coefficients.
        inferences: back to back, their inputs in external memory from the start.
        idle: kernels that compute nothing: a call costs what every call costs; what moves and waits stays.

    Raises:
        RefusedError: the device lacks a figure, or the design does not run to its end.
    """
    network = _Network(design, device, calibration, inferences, frozenset(idle))
    network.run()
    return network.result()


class _Network:
    def __init__(
        self, design: Design, device: Device, calibration: Calibration, inferences: int, idle: frozenset[str]
    ) -> None:
        self.design = design
        self.idle = idle
        self.device = device
        self.calibration = calibration
        self.inferences = inferences
        self.rates = rates_of(device, calibration)
        self.fifos = {f.name: f for f in design.fifos}
        self.kernels = {k.name: k for k in design.kernels}
        self.buffers = {b.name: b for b in design.buffers}
        self.spans: Spans = []
        self.sinks: dict[str, HostSink] = {}
        wiring = wire(design, device.arch)
        self.lanes = {
            (pool.name, index): self._lane(pool)
            for pool in wiring.pools.values()
            for index in range(len(pool.segments))
        }
        self.cascades = {(c.source, c.target): TimedLane(f"{c.source} to {c.target}", c.depth) for c in design.cascades}
        self.workers = [(w.name, w.tile, self._worker(w.name, wiring)) for w in design.workers]
        self.streams = [(stream, self._stream(stream, wiring)) for stream in wiring.streams]

    def _lane(self, pool: Pool) -> TimedLane:
        passes = self.fifos[pool.fifo].iter_count
        if pool.static:
            return HostSource(pool.fifo, HOST_DEPTH if passes is None else passes * pool.init_objects)
        return TimedLane(pool.fifo, pool.depth, pool.init_objects)

    def _worker(self, name: str, wiring: Wiring) -> TimedWorker:
        worker = next(w for w in self.design.workers if w.name == name)
        ports: dict[tuple[str, str], TimedLane] = {
            (f, side): self.lanes[pool, 0] for (actor, f, side), pool in wiring.ports.items() if actor == name
        }
        reads = next((lane for (_, target), lane in self.cascades.items() if target == name), None)
        writes = next((lane for (source, _), lane in self.cascades.items() if source == name), None)
        return TimedWorker(
            worker,
            self.fifos,
            ports,
            clock=Clock(name, self.spans),
            passes=self.inferences,
            lock_cycles=self.calibration.value("lock_cycles"),
            cycles_of=self.cycles_of,
            cascades=(reads, writes),
        )

    def cycles_of(self, call: Call) -> float:
        """Cycles of a call: arithmetic or loads, whichever is more, and what every call costs."""
        if call.kernel in self.idle:
            return self.calibration.value("call_cycles")
        shapes = [self._argument(a.kind, a.name) for a in call.arguments]
        size = sum(prod(shape) * np.dtype(dtype).itemsize for shape, dtype in shapes)
        if call.macs:
            wide = any(dtype in WIDE for _, dtype in shapes)
            rate = self.rates.int16_macs if wide and self.rates.int16_macs else self.rates.int8_macs
            work = max(call.macs / rate, size / self.rates.load_bytes)
        else:
            work = self.calibration.value("vector_passes") * size / self.rates.load_bytes
        return self.calibration.value("call_cycles") + work

    def _argument(self, kind: str, name: str) -> tuple[tuple[int, ...], str]:
        if kind == "fifo":
            return self.fifos[name].shape, self.fifos[name].dtype
        if kind == "buffer":
            return self.buffers[name].shape, self.buffers[name].dtype
        return (), "int32"

    def _stream(self, stream: Stream, wiring: Wiring) -> TimedStream:
        fifo = self.fifos[stream.fifo]
        shim = "shim" in {stream.source.tile_kind, *(t.tile_kind for t in stream.targets)}
        derate = self.calibration.value("shim_derate") if shim else 1.0
        source = self._end(stream.source, fifo, wiring, fills=True, repeat=stream.repeat_count)
        targets = [self._end(target, fifo, wiring, fills=False, repeat=1) for target in stream.targets]
        hops = max(_hops(stream.source.tile, target.tile) for target in stream.targets)
        return TimedStream(
            Clock(f"DMA of {stream.fifo}", self.spans),
            source,
            targets,
            element_bytes=np.dtype(fifo.dtype).itemsize,
            bytes_per_cycle=self.rates.stream_bytes * derate,
            descriptor_cycles=self.calibration.value("descriptor_cycles"),
            latency_cycles=hops * self.calibration.value("hop_cycles"),
        )

    def _end(self, end: StreamEnd, fifo: Fifo, wiring: Wiring, *, fills: bool, repeat: int) -> End:
        if end.pool:
            pool = wiring.pools[end.pool]
            lanes = [self.lanes[end.pool, index] for index in end.segments]
            return End(lanes, [pool.segments[index].elements for index in end.segments], repeat)
        if fills:
            objects = sum(t.objects for t in self.design.sequence if t.fifo == fifo.name)
            return End([HostSource(fifo.name, objects * self.inferences)], [end.elements], repeat)
        sink = self.sinks.setdefault(fifo.name, HostSink(fifo.name))
        return End([sink], [end.elements], repeat)

    def run(self) -> None:
        """Let everybody go on until nobody can.

        Raises:
            RefusedError: an output never arrived.
        """
        actors: list[TimedWorker | TimedStream] = [worker for _, _, worker in self.workers]
        actors += [actor for _, actor in self.streams]
        for _ in range(MAX_TURNS):
            if not any([actor.run() for actor in actors]):
                break
        short = [name for name, objects in self._expected().items() if len(self._arrived(name)) < objects]
        if short or not self._expected():
            what = "does not run to its end, so it has no times"
            got = f"no output at fifo {short[0]!r}" if short else "no output"
            raise RefusedError(
                (Problem(code="TIMING-STUCK", where=f"design {self.design.dispatch}", what=what, got=got),)
            )

    def _expected(self) -> Mapping[str, int]:
        drained: dict[str, int] = {}
        for transfer in self.design.sequence:
            if transfer.direction == "drain":
                drained[transfer.fifo] = drained.get(transfer.fifo, 0) + transfer.objects * self.inferences
        return drained

    def _arrived(self, fifo: str) -> list[float]:
        return self.sinks[fifo].full if fifo in self.sinks else []

    def result(self) -> Timing:
        """The times."""
        finished = [0.0] * self.inferences
        for fifo, objects in self._expected().items():
            each = objects // self.inferences
            for inference in range(self.inferences):
                finished[inference] = max(finished[inference], self._arrived(fifo)[(inference + 1) * each - 1])
        actors = [w.clock.summary("worker", _place(tile), macs=w.macs) for _, tile, w in self.workers]
        actors += [self._dma(stream, actor) for stream, actor in self.streams]
        first = sorted(self.spans, key=itemgetter(0, 1))[:MAX_SPANS]
        return Timing(
            design=self.design.dispatch,
            inferences=self.inferences,
            finished=tuple(finished),
            actors=tuple(actors),
            spans=tuple(Span(actor=actor, what=what, begin=begin, end=end) for begin, actor, end, what in first),
            clock_mhz=self.device.clock_mhz.value,
        )

    @staticmethod
    def _dma(stream: Stream, actor: TimedStream) -> ActorTime:
        shim = "shim" in {stream.source.tile_kind, *(t.tile_kind for t in stream.targets)}
        kind: Literal["shim", "on_chip"] = "shim" if shim else "on_chip"
        return actor.clock.summary(kind, _place(stream.source.tile), moved_bytes=actor.moved_bytes)


def _hops(source: Tile | None, target: Tile | None) -> int:
    """Stream switches between two tiles; two where one is not placed."""
    if source is None or target is None:
        return 2
    return abs(source.column - target.column) + abs(source.row - target.row) + 1


def _place(tile: Tile | None) -> str:
    return "not placed" if tile is None else f"column {tile.column}, row {tile.row}"
