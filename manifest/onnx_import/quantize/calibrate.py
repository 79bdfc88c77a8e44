"""Scales from real data: ranges over every feed, then the power of two with the least squared error.

The ranges come from onnxruntime's own min-max calibrator; it loads files and derives names from names, so it is
given a private copy whose values are numbered.
"""

import math
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, MinMaxCalibrater

from manifest.errors import Problem, RefusedError
from manifest.onnx_import.quantize.plan import Plan
from manifest.onnx_import.quantize.runtime import FAILURES, FloatRunner, refused, session
from manifest.onnx_import.quantize.scheme import (
    CODE_MAX,
    CODE_MIN,
    DEFAULT_EXPONENT,
    EXPONENT_LIMIT,
    QuantizeOptions,
)

SAMPLED_ELEMENTS: Final = 1 << 16
"""Elements of one tensor of one feed that decide between scales."""

Feeds = Mapping[str, NDArray[Any]]


class _Reader(CalibrationDataReader):  # type: ignore[misc]  # untyped base
    """Feeds one by one under the numbered names."""

    def __init__(self, feeds: Feeds, numbers: Mapping[str, str]) -> None:
        self._feeds = _each(feeds, numbers)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        return next(self._feeds, None)


def _each(feeds: Feeds, numbers: Mapping[str, str]) -> Iterator[dict[str, NDArray[Any]]]:
    for index in range(next(iter(feeds.values())).shape[0]):
        yield {numbers[name]: array[index] for name, array in feeds.items()}


def exponents(
    model: onnx.ModelProto, plan: Plan, feeds: Feeds, options: QuantizeOptions
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Exponent of the scale of every quantized tensor.

    Args:
        model: folded float model with inferred shapes.
        plan: tensors and groups.
        feeds: (F, *shape) by input name.
        options: how to choose.

    Returns:
        k by tensor name (scale 2**k), and the tensors that are 0 on all data.

    Raises:
        RefusedError: values that are not finite or beyond every scale.
    """
    names = [name for names in plan.seen.values() for name in names]
    ranges = _ranges(model, feeds, names)
    problems = [p for name in names if (p := _range_problem(name, *ranges[name])) is not None]
    if problems:
        raise RefusedError(tuple(problems))
    whole = {
        first: (min(ranges[n][0] for n in group), max(ranges[n][1] for n in group))
        for first, group in plan.seen.items()
    }
    coarse = {first: coarse_exponent(*ends) for first, ends in whole.items()}
    chosen = coarse
    if options.scale_choice == "mse":
        chosen = _least_error(FloatRunner(model, names), plan, feeds, coarse, options)
    silent = tuple(first for first, ends in whole.items() if ends == (0.0, 0.0))
    return {name: chosen[plan.group[name]] for name in plan.quantized}, silent


def _ranges(model: onnx.ModelProto, feeds: Feeds, names: list[str]) -> dict[str, tuple[float, float]]:
    numbered, numbers = _numbered(model)
    with tempfile.TemporaryDirectory(prefix="calibrate-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save_model(numbered, str(path))
        calibrator = MinMaxCalibrater(path, augmented_model_path=str(Path(folder) / "augmented.onnx"))
        try:
            calibrator.augment_graph()
            calibrator.infer_session = session(Path(folder) / "augmented.onnx")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # tensors of NaN alone are judged below
                calibrator.collect_data(_Reader(feeds, numbers))
        except FAILURES as error:
            raise refused(error, "run") from error
    found = calibrator.compute_data()
    return {name: _ends(found[numbers[name]].range_value) for name in names}


def _ends(pair: tuple[Any, Any]) -> tuple[float, float]:
    return float(np.asarray(pair[0]).min()), float(np.asarray(pair[1]).max())


def _numbered(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, str]]:
    """A copy whose values are called v0, v1, ... and the new names by the old ones."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    numbers: dict[str, str] = {"": ""}

    def number(name: str) -> str:
        return numbers.setdefault(name, f"v{len(numbers)}")

    graph = copy.graph
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = number(value.name)
    for node in graph.node:
        node.input[:] = [number(name) for name in node.input]
        node.output[:] = [number(name) for name in node.output]
        node.name = ""
    return copy, numbers


def _range_problem(name: str, low: float, high: float) -> Problem | None:
    where = f"tensor {name!r}"
    if not (math.isfinite(low) and math.isfinite(high)):
        what = "is not finite on the data"
        return Problem(code="QUANT-NOT-FINITE", where=where, what=what, expected="finite values", got=f"{low}..{high}")
    if coarse_exponent(low, high) > EXPONENT_LIMIT:
        what = "its values on the data are beyond every scale"
        expected = f"at most {CODE_MAX} * 2**{EXPONENT_LIMIT}"
        return Problem(code="QUANT-RANGE", where=where, what=what, expected=expected, got=f"{low:g}..{high:g}")
    return None


def coarse_exponent(low: float, high: float) -> int:
    """The smallest k for which no value of [low, high] is clipped: codes round to -128..127 at scale 2**k.

    At least -EXPONENT_LIMIT; DEFAULT_EXPONENT where both are 0.
    """
    largest = max(abs(low), abs(high))
    if largest == 0.0:
        return DEFAULT_EXPONENT
    k = math.frexp(largest)[1] - 8
    while round(math.ldexp(high, -k)) > CODE_MAX or round(math.ldexp(low, -k)) < CODE_MIN:
        k += 1
    return max(k, -EXPONENT_LIMIT)


def squared_error(values: NDArray[np.float64], k: int) -> float:
    """Sum of squared differences between values and their int8 codes at scale 2**k."""
    codes = np.clip(np.rint(np.ldexp(values, -k)), CODE_MIN, CODE_MAX)
    difference = values - np.ldexp(codes, k)
    return float(difference.ravel() @ difference.ravel())


def best_exponent(errors: Mapping[int, float]) -> int:
    """The exponent with the least error, the coarsest of equals."""
    return min(errors, key=lambda k: (errors[k], -k))


def candidates(coarse: int, finer: int) -> range:
    """Exponents to choose from."""
    return range(max(coarse - finer, -EXPONENT_LIMIT), coarse + 1)


def weight_exponent(values: NDArray[Any], options: QuantizeOptions) -> int:
    """Exponent for a constant: as for activations, over its own values."""
    exact = values.astype(np.float64)
    coarse = coarse_exponent(float(exact.min(initial=0.0)), float(exact.max(initial=0.0)))
    if options.scale_choice == "range":
        return coarse
    return best_exponent({k: squared_error(exact, k) for k in candidates(coarse, options.finer)})


def _least_error(
    runner: FloatRunner, plan: Plan, feeds: Feeds, coarse: Mapping[str, int], options: QuantizeOptions
) -> dict[str, int]:
    errors = {first: dict.fromkeys(candidates(coarse[first], options.finer), 0.0) for first in plan.seen}
    count = next(iter(feeds.values())).shape[0]
    chosen = np.unique(np.linspace(0, count - 1, min(count, options.sampled_feeds)).astype(int))
    for index in chosen:
        tensors = runner.run({name: array[index] for name, array in feeds.items()})
        for first, names in plan.seen.items():
            for name in names:
                values = _sampled(tensors[name])
                for k in errors[first]:
                    errors[first][k] += squared_error(values, k)
    return {first: best_exponent(found) for first, found in errors.items()}


def _sampled(values: NDArray[Any]) -> NDArray[np.float64]:
    """At most SAMPLED_ELEMENTS elements, evenly spaced."""
    step = -(-values.size // SAMPLED_ELEMENTS)
    return values.ravel()[:: max(1, step)].astype(np.float64)
