"""The single-dispatch budget: does the model fit one compiled design, and where is it cut if not.

Everything here is predicted from the manifest and quoted device figures. Need: resident weights (bias, tables and
per-channel scales included), window rows of every op, rows kept for paths that meet again. Have: 0.8 x (L1 - stack) x
cores + 0.8 x memory tiles. Cuts are made at tensors that exist anyway and are rounded. These figures are quick and
propose the cuts; with the planner of phase 2 at hand (`placeable.planner`) every dispatch is one that it can place too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.model import Dispatch, Manifest, Op, Where
from manifest.opset import OPSET, op_key
from oracle.evidence import DispatchBudget
from phases.baseline.capacity import Capacity, Load, capacity_of, exceeds
from phases.baseline.cutting import planned_cuts
from phases.baseline.footprint import Footprint, Sizes, footprints
from phases.baseline.partition import boundaries, graph_of, live_at, segments
from phases.baseline.placeable import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """How a model is cut into dispatches.

    Attributes:
        dispatches: in execution order; `h0`... on the host, `d0`... on the array.
        budgets: one per dispatch, same order and names.
        unknown: device figures that the budget needs and that are null, sorted.
        refused: one line per dispatch that the planner of phase 2 takes no way, with its first reason.
    """

    dispatches: tuple[Dispatch, ...]
    budgets: tuple[DispatchBudget, ...]
    unknown: tuple[str, ...]
    refused: tuple[str, ...] = ()


def plan_dispatches(
    manifest: Manifest,
    device: Device,
    cuts: tuple[str, ...] = (),
    host_ops: bool = False,
    refusal: Refusal | None = None,
) -> BudgetPlan:
    """Cut a model into dispatches.

    Ops are grouped by where they run, in an order with as few changes of place as possible; a group on the array that
    does not fit is cut into as few dispatches as possible, where several ways remain at places with one live tensor and
    then with the fewest bytes. An op that exceeds the budget alone has a dispatch of its own, and its budget names the
    split that phase 2 has to make.

    Args:
        manifest: without dispatches, or with ones that are replaced.
        device: the budget.
        cuts: tensors at which a dispatch on the array has to end.
        host_ops: ops that the array cannot run may run on the host.
        refusal: asks the planner about a run of ops; None = the quick budget alone decides.

    Raises:
        RefusedError: a cut names no tensor at which a dispatch can end, or an op needs `host_ops`.
    """
    planner = _Planner(manifest, device, refusal)
    if problems := (*_host_problems(manifest, host_ops=host_ops), *planner.cut_problems(cuts)):
        raise RefusedError(problems)
    parts = planner.parts(frozenset(cuts))
    return planner.finish(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Ops of one dispatch and why it ends."""

    where: Where
    ops: tuple[Op, ...]
    reason: str


def _host_problems(manifest: Manifest, *, host_ops: bool) -> tuple[Problem, ...]:
    rows = ((op, OPSET.get(op_key("", op.type))) for op in manifest.ops if op.where == "host" and not host_ops)
    return tuple(
        Problem(
            code="OPTION-HOST-OPS",
            where=f"op {op.name!r} ({op.type})",
            what="it runs on the host",
            expected="an op for the array",
            remedy="give --host-ops",
        )
        for op, row in rows
        if row is not None and row.host
    )


class _Planner:
    """A manifest against a device: sizes, groups of ops by place, and the pieces that fit."""

    def __init__(self, manifest: Manifest, device: Device, refusal: Refusal | None = None) -> None:
        self.manifest = manifest
        self.refusal = refusal
        self.sizes = Sizes(manifest)
        self.capacity: Capacity = capacity_of(device)
        self.footprints: Mapping[str, Footprint] = footprints(manifest, device)
        self.graph = graph_of(manifest)
        self.segments = segments(self.graph, manifest.model.inputs)
        ordered = [op for _, ops in self.segments for op in ops]
        self.order = {op.name: i for i, op in enumerate(ordered)}
        """Position of every op in execution order."""
        self.last_read = {n: -1 for op in ordered for n in op.outputs}
        self.last_read |= {n: i for i, op in enumerate(ordered) for n in self.graph.reads(op)}
        self.last_read |= dict.fromkeys(manifest.model.outputs, len(ordered))

    def cut_problems(self, cuts: tuple[str, ...]) -> tuple[Problem, ...]:
        """Cuts that cannot be made: unknown names, tensors that nothing hands on, places with unrounded values."""
        hands_on = {n: op for op in self.manifest.ops for n in op.outputs}
        read = {n for op in self.manifest.ops for n in self.graph.reads(op)}
        problems = []
        for name in cuts:
            what, got = "", name
            if name not in self.sizes.tensors:
                what = "the manifest has no such tensor"
            elif name not in hands_on or name not in read:
                what = "it does not lie between two ops"
            elif blocked := self._unrounded_at(name):
                what, got = "an unrounded value would have to be handed on there", blocked
            if what:
                expected = "a quantised tensor between two ops"
                problems.append(
                    Problem(code="OPTION-CUT", where=f"--cut {name}", what=what, expected=expected, got=got)
                )
        return tuple(problems)

    def _unrounded_at(self, name: str) -> str:
        """An uncuttable tensor that is live right after the op that makes `name`, or ""."""
        for where, ops in self.segments:
            live = live_at(self.graph, ops)
            for position, op in enumerate(ops[:-1]):
                if name in op.outputs and where == "npu":
                    return next((n for n in live[position] if n in self.graph.uncuttable), "")
        return ""

    def parts(self, cuts: frozenset[str]) -> list[_Part]:
        """All dispatches with the reason why each ends."""
        parts: list[_Part] = []
        for number, (where, ops) in enumerate(self.segments):
            last = number == len(self.segments) - 1
            end = "end of the graph" if last else f"the next ops run on the {'array' if where == 'host' else 'host'}"
            if where == "host":
                parts.append(_Part(where=where, ops=ops, reason=end))
                continue
            for asked, piece in _split_at(ops, cuts):
                parts += self._fit(piece, f"cut asked for at {asked!r}" if asked else end)
        return parts

    def _fit(self, ops: tuple[Op, ...], end: str) -> list[_Part]:
        """One run of ops on the array, cut where it has to be."""
        if not exceeds(self.budget("", ops)) and not self.refused(ops):
            return [_Part(where="npu", ops=ops, reason=end)]
        allowed = boundaries(self.graph, ops)
        live = live_at(self.graph, ops)
        cost = {p: (len(live[p - 1]), sum(self.sizes.tensor(n) for n in live[p - 1])) for p in allowed}
        grow, ask = partial(self._grow, ops), lambda start, stop: bool(self.refused(ops[start:stop]))
        positions = [0, *planned_cuts(len(ops), allowed, cost, grow, ask), len(ops)]
        pieces = [ops[a:b] for a, b in pairwise(positions)]
        reasons = [f"budget: with the next dispatch {self._excess(a + b)}" for a, b in pairwise(pieces)]
        return [_Part(where="npu", ops=o, reason=why) for o, why in zip(pieces, [*reasons, end], strict=True)]

    def _excess(self, ops: tuple[Op, ...]) -> str:
        if excess := exceeds(self.budget("", ops)):
            return excess
        return next((f"{p.what} ({p.code})" for p in self.refused(ops)), "an op exceeds it alone")

    def refused(self, ops: tuple[Op, ...]) -> tuple[Problem, ...]:
        """Why the planner cannot place a run of ops; () = it can, or nobody asks it."""
        if self.refusal is None:
            return ()
        return self.refusal(tuple(op.name for op in ops), self.graph.entering(ops), self.graph.leaving(ops))

    def _grow(self, ops: tuple[Op, ...], start: int) -> Iterator[tuple[int, bool]]:
        load = Load(self.capacity)
        read: set[str] = set()
        made: set[str] = set()
        last_here: Counter[int] = Counter()
        leaving = 0
        for position in range(start, len(ops)):
            op = ops[position]
            load.append(self.footprints[op.name])
            read.update(n for n in self.graph.reads(op) if n not in made)
            made.update(op.outputs)
            last = [self.last_read[n] for n in op.outputs if self.last_read[n] > self.order[op.name]]
            last_here.update(last)
            leaving += len(last) - last_here[self.order[op.name]]
            budget = load.budget("", inputs=len(read), outputs=leaving)
            yield position + 1, not exceeds(budget)
            if exceeds(replace(budget, shim_channels_have=None)):
                return

    def budget(self, name: str, ops: Sequence[Op]) -> DispatchBudget:
        """Need against have of ops on the array."""
        load = Load(self.capacity)
        for op in ops:
            load.append(self.footprints[op.name])
        return load.budget(name, inputs=len(self.graph.entering(ops)), outputs=len(self.graph.leaving(ops)))

    def finish(self, parts: Sequence[_Part]) -> BudgetPlan:
        """Names, hand-off bytes and budgets."""
        dispatches, budgets = [], []
        counts = {"host": 0, "npu": 0}
        for part in parts:
            name = f"{'h' if part.where == 'host' else 'd'}{counts[part.where]}"
            counts[part.where] += 1
            entering, leaving = self.graph.entering(part.ops), self.graph.leaving(part.ops)
            inside = {op.name for op in part.ops}
            elsewhere = {n for op in self.manifest.ops if op.name not in inside for n in self.graph.reads(op)}
            dispatches.append(
                Dispatch(
                    name=name,
                    where=part.where,
                    ops=tuple(op.name for op in part.ops),
                    inputs=entering,
                    outputs=leaving,
                    cut_bytes=sum(self.sizes.tensor(n) for n in leaving if n in elsewhere),
                    reason=part.reason,
                )
            )
            budgets.append(_host_budget(name) if part.where == "host" else self._final(name, part.ops))
        unknown = self.capacity.unknown if counts["npu"] else ()
        rows = [(d.name, self.refused(p.ops)) for d, p in zip(dispatches, parts, strict=True) if d.where == "npu"]
        refused = tuple(f"{name}: phase 2 will refuse it: {why[0].where}: {why[0].what}" for name, why in rows if why)
        return BudgetPlan(dispatches=tuple(dispatches), budgets=tuple(budgets), unknown=unknown, refused=refused)

    def _final(self, name: str, ops: tuple[Op, ...]) -> DispatchBudget:
        budget = self.budget(name, ops)
        over = [(op.name, _split_of(self.footprints[op.name], self.capacity)) for op in ops]
        return replace(budget, oversized_ops=tuple((n, split) for n, split in over if split))


def _split_at(ops: tuple[Op, ...], cuts: frozenset[str]) -> Iterator[tuple[str, tuple[Op, ...]]]:
    """Pieces of a run of ops with the cut that ends each ("" for the last)."""
    start = 0
    for end, op in enumerate(ops[:-1], start=1):
        asked = next((n for n in op.outputs if n in cuts), "")
        if asked:
            yield asked, ops[start:end]
            start = end
    yield "", ops[start:]


def _split_of(op: Footprint, capacity: Capacity) -> str:
    """The split that makes an op fit which exceeds the budget alone, or "" where it fits."""
    have = capacity.total_bytes
    if have is None or op.weights_bytes + op.window_bytes <= have:
        return ""
    room = have - op.window_bytes
    if room <= 0:
        return f"rows into {-(-(op.weights_bytes + op.window_bytes) // have)} pieces, with the halo of the window"
    block = -(-op.weights_bytes // op.channels)
    if block <= room:
        return f"output channels into {-(-op.channels // (room // block))}"
    reduction = f"the reduction into {min(-(-block // room), op.reduction)}"
    return reduction if op.channels == 1 else f"output channels into {op.channels} and {reduction}"


def _host_budget(name: str) -> DispatchBudget:
    return DispatchBudget(
        name=name,
        need_bytes=0,
        have_bytes=None,
        weights_bytes=0,
        window_bytes=0,
        skip_bytes=0,
        cores_needed=0,
        cores_have=None,
        kernel_bodies=0,
        bodies_per_core=0.0,
        program_bytes=0,
        program_have_bytes=None,
        program_assumed=True,
        shim_channels_need=0,
        shim_channels_have=None,
        where="host",
    )
