"""What the quantizer is asked for and what it gives back.

The scheme: int8 activations and int8 per-tensor weights, zero point 0, every scale a power of two, int32 bias at the
product of input and weight scale. Why: a kernel then requantizes with one rounding shift, the bias is added to the
accumulator as it is, and nothing has to be subtracted first.
"""

from dataclasses import dataclass
from typing import Final, Literal

from manifest.model import Note

CODE_MIN: Final = -128
CODE_MAX: Final = 127
EXPONENT_LIMIT: Final = 60
"""Scales stay within 2**-60 .. 2**60, so that products of two are normal float32 numbers."""
DEFAULT_EXPONENT: Final = -7
"""Scale of a tensor that is 0 everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeOptions:
    """How to quantize.

    Attributes:
        host_ops: leave unsupported ops in float (they run on the host) and do not refuse them.
        scale_choice: `mse` = least squared error on the data among the scale that clips nothing and `finer` smaller
            ones; `range` = the smallest scale that clips nothing.
        finer: how many smaller scales `mse` looks at.
        sampled_feeds: feeds whose values decide between scales; ranges are taken over all feeds.
    """

    host_ops: bool = False
    scale_choice: Literal["mse", "range"] = "mse"
    finer: int = 3
    sampled_feeds: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantized:
    """A quantized model.

    Attributes:
        model_bytes: self-contained QDQ model, opset 13 or later.
        notes: what was changed and chosen, for the person.
    """

    model_bytes: bytes
    notes: tuple[Note, ...]
