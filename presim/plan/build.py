"""From choices to a design: workers with their programs, kernels and buffers, on the fifos of `presim.plan.flows`.

Pure: the same choices give the same design. Making them is the business of `presim.plan.decide`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from manifest.layout import kernel_pair
from presim.design import AttributeValue, Buffer, Cascade, Design, Endpoint, Fifo, Kernel, Worker
from presim.kernels.attributes import BufferSpec, Forms, Part, attributes_of
from presim.plan.access import integers
from presim.plan.choices import Choices, worker_of
from presim.plan.flows import Flows
from presim.plan.graph import PRODUCTS, Graph, Value
from presim.plan.layouts import ATTRIBUTE
from presim.plan.program import Body, Feed, Job, Programmed, Weights, write_program
from presim.plan.share import PROGRAM_BYTES, Share, fired_of, input_total, kernels_of, macs_of, output_shape
from presim.plan.spread import Spread
from presim.steps import elements_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a design is built for.

    Attributes:
        dispatch: name.
        device: name.
        stack_bytes: of a core.
        cascade_words: words that a cascade holds.
        cascade_bits: of a word.
        mmul: block shapes (r, s, t) of the device by pair of types, the first of each.
    """

    dispatch: str
    device: str
    stack_bytes: int
    cascade_words: int
    cascade_bits: int
    mmul: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


def build(graph: Graph, choices: Choices, forms: Forms, setting: Setting) -> Design:
    """The design of a graph under `choices`, without splits and notes."""
    return _Builder(graph, choices, forms, setting).build()


class _Builder:
    def __init__(self, graph: Graph, choices: Choices, forms: Forms, setting: Setting) -> None:
        self.graph = graph
        self.choices = choices
        self.forms = forms
        self.setting = setting
        self.flows = Flows(graph, choices, forms)
        self.fifos = self.flows.fifos
        self.names = self.flows.names
        self.home = self.flows.home
        self.buffers: list[Buffer] = []
        self.kernels: list[Kernel] = []
        self.cascades: list[Cascade] = []
        self.workers: list[Worker] = []

    def build(self) -> Design:
        for group in self.choices.groups:
            self.add_worker(group)
        for spread in self.choices.spreads:
            self.add_cascades(spread)
        return Design(
            dispatch=self.setting.dispatch,
            device=self.setting.device,
            workers=tuple(self.workers),
            fifos=tuple(self.fifos.values()),
            kernels=tuple(self.kernels),
            links=tuple(self.flows.links),
            buffers=tuple(self.buffers),
            cascades=tuple(self.cascades),
            sequence=tuple(self.flows.sequence()),
            views=self.graph.views,
        )

    def add_worker(self, group: tuple[Share, ...]) -> None:
        """A worker with the program of its shares."""
        name = worker_of(group)
        inside = {share.node.output for share in group if share.last and self.internal(share)}
        written = write_program([self.job(share, group, inside) for share in group])
        self.deepen(written)
        stages = dict.fromkeys(share.node.op.name for share in group)
        self.workers.append(
            Worker(
                name=name,
                tile=None,
                program=written.steps,
                stack_bytes=self.setting.stack_bytes,
                stage=", ".join(stages),
            )
        )

    def internal(self, share: Share) -> bool:
        """Whether only its own worker reads what a share makes."""
        fifo = self.fifos.get(self.names.fifo(share.node.output))
        home = self.home[share.name]
        return fifo is not None and fifo.producer.actor == home and [c.actor for c in fifo.consumers] == [home]

    def deepen(self, written: Programmed) -> None:
        """Fifos inside a worker get the depth that its program needs."""
        for name, depth in written.depths.items():
            fifo = self.fifos[name]
            end = Endpoint(actor=fifo.producer.actor)
            self.fifos[name] = replace(fifo, producer=end, consumers=(end,), depth=depth, via_dma=False)

    def job(self, share: Share, group: tuple[Share, ...], inside: set[Value]) -> Job:
        """The work of a share, with its kernels and buffers added to the design."""
        kernels = kernels_of(share, self.forms)
        scratch: dict[str, str] = {}
        stream = None
        if kernels.stream is not None:
            fifo = self.add_stream(share, worker_of(group))
            stream = Weights(fifo=fifo, objects=kernels.stream.count, chunk=kernels.stream.chunk)
        bodies = []
        for position, (kind, part, specs) in enumerate(kernels.parts):
            kernel = f"{share.name}:{kind}" + (f"{part.operand}" if part.operand else "")
            requant = share.node.op.requant
            self.kernels.append(
                Kernel(
                    name=kernel,
                    op=share.node.op.name,
                    type=kind,
                    attributes=self.attributes(share, part),
                    rounding=requant.rounding if requant is not None else "conv_even",
                    saturation=requant.saturation if requant is not None else "saturate",
                    program_bytes=PROGRAM_BYTES[kind],
                )
            )
            bodies.append(
                Body(
                    kernel=kernel,
                    buffers=tuple(self.add_buffer(share, spec, scratch) for spec in specs),
                    weights=stream if position == 0 else None,
                    cascade_in=share.cascade[0] > 0 and position == 0,
                    cascade_out=not share.last and position == 0,
                    macs=macs_of(share, self.forms) if position == 0 else 0,
                )
            )
        return Job(
            name=share.name,
            fired=fired_of(share),
            feeds=tuple(
                self.feed(share, port, worker_of(group), inside) for port, value in enumerate(share.node.inputs)
            ),
            operands=share.node.operands,
            output=self.output_of(share),
            internal=share.node.output in inside,
            bodies=tuple(bodies),
        )

    def attributes(self, share: Share, part: Part) -> tuple[tuple[str, AttributeValue], ...]:
        """What the kernel files ask for, and what only a plan knows.

        `bundled`: whole tensors lie together; `layout` of the weights, where one is asked for; `mmul`: the device's
        block shape for a product; pads and width of a strip.
        """
        found = dict(attributes_of(share.node.op, self.forms, part))
        if share.bundled:
            found["bundled"] = 1
        if (layout := self.choices.layouts.get(share.node.op.name)) is not None:
            found[ATTRIBUTE] = layout
        if share.node.kind in PRODUCTS and (block := self.block(share)) is not None:
            found["mmul"] = block
        if share.node.pads is not None:
            top, _, bottom, most = integers(share.node.op, "pads")
            left, right = share.node.pads[0], min(share.node.pads[1], most)
            found["pads_lr"] = (left, right)
            if "in_width" in found:
                found["pads"] = (top, left, bottom, right)
                found["in_width"] = share.node.inputs[0].form[3]
        return tuple(sorted(found.items()))

    def block(self, share: Share) -> tuple[int, int, int] | None:
        """The device's block shape for the types of a product, None where none is known."""
        types = [self.forms.tensors[n].dtype for n in share.node.op.inputs[:2]]
        return self.setting.mmul.get(kernel_pair(*types))

    def feed(self, share: Share, port: int, worker: str, inside: set[Value]) -> Feed:
        """An input of a share: the fifo that its worker reads."""
        value = share.node.inputs[port]
        name = self.names.part(value, share) if share.sliced else self.names.fifo(value)
        if (name, worker) in self.choices.kept:
            name = self.names.branch(value, worker)
        return Feed(fifo=name, total=input_total(share, port), internal=value in inside)

    def output_of(self, share: Share) -> str:
        """Fifo that a share fills, "" where it ends in a cascade."""
        if not share.last:
            return ""
        value = share.node.output
        return self.names.slice(value, share) if len(self.flows.makers[value]) > 1 else self.names.fifo(value)

    def add_buffer(self, share: Share, spec: BufferSpec, scratch: dict[str, str]) -> str:
        """A buffer of a kernel; scratch is shared by both kernels of a share."""
        if spec.array is None and spec.kind in scratch:
            return scratch[spec.kind]
        suffix = spec.kind
        taken = {b.name for b in self.buffers}
        name, number = f"{share.name}:{suffix}", 1
        while name in taken:
            number += 1
            name = f"{share.name}:{suffix}{number}"
        self.buffers.append(Buffer(name=name, tile=None, shape=spec.shape, dtype=spec.dtype, array=spec.array))
        if spec.array is None:
            scratch[spec.kind] = name
        return name

    def add_stream(self, share: Share, worker: str) -> str:
        """The fifo that brings weights from a memory tile over and over."""
        spec = kernels_of(share, self.forms).stream
        if spec is None:
            msg = f"{share.name}: expected streamed weights"
            raise ValueError(msg)
        name = f"weights:{share.name}"
        self.fifos[name] = Fifo(
            name=name,
            shape=spec.shape,
            dtype=spec.dtype,
            producer=Endpoint(actor=f"mem:{name}", kind="mem", depth=spec.count),
            consumers=(Endpoint(actor=worker, depth=1 if share.tight else 2),),
            depth=spec.count,
            literal=True,
            init_array=spec.array,
            init_objects=spec.count,
            tensor=share.node.op.inputs[1],
        )
        return name

    def add_cascades(self, spread: Spread) -> None:
        """The cascades of a spread, each from a share to the next."""
        bits = self.setting.cascade_bits
        for share, after in zip(spread.shares, spread.shares[1:], strict=False):
            if share.last:
                continue
            sums = elements_of(output_shape(share)) * int(self.accumulator(share))
            self.cascades.append(
                Cascade(
                    source=self.home[share.name],
                    target=self.home[after.name],
                    depth=self.setting.cascade_words,
                    words=-(-sums // bits),
                )
            )

    def accumulator(self, share: Share) -> int:
        """Bits of a summand."""
        op = share.node.op
        return op.accumulator.bits if op.accumulator is not None else 32
