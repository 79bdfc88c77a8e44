"""The op table: what each layer does with an ONNX op, `yes` or the reason why not.

Why one table: adding an op means one row here and then one file of the row's name in `manifest/onnx_import/ops/`,
`oracle/ops/`, `presim/kernels/` and `bringup/kernels/`; the coverage test goes over all rows. An op without a row is
refused with `UNKNOWN`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

YES: Final = "yes"
EIGHT_BIT: Final = ("int8", "uint8")
SIXTEEN_BIT: Final = (*EIGHT_BIT, "int16", "uint16")
CONTRIB: Final = "com.microsoft"

_ALIAS: Final = "no arithmetic: the output is another name of the input"
_FOLDED: Final = "no arithmetic of its own: folded into constants when the model is read"
_ON_HOST: Final = "runs on the host in float32"
_REMEDY_HOST: Final = "run it on the host with --host-ops"
_REMEDY_REMOVE: Final = "replace it in the model by ops that docs/coverage-ops.md lists"
_REMEDY_STATIC: Final = "quantize statically (calibrated scales written into the file)"
_REMEDY_FOLD: Final = "fix the shapes and fold constants first (for example with onnxsim)"
UNKNOWN: Final = ("no such op is known to the importer", _REMEDY_REMOVE)
"""Reason and remedy for an op that has no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """One ONNX op.

    Attributes:
        file: module name in every layer that says `yes`, or "" where no layer does.
        importer: `yes`, or why the op is refused.
        oracle: `yes`, or why the oracle has no function for it.
        presim: `yes`, or why there is no kernel for the simulator.
        bringup: `yes`, or why no kernel is emitted.
        host: a float op that may run on the host between dispatches when the person asks for `--host-ops`.
        dtypes: types of quantised activations that are taken.
        remedy: what a person can do about a refusal, or "".
    """

    file: str
    importer: str = YES
    oracle: str = YES
    presim: str = YES
    bringup: str = YES
    host: bool = False
    dtypes: tuple[str, ...] = EIGHT_BIT
    remedy: str = ""

    @property
    def int16(self) -> bool:
        """Whether 16-bit activations are taken."""
        return "int16" in self.dtypes


def op_key(domain: str, op_type: str) -> str:
    """Key of `OPSET`: `domain:type`, with `ai.onnx` written as nothing."""
    return f"{'' if domain == 'ai.onnx' else domain}:{op_type}"


def refusal(key: str, *, host_ops: bool = False) -> tuple[str, str] | None:
    """(reason, remedy) when the importer refuses the op `key`, None when it takes it (on the host with `host_ops`)."""
    row = OPSET.get(key)
    if row is None:
        return UNKNOWN
    if row.importer == YES or (row.host and host_ops):
        return None
    return row.importer, row.remedy


def _wide(file: str) -> OpRow:
    return OpRow(file=file, dtypes=SIXTEEN_BIT)


def _gone(file: str, why: str) -> OpRow:
    return OpRow(file=file, oracle=why, presim=why, bringup=why, dtypes=SIXTEEN_BIT)


def _host(why: str) -> OpRow:
    return OpRow(
        file="host_float", importer=why, presim=_ON_HOST, bringup=_ON_HOST, host=True, dtypes=(), remedy=_REMEDY_HOST
    )


def _refused(why: str, remedy: str = _REMEDY_REMOVE) -> OpRow:
    return OpRow(file="", importer=why, oracle=why, presim=why, bringup=why, dtypes=(), remedy=remedy)


_FLOAT: Final = "a float function that has no quantised form here yet"
_MOVES: Final = "this data movement is not built yet"
_REDUCE: Final = "reductions other than GlobalAveragePool are not built yet"
_TWO_ACTIVATIONS: Final = "arithmetic on two activations other than Add is not built yet"
_COMPARE: Final = "comparisons and selections are not built yet"
_RECURRENT: Final = "recurrent ops are not built yet"
_SHAPES: Final = "it computes shapes while the model runs, and a design needs fixed shapes"
_DYNAMIC: Final = "scales computed while the model runs (dynamic quantization) are not taken"
_INTEGER: Final = "integer accumulators as graph tensors are not built yet"
_WEIGHT_ONLY: Final = "weight-only quantization leaves the activations in float"
_CONTROL: Final = "control flow has no fixed dataflow"
_ATTENTION: Final = "attention and layer normalization are not built yet"
_QONNX: Final = "the QONNX dialect is not built yet"
_REMEDY_QCDQ: Final = "convert it to QCDQ (qonnx: `qonnx-convert --output-style qcdq`)"

OPSET: Final[Mapping[str, OpRow]] = {
    # Products
    ":Conv": _wide("conv"),
    ":QLinearConv": OpRow(file="conv"),
    "com.microsoft:FusedConv": OpRow(file="conv"),
    ":Gemm": _wide("gemm"),
    "com.microsoft:QGemm": OpRow(file="gemm"),
    "com.microsoft:FusedGemm": OpRow(file="gemm"),
    ":MatMul": _wide("matmul"),
    ":QLinearMatMul": OpRow(file="matmul"),
    "com.microsoft:MatMulIntegerToFloat": OpRow(file="matmul"),
    # Elementwise
    ":Add": _wide("add"),
    "com.microsoft:QLinearAdd": OpRow(file="add"),
    ":Mul": OpRow(file="mul"),
    "com.microsoft:QLinearMul": OpRow(file="mul"),
    ":Relu": _wide("relu"),
    ":Clip": _wide("clip"),
    # Pooling
    ":MaxPool": _wide("max_pool"),
    ":AveragePool": OpRow(file="average_pool"),
    "com.microsoft:QLinearAveragePool": OpRow(file="average_pool"),
    ":GlobalAveragePool": _wide("global_average_pool"),
    "com.microsoft:QLinearGlobalAveragePool": OpRow(file="global_average_pool"),
    # Layout
    ":Flatten": _wide("flatten"),
    ":Reshape": _wide("reshape"),
    ":Squeeze": _wide("reshape"),
    ":Unsqueeze": _wide("reshape"),
    ":Transpose": _wide("transpose"),
    ":Concat": OpRow(file="concat"),
    "com.microsoft:QLinearConcat": OpRow(file="concat"),
    # Quantization
    ":QuantizeLinear": _wide("quantize_linear"),
    "com.microsoft:QuantizeLinear": _wide("quantize_linear"),
    ":DequantizeLinear": OpRow(file="dequantize_linear", presim=_ON_HOST, bringup=_ON_HOST, dtypes=SIXTEEN_BIT),
    "com.microsoft:DequantizeLinear": OpRow(
        file="dequantize_linear", presim=_ON_HOST, bringup=_ON_HOST, dtypes=SIXTEEN_BIT
    ),
    # Gone after reading
    ":Identity": _gone("identity", _ALIAS),
    ":Dropout": _gone("identity", _ALIAS),
    ":Constant": _gone("constant", _FOLDED),
    ":Cast": _gone("cast", _FOLDED),
    ":BatchNormalization": _gone("batch_normalization", _FOLDED),
    # Float ops that may run on the host
    ":Softmax": _host(_FLOAT),
    ":LogSoftmax": _host(_FLOAT),
    ":Sigmoid": _host(_FLOAT),
    ":Tanh": _host(_FLOAT),
    ":HardSigmoid": _host(_FLOAT),
    ":HardSwish": _host(_FLOAT),
    ":LeakyRelu": _host(_FLOAT),
    ":Elu": _host(_FLOAT),
    ":Exp": _host(_FLOAT),
    ":Log": _host(_FLOAT),
    ":Sqrt": _host(_FLOAT),
    ":Erf": _host(_FLOAT),
    ":Gelu": _host(_FLOAT),
    "com.microsoft:Gelu": _host(_FLOAT),
    ":Softplus": _host(_FLOAT),
    ":ArgMax": _host(_REDUCE),
    ":ReduceMean": _host(_REDUCE),
    ":ReduceSum": _host(_REDUCE),
    ":ReduceMax": _host(_REDUCE),
    ":Sub": _host(_TWO_ACTIVATIONS),
    ":Div": _host(_TWO_ACTIVATIONS),
    ":Pow": _host(_TWO_ACTIVATIONS),
    # Refused by name
    ":Abs": _refused(_FLOAT),
    ":Mish": _refused(_FLOAT),
    ":Neg": _refused(_FLOAT),
    ":PRelu": _refused(_FLOAT),
    ":Reciprocal": _refused(_FLOAT),
    ":Softsign": _refused(_FLOAT),
    ":ThresholdedRelu": _refused(_FLOAT),
    "com.microsoft:QLinearLeakyRelu": _refused(_FLOAT),
    "com.microsoft:QLinearSigmoid": _refused(_FLOAT),
    "com.microsoft:QLinearSoftmax": _refused(_FLOAT),
    "com.microsoft:FastGelu": _refused(_FLOAT),
    ":Max": _refused(_TWO_ACTIVATIONS),
    ":Min": _refused(_TWO_ACTIVATIONS),
    ":Sum": _refused(_TWO_ACTIVATIONS),
    ":ReduceMin": _refused(_REDUCE),
    ":ReduceL2": _refused(_REDUCE),
    ":ReduceProd": _refused(_REDUCE),
    "com.microsoft:QLinearReduceMean": _refused(_REDUCE),
    ":GlobalMaxPool": _refused(_REDUCE),
    ":ConvTranspose": _refused(_MOVES),
    ":DepthToSpace": _refused(_MOVES),
    ":Expand": _refused(_MOVES),
    ":Gather": _refused(_MOVES),
    ":Pad": _refused(_MOVES),
    ":Resize": _refused(_MOVES),
    ":Slice": _refused(_MOVES),
    ":SpaceToDepth": _refused(_MOVES),
    ":Split": _refused(_MOVES),
    ":Tile": _refused(_MOVES),
    ":Upsample": _refused(_MOVES),
    ":Where": _refused(_COMPARE),
    ":Equal": _refused(_COMPARE),
    ":Greater": _refused(_COMPARE),
    ":Less": _refused(_COMPARE),
    "com.microsoft:QLinearWhere": _refused(_COMPARE),
    ":Shape": _refused(_SHAPES, _REMEDY_FOLD),
    ":ConstantOfShape": _refused(_SHAPES, _REMEDY_FOLD),
    ":NonZero": _refused(_SHAPES),
    ":Range": _refused(_SHAPES, _REMEDY_FOLD),
    ":If": _refused(_CONTROL),
    ":Loop": _refused(_CONTROL),
    ":Scan": _refused(_CONTROL),
    ":LSTM": _refused(_RECURRENT),
    ":GRU": _refused(_RECURRENT),
    ":RNN": _refused(_RECURRENT),
    ":LayerNormalization": _refused(_ATTENTION),
    ":InstanceNormalization": _refused(_ATTENTION),
    ":Attention": _refused(_ATTENTION),
    "com.microsoft:Attention": _refused(_ATTENTION),
    "com.microsoft:SkipLayerNormalization": _refused(_ATTENTION),
    ":DynamicQuantizeLinear": _refused(_DYNAMIC, _REMEDY_STATIC),
    "com.microsoft:DynamicQuantizeMatMul": _refused(_DYNAMIC, _REMEDY_STATIC),
    ":ConvInteger": _refused(_INTEGER, _REMEDY_STATIC),
    ":MatMulInteger": _refused(_INTEGER, _REMEDY_STATIC),
    "com.microsoft:MatMulNBits": _refused(_WEIGHT_ONLY, _REMEDY_STATIC),
    "qonnx.custom_op.general:Quant": _refused(_QONNX, _REMEDY_QCDQ),
    "qonnx.custom_op.general:IntQuant": _refused(_QONNX, _REMEDY_QCDQ),
    "qonnx.custom_op.general:BipolarQuant": _refused(_QONNX, _REMEDY_QCDQ),
    "qonnx.custom_op.general:Trunc": _refused(_QONNX, _REMEDY_QCDQ),
    "onnx.brevitas:Quant": _refused(_QONNX, _REMEDY_QCDQ),
    "onnx.brevitas:BipolarQuant": _refused(_QONNX, _REMEDY_QCDQ),
    "onnx.brevitas:Trunc": _refused(_QONNX, _REMEDY_QCDQ),
}
"""Every op with an answer, by `op_key`. One file may serve several ops of the same arithmetic."""

INTERNAL: Final[Mapping[str, str]] = {"Reinterpret": "reinterpret"}
"""Ops that only the importer makes -> module name in the layers that compute (same codes, other scale)."""
