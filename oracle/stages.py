"""Stages: the smallest groups of ops between integer tensors, the unit of validation.

Ops that hand each other exact or float32 tensors belong together, since only integer tensors can be compared and fed
from outside. Where such a group depends on itself through other ops, those join it.
"""

from dataclasses import dataclass

from manifest.model import Manifest, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A group of ops.

    Attributes:
        name: of its first op.
        ops: op names in execution order.
        inputs: activations that it reads from outside, graph inputs included.
        outputs: tensors that leave it: read outside, graph outputs, or read by nobody.
    """

    name: str
    ops: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def stages(manifest: Manifest) -> tuple[Stage, ...]:
    """The stages of a manifest in an order in which they can be run."""
    ops = manifest.ops
    tensors = manifest.by_name()
    maker = {name: i for i, op in enumerate(ops) for name in op.outputs}
    group = list(range(len(ops)))
    for i, op in enumerate(ops):
        for name in op.inputs:
            if name in maker and tensors[name].dtype in ("exact", "float32"):
                _join(group, group[i], group[maker[name]])
    while _close(ops, maker, group):
        pass
    last = {g: i for i, g in enumerate(group)}
    return tuple(
        _stage(manifest, [i for i, g in enumerate(group) if g == wanted])
        for wanted in _ordered(ops, maker, group, last)
    )


def _join(group: list[int], a: int, b: int) -> None:
    low, high = min(a, b), max(a, b)
    group[:] = [low if g == high else g for g in group]


def _close(ops: tuple[Op, ...], maker: dict[str, int], group: list[int]) -> bool:
    """Join one group with an op on a path that leaves it and comes back; False where there is none."""
    before: list[set[int]] = []
    for i, op in enumerate(ops):
        reached: set[int] = set()
        for name in op.inputs:
            if name not in maker:
                continue
            source = maker[name]
            if group[source] != group[i] and group[i] in before[source]:
                _join(group, group[i], group[source])
                return True
            reached |= before[source] | {group[source]}
        before.append(reached)
    return False


def _ordered(ops: tuple[Op, ...], maker: dict[str, int], group: list[int], last: dict[int, int]) -> list[int]:
    """Groups so that each comes behind those it reads from; else in the order of their first ops."""
    needs: dict[int, set[int]] = {g: set() for g in sorted(last)}
    for i, op in enumerate(ops):
        needs[group[i]] |= {group[maker[n]] for n in op.inputs if n in maker} - {group[i]}
    order: list[int] = []
    waiting = sorted(last)
    while waiting:
        ready = next(g for g in waiting if needs[g].issubset(order))
        order.append(ready)
        waiting.remove(ready)
    return order


def _stage(manifest: Manifest, members: list[int]) -> Stage:
    tensors = manifest.by_name()
    ops = [manifest.ops[i] for i in members]
    inside = set(members)
    made = {name for op in ops for name in op.outputs}
    read = [n for op in ops for n in op.inputs if n and n not in made and tensors[n].array is None]
    elsewhere = {n for i, op in enumerate(manifest.ops) if i not in inside for n in op.inputs}
    within = {n for op in ops for n in op.inputs}
    leaving = elsewhere | set(manifest.model.outputs)
    outputs = [n for op in ops for n in op.outputs if n in leaving or n not in within]
    return Stage(
        name=ops[0].name,
        ops=tuple(op.name for op in ops),
        inputs=tuple(dict.fromkeys(read)),
        outputs=tuple(dict.fromkeys(outputs)),
    )
