"""Clip on codes, on dequantised values and on exact tensors; the activation of fused ops."""

import math
from collections.abc import Mapping
from typing import Final

from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fuse import Bounds, clamp_bounds
from manifest.onnx_import.graph import Constant, Node, Shape, refusal
from manifest.onnx_import.passing import Passing, keep_units, lower_passing
from manifest.onnx_import.rules import Facts

_ACTIVATIONS: Final[Mapping[str, Bounds]] = {"": Bounds(), "Relu": Bounds(low=0.0)}


def activation_bounds(node: Node) -> Bounds | None:
    """Bounds of the `activation` attribute of FusedConv and FusedGemm, None where there is none."""
    kind = node.text("activation", "")
    parameters = [float(v) for v in node.attributes.get("activation_params", ())]
    if kind == "Clip" and len(parameters) == 2:
        return Bounds(low=parameters[0], high=parameters[1])
    if kind not in _ACTIVATIONS:
        raise refusal(node, "ONNX-FUSED", f"activation {kind!r} is not supported", expected="Relu or Clip")
    return _ACTIVATIONS[kind] if kind else None


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The shape of the input."""
    return (facts.shape(node, 0),)


def _integer_bounds(node: Node, constants: Mapping[str, Constant]) -> Bounds | None:
    """Bounds of a Clip on integers."""
    values = []
    for position, default in ((1, -math.inf), (2, math.inf)):
        name = node.input(position)
        if not name:
            values.append(default)
        elif name in constants and constants[name].array.size == 1:
            values.append(float(constants[name].array.ravel()[0]))
        else:
            return None
    return Bounds(low=values[0], high=values[1])


def lower(node: Node, b: Builder) -> None:
    """Clip: attributes `qmin`, `qmax` on codes, `minimum`, `maximum` (real) elsewhere."""
    on_codes = b.value(node, 0).kind == "codes"
    limits = clamp_bounds(node, b.graph)
    bounds = _integer_bounds(node, b.graph.constants) if on_codes else limits and Bounds(low=limits[0], high=limits[1])
    if bounds is None:
        raise refusal(
            node, "ONNX-DYNAMIC-CLIP", "bounds are computed at run time, NaN or leave nothing", expected="constants"
        )
    if bounds.low > bounds.high:
        bounds = Bounds(low=bounds.high, high=bounds.high)
    lower_passing(b, Passing(node=node, type="Clip", attributes=bounds.attributes(), remap=keep_units, own=bounds))
