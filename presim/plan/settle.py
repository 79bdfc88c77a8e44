"""How deep pools have to be, and which of them a memory tile keeps.

A design is built with the usual depths and run on counts; where a path waits for another one, the pool in its way
grows. What a core cannot hold then moves into a memory tile, and the design is run again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from manifest.errors import Problem, RefusedError
from presim.blocks import object_count
from presim.design import Design, Fifo
from presim.kernels.attributes import Forms
from presim.plan.build import Setting, build
from presim.plan.choices import Choices, Pool
from presim.plan.graph import Graph
from presim.plan.limits import MAX_DEPTH, MEM_OBJECTS, Limits
from presim.plan.loads import Load, loads
from presim.plan.tokens import Run, StuckError

MOST_ROUNDS: Final = 256


def settle(graph: Graph, choices: Choices, forms: Forms, limits: Limits, setting: Setting) -> tuple[Choices, Design]:
    """Choices with depths and what memory tiles keep, and their design.

    Raises:
        RefusedError: a core is too full and nothing of it can move out.
    """
    for _ in range(MOST_ROUNDS):
        choices = replace(choices, depths={})
        design = build(graph, choices, forms, setting)
        if depths := _depths(design, choices):
            choices = replace(choices, depths=depths)
            design = build(graph, choices, forms, setting)
        moved = dict(_moved(design, choices, forms, limits))
        if not moved:
            return choices, design
        choices = replace(choices, kept={**choices.kept, **moved})
    problem = Problem(
        code="PLAN-DEPTH",
        where=f"dispatch {setting.dispatch!r}",
        what="no depths were found with which its paths do not wait for each other",
        remedy="cut the dispatch where paths part (--cut)",
    )
    raise RefusedError((problem,))


def _depths(design: Design, choices: Choices) -> dict[Pool, int]:
    run = Run(design)
    try:
        grown = run.finish()
    except StuckError as error:
        problem = Problem(
            code="PLAN-DEPTH",
            where=f"dispatch {design.dispatch!r}",
            what=f"its paths wait for each other, and no depth helps: {error}",
            expected=f"depths of at most {MAX_DEPTH} with which every worker gets its objects",
            remedy="cut the dispatch where paths part (--cut)",
        )
        raise RefusedError((problem,)) from error
    branches = {f"mem:{fifo}>{worker}": (fifo, worker) for fifo, worker in choices.kept}
    found: dict[Pool, int] = {}
    for name, depth in grown.items():
        pool = run.wiring.pools[name]
        reader = run.fifos[pool.fifo].consumers[0].actor if pool.kind == "shared" else pool.actor
        found[branches.get(pool.actor, (pool.fifo, reader))] = depth
    return found


def _moved(design: Design, choices: Choices, forms: Forms, limits: Limits) -> Iterator[tuple[Pool, int]]:
    """Pools that move into a memory tile or lie there in larger objects, with the objects that lie together."""
    fifos = {f.name: f for f in design.fifos}
    for load in loads(design):
        if not _too_full(load, limits):
            continue
        mine = [p for p in choices.depths if p[1] == load.worker and p[0] in load.bytes_by_fifo]
        if not mine or not limits.join:
            raise RefusedError((_too_much(load, limits),))
        pool = max(mine, key=lambda p: (load.bytes_by_fifo[p[0]], p))
        yield pool, _together(fifos[pool[0]], choices.depths[pool], forms)
    for pool, count in choices.kept.items():
        objects = choices.depths.get(pool, 1) * count
        if choices.depths.get(pool, 1) > MEM_OBJECTS and (more := _together(fifos[pool[0]], objects, forms)) > count:
            yield pool, more


def _too_full(load: Load, limits: Limits) -> bool:
    over = limits.core_bytes is not None and load.bytes > limits.core_bytes
    many = limits.core_bds is not None and load.descriptors > limits.core_bds
    return over or many or load.deepest > MAX_DEPTH


def _too_much(load: Load, limits: Limits) -> Problem:
    return Problem(
        code="PLAN-L1",
        where=f"worker {load.worker!r}",
        what="its objects and buffers do not fit a core tile",
        expected=f"at most {limits.core_bytes} bytes, {limits.core_bds} descriptors, {MAX_DEPTH} objects of a fifo",
        got=f"{load.bytes} bytes, {load.descriptors} descriptors, {load.deepest} objects",
        remedy="cut the model in front of it (--cut)",
    )


def _together(fifo: Fifo, depth: int, forms: Forms) -> int:
    """Objects that lie together in a memory tile: few enough objects for its descriptors, and they come out even."""
    total = object_count(fifo.form or forms.tensors[fifo.tensor].shape)
    for count in range(1, total + 1):
        if total % count == 0 and -(-depth // count) + (count > 1) <= MEM_OBJECTS:
            return count
    return total
