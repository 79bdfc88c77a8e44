"""From the manifest to placed designs, one per dispatch on the array."""

import json
from collections.abc import Callable, Sequence

from manifest.clearance import Clearance
from manifest.device import Device
from manifest.errors import Problem, RefusedError
from phases.presim.remedy import Helper, asked_cuts
from phases.presim.source import MANIFEST, Source
from presim.design import Design
from presim.directives import Directives
from presim.place import place
from presim.plan import plan

Planner = Callable[[Source, Device, Directives, Clearance], tuple[Design, ...]]


def plan_all(source: Source, device: Device, directives: Directives, clearance: Clearance) -> tuple[Design, ...]:
    """Plan and place every dispatch on the array.

    Raises:
        UpstreamError: the baseline gate does not speak for this manifest.
        RefusedError: a dispatch does not fit; all problems of all dispatches, each with what would fit.
    """
    cuts = asked_cuts(json.loads(source.files["port.json"]))
    helper = Helper(source.manifest, device, directives, cuts, clearance.port)
    problems: list[Problem] = []
    designs = []
    for dispatch in source.manifest.dispatches:
        if dispatch.where == "npu":
            try:
                design = plan(
                    source.manifest,
                    device,
                    directives,
                    clearance,
                    manifest_bytes=source.files[MANIFEST],
                    dispatch=dispatch.name,
                )
                designs.append(place(design, device, directives))
            except RefusedError as error:
                remedy = helper.remedy(dispatch)
                problems += [remedy.applied(problem) for problem in error.problems]
    if problems:
        raise RefusedError(tuple(dict.fromkeys(problems)))
    return tuple(designs)


def given(designs: Sequence[Design]) -> Planner:
    """A planner that gives designs that are there already; the gate above is held against the manifest all the same."""

    def planner(source: Source, device: Device, directives: Directives, clearance: Clearance) -> tuple[Design, ...]:
        del device, directives
        clearance.verify(source.files[MANIFEST])
        return tuple(designs)

    return planner
