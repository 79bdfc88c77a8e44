"""Which module computes which op type; an op on float32 tensors goes to the host functions."""

from collections.abc import Callable, Mapping
from typing import Final

from manifest.model import Op
from oracle.ops import (
    add,
    average_pool,
    clip,
    concat,
    conv,
    dequantize_linear,
    flatten,
    gemm,
    global_average_pool,
    host_float,
    matmul,
    max_pool,
    mul,
    quantize_linear,
    reinterpret,
    relu,
    reshape,
    transpose,
)
from oracle.value import Plan, Scope

Prepare = Callable[[Op, Scope], Plan]

OPS: Final[Mapping[str, Prepare]] = {
    "Conv": conv.prepare,
    "Gemm": gemm.prepare,
    "MatMul": matmul.prepare,
    "Add": add.prepare,
    "Mul": mul.prepare,
    "Relu": relu.prepare,
    "Clip": clip.prepare,
    "MaxPool": max_pool.prepare,
    "AveragePool": average_pool.prepare,
    "GlobalAveragePool": global_average_pool.prepare,
    "Flatten": flatten.prepare,
    "Reshape": reshape.prepare,
    "Transpose": transpose.prepare,
    "Concat": concat.prepare,
    "QuantizeLinear": quantize_linear.prepare,
    "DequantizeLinear": dequantize_linear.prepare,
    "Reinterpret": reinterpret.prepare,
}

_ANY_DTYPE: Final = frozenset(
    {"QuantizeLinear", "MaxPool", "Flatten", "Reshape", "Transpose", "Concat", "Clip", "Relu"}
)
"""Ops whose own module takes float32 tensors too."""


def prepare(op: Op, scope: Scope) -> Plan:
    """The plan of an op.

    Raises:
        RefusedError: the oracle has no meaning for the op in this form.
    """
    known = OPS.get(op.type)
    if known is None or (op.type not in _ANY_DTYPE and host_float.is_float(op, scope)):
        return host_float.prepare(op, scope)
    return known(op, scope)
