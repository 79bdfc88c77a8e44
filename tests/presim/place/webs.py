"""Webs of workers to be placed: every worker takes one object of each input and makes one of each output."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from manifest.device import DIRECTORY, Device, device_from_json, load_device
from presim.design import (
    Acquire,
    ActorKind,
    Argument,
    Buffer,
    Call,
    Cascade,
    Design,
    Endpoint,
    Fifo,
    Kernel,
    Link,
    Loop,
    Release,
    Step,
    Transfer,
    Worker,
)
from presim.directives import Directive, Directives, Placement

OBJECTS = 4


@dataclass(frozen=True, kw_only=True)
class Net:
    """A fifo between actors: `host...` is a shim, `mem...` a memory tile, everything else a worker."""

    producer: str
    consumers: tuple[str, ...]
    name: str = ""
    depths: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def net(producer: str, *consumers: str, name: str = "", depths: Mapping[str, int] | None = None, **options: Any) -> Net:
    return Net(producer=producer, consumers=consumers, name=name, depths=depths or {}, options=options)


def kind(actor: str) -> ActorKind:
    return "shim" if actor.startswith("host") else "mem" if actor.startswith("mem") else "worker"


def web(
    nets: Iterable[Net],
    *,
    device: str = "npu1",
    links: Sequence[Link] = (),
    cascades: Sequence[tuple[str, str]] = (),
    buffers: Mapping[str, int] | None = None,
    workers: Iterable[str] = (),
) -> Design:
    """A design of `nets`; `buffers` are bytes of a resident buffer by worker, `workers` those without any fifo."""
    fifos = [_fifo(one, number) for number, one in enumerate(nets)]
    ends = [end for f in fifos for end in (f.producer, *f.consumers)]
    names = dict.fromkeys([e.actor for e in ends if e.kind == "worker"] + [n for pair in cascades for n in pair])
    names |= dict.fromkeys(workers)
    held = {f"{name}.w": (name, size) for name, size in (buffers or {}).items()}
    resident = {owner: [b for b, (o, _) in held.items() if o == owner] for owner in names}
    return Design(
        dispatch="d0",
        device=device,
        workers=tuple(
            Worker(name=n, tile=None, program=_program(n, fifos, resident[n], cascades), stage=n) for n in names
        ),
        fifos=tuple(fifos),
        kernels=tuple(Kernel(name=f"k:{n}", op=n, type="copy") for n in names),
        links=tuple(links),
        buffers=tuple(Buffer(name=b, tile=None, shape=(s,), dtype="int8") for b, (_, s) in held.items()),
        cascades=tuple(Cascade(source=a, target=b) for a, b in cascades),
        sequence=tuple(_transfers(fifos)),
    )


def _fifo(one: Net, number: int) -> Fifo:
    name = one.name or f"f{number}"

    def end(actor: str) -> Endpoint:
        own = f"{actor}:{name}" if actor == "host" else actor
        return Endpoint(actor=own, kind=kind(actor), depth=one.depths.get(actor))

    options = {"shape": (8,), "dtype": "int8", **one.options}
    return Fifo(name=name, producer=end(one.producer), consumers=tuple(map(end, one.consumers)), **options)


def _program(
    worker: str, fifos: Sequence[Fifo], resident: Sequence[str], cascades: Sequence[tuple[str, str]]
) -> tuple[Step, ...]:
    mine = [f.name for f in fifos if any(c.actor == worker for c in f.consumers)]
    mine += [f.name for f in fifos if f.producer.actor == worker]
    arguments = [Argument(kind="fifo", name=name) for name in mine]
    arguments += [Argument(kind="buffer", name=name) for name in resident]
    arguments += [Argument(kind="cascade_in") for _, target in cascades if target == worker]
    arguments += [Argument(kind="cascade_out") for source, _ in cascades if source == worker]
    body: tuple[Step, ...] = (
        *(Acquire(fifo=name, count=1) for name in mine),
        Call(kernel=f"k:{worker}", arguments=tuple(arguments)),
        *(Release(fifo=name, count=1) for name in mine),
    )
    return (Loop(times=OBJECTS, body=body),)


def _transfers(fifos: Sequence[Fifo]) -> Iterable[Transfer]:
    for fifo in fifos:
        if fifo.producer.kind == "shim":
            yield Transfer(fifo=fifo.name, direction="fill", tensor=fifo.name, objects=OBJECTS)
    for fifo in fifos:
        if any(c.kind == "shim" for c in fifo.consumers):
            yield Transfer(fifo=fifo.name, direction="drain", tensor=fifo.name, objects=OBJECTS, wait=True)


def chain(count: int, *, device: str = "npu1", **options: Any) -> Design:
    """Workers `w0` to `w<count - 1>` in a row, from the host to the host."""
    names = [f"w{i}" for i in range(count)]
    inner = [net(a, b, **options) for a, b in itertools.pairwise(names)]
    return web([net("host", names[0]), *inner, net(names[-1], "host")], device=device)


def pinned(**places: tuple[int, int]) -> Directives:
    """Pins by op: (row, col)."""
    return Directives(by_op={op: Directive(placement=Placement(row=row, col=col)) for op, (row, col) in places.items()})


def array(columns: int, core_rows: int, like: str = "npu1") -> Device:
    """A device with a smaller array."""
    value = json.loads((DIRECTORY / f"{like}.json").read_text(encoding="utf-8"))
    mems = value["figures"]["mem_rows"]["value"]
    sizes = {
        "columns": columns,
        "core_rows": core_rows,
        "rows": 1 + mems + core_rows,
        "core_tiles": columns * core_rows,
        "memtiles": columns * mems,
    }
    for name, size in sizes.items():
        value["figures"][name]["value"] = size
    value["shim_dma_columns"]["value"] = list(range(columns))
    return device_from_json(value)


def changed(name: str, **figures: int | None) -> Device:
    """A device with other figures."""
    device = load_device(name)
    return dataclasses.replace(
        device, **{f: dataclasses.replace(getattr(device, f), value=value) for f, value in figures.items()}
    )
