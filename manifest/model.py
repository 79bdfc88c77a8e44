"""The deployment manifest: frozen, plain data, no arrays (those live in `tensors.npz`).

Why exact tensors: between a Conv and the QuantizeLinear behind it onnxruntime holds a float; we hold the
exact integer accumulator and the exact rational scale, so that the value is rounded once. Where a graph
needs such a value as a tensor of its own, its dtype is `exact`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

SCHEMA_VERSION: Final = 1

DType = Literal["int8", "uint8", "int16", "uint16", "int32", "int64", "float32", "exact"]
Role = Literal["input", "activation", "weight", "bias", "constant", "accumulator", "output"]
Where = Literal["npu", "host"]
Origin = Literal["qdq", "qoperator"]
ReferenceKind = Literal["identity", "srs", "rational", "scale_f32"]
TargetKind = Literal["identity", "srs", "multiplier_shift", "lut"]
BiasKind = Literal["accumulator", "shifted", "rescaled"]
AttributeValue = int | float | str | tuple[int, ...] | tuple[float, ...]

QRANGE: Final[Mapping[str, tuple[int, int]]] = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Real value = (code - zero_point) * scale.

    Attributes:
        scales: float32 values (held exactly as float64), 1 or one per channel; finite, > 0.
        zero_points: same length as `scales`, within the dtype's range.
        axis: channel axis when per-channel, else None.
        exponents: k per scale where every scale is exactly 2**k, else None.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None
    exponents: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Range of the real values seen on the person's data; `samples` feeds were looked at."""

    minimum: float
    maximum: float
    samples: int
    saturated: int
    """Elements at the lowest or highest code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor of the model under its ONNX name.

    Attributes:
        name: ONNX name (an activation: the name of the QuantizeLinear output or QOperator output).
        shape: fixed, without the feed axis.
        dtype: how it is stored and computed on; `exact` = unrounded integer accumulator with rational scale.
        onnx_dtype: what the ONNX file says (a Flatten between DQ and Gemm is float32 there, int8 here).
        role: what it is for.
        quant: scale and zero point; None for float32, int64 and exact tensors.
        observed: range on real data, activations only.
        array: key in `tensors.npz` for constants, else None.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    onnx_dtype: str
    role: Role
    quant: Quantization | None = None
    observed: Observed | None = None
    array: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulator:
    """Width of the accumulator and the bound proved from the actual weights.

    Attributes:
        bits: 32 or 64, the accumulator the kernel uses.
        bound: largest possible |sum of products + bias| over all inputs in the input dtype's range (after
            subtracting the zero point), in units of one product (after bias promotion).
    """

    bits: int
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """How the stored bias integer reaches the accumulator.

    Attributes:
        kind: `accumulator`: bias scale is the product of input and weight scale, added as it is;
            `shifted`: their ratio is 2**shift, bias << shift is added (shift < 0: the accumulator is promoted,
            acc << -shift, and the bias added as it is: exact either way);
            `rescaled`: any other ratio, or a float bias: `reference` adds the exact rational, `target`
            adds the int32 array `target_array` (round half even of bias / (input scale * weight scale)).
        shifts: per channel or length 1; empty unless `shifted`.
        target_array: key in `tensors.npz` of the rescaled int32 bias, else None.
    """

    kind: BiasKind
    shifts: tuple[int, ...] = ()
    target_array: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A Relu or Clip fused in front of the rounding (bounds are real values; None = unbounded)."""

    type: Literal["Relu", "Clip"]
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requantization:
    """From the exact value to the output code: round, add the zero point, clamp to [qmin, qmax].

    `target` computes clamp(srs(value * multiplier, shift) + zero_point); `zero_point_inside` puts the zero
    point before the rounding, as QLinearAdd, QLinearMul and QLinearAveragePool do.

    Attributes:
        reference: `identity` (same codes), `srs` (all scales 2**k), `rational` (float32 scales as exact
            rationals, one rounding half-even), `scale_f32` (onnxruntime's QOperator kernel formula).
        target: `identity`, `srs`, `multiplier_shift` or `lut` (256 or 65,536 entries, key `lut`).
        multipliers: Conv/Gemm/MatMul: 1 or one per output channel; Add: one per input (shared shift);
            Concat: one per input; others: 1. For `srs` powers of two (1 except where inputs are aligned).
        shifts: right shift, negative = left; Add: length 1; else as `multipliers`.
        rounding: name of the rounding mode (`conv_even`), as in `oracle.fixedpoint`.
        saturation: `saturate`.
        qmin: lowest output code after fused activations.
        qmax: highest output code after fused activations.
        proof: for averages: how (multiplier, shift) was proved equal to the reference, else "".
    """

    reference: ReferenceKind
    target: TargetKind
    qmin: int
    qmax: int
    multipliers: tuple[int, ...] = (1,)
    shifts: tuple[int, ...] = (0,)
    rounding: str = "conv_even"
    saturation: str = "saturate"
    zero_point_inside: bool = False
    lut: str | None = None
    proof: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation.

    Attributes:
        name: unique; the ONNX node's name where it has one.
        type: ONNX op type of the arithmetic (`Conv` also for QLinearConv and FusedConv).
        inputs: tensor names; "" = absent. Conv/Gemm/MatMul: (x, w, bias or "").
        outputs: tensor names.
        attributes: all ONNX defaults filled in, auto_pad resolved.
        origin: which meaning `reference` has: `qdq` or `qoperator`.
        nodes: ONNX nodes that went into it.
        where: npu or host.
    """

    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    origin: Origin = "qdq"
    nodes: tuple[str, ...] = ()
    where: Where = "npu"
    accumulator: Accumulator | None = None
    bias: Bias | None = None
    activation: Activation | None = None
    requant: Requantization | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a constant or an activation is laid out for the kernels, apart from quantization.

    Attributes:
        tensor: name.
        logical: axis letters of the stored array (`OIHW`, `KN`, `NK`, `NCHW`, ...).
        packed: name of a transform in `manifest.layout` (`identity` where none).
        block: block sizes that the transform takes.
    """

    tensor: str
    logical: str
    packed: str
    block: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """One compiled design; ops in execution order.

    Attributes:
        name: `d0`, `d1`, ...
        where: npu or host.
        ops: op names.
        inputs: tensors that enter (graph inputs and cut tensors).
        outputs: tensors that leave.
        cut_bytes: bytes of the outputs that another dispatch reads.
        reason: why the dispatch ends here.
    """

    name: str
    where: Where
    ops: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cut_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A warning or remark of the importer: stable code, where, text on one line."""

    code: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """Where the manifest comes from. `format`: qdq, qoperator or mixed; `inputs`/`outputs` in graph order."""

    sha256: str
    format: Literal["qdq", "qoperator", "mixed"]
    opset: int
    ir_version: int
    producer: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    quantized_by_phase1: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """The locked scheme, one line each; `not_power_of_two` lists the tensors whose scales are not 2**k."""

    activations: str
    weights: str
    bias: str
    power_of_two: bool
    not_power_of_two: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Device name (file in `manifest/devices`) and toolchain profile."""

    device: str
    toolchain: str = "mlir-aie-1.4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The deployment manifest. Tensors sorted by name; ops in a topological order (graph order, stable)."""

    model: ModelInfo
    target: Target
    scheme: Scheme
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    layouts: tuple[Layout, ...] = ()
    dispatches: tuple[Dispatch, ...] = ()
    notes: tuple[Note, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def tensor(self, name: str) -> Tensor:
        """The tensor called `name`; KeyError where there is none."""
        return self.by_name()[name]

    def by_name(self) -> dict[str, Tensor]:
        """Tensors by name."""
        return {t.name: t for t in self.tensors}
