"""Whether the planner of phase 2 can place a run of ops: asked for a verdict, nothing of the plan is kept.

Why ask it and not copy its rules: which weights stay in a core, what streams from a memory tile, how many cores an op
takes and what fits beside what are one decision there; a second account of it would drift.
"""

from collections.abc import Callable
from functools import cache

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.model import Dispatch, Manifest
from presim.directives import Directives
from presim.place import place
from presim.plan import design_of

Refusal = Callable[[tuple[str, ...], tuple[str, ...], tuple[str, ...]], tuple[Problem, ...]]
"""(ops, tensors that enter, tensors that leave) of a run -> why it cannot be placed, () = it can."""


def planner(manifest: Manifest, device: Device, directives: Directives | None = None) -> Refusal:
    """The planner and placer of phase 2, asked about any run of ops of a manifest; answers are remembered."""
    asked = directives or Directives()

    @cache
    def refusal(ops: tuple[str, ...], entering: tuple[str, ...], leaving: tuple[str, ...]) -> tuple[Problem, ...]:
        run = Dispatch(name="run", where="npu", ops=ops, inputs=entering, outputs=leaving, cut_bytes=0, reason="")
        try:
            place(design_of(manifest, device, asked, run), device, asked)
        except RefusedError as error:
            return error.problems
        return ()

    return refusal
