"""One file per op; this table says which file imports which kind of node."""

from collections.abc import Mapping
from typing import Final

from manifest.onnx_import.ops import (
    add,
    average_pool,
    batch_normalization,
    cast,
    clip,
    concat,
    conv,
    dequantize_linear,
    flatten,
    gemm,
    global_average_pool,
    identity,
    matmul,
    max_pool,
    mul,
    quantize_linear,
    relu,
    reshape,
    transpose,
)
from manifest.onnx_import.rules import OpRule

RULES: Final[Mapping[str, OpRule]] = {
    ":Add": OpRule(shape=add.shape, lower=add.lower),
    ":AveragePool": OpRule(shape=average_pool.shape, lower=average_pool.lower),
    ":BatchNormalization": OpRule(shape=batch_normalization.shape, lower=batch_normalization.lower),
    ":Cast": OpRule(shape=cast.shape, lower=cast.lower),
    ":Clip": OpRule(shape=clip.shape, lower=clip.lower),
    ":Concat": OpRule(shape=concat.shape, lower=concat.lower),
    ":Conv": OpRule(shape=conv.shape, lower=conv.lower),
    ":DequantizeLinear": OpRule(shape=dequantize_linear.shape, lower=dequantize_linear.lower),
    ":Dropout": OpRule(shape=identity.shape, lower=identity.lower_dropout),
    ":Flatten": OpRule(shape=flatten.shape, lower=flatten.lower),
    ":Gemm": OpRule(shape=gemm.shape, lower=gemm.lower),
    ":GlobalAveragePool": OpRule(shape=global_average_pool.shape, lower=global_average_pool.lower),
    ":Identity": OpRule(shape=identity.shape, lower=identity.lower),
    ":MatMul": OpRule(shape=matmul.shape, lower=matmul.lower),
    ":MaxPool": OpRule(shape=max_pool.shape, lower=max_pool.lower),
    ":Mul": OpRule(shape=mul.shape, lower=mul.lower),
    ":QLinearConv": OpRule(shape=conv.shape_qlinear, lower=conv.lower_qlinear),
    ":QLinearMatMul": OpRule(shape=matmul.shape_qlinear, lower=matmul.lower_qlinear),
    ":QuantizeLinear": OpRule(shape=quantize_linear.shape, lower=quantize_linear.lower),
    ":Relu": OpRule(shape=relu.shape, lower=relu.lower),
    ":Reshape": OpRule(shape=reshape.shape, lower=reshape.lower),
    ":Squeeze": OpRule(shape=reshape.shape_squeeze, lower=reshape.lower),
    ":Transpose": OpRule(shape=transpose.shape, lower=transpose.lower),
    ":Unsqueeze": OpRule(shape=reshape.shape_unsqueeze, lower=reshape.lower),
    "com.microsoft:FusedConv": OpRule(shape=conv.shape, lower=conv.lower_fused),
    "com.microsoft:FusedGemm": OpRule(shape=gemm.shape, lower=gemm.lower_fused),
    "com.microsoft:MatMulIntegerToFloat": OpRule(shape=matmul.shape, lower=matmul.lower_integer_to_float),
    "com.microsoft:QGemm": OpRule(shape=gemm.shape_qgemm, lower=gemm.lower_qgemm),
    "com.microsoft:QLinearAdd": OpRule(shape=add.shape_qlinear, lower=add.lower_qlinear),
    "com.microsoft:QLinearAveragePool": OpRule(shape=average_pool.shape, lower=average_pool.lower_qlinear),
    "com.microsoft:QLinearConcat": OpRule(shape=concat.shape_qlinear, lower=concat.lower_qlinear),
    "com.microsoft:QLinearGlobalAveragePool": OpRule(
        shape=global_average_pool.shape, lower=global_average_pool.lower_qlinear
    ),
    "com.microsoft:QLinearMul": OpRule(shape=mul.shape_qlinear, lower=mul.lower_qlinear),
}
