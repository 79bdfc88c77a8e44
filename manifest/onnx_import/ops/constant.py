"""Constant nodes: they are gone after folding; only their reading is here."""

import numpy as np

from manifest.onnx_import.graph import Constant, Node, refusal


def value_of(node: Node) -> Constant:
    """The constant of a Constant node: value, value_int, value_ints, value_float or value_floats."""
    given = node.attributes
    if "value" in given:
        array = given["value"]
    elif "value_int" in given or "value_ints" in given:
        array = np.asarray(given.get("value_int", given.get("value_ints")), np.int64)
    elif "value_float" in given or "value_floats" in given:
        array = np.asarray(given.get("value_float", given.get("value_floats")), np.float32)
    else:
        raise refusal(node, "ONNX-CONSTANT", "only tensors and numbers are supported", got=", ".join(given))
    return Constant(array=np.asarray(array), origin=node.outputs[0], nodes=(node.name,))
