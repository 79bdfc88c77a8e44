"""What `port.toml` declares about preprocessing: mean, scale, layout and the range of the raw values.

Why it is declared and not guessed: 0..255 fed to a model that was trained on 0..1 runs without an error and
gives useless numbers. What is declared is applied to raw integer data and is a range that float data must keep.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError

KEYS: Final = frozenset({"mean", "scale", "std", "layout", "minimum", "maximum"})
LAYOUTS: Final = ("NCHW", "NHWC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """What the model is fed = (raw - mean) * scale, per channel (axis 1 of the model's input) or for all.

    Attributes:
        mean: 1 value or one per channel, in raw units.
        scale: 1 value or one per channel, not 0.
        layout: axis order of the stored data; `NHWC` is turned into the NCHW that the model takes.
        minimum: lowest raw value that can occur.
        maximum: highest raw value that can occur.
    """

    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    minimum: float = 0.0
    maximum: float = 255.0

    def declared_range(self) -> tuple[float, float]:
        """Lowest and highest value that the model can be fed."""
        mean = self.mean * max(1, len(self.scale) // len(self.mean))
        scale = self.scale * max(1, len(mean) // len(self.scale))
        ends = [(raw - m) * s for m, s in zip(mean, scale, strict=True) for raw in (self.minimum, self.maximum)]
        return min(ends), max(ends)

    def apply(self, raw: NDArray[Any]) -> NDArray[np.float32]:
        """(raw - mean) * scale as float32, computed in float64, one rounding.

        Args:
            raw: (F, *shape); several values of mean or scale belong to axis 2 (axis 1 of the model's input).

        Raises:
            ValueError: mean or scale does not broadcast over the channels.
        """
        mean, scale = (self._column(values, raw) for values in (self.mean, self.scale))
        return ((raw.astype(np.float64) - mean) * scale).astype(np.float32)

    @staticmethod
    def _column(values: tuple[float, ...], raw: NDArray[Any]) -> NDArray[np.float64]:
        array = np.asarray(values, np.float64)
        if array.size == 1:
            return array.reshape(())
        if raw.ndim < 3 or raw.shape[2] != array.size:
            msg = f"{array.size} values for axis 1 of an input of shape {raw.shape[1:]}"
            raise ValueError(msg)
        return array.reshape(-1, *(1,) * (raw.ndim - 3))


def preprocessing_from(table: Mapping[str, Any], inputs: tuple[str, ...], *, where: str) -> dict[str, Preprocessing]:
    """The `[preprocessing]` table of `port.toml`: keys for all inputs, or one sub-table per input name.

    Args:
        table: parsed TOML.
        inputs: names of the model's inputs.
        where: file name for messages.

    Returns:
        Per input name; empty for an empty table.

    Raises:
        RefusedError: every unknown key, unknown input and bad value.
    """
    if not table:
        return {}
    problems: list[Problem] = []
    nested = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    flat = {name: value for name, value in table.items() if name not in nested}
    for name in sorted(set(nested) - set(inputs)):
        known = ", ".join(inputs)
        what = "no input of this name"
        problems.append(
            Problem(code="TOML-INPUT", where=f"{where}: preprocessing.{name}", what=what, expected=known, got=name)
        )
    found = {
        name: _one({**flat, **nested.get(name, {})}, f"{where}: preprocessing", problems)
        for name in inputs
        if flat or name in nested
    }
    if problems:
        raise RefusedError(tuple(dict.fromkeys(problems)))
    return found


def _one(table: Mapping[str, Any], where: str, problems: list[Problem]) -> Preprocessing:
    def bad(key: str, what: str, expected: str) -> None:
        got = repr(table.get(key))[:80]
        problems.append(Problem(code="TOML-VALUE", where=f"{where}.{key}", what=what, expected=expected, got=got))

    def numbers(key: str, default: float, *, divisor: bool = False) -> tuple[float, ...]:
        values = _numbers(table.get(key, default))
        if values is None or (divisor and 0.0 in values):
            bad(key, "not a number or list of numbers", "finite numbers" + (", not 0" if divisor else ""))
            return (default,)
        return values

    for key in sorted(set(table) - KEYS):
        bad(key, "unknown key", ", ".join(sorted(KEYS)))
    if "scale" in table and "std" in table:
        bad("std", "both scale and std", "one of them: (raw - mean) * scale, or (raw - mean) / std")
    mean, scale = numbers("mean", 0.0), numbers("scale", 1.0, divisor=True)
    if "std" in table:
        scale = tuple(1.0 / value for value in numbers("std", 1.0, divisor=True))
    low, high = numbers("minimum", 0.0), numbers("maximum", 255.0)
    if len(low) != 1 or len(high) != 1 or low[0] >= high[0]:
        bad("minimum", "no range of raw values", "one minimum below one maximum")
    if len(mean) > 1 and 1 < len(scale) != len(mean):
        bad("mean", "mean and scale of different lengths", f"{len(scale)} values")
    layout = table.get("layout", "NCHW")
    if layout not in LAYOUTS:
        bad("layout", "unknown layout", " or ".join(LAYOUTS))
    nhwc = layout == "NHWC"
    return Preprocessing(mean=mean, scale=scale, layout="NHWC" if nhwc else "NCHW", minimum=low[0], maximum=high[0])


def _numbers(value: Any) -> tuple[float, ...] | None:
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return None
    numbers = tuple(float(v) for v in values)
    return numbers if all(math.isfinite(v) for v in numbers) else None
