"""Short words for the designs of the probes."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from presim.design import (
    Acquire,
    Argument,
    Call,
    Design,
    Endpoint,
    Fifo,
    Kernel,
    Loop,
    Release,
    Side,
    Step,
    Transfer,
    Worker,
)
from presim.design_io import STEPS

SIZE: Final = 4
OBJECTS: Final = 3
INFERENCES: Final = 3
COPY: Final = Kernel(name="copy", op="copy", type="copy", attributes=(("out_channels", SIZE),))
MEM: Final = Endpoint(actor="mem", kind="mem")
TAGS: Final = {cls: tag for tag, cls in STEPS.items()}


def shim(fifo: str) -> Endpoint:
    """The host's end of a fifo."""
    return Endpoint(actor=f"shim {fifo}", kind="shim")


def core(worker: str, **fields: Any) -> Endpoint:
    """A worker's end of a fifo."""
    return Endpoint(actor=worker, **fields)


def fifo(name: str, producer: Endpoint, *consumers: Endpoint, shape: int = SIZE, **fields: Any) -> Fifo:
    """A fifo of int8 vectors."""
    return Fifo(name=name, shape=(shape,), dtype="int8", producer=producer, consumers=consumers, **fields)


def take(*names: str, count: int = 1, side: Side = "") -> list[Step]:
    """Acquire objects of fifos."""
    return [Acquire(fifo=name, count=count, side=side) for name in names]


def give(*names: str, side: Side = "") -> list[Step]:
    """Release one object of fifos."""
    return [Release(fifo=name, count=1, side=side) for name in names]


def at(name: str, index: int = 0, side: Side = "") -> Argument:
    """An object that is held."""
    return Argument(kind="fifo", name=name, index=index, side=side)


def copy(source: Argument, target: Argument) -> Step:
    """Copy an object."""
    return Call(kernel="copy", arguments=(source, target))


def worker(name: str, *steps: Step, times: int = OBJECTS, **fields: Any) -> Worker:
    """A worker that repeats steps."""
    body = (Loop(times=times, body=steps),) if times > 1 else steps
    return Worker(name=name, tile=fields.pop("tile", None), program=body, **fields)


def copier(name: str, source: str, target: str, *, times: int = OBJECTS, **fields: Any) -> Worker:
    """A worker that copies one fifo into another."""
    steps = [*take(source, target), copy(at(source), at(target)), *give(source, target)]
    return worker(name, *steps, times=times, **fields)


def fill(name: str, objects: int = OBJECTS) -> Transfer:
    """The host fills a fifo from the tensor of its name."""
    return Transfer(fifo=name, direction="fill", tensor=name, objects=objects)


def drain(name: str, objects: int = OBJECTS) -> Transfer:
    """The host drains a fifo into the tensor of its name."""
    return Transfer(fifo=name, direction="drain", tensor=name, objects=objects, wait=True)


def design(workers: Sequence[Worker], fifos: Sequence[Fifo], sequence: Sequence[Transfer], **fields: Any) -> Design:
    """A design for npu2 whose kernels copy."""
    fields.setdefault("kernels", (COPY,))
    return Design(
        dispatch="probe",
        device="npu2",
        workers=tuple(workers),
        fifos=tuple(fifos),
        sequence=tuple(sequence),
        **fields,
    )


def values(inference: int, objects: int = OBJECTS, size: int = SIZE) -> np.ndarray[Any, Any]:
    """Objects that all differ."""
    count = objects * size
    return (np.arange(count).reshape(objects, size) + 7 * inference) % 127


def probe(name: str, made: Design, host: Any, **extra: Any) -> dict[str, Any]:
    """A probe that completes; `host` gives (inputs, outputs) of an inference."""
    pairs = [host(values, inference) for inference in range(INFERENCES)]
    return {
        "name": name,
        "expect": {"verdict": "completes"},
        "design": compact(made),
        "inputs": [lists(inputs) for inputs, _ in pairs],
        "outputs": [lists(outputs) for _, outputs in pairs],
        **extra,
    }


def lists(tensors: dict[str, Any]) -> dict[str, Any]:
    """Arrays as JSON."""
    return {name: np.asarray(array).tolist() for name, array in tensors.items()}


def compact(value: Any) -> Any:
    """A design as JSON without the fields that have their default."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return [compact(v) for v in value] if isinstance(value, tuple) else value
    found = {TAG: TAGS[type(value)] for TAG in ("step",) if type(value) in TAGS}
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if field.default is dataclasses.MISSING or content != field.default:
            found[field.name] = compact(content)
    return found
