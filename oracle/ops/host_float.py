"""Float ops that run on the host between dispatches: float32 in, float32 out, ONNX semantics.

No bit-exact promise is made for these (onnxruntime's own results depend on vector length); they are evaluated in
float64 and rounded once, arithmetic operators in float32.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from manifest.model import AttributeValue, Op
from oracle.value import Array, Plan, Scope, Values, refuse

Attributes = Mapping[str, AttributeValue]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _number(attributes: Attributes, name: str, default: float) -> float:
    value = attributes.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), 1 - 1 / (1 + np.exp(-np.abs(x)))))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _gelu(x: Array, a: Attributes) -> Array:
    if a.get("approximate") == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + _erf(x / math.sqrt(2))))


def _hard_sigmoid(x: Array, a: Attributes) -> Array:
    return np.clip(_number(a, "alpha", 0.2) * x + _number(a, "beta", 0.5), 0.0, 1.0)


_UNARY: Final[Mapping[str, Callable[[Array, Attributes], Array]]] = {
    "Sigmoid": lambda x, _: _sigmoid(x),
    "Tanh": lambda x, _: np.tanh(x),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda x, _: x * np.clip(x / 6 + 0.5, 0.0, 1.0),
    "LeakyRelu": lambda x, a: np.where(x >= 0, x, _number(a, "alpha", 0.01) * x),
    "Elu": lambda x, a: np.where(x >= 0, x, _number(a, "alpha", 1.0) * np.expm1(np.minimum(x, 0))),
    "Exp": lambda x, _: np.exp(x),
    "Log": lambda x, _: np.log(x),
    "Sqrt": lambda x, _: np.sqrt(x),
    "Erf": lambda x, _: _erf(x),
    "Gelu": _gelu,
    "Softplus": lambda x, _: _softplus(x),
    "Relu": lambda x, _: np.maximum(x, 0),
}

_BINARY: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
}

_REDUCE: Final[Mapping[str, Callable[..., Array]]] = {"ReduceMean": np.mean, "ReduceSum": np.sum, "ReduceMax": np.max}


def is_float(op: Op, scope: Scope) -> bool:
    """Whether all inputs that are activations are float32: then the op is computed in float32, on the host."""
    names = [n for n in op.inputs if n and scope.constant(n) is None]
    return bool(names) and all(scope.tensors[n].dtype == "float32" for n in names)


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x, ...), float32 activations or constants."""
    function = _function(op, scope)

    def run(values: Values, _: Any) -> Array:
        with np.errstate(all="ignore"):
            result = function([_feeds_first(scope, values, name) for name in op.inputs if name])
            kind = np.int64 if scope.tensors[op.outputs[0]].dtype == "int64" else np.float32
            return np.moveaxis(result.astype(kind), 0, -1)

    return Plan(run=run)


def _feeds_first(scope: Scope, values: Values, name: str) -> Array:
    constant = scope.constant(name)
    return constant[None] if constant is not None else np.moveaxis(values[name], -1, 0)


def _function(op: Op, scope: Scope) -> Callable[[list[Array]], Array]:
    """From inputs with the feed axis first to the output with the feed axis first."""
    attributes = op.attributes
    if op.type in _UNARY:
        unary = _UNARY[op.type]
        return lambda xs: unary(xs[0].astype(np.float64), attributes)
    if op.type in _BINARY:
        binary = _BINARY[op.type]
        return lambda xs: binary(*_same_rank(xs))
    if op.type in ("Softmax", "LogSoftmax"):
        return _softmax(op, scope)
    if op.type in _REDUCE:
        return _reduction(op, scope)
    if op.type == "ArgMax":
        return _argmax(op, scope)
    if op.type == "Clip":
        low, high = (_number(attributes, n, d) for n, d in (("minimum", -math.inf), ("maximum", math.inf)))
        return lambda xs: np.minimum(np.maximum(xs[0], np.float32(low)), np.float32(high))
    raise refuse(op, "has no function on float32 tensors", remedy="put QuantizeLinear and DequantizeLinear around it")


def _same_rank(arrays: Sequence[Array]) -> list[Array]:
    """Logical axes aligned at the end, as ONNX broadcasting does, behind the feed axis."""
    rank = max(a.ndim for a in arrays)
    return [a.reshape(a.shape[0], *(1,) * (rank - a.ndim), *a.shape[1:]) for a in arrays]


def _softmax(op: Op, scope: Scope) -> Callable[[list[Array]], Array]:
    """Along one axis; before opset 13 over all axes from `axis` on."""
    old = scope.opset < 13
    rank = len(scope.tensors[op.inputs[0]].shape)
    axis = int(_number(op.attributes, "axis", 1 if old else -1)) % rank + 1
    axes = tuple(range(axis, rank + 1)) if old else (axis,)

    def function(xs: list[Array]) -> Array:
        x = xs[0].astype(np.float64)
        shifted = x - np.max(x, axis=axes, keepdims=True)
        total = np.sum(np.exp(shifted), axis=axes, keepdims=True)
        return np.asarray(shifted - np.log(total) if op.type == "LogSoftmax" else np.exp(shifted) / total)

    return function


def _reduction(op: Op, scope: Scope) -> Callable[[list[Array]], Array]:
    rank = len(scope.tensors[op.inputs[0]].shape)
    given: Any = op.attributes.get("axes", ())
    if len(op.inputs) > 1 and op.inputs[1]:
        stored = scope.constant(op.inputs[1])
        given = () if stored is None else tuple(stored.reshape(-1).tolist())
    keep = bool(op.attributes.get("keepdims", 1))
    if not given and op.attributes.get("noop_with_empty_axes", 0):
        return lambda xs: xs[0]
    axes = tuple(int(a) % rank + 1 for a in given) or tuple(range(1, rank + 1))
    reduce = _REDUCE[op.type]
    return lambda xs: reduce(xs[0].astype(np.float64), axis=axes, keepdims=keep)


def _argmax(op: Op, scope: Scope) -> Callable[[list[Array]], Array]:
    rank = len(scope.tensors[op.inputs[0]].shape)
    axis = int(_number(op.attributes, "axis", 0)) % rank + 1
    keep, last = bool(op.attributes.get("keepdims", 1)), bool(op.attributes.get("select_last_index", 0))

    def function(xs: list[Array]) -> Array:
        x = xs[0]
        found = x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis=axis) if last else np.argmax(x, axis=axis)
        return np.asarray(np.expand_dims(found, axis) if keep else found)

    return function
