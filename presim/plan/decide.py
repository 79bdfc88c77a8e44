"""The choices of a plan, one after the other: spreads, depths, what memory tiles keep."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from manifest.errors import Problem, RefusedError
from manifest.model import Dispatch, Manifest
from presim.blocks import object_count
from presim.design import Design
from presim.directives import Directives
from presim.kernels.attributes import Forms
from presim.plan.array import array_problems
from presim.plan.build import Choices, Pool, Setting, build, worker_of
from presim.plan.fit import Fitter, Group
from presim.plan.graph import Graph, graph_of, joins_in_memory
from presim.plan.limits import MEM_OBJECTS, Limits
from presim.plan.loads import Load, loads
from presim.plan.names import Names
from presim.plan.spread import Spread, Spreader
from presim.plan.tokens import Run, StuckError
from presim.pools import Pool as Memory

MOST_ROUNDS: Final = 64


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
    choices = Choices(spreads=spreads, groups=groups, kept=_bundles(groups, forms))
    choices, design = _settle(graph, choices, forms, limits, setting)
    if problems := array_problems(design, limits):
        raise RefusedError(problems)
    return choices, design


def _options(
    manifest: Manifest, dispatch: Dispatch, forms: Forms, limits: Limits, directives: Directives
) -> tuple[Graph, list[tuple[Spread, ...]]]:
    """The graph, and the spreads that every node may have, the best first.

    A dense op that cannot take the rows of an image (all its weights have to be there) takes them as one vector.
    """
    spreader = Spreader(forms, limits)
    vectors: frozenset[str] = frozenset()
    while True:
        graph = graph_of(manifest, dispatch, vectors)
        nodes = [n for n in graph.nodes if not (joins_in_memory(n) and limits.join >= len(n.inputs))]
        found = [tuple(spreader.options(node, directives.of(node.op.name))) for node in nodes]
        failed = [node for node, options in zip(nodes, found, strict=True) if not options]
        rows = {node.op.name for node in failed if node.kind == "gemm_rows"}
        if not failed:
            return graph, found
        if not rows:
            raise RefusedError(tuple(spreader.refusal(node, directives.of(node.op.name)) for node in failed))
        vectors |= rows


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


def _settle(graph: Graph, choices: Choices, forms: Forms, limits: Limits, setting: Setting) -> tuple[Choices, Design]:
    """Depths by running the design; pools that a core cannot hold move into memory tiles."""
    for _ in range(MOST_ROUNDS):
        flat = replace(choices, depths={})
        design = build(graph, flat, forms, setting)
        deeper = _depths(design, flat)
        choices = replace(choices, depths=deeper)
        design = build(graph, choices, forms, setting)
        kept = _overflow(design, choices, limits)
        if not kept:
            return choices, design
        choices = replace(choices, kept={**choices.kept, **kept})
    msg = "the choices of a plan do not settle"
    raise ValueError(msg)


def _depths(design: Design, choices: Choices) -> dict[Pool, int]:
    run = Run(design)
    try:
        grown = run.finish()
    except StuckError as error:
        msg = f"dispatch {design.dispatch!r}: its paths wait for each other"
        raise ValueError(msg) from error
    branches = {f"mem:{fifo}>{worker}": (fifo, worker) for fifo, worker in choices.kept}
    pools = run.wiring.pools
    return {branches.get(pools[n].actor, (pools[n].fifo, _reader(pools[n], run))): d for n, d in grown.items()}


def _reader(pool: Memory, run: Run) -> str:
    return run.fifos[pool.fifo].consumers[0].actor if pool.kind == "shared" else pool.actor


def _overflow(design: Design, choices: Choices, limits: Limits) -> Mapping[Pool, int]:
    """Of every core that is too full, the deepened pool that moves out."""
    kept: dict[Pool, int] = {}
    for load in loads(design):
        if not _too_full(load, limits):
            continue
        mine = [p for p in choices.depths if p[1] == load.worker and p not in choices.kept]
        if not mine or not limits.join:
            raise RefusedError((_too_much(load, limits),))
        pool = max(mine, key=lambda p: (load.bytes_by_fifo.get(p[0], 0), p))
        kept[pool] = _together(design, pool[0], choices.depths[pool])
    return kept


def _too_full(load: Load, limits: Limits) -> bool:
    over = limits.core_bytes is not None and load.bytes > limits.core_bytes
    return over or (limits.core_bds is not None and load.descriptors > limits.core_bds)


def _too_much(load: Load, limits: Limits) -> Problem:
    return Problem(
        code="PLAN-L1",
        where=f"worker {load.worker!r}",
        what="its objects and buffers do not fit a core tile",
        expected=f"at most {limits.core_bytes} bytes and {limits.core_bds} descriptors",
        got=f"{load.bytes} bytes and {load.descriptors} descriptors",
        remedy="cut the model in front of it (--cut)",
    )


def _together(design: Design, fifo: str, depth: int) -> int:
    """Objects that lie together in a memory tile, so that its descriptors are enough."""
    moved = {t.fifo: t.objects for t in design.sequence}
    del moved
    found = next(f for f in design.fifos if f.name == fifo)
    del found
    return 1 if depth <= MEM_OBJECTS else depth
