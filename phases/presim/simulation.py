"""Designs and pieces of them in the simulator, with the oracle's tensors on every fifo that carries one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from manifest.model import Manifest
from phases.presim.flow import carries_activation, held, streams
from phases.presim.source import Inputs
from phases.presim.stages import Piece
from presim.blocks import from_objects, object_count, object_shape, to_objects
from presim.design import Design, Fifo
from presim.evidence import RunEvidence
from presim.kernels import KERNELS
from presim.packing import pack_constants
from presim.simulate import SimData, SimOptions, SimResult, simulate

Array = NDArray[Any]
Streams = Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A design with everything that its simulations need.

    Attributes:
        design: of one dispatch.
        manifest: that it was planned from.
        constants: by keys of buffers and fifos.
        tensors: target values of each inference by tensor, (*shape).
        streams: objects that have to flow, of each inference by fifo.
        real: inferences in front that are the person's data.
    """

    design: Design
    manifest: Manifest
    constants: Mapping[str, Array]
    tensors: Sequence[Mapping[str, Array]]
    streams: Sequence[Streams]
    real: int

    @property
    def counts(self) -> dict[str, int]:
        """Objects of one inference by fifo."""
        return {name: len(objects) for name, objects in self.streams[0].items()}


def bench_of(
    design: Design, manifest: Manifest, arrays: Mapping[str, Array], tensors: Mapping[str, Array], inputs: Inputs
) -> Bench:
    """The bench of a design.

    Args:
        design: of one dispatch.
        manifest: that it was planned from.
        arrays: constants of the manifest.
        tensors: target values, (F, *shape).
        inputs: what they come from.
    """
    rows = [{name: array[i] for name, array in tensors.items()} for i in range(inputs.count)]
    return Bench(
        design=design,
        manifest=manifest,
        constants=pack_constants(design, manifest, arrays),
        tensors=rows,
        streams=[streams(design, manifest, row) for row in rows],
        real=inputs.real,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation, fifos with a tensor that were not compared, and names of all fifos."""

    result: SimResult
    uncompared: tuple[str, ...] = ()
    fifos: frozenset[str] = frozenset()


def run_whole(bench: Bench, handed: Sequence[Mapping[str, Array]], *, schedules: int) -> Run:
    """Every inference back to back through the whole dispatch.

    Args:
        bench: of the dispatch.
        handed: tensors that enter, of each inference, (*shape): what the dispatches before gave.
        schedules: seeded ones beside round-robin.
    """
    design = bench.design
    fills = host_ends(design, "fill")
    inputs = [{name: host_form(row[name], fifo) for name, fifo in fills.items() if name in row} for row in handed]
    drains = host_ends(design, "drain")
    outputs = [
        {name: host_form(row[name], fifo) for name, fifo in drains.items() if name in row} for row in bench.tensors
    ]
    data = SimData(
        kernels=_kernels(design),
        arrays=bench.constants,
        inputs=inputs,
        outputs=outputs,
        fifos=[expected_of(design, row) for row in bench.streams],
    )
    result = simulate(design, data=data, options=SimOptions(schedules=schedules))
    return Run(result=result, uncompared=uncompared(bench, design, result), fifos=_names(design))


def run_piece(bench: Bench, piece: Piece, *, inferences: int = 1, schedules: int = 0) -> Run:
    """A piece of the dispatch, fed with the oracle's objects where it was cut."""
    if piece.unknown:
        text = f"inconclusive: objects of fifo {', '.join(map(repr, piece.unknown))} cannot be derived"
        return Run(result=SimResult(verdict="inconclusive", text=text), uncompared=piece.unknown)
    rows = bench.streams[:inferences]
    data = SimData(
        kernels=_kernels(piece.design),
        arrays=bench.constants,
        inputs=[{name: row[name] for name in piece.fed} for row in rows],
        fifos=[expected_of(piece.design, row) for row in rows],
    )
    result = simulate(piece.design, data=data, options=SimOptions(schedules=schedules))
    return Run(result=result, uncompared=uncompared(bench, piece.design, result), fifos=_names(piece.design))


def handed_on(bench: Bench, result: SimResult) -> list[dict[str, Array]]:
    """Tensors that the host got of each inference, (*shape); the oracle's where it got none."""
    found: list[dict[str, Array]] = []
    drains = host_ends(bench.design, "drain")
    outputs = next((d.outputs for d in bench.manifest.dispatches if d.name == bench.design.dispatch), ())
    for index, row in enumerate(bench.tensors):
        got = result.outputs[index] if index < len(result.outputs) else {}
        arrived = {n: from_host(got[n], row[n], fifo) if n in got else row[n] for n, fifo in drains.items()}
        found.append({n: row[n] for n in outputs} | arrived)
    return found


def host_form(values: Array, fifo: Fifo) -> Array:
    """A tensor as the host holds it: object after object of the fifo's form, one-dimensional.

    Args:
        values: (*shape).
        fifo: that brings it in or out.
    """
    whole = values.reshape(fifo.form) if fifo.form else values
    return to_objects(whole).reshape(-1).astype(fifo.dtype)


def evidence_of(
    run: Run, *, name: str, order: int, dispatch: str, added: str = "", inferences: int, real: int
) -> RunEvidence:
    """A simulation in numbers.

    Args:
        run: what was simulated.
        name: of the stage, the prefix of the chain, or the dispatch.
        order: in which it was run.
        dispatch: of which dispatch.
        added: stage that is new against the run before.
        inferences: different inputs that were to be run.
        real: how many of them are the person's data.
    """
    result = run.result
    return RunEvidence(
        name=name,
        order=order,
        added=added,
        verdict=result.verdict,
        text=result.text,
        inferences=result.inferences,
        schedules=result.schedules,
        boundaries=len([1 for name, count in result.compared.items() if count and name in run.fifos]),
        elements=sum(result.compared.values()),
        mismatches=0 if result.mismatch is None else result.mismatch.different,
        left=tuple((entry.fifo, entry.where, entry.fine, entry.why) for entry in result.left),
        dispatch=dispatch,
        distinct_inputs=inferences,
        real_inputs=min(real, inferences),
        uncompared=run.uncompared,
    )


def failed(error: Exception) -> Run:
    """A run that the simulator refused: the design makes no sense."""
    return Run(result=SimResult(verdict="fault", text=" ".join(f"fault: {error}".split())))


def _kernels(design: Design) -> dict[str, Any]:
    return {kernel.name: KERNELS[kernel.type] for kernel in design.kernels}


def host_ends(design: Design, direction: str) -> dict[str, Fifo]:
    """Host tensors with a fifo that moves them."""
    fifos = {f.name: f for f in design.fifos}
    return {t.tensor: fifos[t.fifo] for t in reversed(design.sequence) if t.direction == direction}


def expected_of(design: Design, row: Streams) -> dict[str, Array]:
    """What consumers of every fifo hold, (objects, elements), where it is known."""
    found = {}
    for fifo in design.fifos:
        objects = held(fifo, row[fifo.name]) if fifo.name in row else None
        if objects is not None:
            found[fifo.name] = objects
    return found


def _names(design: Design) -> frozenset[str]:
    return frozenset(f.name for f in design.fifos)


def uncompared(bench: Bench, design: Design, result: SimResult) -> tuple[str, ...]:
    """Fifos with a tensor of which no element was compared.

    What the host itself fills is the oracle's by definition, also where a memory tile takes it in pieces. What a memory
    tile joins and another one splits never lies whole under one lock: it is compared where all its pieces are.
    """
    compared = {name for name, count in result.compared.items() if count}
    compared |= {n for k in design.links if k.kind == "split" and compared.issuperset(k.targets) for n in k.sources}
    return tuple(
        f.name
        for f in design.fifos
        if carries_activation(f, bench.manifest) and f.producer.kind != "shim" and f.name not in compared
    )


def from_host(flat: Array, like: Array, fifo: Fifo) -> Array:
    """A tensor from the form in which the host holds it; inverse of `host_form`.

    Args:
        flat: object after object of the fifo's form.
        like: has the tensor's shape and dtype.
        fifo: that brings it in or out.
    """
    shape = fifo.form or like.shape
    objects = flat.reshape(object_count(shape), *object_shape(shape))
    return from_objects(objects, shape).reshape(like.shape).astype(like.dtype)
