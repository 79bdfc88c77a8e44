"""Cast: of constants when they are folded; of an activation only to the type that it has."""

from typing import Final

import numpy as np

from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import ELEMENT_TYPES, Array, Node, refusal
from manifest.onnx_import.ops import identity

shape = identity.shape
_TYPES: Final = ("float32", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool")


def cast_array(node: Node, values: Array) -> Array:
    """The values in the type that the node asks for; floats are truncated towards zero."""
    name = ELEMENT_TYPES.get(node.integer("to", 0), "undefined")
    if name not in _TYPES:
        raise refusal(node, "ONNX-CAST", f"Cast of a constant to {name} is not supported", expected=", ".join(_TYPES))
    if values.dtype.kind == "f" and name not in ("float32", "bool"):
        values = np.trunc(values)
    with np.errstate(invalid="ignore"):
        return values.astype(name)


def lower(node: Node, b: Builder) -> None:
    """An alias where nothing changes."""
    value = b.value(node, 0)
    wanted = ELEMENT_TYPES.get(node.integer("to", 0), "undefined")
    got = b.tensors[value.tensor].dtype if value.kind in ("codes", "float") else "float32"
    if wanted != got:
        raise refusal(node, "ONNX-CAST", "Cast of an activation is not supported", expected=got, got=wanted)
    identity.lower(node, b)
