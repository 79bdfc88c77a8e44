"""How far two correct float32 evaluations of host functions may lie apart, carried along a chain of them.

Why not relative to the result alone: onnxruntime computes a Sigmoid with an error of some 1e-8 wherever the result
lies, so that a result of 1e-14 may come out as 0. An error is a share of the largest term inside the function, and the
functions behind it stretch or shrink it.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Op
from oracle.reference.sample import StageRun

Array = npt.NDArray[Any]

SMALLEST: Final = float(np.finfo(np.float32).tiny)
"""Below the normal numbers of float32 a processor may flush to zero."""


def float_noise(run: StageRun, name: str, relative: float) -> Array:
    """Absolute error that a float32 tensor may have.

    Args:
        run: the stage that makes the tensor, with every tensor that the oracle made in it.
        name: the tensor.
        relative: error of one function, as a share of the largest term inside it.

    Returns:
        (F, *shape) float64, at least `SMALLEST`.
    """
    tensors = run.manifest.by_name()
    noise: dict[str, Array] = {}
    for op in run.ops():
        made = op.outputs[0]
        if tensors[made].dtype == "float32" and made in run.made:
            noise[made] = relative * _largest_term(run, op) + _carried(run, op, noise) + SMALLEST
    return noise[name] if name in noise else np.full_like(run.made[name], SMALLEST, dtype=np.float64)


def _finite_size(values: Array) -> Array:
    """Largest finite magnitude of every feed, (F, 1, ...)."""
    axes = tuple(range(1, values.ndim))
    size = np.abs(values.astype(np.float64))
    largest: Array = np.max(size, axis=axes, keepdims=True, initial=0.0, where=np.isfinite(size))
    return largest


def _largest_term(run: StageRun, op: Op) -> Array:
    """Per feed the largest of what the function puts out and of the terms that it adds up on the way, (F, 1, ...)."""
    out = _finite_size(run.made[op.outputs[0]])
    inner = _INNER.get(op.type)
    if inner is None:
        return out
    source = op.inputs[0]
    given = run.made.get(source, run.tensors.get(source))
    inputs = np.zeros(1) if given is None else _finite_size(given).reshape(-1)
    count = prod(run.manifest.tensor(source).shape)
    return np.maximum(out, inner(op, inputs, count).reshape(-1, *(1,) * (out.ndim - 1)))


def _carried(run: StageRun, op: Op, noise: Mapping[str, Array]) -> Array:
    """What the errors of its inputs do to a function: its value with every input off by its error, up and down."""
    out = run.made[op.outputs[0]].astype(np.float64)
    total = np.zeros_like(out)
    given = {n: run.made.get(n, run.tensors.get(n)) for n in op.inputs if n}
    values = {n: array for n, array in given.items() if array is not None}
    for name in sorted(values.keys() & noise.keys()):
        most = np.zeros_like(out)
        for sign in (1, -1):
            moved = (values[name] + sign * noise[name]).astype(np.float32)
            result = run.graph.oracle.run_ops((op.name,), {**values, name: moved}, keep="all")[op.outputs[0]]
            with np.errstate(invalid="ignore"):
                most = np.fmax(most, np.abs(result.astype(np.float64) - out))
        total += most
    return total


def _constant(size: float) -> Callable[[Op, Array, int], Array]:
    return lambda op, inputs, count: np.full_like(inputs, size, dtype=np.float64)


def _attribute(name: str, default: float) -> Callable[[Op, Array, int], Array]:
    def size(op: Op, inputs: Array, count: int) -> Array:
        value = op.attributes.get(name, default)
        return np.full_like(inputs, abs(float(value)) if isinstance(value, int | float) else default, dtype=np.float64)

    return size


_INNER: Final[Mapping[str, Callable[[Op, Array, int], Array]]] = {
    "Sigmoid": _constant(1.0),
    "Softplus": _constant(1.0),
    "HardSigmoid": _attribute("beta", 0.5),
    "Elu": _attribute("alpha", 1.0),
    "Gelu": lambda op, inputs, count: inputs,
    "HardSwish": lambda op, inputs, count: inputs,
    "LogSoftmax": lambda op, inputs, count: inputs,
    "ReduceMean": lambda op, inputs, count: inputs,
    "ReduceSum": lambda op, inputs, count: inputs * count,
}
"""Largest term inside a function, from the op, the largest input of every feed (F,) and the elements of the input.

A function that is not here adds nothing that could cancel, or saturates at no constant: its result is its largest term.
"""
