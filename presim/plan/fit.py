"""Making a dispatch fit the cores of a device: ops share a core, or their weights move to memory tiles.

What costs least comes first: an op that multiplies nothing joins the core in front of it; then weights that are
resident on several cores are streamed to one; then any two ops that follow each other share a core.
"""

from collections.abc import Iterator, Sequence

from manifest.errors import Problem, RefusedError
from presim.blocks import object_count
from presim.kernels.attributes import Forms
from presim.plan.graph import PRODUCTS, Graph, Value
from presim.plan.limits import Limits
from presim.plan.share import (
    CORE_PROGRAM_BYTES,
    PROGRAM_BYTES,
    Share,
    fired_of,
    input_depth,
    kernels_of,
    macs_of,
    need_of,
    output_depth,
)
from presim.plan.spread import Spread

Group = tuple[Share, ...]


class Fitter:
    """Groups of shares, one per core, and the spreads that are left to choose from."""

    def __init__(
        self, graph: Graph, options: Sequence[tuple[Spread, ...]], forms: Forms, limits: Limits, dispatch: str
    ) -> None:
        self.options = options
        self.forms = forms
        self.limits = limits
        self.dispatch = dispatch
        self.chosen = [0] * len(options)
        self.groups: list[Group] = []
        self.reads: dict[Value, int] = {}
        for value in (v for n in graph.nodes for v in n.inputs):
            self.reads[value] = self.reads.get(value, 0) + 1
        for value in dict.fromkeys(v for _, v in graph.outputs):
            self.reads[value] = self.reads.get(value, 0) + 1

    def fit(self) -> tuple[tuple[Spread, ...], tuple[Group, ...]]:
        """Spreads and groups that the cores hold.

        Raises:
            RefusedError: they do not.
        """
        self.regroup()
        while self.limits.cores is not None and len(self.groups) > self.limits.cores:
            if not (self.join(products=False) or self.stream() or self.join(products=True)):
                raise RefusedError((self.refusal(self.limits.cores),))
        return self.spreads, tuple(self.groups)

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """The spread of every node."""
        return tuple(found[i] for found, i in zip(self.options, self.chosen, strict=True))

    def regroup(self) -> None:
        """Every share on a core of its own."""
        self.groups = [(share,) for spread in self.spreads for share in spread.shares]

    def stream(self) -> bool:
        """Take, of one op, the next spread with fewer workers; the one that saves most."""
        steps = []
        for index, found in enumerate(self.options):
            now = len(found[self.chosen[index]].shares)
            later = [i for i, s in enumerate(found) if i > self.chosen[index] and len(s.shares) < now]
            steps += [(len(found[i].shares) - now, index, i) for i in later[:1]]
        if not steps:
            return False
        _, index, choice = min(steps)
        self.chosen[index] = choice
        self.regroup()
        return True

    def join(self, *, products: bool) -> bool:
        """Put two groups that follow each other on one core; the two with the least work together."""
        found = [
            (self.work((*a, *b)), i, j)
            for i, a in enumerate(self.groups)
            for j, b in enumerate(self.groups)
            if self.follows(a, b) and (products or all(s.node.kind not in PRODUCTS for s in b)) and self.holds((*a, *b))
        ]
        if not found:
            return False
        _, i, j = min(found)
        both = (*self.groups[i], *self.groups[j])
        self.groups[i] = both
        del self.groups[j]
        return True

    def follows(self, first: Group, second: Group) -> bool:
        """Whether the second group is the only reader of what the first makes, and both are whole ops."""
        shares = (*first, *second)
        if any(s.bundled or s.beside[1] > 1 or s.cascade[1] > 1 for s in shares):
            return False
        made = first[-1].node.output
        return made in second[0].node.inputs and self.reads[made] == 1

    def holds(self, group: Group) -> bool:
        """Whether a core holds a group: data, descriptors, program, streams."""
        outside = list(self.outside(group))
        needs = [need_of(share, self.forms) for share in group]
        program = CORE_PROGRAM_BYTES + sum({k: PROGRAM_BYTES[k] for k in self.kernels(group)}.values())
        streams = len(outside) + sum(bool(s.chunk) for s in group)
        limits = self.limits
        return (
            len(set(outside)) == len(outside)
            and streams <= limits.inputs
            and (limits.core_bytes is None or sum(n.total for n in needs) <= limits.core_bytes)
            and (limits.core_bds is None or self.descriptors(group) <= limits.core_bds)
            and (limits.program_bytes is None or program <= limits.program_bytes)
        )

    def descriptors(self, group: Group) -> int:
        """Objects that DMAs move; what stays on the core needs none."""
        made = {share.node.output for share in group}
        total = output_depth(group[-1])
        for share in group:
            fired = fired_of(share)
            total += sum(input_depth(share, i, fired) for i, v in enumerate(share.node.inputs) if v not in made)
            total += 2 * bool(share.chunk)
        return total

    def outside(self, group: Group) -> Iterator[Value]:
        """Values that come from elsewhere."""
        made = {share.node.output for share in group}
        for share in group:
            yield from (v for v in share.node.inputs if v not in made)

    def kernels(self, group: Group) -> Iterator[str]:
        """Kernel types of a group."""
        for share in group:
            yield from (kind for kind, _, _ in kernels_of(share, self.forms).parts)

    def work(self, group: Group) -> int:
        """Multiplications and elements of one inference, a measure for what a core has to do."""
        total = 0
        for share in group:
            calls = sum(f.kernel == 0 for f in fired_of(share))
            total += macs_of(share, self.forms) * calls + object_count(share.node.output.form)
        return total

    def refusal(self, have: int) -> Problem:
        """More ops than cores."""
        largest = max(self.spreads, key=lambda s: len(s.shares))
        middle = self.spreads[len(self.spreads) // 2].node
        return Problem(
            code="PLAN-CORES",
            where=f"dispatch {self.dispatch!r}",
            what="it needs more cores than the array has",
            expected=f"at most {have} cores",
            got=f"{len(self.groups)} cores, {len(largest.shares)} of them for op {largest.node.op.name!r}",
            remedy=f"cut the dispatch, for example behind op {middle.op.name!r} (--cut {middle.output.tensor!r})",
        )
