"""From a manifest to a dataflow design that a device can hold, or a refusal that says what would fit."""

from dataclasses import replace

from manifest.clearance import Clearance
from manifest.device import Device
from manifest.errors import Problem, RefusedError
from manifest.io import manifest_to_json
from manifest.model import Dispatch, Manifest
from presim.design import Design
from presim.directives import Directives
from presim.kernels.attributes import Forms
from presim.plan.build import Setting
from presim.plan.decide import decide, nodes_of
from presim.plan.graph import Graph
from presim.plan.limits import limits_of
from presim.plan.report import notes_of, splits_of, unused_of


def plan(
    manifest: Manifest,
    device: Device,
    directives: Directives,
    clearance: Clearance,
    *,
    manifest_bytes: bytes,
    dispatch: str | Dispatch,
) -> Design:
    """The design of one dispatch on the array; tiles are not placed yet.

    Args:
        manifest: with its dispatches.
        device: the array.
        directives: what is asked for single ops.
        clearance: of the baseline gate.
        manifest_bytes: the canonical manifest that the gate judged, of which `manifest` was read.
        dispatch: name of a dispatch of the manifest, or ops of it to plan by themselves (one stage, for example).

    Raises:
        UpstreamError: the baseline gate is missing, not PASS, or is of other bytes.
        RefusedError: there is no such dispatch, it runs on the host, or it does not fit; names op, budget, need, have
            and what would fit; all problems.
    """
    clearance.verify(manifest_bytes, None)
    if manifest_to_json(manifest) != manifest_bytes:
        problem = Problem(
            code="PLAN-MANIFEST", where="manifest", what="it is not the one that the baseline gate judged"
        )
        raise RefusedError((problem,))
    return design_of(manifest, device, directives, dispatch)


def design_of(manifest: Manifest, device: Device, directives: Directives, dispatch: str | Dispatch) -> Design:
    """The design of a dispatch whoever asks; `plan` is the way in for whatever writes a file.

    Raises:
        RefusedError: as `plan`.
    """
    chosen = _dispatch(manifest, dispatch) if isinstance(dispatch, str) else dispatch
    limits = limits_of(device)
    setting = Setting(
        dispatch=chosen.name,
        device=device.name,
        stack_bytes=limits.stack_bytes,
        cascade_words=device.cascade_words.value or 1,
        cascade_bits=device.cascade_bits.value or 32,
        mmul={pair: shapes.value[0] for pair, shapes in device.mmul.items() if shapes.value},
    )
    choices, design = decide(manifest, chosen, limits, directives, setting)
    forms = Forms(manifest)
    unused = unused_of(choices, directives, chosen.ops)
    notes = (*notes_of(choices, design, forms, limits), *unused)
    return replace(design, splits=splits_of(choices, forms), notes=notes)


def graph_in(manifest: Manifest, device: Device, directives: Directives, dispatch: Dispatch) -> Graph:
    """The nodes of a dispatch as a plan spreads them.

    Raises:
        RefusedError: an op fits no way; all problems.
    """
    return nodes_of(manifest, dispatch, limits_of(device), directives)


def _dispatch(manifest: Manifest, name: str) -> Dispatch:
    for dispatch in manifest.dispatches:
        if dispatch.name == name:
            return dispatch
    problem = Problem(
        code="PLAN-DISPATCH",
        where=f"dispatch {name!r}",
        what="the manifest has no such dispatch",
        expected=", ".join(d.name for d in manifest.dispatches),
    )
    raise RefusedError((problem,))
