"""What a simulation is given: options, arrays, kernels, and what its fifos are compared with."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from presim.simulate.kernel import KernelFunction
from presim.simulate.lane import Lane, poison_of
from presim.simulate.result import Mismatch, MismatchError

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimOptions:
    """How far a simulation goes.

    Attributes:
        inferences: inputs back to back without a reset; with data, as many as there are inputs.
        schedules: seeded orders of execution beside round-robin.
        max_steps: instructions of one run; beyond it the verdict is `inconclusive`.
        log_events: last events kept per actor.
        search_fix: look for the smallest change that lifts a deadlock.
        fix_runs: runs that the search may make.
        fix_steps: instructions that all these runs may take together; the verdict stands without a fix.
        capture: fifos whose objects are returned.
    """

    inferences: int = 3
    schedules: int = 3
    max_steps: int = 50_000_000
    log_events: int = 16
    search_fix: bool = True
    fix_runs: int = 400
    fix_steps: int = 20_000_000
    capture: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimData:
    """Arrays and kernels.

    Attributes:
        kernels: by name of a row of `Design.kernels`.
        arrays: initial values by the keys of buffers and fifos; host tensors that are the same in every inference.
        inputs: host tensors of each inference by name, any shape, elements in the order that the transfers count.
        outputs: expected host tensors of each inference; masked elements are not compared.
        fifos: expected objects of fifos, (objects, ...) for each inference, as the consumers hold them; masked
            elements are not compared. The key `<fifo>@<actor>` means one end of it.
    """

    kernels: Mapping[str, KernelFunction]
    inputs: Sequence[Mapping[str, Array]]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    outputs: Sequence[Mapping[str, Array]] = ()
    fifos: Sequence[Mapping[str, Array]] = ()


class Watch:
    """Looks at every object that a lane publishes: compares, sums up, keeps.

    Attributes:
        name: fifo or `<fifo>@<actor>`.
        count: objects so far.
        compared: elements compared.
        digest: of all bytes so far.
        kept: objects, where they are captured.
    """

    __slots__ = (
        "compared",
        "count",
        "digest",
        "digests",
        "expected",
        "first",
        "inference",
        "kept",
        "lane",
        "name",
        "producer",
        "raw",
        "shape",
        "total",
    )

    def __init__(
        self,
        name: str,
        producer: str,
        lane: Lane,
        shape: tuple[int, ...],
        expected: Sequence[Array],
        *,
        capture: bool,
        digest: bool,
    ) -> None:
        self.name = name
        self.producer = producer
        self.lane = lane
        self.shape = shape
        self.expected = [e.reshape(e.shape[0], -1) for e in expected]
        self.raw = [_raw(e, lane.flat[0].dtype) for e in self.expected]
        self.first = [int(n) for n in np.cumsum([0, *(e.shape[0] for e in expected)])]
        self.total = self.first[-1]
        self.inference = 0
        self.count = 0
        self.compared = 0
        self.digest = 0
        self.digests = digest
        self.kept: list[Array] | None = [] if capture else None

    def look(self, number: int) -> None:
        """An object becomes visible.

        Raises:
            MismatchError: it is not what was expected.
        """
        got = self.lane.flat[number % self.lane.ring]
        at = self.count
        self.count = at + 1
        raw = got.tobytes()
        if self.digests:
            self.digest = zlib.crc32(raw, self.digest)
        if self.kept is not None:
            self.kept.append(got.copy())
        if at < self.total:
            self._compare(got, raw, at)

    def _compare(self, got: Array, raw: bytes, at: int) -> None:
        """Bytes first, which is quick; element by element where they differ or say too little."""
        while at >= self.first[self.inference + 1]:
            self.inference += 1
        inside = at - self.first[self.inference]
        wanted = self.raw[self.inference]
        if wanted is not None and wanted[inside * len(raw) : (inside + 1) * len(raw)] == raw:
            self.compared += got.size
            return
        self.compared += compare(
            self.expected[self.inference][inside],
            got,
            where=self.name,
            producer=self.producer,
            inference=self.inference,
            number=inside,
            shape=self.shape,
        )


def _raw(expected: Array, dtype: np.dtype[Any]) -> memoryview | None:
    """The bytes of what is expected; None where it is masked, or not exact in the type of the fifo."""
    if isinstance(expected, np.ma.MaskedArray) or expected.size == 0:
        return None
    same = np.ascontiguousarray(expected.astype(dtype))
    return same.reshape(-1).data.cast("B") if np.array_equal(same, expected) else None


def compare(
    expected: Array,
    got: Array,
    *,
    where: str,
    producer: str,
    inference: int,
    number: int,
    shape: tuple[int, ...],
) -> int:
    """Compare two one-dimensional arrays element by element; returns how many were compared.

    Args:
        expected: may be masked; any dtype that holds the values of `got`.
        got: as simulated.
        where: fifo or tensor.
        producer: who wrote it.
        inference: number.
        number: of the object, -1 for a tensor.
        shape: in which the index is given.

    Raises:
        MismatchError: they differ in length or in an element that is not masked.
    """
    mask = np.ma.getmaskarray(expected) if isinstance(expected, np.ma.MaskedArray) else None
    values = np.ma.getdata(expected) if mask is not None else expected
    if values.size == got.size:
        wrong = values != got
        if mask is not None:
            wrong &= ~mask
        if not wrong.any():
            return int(got.size - (0 if mask is None else mask.sum()))
        first = int(np.flatnonzero(wrong)[0])
        different, want, have = int(wrong.sum()), values[first].item(), got[first].item()
    else:
        first, different, want, have = min(values.size, got.size), abs(values.size - got.size), values.size, got.size
    fresh = poison_of(got.dtype)
    raise MismatchError(
        Mismatch(
            where=where,
            producer=producer,
            inference=inference,
            number=number,
            index=tuple(int(i) for i in np.unravel_index(first, shape)) if first < int(np.prod(shape)) else (first,),
            expected=want,
            got=have,
            different=different,
            elements=int(got.size),
            never_written=bool(have == fresh or (have != have and fresh != fresh)),  # noqa: PLR0124  (NaN)
        )
    )
