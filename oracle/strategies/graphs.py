"""Strategies for small graphs: a chain of ops with side branches, from a float or integer input to one output."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manifest.model import QRANGE, Accumulator, AttributeValue, Bias, DType, Quantization
from oracle.sketch import Sketch, quantization, requantization
from oracle.strategies.tensors import EIGHT_BIT, Array, Case, Draw, codes, quantizations, scales, zero_points

Attributes = dict[str, AttributeValue]


@dataclass(slots=True)
class _Chain:
    """A graph under construction; `here` is the tensor at its end, always quantised."""

    draw: Draw
    powers: bool
    sketch: Sketch
    here: str
    count: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor at the end."""
        return self.sketch.tensors[self.here].shape

    @property
    def quant(self) -> Quantization:
        """Quantization of the tensor at the end."""
        quant = self.sketch.tensors[self.here].quant
        if quant is None:
            raise TypeError(self.here)
        return quant

    @property
    def scale(self) -> Fraction:
        """Scale of the tensor at the end."""
        return Fraction(self.quant.scales[0])

    def name(self) -> str:
        """A fresh tensor name."""
        self.count += 1
        return f"t{self.count}"

    def quantised(self, shape: tuple[int, ...], unit: Fraction) -> tuple[str, DType, Fraction]:
        """A new activation whose scale is some 1 to 2**10 units."""
        dtype = self.draw(st.sampled_from(EIGHT_BIT))
        step = 2.0 ** self.draw(st.integers(0, 10)) if self.powers else self.draw(st.integers(4, 1 << 12)) / 4
        quant = quantization([float(unit) * step], [self.draw(zero_points(dtype))])
        name = self.sketch.activation(self.name(), shape, dtype, quant)
        return name, dtype, Fraction(quant.scales[0])

    def kept(self, shape: tuple[int, ...]) -> str:
        """A new activation that keeps dtype and quantization."""
        tensor = self.sketch.tensors[self.here]
        return self.sketch.activation(self.name(), shape, tensor.dtype, tensor.quant)


def _window(kernel: int, pads: tuple[int, ...]) -> Attributes:
    return {"kernel_shape": (kernel, kernel), "strides": (1, 1), "pads": pads, "dilations": (1, 1)}


def _convolve(c: _Chain) -> None:
    """A 3x3 Conv with or without bias, rounded at once or behind an exact Relu."""
    n, cin, h, w = c.shape
    cout = c.draw(st.integers(1, 3))
    weights = c.draw(codes("int8", (cout, cin, 3, 3)))
    w_quant = c.draw(quantizations("int8", channels=cout, axis=0, power_of_two=c.powers, symmetric=True))
    weight = c.sketch.constant(f"{c.name()}.w", weights, w_quant)
    units = [c.scale * Fraction(s) for s in w_quant.scales]
    bias, kind = "", None
    if c.draw(st.booleans()):
        stored = c.draw(hnp.arrays(np.int32, cout, elements=st.integers(-1000, 1000)))
        b_quant = quantization([float(u) for u in units], [0] * cout, 0)
        bias, kind = c.sketch.constant(f"{c.name()}.b", stored, b_quant, role="bias"), Bias(kind="accumulator")
    attributes: Attributes = {
        "kernel_shape": (3, 3),
        "strides": (1, 1),
        "pads": (1, 1, 1, 1),
        "dilations": (1, 1),
        "group": 1,
    }
    if c.draw(st.booleans()):
        y, dtype, sy = c.quantised((n, cout, h, w), units[0])
        requant = requantization([u / sy for u in units], dtype)
        acc = Accumulator(bits=32, bound=9 * cin * 255 * 255 + 1000)
        operands = (c.here, weight, bias)
        c.sketch.op("Conv", operands, y, requant=requant, attributes=attributes, bias=kind, accumulator=acc)
        c.here = y
        return
    raw = c.sketch.activation(c.name(), (n, cout, h, w), "exact", role="accumulator")
    c.sketch.op("Conv", (c.here, weight, bias), raw, attributes=attributes, bias=kind)
    cut = c.sketch.activation(c.name(), (n, cout, h, w), "exact", role="accumulator")
    c.sketch.op("Relu", (raw,), cut)
    y, dtype, sy = c.quantised((n, cout, h, w), units[0])
    c.sketch.op("QuantizeLinear", (cut,), y, requant=requantization([u / sy for u in units], dtype))
    c.here = y


def _add_back(c: _Chain) -> None:
    """A residual: the end of the chain requantised and added to itself."""
    before, unit = c.here, c.scale
    y, dtype, sy = c.quantised(c.shape, unit)
    c.sketch.op("QuantizeLinear", (before,), y, requant=requantization([unit / sy], dtype))
    total, t_dtype, st_ = c.quantised(c.shape, max(unit, sy))
    requant = requantization([unit / st_, sy / st_], t_dtype, shared_shift=True)
    c.here = c.sketch.op("Add", (before, y), total, requant=requant)


def _pool(c: _Chain) -> None:
    """A 2x2 MaxPool that keeps the quantization."""
    n, channels, h, w = c.shape
    attributes: Attributes = {
        "kernel_shape": (2, 2),
        "strides": (1, 1),
        "pads": (0, 1, 1, 0),
        "dilations": (1, 1),
        "ceil_mode": 0,
    }
    low, high = QRANGE[c.sketch.tensors[c.here].dtype]
    y = c.kept((n, channels, h, w))
    requant = requantization([Fraction(1)], c.sketch.tensors[y].dtype, reference="identity", limits=(low, high))
    c.here = c.sketch.op("MaxPool", (c.here,), y, requant=requant, attributes=attributes)


def _average(c: _Chain) -> None:
    """A 2x2 AveragePool without padding."""
    n, channels, h, w = c.shape
    if min(h, w) < 2:
        return
    y, dtype, sy = c.quantised((n, channels, h - 1, w - 1), c.scale)
    attributes: Attributes = {
        "kernel_shape": (2, 2),
        "strides": (1, 1),
        "pads": (0, 0, 0, 0),
        "dilations": (1, 1),
        "factor": 1.0,
    }
    requant = requantization([c.scale / 4 / sy], dtype)
    c.here = c.sketch.op("AveragePool", (c.here,), y, requant=requant, attributes=attributes)


def _clip(c: _Chain) -> None:
    """A Clip on codes."""
    low, high = QRANGE[c.sketch.tensors[c.here].dtype]
    first = c.draw(st.integers(low, high))
    attributes: Attributes = {"qmin": first, "qmax": c.draw(st.integers(first, high))}
    c.here = c.sketch.op("Clip", (c.here,), c.kept(c.shape), attributes=attributes)


def _turn(c: _Chain) -> None:
    """A Transpose of the image axes."""
    n, channels, h, w = c.shape
    c.here = c.sketch.op("Transpose", (c.here,), c.kept((n, channels, w, h)), attributes={"perm": (0, 1, 3, 2)})


def _scale(c: _Chain) -> None:
    """A Mul by a quantised constant."""
    value = c.draw(codes("int8", (1,)))
    m_quant = c.draw(quantizations("int8", power_of_two=c.powers, symmetric=True))
    constant = c.sketch.constant(f"{c.name()}.m", value, m_quant, role="constant")
    unit = c.scale * Fraction(m_quant.scales[0])
    y, dtype, sy = c.quantised(c.shape, unit)
    c.here = c.sketch.op("Mul", (c.here, constant), y, requant=requantization([unit / sy], dtype))


def _rename(c: _Chain) -> None:
    """The same codes under another scale."""
    tensor = c.sketch.tensors[c.here]
    quant = c.draw(quantizations(tensor.dtype, power_of_two=c.powers))
    y = c.sketch.activation(c.name(), tensor.shape, tensor.dtype, quant)
    c.here = c.sketch.op("Reinterpret", (c.here,), y)


def _double(c: _Chain) -> None:
    """A Concat of the end of the chain with itself along the channels."""
    n, channels, h, w = c.shape
    if channels > 3:
        return
    y = c.kept((n, 2 * channels, h, w))
    requant = requantization([Fraction(1)], c.sketch.tensors[y].dtype, reference="identity")
    c.here = c.sketch.op("Concat", (c.here, c.here), y, requant=requant, attributes={"axis": 1})


_LINKS: Final[tuple[Callable[[_Chain], None], ...]] = (
    _convolve,
    _add_back,
    _pool,
    _average,
    _clip,
    _turn,
    _scale,
    _rename,
    _double,
)


@st.composite
def graphs(draw: Draw, *, power_of_two: bool | None = None, max_links: int = 4) -> Case:
    """A small graph: QuantizeLinear of a float input, up to `max_links` links, Flatten, Gemm, DequantizeLinear.

    Args:
        draw: given by Hypothesis.
        power_of_two: all scales 2**k, none, or (None) either.
        max_links: largest number of links between input and Flatten.
    """
    powers = not draw(st.booleans()) if power_of_two is None else power_of_two
    sketch = Sketch()
    shape = (1, draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    sketch.activation("x", shape, "float32", role="input")
    dtype = draw(st.sampled_from(EIGHT_BIT))
    sketch.activation("q", shape, dtype, quantization([draw(scales(power_of_two=powers))], [draw(zero_points(dtype))]))
    sketch.op("QuantizeLinear", ("x",), "q", host=True)
    chain = _Chain(draw=draw, powers=powers, sketch=sketch, here="q")
    for link in draw(st.lists(st.sampled_from(_LINKS), max_size=max_links)):
        link(chain)
    _head(chain)
    feeds = draw(st.integers(1, 3))
    return Case(
        manifest=sketch.manifest(["x"], ["y"]),
        arrays=sketch.arrays,
        inputs={"x": draw(_floats((feeds, *shape), chain.sketch.tensors["q"].quant))},
    )


def _floats(shape: tuple[int, ...], quant: Quantization | None) -> st.SearchStrategy[Array]:
    """Float inputs around the codes: quarters of a step, so that ties occur."""
    step = 1.0 if quant is None else quant.scales[0] / 4
    elements = st.integers(-600, 600).map(lambda k: float(np.float32(k * step)))
    return hnp.arrays(np.float32, shape, elements=elements)


def _head(c: _Chain) -> None:
    """Flatten, a Gemm that stays exact, and its float32 value."""
    size = int(np.prod(c.shape[1:]))
    flat = c.sketch.op("Flatten", (c.here,), c.kept((c.shape[0], size)), attributes={"axis": 1})
    c.here = flat
    weights = c.draw(codes("int8", (2, size)))
    quant = c.draw(quantizations("int8", channels=2, axis=0, power_of_two=c.powers, symmetric=True))
    c.sketch.constant("head.w", weights, quant)
    rows = c.shape[0]
    c.sketch.activation("head", (rows, 2), "exact", role="accumulator")
    attributes: Attributes = {"transA": 0, "transB": 1, "alpha": 1.0, "beta": 1.0}
    c.sketch.op("Gemm", (flat, "head.w", ""), "head", attributes=attributes)
    c.sketch.activation("y", (rows, 2), "float32", role="output")
    c.sketch.op("DequantizeLinear", ("head",), "y", host=True)
