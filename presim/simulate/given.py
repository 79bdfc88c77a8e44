"""Whether everything that a design names was given: arrays, tensors and kernels, in size and type."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.errors import Problem, RefusedError
from presim.design import Call, Design
from presim.simulate.data import SimData
from presim.simulate.host import reach
from presim.steps import elements_of, steps_of

Array = NDArray[Any]


def require_data(design: Design, data: SimData) -> None:
    """Refuse to begin with anything missing.

    Raises:
        RefusedError: every array, tensor and kernel that is missing, too small, or not exact in the type it is for.
    """
    faults = [*_arrays(design, data.arrays), *_kernels(design, data)]
    if not data.inputs:
        faults.append(("inputs", "no inference to run"))
    for index, inputs in enumerate(data.inputs):
        faults += [(f"{where} of inference {index}", text) for where, text in _tensors(design, inputs, data.arrays)]
    if faults:
        raise RefusedError(
            tuple(Problem(code="DESIGN-DATA", where=where, what=text) for where, text in dict.fromkeys(faults))
        )


def _arrays(design: Design, arrays: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
    needs = [(b.array, elements_of(b.shape), b.dtype, f"buffer {b.name!r}", True) for b in design.buffers]
    for fifo in design.fifos:
        depth = fifo.depth if fifo.producer.depth is None else fifo.producer.depth
        count = (fifo.init_objects or depth) * elements_of(fifo.shape)
        needs.append((fifo.init_array, count, fifo.dtype, f"fifo {fifo.name!r}", False))
    for key, elements, dtype, user, exact in needs:
        if key is None:
            continue
        where = f"array {key!r} for {user}"
        if key not in arrays:
            yield where, "is not among the arrays"
        elif arrays[key].size < elements or (exact and arrays[key].size != elements):
            yield where, f"has {arrays[key].size} elements, expected {elements}"
        elif not is_exact(arrays[key], dtype):
            yield where, f"has values that are no {dtype}"


def _kernels(design: Design, data: SimData) -> Iterator[tuple[str, str]]:
    called = {s.kernel for w in design.workers for s in steps_of(w.program) if isinstance(s, Call)}
    for name in sorted(called - set(data.kernels)):
        yield f"kernel {name!r}", "is not among the kernels"


def _tensors(design: Design, inputs: Mapping[str, Array], arrays: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
    fifos = {f.name: f for f in design.fifos}
    for transfer in design.sequence:
        if transfer.direction != "fill":
            continue
        where = f"tensor {transfer.tensor!r}"
        tensor = inputs.get(transfer.tensor, arrays.get(transfer.tensor))
        fifo = fifos[transfer.fifo]
        if tensor is None:
            yield where, "is neither among the inputs nor the arrays"
        elif tensor.size < reach(transfer, elements_of(fifo.shape)):
            yield where, f"has {tensor.size} elements, its transfers reach {reach(transfer, elements_of(fifo.shape))}"
        elif not is_exact(tensor, fifo.dtype):
            yield where, f"has values that are no {fifo.dtype}, the type of fifo {fifo.name!r}"


def is_exact(array: Array, dtype: str) -> bool:
    """Whether every value is one of another type, NaN included."""
    if array.dtype == np.dtype(dtype):
        return True
    with np.errstate(all="ignore"):
        return bool(np.array_equal(array.astype(dtype), array, equal_nan=array.dtype.kind == "f"))
