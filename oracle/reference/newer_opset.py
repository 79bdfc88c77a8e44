"""Models whose opset is too old for what onnxruntime itself makes of them.

It quantises a float bias per channel by a DequantizeLinear with an axis, also in a graph whose opset has none, and then
does not load its own graph.
"""

from collections.abc import Callable
from typing import TypeVar

from manifest.onnx_import.instrument import PER_AXIS_OPSET, opset_of, raise_opset
from oracle.reference.session import OnnxruntimeError

T = TypeVar("T")


def in_newer_opset(model_bytes: bytes, load: Callable[[bytes], T]) -> tuple[T, str]:
    """Load a model, where onnxruntime refuses it in the opset that has an axis, with the same numbers.

    Args:
        model_bytes: self-contained ONNX model.
        load: gives what is wanted of a model in onnxruntime.

    Returns:
        What `load` gave, and in words what was done to the model first ("" where nothing was).

    Raises:
        OnnxruntimeError: onnxruntime refuses the model, in the newer opset too.
    """
    try:
        return load(model_bytes), ""
    except OnnxruntimeError:
        if opset_of(model_bytes) >= PER_AXIS_OPSET:
            raise
        try:
            newer = raise_opset(model_bytes, PER_AXIS_OPSET)
        except RuntimeError as error:
            msg = f"onnxruntime's own rewriting needs opset {PER_AXIS_OPSET}, and onnx cannot convert the file to it"
            raise OnnxruntimeError(msg) from error
        return load(newer), f"; made of the file in opset {PER_AXIS_OPSET}, which onnxruntime's own rewriting needs"
