"""(d) On how many elements onnxruntime's own optimisation levels disagree."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manifest.model import Manifest
from manifest.onnx_import.instrument import expose, quantized_outputs
from oracle.evidence import LevelDisagreement
from oracle.reference.newer_opset import in_newer_opset
from oracle.reference.plan import is_sixteen_bit
from oracle.reference.session import EXTENDED, OFF, OnnxruntimeError, Session
from oracle.reference.stagewise import chunks

Array = npt.NDArray[Any]


def level_disagreement(model_bytes: bytes, manifest: Manifest, feeds: Mapping[str, Array]) -> LevelDisagreement | None:
    """Compare ORT_DISABLE_ALL with ORT_ENABLE_EXTENDED over the file's quantised tensors.

    Args:
        model_bytes: self-contained ONNX model.
        manifest: imported from it.
        feeds: by input name, (F, *shape).

    Returns:
        The counts; None for 16-bit activations (EXTENDED re-quantises them), without feeds or quantised tensors, and
        where onnxruntime refuses the model.
    """
    names = quantized_outputs(model_bytes)
    if is_sixteen_bit(manifest) or not names or not feeds or not len(next(iter(feeds.values()))):
        return None
    shown = expose(model_bytes, names)
    elements = disagreeing = 0
    try:
        off = Session(shown, OFF)
        extended, _ = in_newer_opset(shown, lambda data: Session(data, EXTENDED))
        for _, piece in chunks(manifest, feeds):
            a, b = off.run(piece, names), extended.run(piece, names)
            elements += sum(a[name].size for name in names)
            disagreeing += sum(int(np.count_nonzero(a[name] != b[name])) for name in names)
    except OnnxruntimeError:
        return None
    return LevelDisagreement(elements=elements, disagreeing=disagreeing)
