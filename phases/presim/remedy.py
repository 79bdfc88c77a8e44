"""What would make a refused dispatch fit: found by planning, so that what is printed works.

Tried in this order: a directive taken out; the dispatch cut between layers. A cut is looked for as phase 1 looks for
its own, with the planner and the directives at hand, and then the dispatches that phase 1 would make of it are planned
once more. Where nothing helps, the ops that fit no way even alone are named.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.model import Dispatch, Manifest
from phases.baseline.budget import plan_dispatches
from phases.baseline.cutting import planned_cuts
from phases.baseline.partition import boundaries, graph_of, live_at
from phases.baseline.placeable import Refusal, planner
from presim.directives import Directives

NO_BUDGET: Final = (
    "PLAN-CONCAT",
    "PLAN-DIRECTIVE",
    "PLAN-DISPATCH",
    "PLAN-HOST",
    "PLAN-MANIFEST",
    "PLACE-DESIGN",
    "PLACE-DEVICE",
    "PLACE-PIN",
)
"""Refusals that no split and no cut can change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What helps, in words; where nothing was found (`helps` false) a refusal keeps its own advice beside it."""

    text: str
    helps: bool

    def applied(self, problem: Problem) -> Problem:
        """A refusal with this remedy; what is about the op alone keeps its own words beside it."""
        if problem.code in NO_BUDGET:
            return problem
        own = "" if self.helps or not problem.remedy or "--cut" in problem.remedy else f"; {problem.remedy}"
        return replace(problem, remedy=f"{self.text}{own}")


class Helper:
    """Looks for what makes refused dispatches of one manifest fit.

    Args:
        manifest: with its dispatches.
        device: of the port.
        directives: that were asked for.
        cuts: that phase 1 was asked for.
        port: for the command line.
    """

    def __init__(
        self, manifest: Manifest, device: Device, directives: Directives, cuts: tuple[str, ...], port: Path
    ) -> None:
        self.manifest = manifest
        self.device = device
        self.directives = directives
        self.cuts = cuts
        self.port = port

    def remedy(self, dispatch: Dispatch) -> Remedy:
        """For a dispatch that the planner or the placer refuses."""
        found = [text for text in (self._directive(dispatch), self._cut(dispatch)) if text]
        if found:
            return Remedy(text="; or ".join(found), helps=True)
        text = f"no split and no cut between layers lets it fit {self.device.name}"
        if hopeless := self._hopeless(dispatch):
            text += f": alone in a dispatch it is refused too (op {', '.join(map(repr, hopeless))})"
        return Remedy(text=text, helps=False)

    def _directive(self, dispatch: Dispatch) -> str:
        """The one directive, or all of them, without which it fits; "" = there is none."""
        rows = self.directives.by_op
        inside = [name for name in dispatch.ops if name in rows]
        tries = [(name,) for name in inside] + ([tuple(inside)] if len(inside) > 1 else [])
        for names in tries:
            left = Directives(by_op={n: row for n, row in rows.items() if n not in names})
            if not _asked(planner(self.manifest, self.device, left), dispatch):
                return f"it fits without the directives of op {', '.join(map(repr, names))} (verified by planning)"
        return ""

    @cached_property
    def _refusal(self) -> Refusal:
        return planner(self.manifest, self.device, self.directives)

    def _cut(self, dispatch: Dispatch) -> str:
        """The command that cuts it, "" = no cut helps."""
        graph = graph_of(self.manifest)
        ops = [op for op in self.manifest.ops if op.name in set(dispatch.ops)]
        ops.sort(key=lambda op: dispatch.ops.index(op.name))
        read = {n for op in self.manifest.ops for n in graph.reads(op)}
        allowed = [p for p in boundaries(graph, ops) if read.intersection(ops[p - 1].outputs)]
        live = live_at(graph, ops)
        cost = {p: (len(live[p - 1]), 0) for p in allowed}

        def fits(start: int) -> Iterator[tuple[int, bool]]:
            return ((end, True) for end in range(start + 1, len(ops) + 1))

        def refuses(start: int, end: int) -> bool:
            run = ops[start:end]
            return bool(self._refusal(tuple(o.name for o in run), graph.entering(run), graph.leaving(run)))

        positions = [0, *planned_cuts(len(ops), allowed, cost, fits, refuses), len(ops)]
        if len(positions) == 2 or any(refuses(a, b) for a, b in pairwise(positions)):
            return ""
        names = tuple(next(n for n in ops[p - 1].outputs if n in read) for p in positions[1:-1])
        return self._verified((*self.cuts, *names), dispatch)

    def _verified(self, cuts: tuple[str, ...], dispatch: Dispatch) -> str:
        """The command with cuts, where every piece of the dispatch that phase 1 then makes fits; else ""."""
        try:
            own = planner(self.manifest, self.device)
            made = plan_dispatches(self.manifest, self.device, cuts, host_ops=True, refusal=own).dispatches
        except RefusedError:
            return ""
        mine = [d for d in made if set(d.ops) & set(dispatch.ops)]
        if any(_asked(self._refusal, d) for d in mine):
            return ""
        flags = " ".join(f"--cut {shlex.quote(name)}" for name in cuts)
        command = f"python -m phases.baseline {shlex.quote(str(self.port))} {flags}"
        return f"`{command}` cuts it into {len(mine)} dispatches that fit (verified by planning)"

    def _hopeless(self, dispatch: Dispatch) -> tuple[str, ...]:
        graph = graph_of(self.manifest)
        ops = [op for op in self.manifest.ops if op.name in set(dispatch.ops)]
        return tuple(op.name for op in ops if self._refusal((op.name,), graph.entering([op]), graph.leaving([op])))


def asked_cuts(port: Mapping[str, Any]) -> tuple[str, ...]:
    """The cuts that phase 1 was asked for, of the content of `port.json`."""
    options = port.get("options")
    cuts = options.get("cuts", ()) if isinstance(options, dict) else ()
    return tuple(str(name) for name in cuts)


def _asked(refusal: Refusal, dispatch: Dispatch) -> tuple[Problem, ...]:
    return refusal(dispatch.ops, dispatch.inputs, dispatch.outputs) if dispatch.where == "npu" else ()
