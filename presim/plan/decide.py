"""The choices of a plan, one after the other."""

from manifest.errors import RefusedError
from manifest.model import Dispatch, Manifest
from presim.blocks import object_count
from presim.design import Design
from presim.directives import Directives
from presim.kernels.attributes import Forms
from presim.plan.array import array_problems
from presim.plan.build import Setting
from presim.plan.choices import Choices, Pool, worker_of
from presim.plan.columns import MOST_STRIPS, host_moves, in_strips
from presim.plan.fit import Fitter, Group
from presim.plan.graph import Graph, Node, graph_of, joins_in_memory
from presim.plan.layouts import layouts_of
from presim.plan.limits import Limits
from presim.plan.names import Names
from presim.plan.settle import settle
from presim.plan.spread import Spread, Spreader


def decide(
    manifest: Manifest, dispatch: Dispatch, limits: Limits, directives: Directives, setting: Setting
) -> tuple[Choices, Design]:
    """Everything that a design follows from, and the design.

    Raises:
        RefusedError: an op fits no way, or all together do not fit the array; all problems.
    """
    forms = Forms(manifest)
    graph, options = _options(manifest, dispatch, forms, limits, directives)
    spreads, groups = Fitter(graph, options, forms, limits, setting.dispatch).fit()
    layouts = layouts_of(graph, directives, forms)
    kept = {**_asked_kept(groups, forms, directives), **_bundles(groups, forms)}
    choices = Choices(spreads=spreads, groups=groups, kept=kept, layouts=layouts)
    choices, design = settle(graph, choices, forms, limits, setting)
    if problems := array_problems(design, limits):
        raise RefusedError(problems)
    return choices, design


def nodes_of(manifest: Manifest, dispatch: Dispatch, limits: Limits, directives: Directives) -> Graph:
    """The graph of a dispatch with the strips and vectors that its ops need.

    Raises:
        RefusedError: an op fits no way; all problems.
    """
    return _options(manifest, dispatch, Forms(manifest), limits, directives)[0]


Options = list[tuple[Spread, ...]]
"""The spreads that every node may have, the best first."""


def _options(
    manifest: Manifest, dispatch: Dispatch, forms: Forms, limits: Limits, directives: Directives
) -> tuple[Graph, Options]:
    """The graph, and how its nodes may be spread.

    A dense op that cannot take the rows of an image (all its weights have to be there) takes them as one vector; images
    that are too wide for a core go in strips.
    """
    spreader = Spreader(forms, limits)
    vectors: frozenset[str] = frozenset()
    while True:
        graph = graph_of(manifest, dispatch, vectors)
        found, failed = _spreads(graph, spreader, directives)
        rows = {node.op.name for node in failed if node.kind == "gemm_rows"}
        if not failed:
            return graph, found
        if not rows:
            return _strips(graph, failed, spreader, directives)
        vectors |= rows


def _spreads(graph: Graph, spreader: Spreader, directives: Directives) -> tuple[Options, list[Node]]:
    """Spreads of the nodes that have workers, and the nodes that fit no way."""
    most = spreader.limits.join**2
    nodes = [n for n in graph.nodes if not (joins_in_memory(n) and len(n.inputs) <= most)]
    found = [tuple(spreader.options(node, directives.of(node.op.name))) for node in nodes]
    return found, [node for node, options in zip(nodes, found, strict=True) if not options]


def _strips(graph: Graph, failed: list[Node], spreader: Spreader, directives: Directives) -> tuple[Graph, Options]:
    """The graph in as few strips of columns as fit."""
    for count in range(2, MOST_STRIPS + 1):
        cut = in_strips(graph, count, spreader.forms)
        if cut is None:
            break
        found, left = _spreads(cut, spreader, directives)
        if not left and host_moves(cut, spreader.forms):
            return cut, found
    raise RefusedError(tuple(spreader.refusal(node, directives.of(node.op.name)) for node in failed))


def _asked_kept(groups: tuple[Group, ...], forms: Forms, directives: Directives) -> dict[Pool, int]:
    """Pools that a directive wants to come through a memory tile, object by object."""
    names = Names({name: t.shape for name, t in forms.tensors.items()})
    made = [{share.node.output for share in group} for group in groups]
    return {
        (names.fifo(value), worker_of(group)): 1
        for group, inside in zip(groups, made, strict=True)
        for share in group
        if directives.of(share.node.op.name).edges == "memtile" and not share.sliced
        for value in share.node.inputs
        if value not in inside
    }


def _bundles(groups: tuple[Group, ...], forms: Forms) -> dict[Pool, int]:
    """Pools in memory tiles that put whole tensors together."""
    names = Names({name: t.shape for name, t in forms.tensors.items()})
    return {
        (names.fifo(value), worker_of(group)): object_count(value.form)
        for group in groups
        for share in group
        if share.bundled
        for value in share.node.inputs
    }
