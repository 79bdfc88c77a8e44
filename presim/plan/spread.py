"""How an op is spread over workers: whole, by output channels, by the reduction, or with streamed weights.

In this order, the first that fits: weights resident on one worker; resident on several, each with a slice of the output
channels, joined in a memory tile; summands spread over a cascade; weights streamed from a memory tile, object after
object, for every output object anew. Each is tried with doubled objects first, then without.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from manifest.errors import Problem
from presim.blocks import LANES, object_count
from presim.directives import Directive, Parallelism
from presim.kernels.attributes import Forms, Part
from presim.plan.graph import WHOLE, Node, meets_in_blocks
from presim.plan.limits import STREAM_OBJECTS, Limits, size_of
from presim.plan.share import Need, Share, channels_of, kernels_of, need_of

SPREADABLE: Final = ("conv", "gemm", "gemm_rows")
CASCADED: Final = ("conv", "gemm")
LONGEST_CASCADE: Final = 8
USUAL: Final = 2
"""Objects that a worker has room for where it takes them one by one."""

JOINS: Final = 3
"""Memory tiles one behind the other that join what many workers make."""

BY_CHANNEL: Final = (
    "max_pool",
    "average_pool",
    "global_average_pool",
    "relu",
    "clip",
    "requantize",
    "lut",
    "add",
    "mul",
)
"""Kernels whose output channels need their own input channels alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The shares of a node.

    Attributes:
        node: what is computed.
        shares: by place beside each other, then along the cascade.
    """

    node: Node
    shares: tuple[Share, ...]

    @property
    def makers(self) -> tuple[Share, ...]:
        """Shares that make output objects."""
        return tuple(s for s in self.shares if s.last)

    @property
    def resident(self) -> bool:
        """Whether weights lie in the memories of the workers."""
        return not any(s.chunk for s in self.shares)


class Spreader:
    """Finds the spread of nodes within the limits of a device."""

    def __init__(self, forms: Forms, limits: Limits) -> None:
        self.forms = forms
        self.limits = limits

    def fits(self, share: Share) -> bool:
        """Whether a share fits its tile; what the device file does not say limits nothing."""
        need = need_of(share, self.forms)
        room, bds = self.limits.core_bytes, self.limits.core_bds
        if len(share.node.inputs) + bool(share.chunk) > self.limits.inputs:
            return False
        return (room is None or need.total <= room) and (bds is None or need.descriptors <= bds)

    def options(self, node: Node, directive: Directive) -> Iterator[Spread]:
        """All spreads that fit, the best first; of those asked for, only these."""
        for spread in self.found(node, directive):
            if directive.weights is None or spread.resident == (directive.weights == "resident"):
                least, streams = directive.depth or 0, directive.host_streams or 1
                shares = tuple(replace(s, least=max(s.least, least), host_streams=streams) for s in spread.shares)
                if not least or all(self.fits(s) and not s.tight for s in shares):
                    yield Spread(node=node, shares=shares)

    def found(self, node: Node, directive: Directive) -> Iterator[Spread]:
        """The spreads that a parallelism leaves, the best first."""
        if directive.parallelism is not None:
            yield from self.asked(node, directive)
            return
        whole = self.whole(node)
        for tight in (False, True):
            for candidate in self.resident(replace(whole, tight=tight)):
                if all(self.fits(s) for s in candidate):
                    yield Spread(node=node, shares=candidate)
                    break
            yield from self.streamed(replace(whole, tight=tight))
        for sliced in (False, True):
            for tight in (False, True):
                yield from self.reduced(replace(whole, tight=tight, sliced=sliced))

    def whole(self, node: Node) -> Share:
        """The op on one worker. Tensors that are held whole lie together: a core has too few descriptors for more."""
        counts = [object_count(v.form) for v in (*node.inputs, node.output)]
        return Share(node=node, part=Part(), bundled=node.kind in WHOLE and self.limits.join > 0 and max(counts) > 1)

    def resident(self, whole: Share) -> Iterator[tuple[Share, ...]]:
        """Weights in the memories of 1, 2, ... workers."""
        yield (whole,)
        if meets_in_blocks(whole.node) and len(whole.node.inputs) <= self.limits.join:
            yield self.by_operand(whole)
        if whole.node.kind in SPREADABLE:
            for count in range(2, self.limits.join + 1):
                shares = self.sliced(whole, count)
                if len(shares) == count:
                    yield shares
        yield from self.by_channels(whole)

    def by_channels(self, whole: Share) -> Iterator[tuple[Share, ...]]:
        """Input and output channels dealt out to 2, 3, ... workers, where an op keeps channels apart."""
        node, total = whole.node, channels_of(whole.node.output)
        depthwise = node.kind == "conv" and node.op.attributes.get("group") == total
        apart = depthwise or node.kind in BY_CHANNEL
        if not apart or any(channels_of(v) != total for v in node.inputs):
            return
        for count in range(2, self.limits.join + 1):
            shares = self.sliced(whole, count)
            if len(shares) == count:
                first = [s.part.out_first if depthwise else 0 for s in shares]
                parts = [replace(s.part, x_first=n) for s, n in zip(shares, first, strict=True)]
                yield tuple(replace(s, part=p, sliced=True) for s, p in zip(shares, parts, strict=True))

    def by_operand(self, whole: Share) -> tuple[Share, ...]:
        """Every operand of a Concat on a worker of its own, joined in a memory tile."""
        node, count = whole.node, len(whole.node.inputs)
        first = 0
        shares = []
        for index, value in enumerate(node.inputs):
            alone = Node(op=node.op, kind="requantize", inputs=(value,), operands=(0,), output=node.output)
            channels = channels_of(value)
            part = Part(operand=index)
            shares.append(replace(whole, node=alone, part=part, beside=(index, count), makes=(first, channels)))
            first += channels
        return tuple(shares)

    def sliced(self, whole: Share, count: int) -> tuple[Share, ...]:
        """Output channels dealt out in whole blocks; fewer shares where there are fewer blocks."""
        step = self.step(whole.node)
        total = channels_of(whole.node.output)
        blocks = -(-total // step)
        count = min(count, blocks)
        edges = [min(total, step * (blocks * i // count)) for i in range(count + 1)]
        if count == 1:
            return (whole,)
        return tuple(
            replace(whole, part=replace(whole.part, out_first=a, out_count=b - a), beside=(i, count), makes=(a, b - a))
            for i, (a, b) in enumerate(pairwise(edges))
        )

    def step(self, node: Node) -> int:
        """Output channels that stay together: a lane block, and whole groups of a Conv."""
        if node.kind != "conv":
            return LANES
        group = int(str(node.op.attributes.get("group", 1)))
        return math.lcm(LANES, channels_of(node.output) // group) if group > 1 else LANES

    def streamed(self, whole: Share) -> Iterator[Spread]:
        """Weights in memory tiles, for as few workers and in as few objects as fit."""
        if whole.node.kind not in CASCADED:
            return
        for count in range(1, self.limits.join + 1):
            if cut := self.cut(whole, count):
                yield Spread(node=whole.node, shares=cut)
                return

    def chunk(self, share: Share, objects: int) -> int:
        """Output channels of one object where all of a share come in so many; 0 = there are not so many blocks."""
        step, total = self.step(share.node), share.makes[1] or channels_of(share.node.output)
        chunk = step * -(-total // (step * objects))
        return chunk if chunk < total else 0

    def memtile_holds(self, share: Share) -> bool:
        """Whether the streamed weights of a share fit a memory tile."""
        stream, size = kernels_of(share, self.forms).stream, self.limits.memtile_bytes
        return stream is None or size is None or stream.count * size_of(stream.shape, stream.dtype) <= size

    def reduced(self, whole: Share) -> Iterator[Spread]:
        """Summands over a cascade, beside each other as often as needed."""
        if whole.node.kind not in CASCADED or int(str(whole.node.op.attributes.get("group", 1))) > 1:
            return
        if whole.sliced and not self.limits.join:
            return
        for length in range(2, LONGEST_CASCADE + 1):
            for count in range(1, self.limits.join + 1 if self.limits.join else 2):
                shares = self.grid(whole, count, length)
                if shares and all(self.fits(s) for s in shares):
                    yield Spread(node=whole.node, shares=self.eased(shares))
                    return

    def eased(self, shares: tuple[Share, ...]) -> tuple[Share, ...]:
        """Room for what a worker gets before its turn, if it fits: the summands of those before it, or its own object.

        All of a cascade take their objects from one stream or one object in a memory tile, so that the first could not
        go on before the last one took its part; those that make every n-th object get the others' objects too.
        """
        early = [s.cascade[0] + (s.beside[1] - 1 if s.outer else 0) for s in shares]
        eased = tuple(replace(s, least=USUAL + n) if n else s for s, n in zip(shares, early, strict=True))
        return eased if all(self.fits(s) and not s.tight for s in eased) else shares

    def grid(self, whole: Share, count: int, length: int) -> tuple[Share, ...]:
        """`count` slices of output channels, each over a cascade of `length`; () where there are not so many."""
        slices = self.sliced(whole, count)
        summands = self.summands(whole.node)
        step = LANES if whole.sliced or summands >= length * LANES else 1
        if len(slices) != count or summands <= step * (length - 1):
            return ()
        blocks = -(-summands // step)
        edges = [min(summands, step * (blocks * i // length)) for i in range(length + 1)]
        if length == 1:
            return slices
        return tuple(
            replace(s, part=_summing(s, a, b), cascade=(i, length))
            for s in slices
            for i, (a, b) in enumerate(pairwise(edges))
        )

    def summands(self, node: Node) -> int:
        """Input channels of a Conv, length of the vectors of a Gemm."""
        return channels_of(node.inputs[0])

    def asked(self, node: Node, directive: Directive) -> Iterator[Spread]:
        """The spread that a directive asks for: a cascade with its input in slices, where a memory tile can cut it."""
        parallelism = directive.parallelism or Parallelism()
        whole, length = self.whole(node), parallelism.cas_length
        if directive.weights == "streamed":
            yield from self.asked_streamed(whole, parallelism)
            return
        cut = length > 1 and (length <= self.limits.mem_out or (directive.host_streams or 1) > 1)
        for tight in (False, True):
            for sliced in (True, False) if cut else (False,):
                shares = self.directed(replace(whole, tight=tight, sliced=sliced), parallelism)
                if shares and all(self.fits(s) for s in shares):
                    yield Spread(node=node, shares=self.eased(shares))
                    return

    def asked_streamed(self, whole: Share, parallelism: Parallelism) -> Iterator[Spread]:
        """The spread of a directive with streamed weights; a cascade has them resident."""
        if whole.node.kind in CASCADED and parallelism.cas_length == 1 and parallelism.contract == "inner":
            for tight in (False, True):
                found = self.cut(replace(whole, tight=tight), parallelism.cas_num)
                if found:
                    yield Spread(node=whole.node, shares=found)
                    return

    def cut(self, whole: Share, count: int) -> tuple[Share, ...]:
        """`count` shares with streamed weights in as few objects as fit; () = it does not fit."""
        shares = self.sliced(whole, count)
        for objects in range(2, STREAM_OBJECTS + 1):
            cut = tuple(replace(s, chunk=self.chunk(s, objects)) for s in shares)
            if len(shares) == count and all(s.chunk and self.fits(s) and self.memtile_holds(s) for s in cut):
                return cut
        return ()

    def directed(self, whole: Share, asked: Parallelism) -> tuple[Share, ...]:
        """Shares of a directive; () where the op cannot be spread so."""
        node, count, length = whole.node, asked.cas_num, asked.cas_length
        if length > 1 and node.kind not in CASCADED:
            return ()
        if count > 1 and (count > self.limits.join**JOINS or node.kind in WHOLE):
            return ()
        if asked.contract == "outer" and count > 1:
            if object_count(node.output.form) % count or node.kind in ("gemm_rows", "global_average_pool"):
                return ()
            inner = self.grid(whole, 1, length)
            return tuple(replace(s, beside=(i, count), outer=True) for i in range(count) for s in inner)
        if count > 1 and node.kind not in SPREADABLE:
            return ()
        return self.grid(whole, count, length)

    def refusal(self, node: Node, directive: Directive) -> Problem:
        """Why no spread fits, with need, have and what would."""
        where = f"op {node.op.name!r} ({node.op.type})"
        asked = directive.parallelism
        if asked is not None and not self.directed(self.whole(node), asked):
            return Problem(
                code="PLAN-DIRECTIVE",
                where=where,
                what=f"{node.kind} cannot be spread with cas_num {asked.cas_num}, cas_length {asked.cas_length}, "
                f"contract {asked.contract}",
                expected=f"cas_num up to {self.limits.join**JOINS or 1}, blocks of {self.step(node)} output channels, "
                "a number of output objects that cas_num divides for outer, a cascade for Conv and Gemm alone",
            )
        if directive.weights is not None or directive.depth is not None:
            wish = {"weights": directive.weights, "depth": directive.depth}
            return Problem(
                code="PLAN-DIRECTIVE",
                where=where,
                what=" and ".join(f"{key} {value}" for key, value in wish.items() if value is not None)
                + " fit no way of spreading it",
                expected="weights that a core or a memory tile holds (streamed: Conv and Gemm, no cascade, at least "
                "two blocks of output channels), a depth for which a core has memory and descriptors",
                remedy="leave the key out, or spread the op further",
            )
        if len(node.inputs) > self.limits.inputs:
            return Problem(
                code="PLAN-CHANNELS",
                where=where,
                what=f"{len(node.inputs)} activations meet on one core",
                expected=f"at most {self.limits.inputs} streams into a core; more where all but the last have a "
                "multiple of 8 channels",
                got=f"{len(node.inputs)} streams",
                remedy="join them in steps of two in the model",
            )
        need = need_of(replace(self.whole(node), tight=True), self.forms)
        have = self.limits.core_bytes or 0
        return Problem(
            code="PLAN-L1",
            where=where,
            what=_over(need, have, self.limits.core_bds),
            expected=f"at most {have} bytes and {self.limits.core_bds} objects on a core tile",
            got=f"{need.weights} bytes of weights, {need.fixed} of bias and scales, {need.objects} of objects, "
            f"{need.descriptors} objects",
            remedy=self.remedy(node, need, have),
        )

    def remedy(self, node: Node, need: Need, have: int) -> str:
        """The split or cut that would fit."""
        behind = f"cut the model around it (--cut {node.output.tensor!r})"
        if node.kind in WHOLE:
            return f"its operands have to be held whole: make them smaller in the model, or {behind}"
        if need.objects > have:
            pieces = -(-need.objects // max(1, have))
            return (
                f"its rows are too long for a core: alone in a dispatch it runs in {pieces} or more strips of columns; "
                f"{behind}"
            )
        return f"make it smaller in the model, or {behind}"


def _summing(share: Share, first: int, end: int) -> Part:
    """The part that sums over [first, end) of the input channels."""
    return replace(share.part, in_first=first, in_count=end - first, x_first=first if share.sliced else 0)


def _over(need: Need, have: int, descriptors: int | None) -> str:
    """Which budget it is."""
    if need.total > have:
        return f"it does not fit the data memory of a core: need {need.total} bytes, have {have}"
    return f"it needs more buffer descriptors than a core has: need {need.descriptors}, have {descriptors}"
