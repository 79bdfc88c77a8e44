"""The constant behind an average over n elements where a kernel cannot divide by n with a multiplier and a shift.

sum / n is not sum * m / 2**s for every possible sum when n is, say, 36: the ties go both ways. Then the model itself
gets the kernel's arithmetic, as XINT8 files have it: the average is multiplied by n * k / 2**N, which makes it
sum * k / 2**N exactly. (k, N) is the smallest pair that stays within a quarter of a code of the true average, and
for which float32 arithmetic (onnxruntime's: sum, divided by n, times the constant) rounds every possible sum as
exact arithmetic does.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Node
from manifest.onnx_import.quant import per_tensor
from manifest.onnx_import.quantize.scheme import CODE_MAX, CODE_MIN
from manifest.onnx_import.requantize import Output, Sums, round_half_even, search
from manifest.onnx_import.shapes import window

MAX_ELEMENTS: Final = 1 << 14
"""Windows up to 128 x 128: 2**22 sums are enumerated."""
MAX_MULTIPLIER: Final = 1 << 15
QUARTER: Final = Fraction(1, 4)
FLOAT_BITS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """The average times `value` is sum * multiplier / 2**shift.

    Attributes:
        value: n * multiplier / 2**shift, exact in float32.
        multiplier: k.
        shift: N.
        elements: n.
    """

    value: float
    multiplier: int
    shift: int
    elements: int

    def words(self) -> str:
        """The factor as a remark."""
        return f"average over {self.elements} elements computed as sum * {self.multiplier} / 2**{self.shift}"


def window_elements(node: Node, shape: tuple[int, ...]) -> int | None:
    """Elements that every window of an average holds, None where windows differ.

    Args:
        node: AveragePool or GlobalAveragePool.
        shape: of its input, NCHW.
    """
    if node.key == ":GlobalAveragePool":
        return shape[2] * shape[3]
    try:
        w = window(node, shape, node.integers("kernel_shape"), ceil_mode=bool(node.integer("ceil_mode", 0)))
    except RefusedError:
        return None
    padded = [shape[2 + i] + (w.pads[i] + w.pads[2 + i]) for i in (0, 1)]
    inside = all((w.output[i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 <= padded[i] for i in (0, 1))
    counts_pads = bool(node.integer("count_include_pad", 0))
    if not inside or (any(w.pads) and not counts_pads):
        return None
    return w.kernel[0] * w.kernel[1]


def factor_for(elements: int, input_exponent: int, output_exponent: int) -> Factor | None:
    """The constant that an average needs, None where it needs none or there is none.

    Args:
        elements: n.
        input_exponent: of the input scale 2**k.
        output_exponent: of the output scale.
    """
    if elements & (elements - 1) == 0 or elements > MAX_ELEMENTS:
        return None
    step = Fraction(2) ** (input_exponent - output_exponent)
    sums = Sums(low=CODE_MIN * elements, high=CODE_MAX * elements, ratio=step / elements)
    output = Output(quant=per_tensor(1.0), dtype="int8", qmin=CODE_MIN, qmax=CODE_MAX)
    if search(sums, output) is not None:
        return None
    values = np.arange(sums.low, sums.high + 1, dtype=np.int64)
    for shift in range(elements.bit_length() - 1, FLOAT_BITS):
        found = _at(shift, elements, values, step)
        if found is not None:
            return found
    return None


def _at(shift: int, elements: int, values: NDArray[np.int64], step: Fraction) -> Factor | None:
    """The factor with this shift, if it is close, exact in float32 and safe at every sum."""
    multiplier = round(Fraction(1 << shift, elements))
    ratio = Fraction(multiplier, 1 << shift)
    deviation = abs(ratio * elements - 1) * (CODE_MAX + 1)
    if multiplier % 2 == 0 or multiplier >= MAX_MULTIPLIER or deviation > QUARTER:
        return None
    if (elements * multiplier).bit_length() > FLOAT_BITS:
        return None
    exact = round_half_even(values, ratio * step)
    value = np.float32(elements * multiplier) / np.float32(1 << shift)
    mean = values.astype(np.float32) / np.float32(elements)
    rounded = np.rint(mean * value * np.float32(float(step)))
    if exact is None or not np.array_equal(_clamped(rounded), _clamped(exact)):
        return None
    return Factor(value=float(value), multiplier=multiplier, shift=shift, elements=elements)


def _clamped(values: NDArray[np.float32] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.clip(values, CODE_MIN, CODE_MAX).astype(np.int64)
