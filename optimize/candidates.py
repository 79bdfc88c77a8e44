"""How each op of a dispatch may be spread: every choice that its own limits allow, with lower bounds.

What a person asked for stays: a key of a directive that is there is never changed, only keys that are not are filled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from manifest.device import Device
from manifest.model import Dispatch, Manifest
from optimize.bounds import Bound, Costs, bound_of, costs_of
from presim.directives import Directive, Directives, Parallelism, Weights
from presim.kernels.attributes import Forms
from presim.plan import graph_in
from presim.plan.graph import Graph, Node
from presim.plan.limits import Limits, limits_of
from presim.plan.share import Share
from presim.plan.spread import CASCADED, SPREADABLE, Spreader
from presim.timing import Calibration

BESIDE: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 37)
ALONG: Final = (1, 2, 4, 6, 8)
STREAMS: Final = (2, 4, 8, 12)
DEPTHS: Final = (4, 7)
"""Objects that an op keeps of inputs that come over paths of different length; two such inputs have 16 descriptors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to spread an op.

    Attributes:
        directive: with the keys of the person in it.
        bound: at least what it costs.
        words: what it is, in words.
    """

    directive: Directive
    bound: Bound
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All choices of a dispatch.

    Attributes:
        graph: its nodes as the planner sees them.
        choices: by op, the one of the planner first, the others by workers and interval.
        given: what the person asked for.
    """

    graph: Graph
    choices: Mapping[str, tuple[Choice, ...]]
    given: Directives

    @property
    def size(self) -> int:
        """Designs of the full product."""
        total = 1
        for found in self.choices.values():
            total *= len(found)
        return total


def space_of(
    manifest: Manifest,
    dispatch: Dispatch,
    device: Device,
    calibration: Calibration,
    given: Directives,
    *,
    max_tiles: int | None = None,
) -> Space:
    """The choices of every op of a dispatch that runs on cores.

    Args:
        manifest: that holds the dispatch.
        dispatch: its ops.
        device: its budgets.
        calibration: of the timing model.
        given: directives of the person.
        max_tiles: cores of the whole design; None = those of the device.

    Raises:
        RefusedError: an op fits no way, or the device lacks figures.
    """
    graph = graph_in(manifest, device, given, dispatch)
    limits, forms = limits_of(device), Forms(manifest)
    spreader, costs = _Quick(forms, limits), costs_of(device, calibration)
    most = min(n for n in (max_tiles, limits.cores, 1 << 16) if n is not None)
    outputs = {value for _, value in graph.outputs}
    nodes: dict[str, list[Node]] = {}
    for node in graph.nodes:
        nodes.setdefault(node.op.name, []).append(node)
    found: dict[str, tuple[Choice, ...]] = {}
    known: dict[tuple[object, ...], tuple[Choice, ...]] = {}
    for op, mine in nodes.items():
        ways = tuple((*(v in graph.inputs for v in n.inputs), n.output in outputs) for n in mine)
        key = (_likeness(mine, forms), ways, given.of(op))
        if key not in known:
            finder = _Finder(spreader, forms, costs, graph, most)
            known[key] = finder.choices(mine, given.of(op), at_host=any(map(any, ways)))
        if known[key]:
            found[op] = known[key]
    return Space(graph=graph, choices=found, given=given)


def _likeness(nodes: Sequence[Node], forms: Forms) -> tuple[object, ...]:
    """What tells ops apart that have different choices; names and values do not."""
    rows: list[object] = []
    for node in nodes:
        tensors = [forms.tensors[name] for name in node.op.inputs if name]
        rows += [(t.shape, t.dtype, t.array is not None, str(t.quant and t.quant.axis)) for t in tensors]
        rows += [node.kind, tuple(v.form for v in node.inputs), node.output.form, node.pads, node.strip]
        rows += [repr(sorted(node.op.attributes.items())), node.op.activation, repr(node.op.bias and node.op.bias.kind)]
        target = node.op.requant.target if node.op.requant is not None else None
        rows += [repr(target), forms.of(node.output.tensor).dtype]
    return tuple(rows)


class _Quick(Spreader):
    """Asks once for shares of the same size whether they fit; a spread over the whole array has few sizes."""

    def __init__(self, forms: Forms, limits: Limits) -> None:
        super().__init__(forms, limits)
        self.known: dict[tuple[object, ...], bool] = {}

    def fits(self, share: Share) -> bool:
        """Whether a share fits its tile."""
        node, part = share.node, share.part
        size = (part.in_count, part.out_count, part.operand, share.chunk, share.makes[1], share.cut[1], share.least)
        ways = (share.last, share.tight, share.sliced, share.bundled, share.beside if share.outer else ())
        key = (node.op.name, node.inputs, node.output, *size, *ways)
        if key not in self.known:
            self.known[key] = super().fits(share)
        return self.known[key]


class _Finder:
    """Finds the choices of one op."""

    def __init__(self, spreader: Spreader, forms: Forms, costs: Costs, graph: Graph, most: int) -> None:
        self.spreader = spreader
        self.forms = forms
        self.costs = costs
        self.graph = graph
        self.most = most
        self.rows: dict[tuple[object, ...], Choice] = {}

    def choices(self, nodes: Sequence[Node], given: Directive, *, at_host: bool) -> tuple[Choice, ...]:
        """All that fit, the planner's own first; more streams of the host only where the host is what bounds."""
        for directive in directives_for(nodes[0], given, self.most):
            choice = self.add(nodes, directive)
            spread = directive.parallelism
            wide = spread is not None and spread.cas_num * spread.cas_length > 1
            if at_host and given.host_streams is None and choice is not None and wide:
                self.add_streams(nodes, choice)
        if not self.rows:
            return ()
        first, *rest = self.rows.values()
        return first, *sorted(rest, key=lambda c: (c.bound.workers, c.bound.interval, c.words))

    def add_streams(self, nodes: Sequence[Node], choice: Choice) -> None:
        """More streams, as long as they help."""
        for streams in STREAMS:
            if choice.bound.resource != "host":
                return
            more = self.add(nodes, replace(choice.directive, host_streams=streams))
            if more is None or more.bound.interval >= choice.bound.interval:
                return
            choice = more

    def add(self, nodes: Sequence[Node], directive: Directive) -> Choice | None:
        """The choice of a directive; None where it does not fit."""
        spreads = [next(self.spreader.options(node, directive), None) for node in nodes]
        bounds = [bound_of(s, self.forms, self.costs, self.graph) for s in spreads if s is not None]
        if len(bounds) < len(nodes) or sum(b.workers for b in bounds) > self.most:
            return None
        same = tuple(_shape_of(share) for spread in spreads if spread is not None for share in spread.shares)
        choice = Choice(directive=directive, bound=_together(bounds), words=words_of(directive))
        return self.rows.setdefault(same, choice)


def _shape_of(share: Share) -> tuple[object, ...]:
    """What tells a share from others of its op."""
    place = (share.beside, share.cascade, share.outer, share.makes, share.sliced)
    return (share.part, share.chunk, share.tight, share.bundled, share.least, share.host_streams, *place)


def _together(bounds: Sequence[Bound]) -> Bound:
    """The bound of an op in strips."""
    worst = max(bounds, key=lambda b: b.interval)
    return replace(worst, workers=sum(b.workers for b in bounds), first=min(b.first for b in bounds))


def directives_for(node: Node, given: Directive, most: int) -> Iterator[Directive]:
    """Directives for an op, the person's own first; what is in it stays in all.

    Args:
        node: of the op.
        given: by the person.
        most: workers.
    """
    yield given
    if len(node.inputs) > 1 and given.depth is None:
        yield from (replace(given, depth=depth) for depth in DEPTHS)
    group = int(str(node.op.attributes.get("group", 1)))
    spreads = node.kind in SPREADABLE or (node.kind == "conv" and group > 1)
    for spread in _parallelisms(node, most, group) if given.parallelism is None and spreads else (given.parallelism,):
        for weights in _weights(node, given, spread):
            made = replace(given, parallelism=spread, weights=weights)
            if spread is not None or weights is not None:
                yield made


def _weights(node: Node, given: Directive, spread: Parallelism | None) -> Sequence[Weights | None]:
    if given.weights is not None or node.kind not in CASCADED:
        return (given.weights,)
    streamed = spread is not None and spread.cas_length == 1 and spread.contract == "inner"
    return ("resident", "streamed") if streamed else ("resident",)


def _parallelisms(node: Node, most: int, group: int) -> Iterator[Parallelism]:
    along = ALONG if node.kind in CASCADED and group == 1 else (1,)
    for length in along:
        for count in BESIDE:
            if count * length <= most:
                yield Parallelism(cas_num=count, cas_length=length)
                if count > 1:
                    yield Parallelism(cas_num=count, cas_length=length, contract="outer")


def words_of(directive: Directive) -> str:
    """A directive in words."""
    words = []
    if directive.parallelism is not None:
        spread = directive.parallelism
        words.append(f"{spread.cas_num}x{spread.cas_length} {spread.contract}")
    words += [f"weights {directive.weights}"] if directive.weights == "streamed" else []
    words += [f"{directive.host_streams} streams of the host"] if directive.host_streams else []
    words += [f"depth {directive.depth}"] if directive.depth else []
    words += [f"edges {directive.edges}"] if directive.edges else []
    return ", ".join(words) or "as the planner decides"
