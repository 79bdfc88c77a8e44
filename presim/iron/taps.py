"""`aie.helpers.taplib`: access patterns of host tensors, and the tiler that makes sequences of them."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from presim.iron.api import row
from presim.iron.errors import WrongCallError, WrongValueError


def _ints(values: Any, what: str) -> list[int]:
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        msg = f"{what}: expected a sequence of ints, got {values!r}"
        raise WrongCallError(msg)
    found = []
    for value in values:
        if not isinstance(value, int | np.integer):
            msg = f"{what}: expected ints, got {value!r}"
            raise WrongCallError(msg)
        found.append(int(value))
    return found


class TensorAccessPattern:
    """Elements of a tensor in an order: offset, sizes and strides, outer to inner."""

    @row("aie.helpers.taplib.TensorAccessPattern")
    def __init__(self, tensor_dims: Any, offset: int = 0, sizes: Any = None, strides: Any = None) -> None:
        self._dims = _ints(tensor_dims, "tensor_dims")
        self._offset = int(offset)
        self._sizes = list(self._dims) if sizes is None else _ints(sizes, "sizes")
        self._strides = _contiguous(self._sizes) if strides is None else _ints(strides, "strides")
        if len(self._sizes) != len(self._strides) or any(s < 1 for s in self._sizes) or min(self._strides) < 0:
            msg = f"sizes {self._sizes} and strides {self._strides} do not fit each other"
            raise WrongValueError(msg)
        last = self._offset + sum((n - 1) * s for n, s in zip(self._sizes, self._strides, strict=True))
        if self._offset < 0 or last >= int(np.prod(self._dims)):
            msg = f"access pattern out of bounds: element {last} of a tensor of {int(np.prod(self._dims))}"
            raise WrongValueError(msg)

    @property
    def tensor_dims(self) -> list[int]:
        """Shape of the tensor."""
        return list(self._dims)

    @property
    def offset(self) -> int:
        """First element."""
        return self._offset

    @property
    def sizes(self) -> list[int]:
        """Sizes, outer to inner."""
        return list(self._sizes)

    @property
    def strides(self) -> list[int]:
        """Strides in elements, outer to inner."""
        return list(self._strides)

    @property
    def transformation_dims(self) -> list[tuple[int, int]]:
        """(size, stride) pairs."""
        return list(zip(self._sizes, self._strides, strict=True))

    @row("aie.helpers.taplib.TensorAccessPattern.access_generator")
    def access_generator(self) -> Iterator[int]:
        """Elements in the order in which they are touched."""
        for at in itertools.product(*(range(n) for n in self._sizes)):
            yield self._offset + sum(i * s for i, s in zip(at, self._strides, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorAccessPattern):
            return NotImplemented
        mine = (self._dims, self._offset, self._sizes, self._strides)
        return mine == (other._dims, other._offset, other._sizes, other._strides)

    __hash__ = None  # type: ignore[assignment]


def _contiguous(sizes: Sequence[int]) -> list[int]:
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        strides[i] = strides[i + 1] * sizes[i + 1]
    return strides


class TensorAccessSequence:
    """Access patterns of one tensor, one after the other."""

    @row("aie.helpers.taplib.TensorAccessSequence")
    def __init__(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        tensor_dims: Any,
        num_steps: int,
        offset: int | None = None,
        sizes: Any = None,
        strides: Any = None,
        offset_fn: Callable[[int, int], int] | None = None,
        sizes_fn: Callable[[int, Any], Any] | None = None,
        strides_fn: Callable[[int, Any], Any] | None = None,
    ) -> None:
        self._taps = []
        for step in range(num_steps):
            offset = (offset or 0) if offset_fn is None else offset_fn(step, offset or 0)
            sizes = sizes if sizes_fn is None else sizes_fn(step, sizes)
            strides = strides if strides_fn is None else strides_fn(step, strides)
            self._taps.append(TensorAccessPattern(tensor_dims, offset, sizes, strides))

    @classmethod
    @row("aie.helpers.taplib.TensorAccessSequence.from_taps")
    def from_taps(cls, taps: Sequence[TensorAccessPattern]) -> "TensorAccessSequence":
        """A sequence of given patterns."""
        if not taps:
            msg = "from_taps: no patterns"
            raise WrongValueError(msg)
        made = cls(taps[0].tensor_dims, 0)
        made._taps = list(taps)
        return made

    def __len__(self) -> int:
        return len(self._taps)

    def __iter__(self) -> Iterator[TensorAccessPattern]:
        return iter(self._taps)

    def __getitem__(self, index: Any) -> Any:
        return self._taps[index]


class TensorTiler2D:
    """Makes sequences of patterns that tile a matrix."""

    def __init__(self) -> None:
        msg = "TensorTiler2D makes sequences and is not instantiated"
        raise WrongCallError(msg)

    @classmethod
    @row("aie.helpers.taplib.TensorTiler2D.simple_tiler")
    def simple_tiler(  # noqa: PLR0917 (the parameters are those of IRON)
        cls,
        tensor_dims: Any,
        tile_dims: Any = None,
        tile_col_major: bool = False,
        iter_col_major: bool = False,
        pattern_repeat: int = 1,
        prune_step: bool = True,
    ) -> TensorAccessSequence:
        """One pattern for each block of `tile_dims`."""
        return cls.group_tiler(
            tensor_dims,
            tensor_dims if tile_dims is None else tile_dims,
            tile_col_major=tile_col_major,
            iter_col_major=iter_col_major,
            pattern_repeat=pattern_repeat,
            prune_step=prune_step,
        )

    @classmethod
    @row("aie.helpers.taplib.TensorTiler2D.group_tiler")
    def group_tiler(  # noqa: PLR0917 (the parameters are those of IRON)
        cls,
        tensor_dims: Any,
        tile_dims: Any,
        tile_group_dims: Any = None,
        tile_col_major: bool = False,
        tile_group_col_major: bool = False,
        iter_col_major: bool = False,
        pattern_repeat: int = 1,
        allow_partial: bool = False,
        prune_step: bool = True,
    ) -> TensorAccessSequence:
        """One pattern for each group of blocks side by side."""
        return cls.step_tiler(
            tensor_dims,
            tile_dims,
            (1, 1) if tile_group_dims is None else tile_group_dims,
            tile_col_major=tile_col_major,
            tile_group_col_major=tile_group_col_major,
            iter_col_major=iter_col_major,
            allow_partial=allow_partial,
            pattern_repeat=pattern_repeat,
            prune_step=prune_step,
        )

    @classmethod
    @row("aie.helpers.taplib.TensorTiler2D.step_tiler")
    def step_tiler(  # noqa: PLR0917 (the parameters are those of IRON)
        cls,
        tensor_dims: Any,
        tile_dims: Any,
        tile_group_repeats: Any,
        tile_group_steps: Any = None,
        tile_col_major: bool = False,
        tile_group_col_major: bool = False,
        iter_col_major: bool = False,
        allow_partial: bool = False,
        pattern_repeat: int = 1,
        prune_step: bool = True,
    ) -> TensorAccessSequence:
        """One pattern for each group of blocks, which may be apart by `tile_group_steps` blocks."""
        tensor = _pair(tensor_dims, "tensor_dims")
        block = _pair(tile_dims, "tile_dims")
        repeats = _pair(tile_group_repeats, "tile_group_repeats")
        steps = _pair((1, 1) if tile_group_steps is None else tile_group_steps, "tile_group_steps")
        if allow_partial:
            msg = "step_tiler: allow_partial"
            raise WrongValueError(msg)
        del prune_step
        counts = []
        for i in range(2):
            if tensor[i] % (block[i] * repeats[i] * steps[i]):
                msg = f"dimension {i}: {tensor[i]} elements are no whole number of groups of {repeats[i]} blocks"
                raise WrongValueError(msg)
            counts.append(tensor[i] // block[i] // repeats[i])
        taps = []
        order = [(r, c) for r in range(counts[0]) for c in range(counts[1])]
        if iter_col_major:
            order = [(r, c) for c in range(counts[1]) for r in range(counts[0])]
        for place in order:
            at = [_origin(place[i], repeats[i], steps[i]) * block[i] for i in range(2)]
            pairs = _group(tensor, block, repeats, steps, tile_col_major, tile_group_col_major)
            if pattern_repeat > 1:
                pairs = [(pattern_repeat, 0), *pairs]
            taps.append(_pattern(tensor, at[0] * tensor[1] + at[1], pairs))
        return TensorAccessSequence.from_taps(taps)


def _pair(value: Any, what: str) -> tuple[int, int]:
    found = _ints(value, what)
    if len(found) != 2 or min(found) < 1:
        msg = f"{what}: expected two ints from 1, got {value!r}"
        raise WrongValueError(msg)
    return (found[0], found[1])


def _origin(index: int, repeats: int, steps: int) -> int:
    """First block of the `index`-th group: groups interleave within `repeats * steps` blocks."""
    return index // steps * steps * repeats + index % steps


def _group(  # noqa: PLR0917 (the parameters are those of IRON)
    tensor: tuple[int, int],
    block: tuple[int, int],
    repeats: tuple[int, int],
    steps: tuple[int, int],
    block_columns: bool,
    group_columns: bool,
) -> list[tuple[int, int]]:
    inside = [(block[0], tensor[1]), (block[1], 1)]
    between = [(repeats[0], block[0] * steps[0] * tensor[1]), (repeats[1], block[1] * steps[1])]
    if block_columns:
        inside.reverse()
    if group_columns:
        between.reverse()
    return [*between, *inside]


def _pattern(tensor: tuple[int, int], offset: int, pairs: list[tuple[int, int]]) -> TensorAccessPattern:
    """At most four dimensions, as the DMA has them: those of one are dropped, then followers put together."""
    kept = [p for p in pairs if p[0] > 1]
    merged: list[tuple[int, int]] = []
    for size, stride in kept:
        if len(kept) > 4 and merged and merged[-1][1] == size * stride and stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    if len(merged) > 4:
        msg = f"{len(merged)} dimensions, a DMA has 4"
        raise WrongValueError(msg)
    filled = [(1, 0)] * (4 - len(merged)) + (merged or [])
    if not merged:
        filled[-1] = (1, 1)
    return TensorAccessPattern(tensor, offset, [p[0] for p in filled], [p[1] for p in filled])
