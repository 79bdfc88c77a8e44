"""Designs in a few lines: a sketch places its actors apart from each other unless told where."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from presim.design import (
    Acquire,
    Argument,
    Buffer,
    Call,
    Cascade,
    Design,
    Direction,
    Endpoint,
    Fifo,
    Kernel,
    Link,
    LinkKind,
    Loop,
    Release,
    Side,
    Step,
    Tile,
    Transfer,
    Worker,
)
from presim.simulate import KernelContext, KernelFunction, SimData, SimOptions, SimResult, simulate

Array = NDArray[Any]


def acquire(fifo: str, count: int = 1, side: Side = "") -> Acquire:
    return Acquire(fifo=fifo, count=count, side=side)


def release(fifo: str, count: int = 1, side: Side = "") -> Release:
    return Release(fifo=fifo, count=count, side=side)


def loop(times: int, *body: Step, counter: str = "") -> Loop:
    return Loop(times=times, body=body, counter=counter)


def argument(text: str) -> Argument:
    """`fifo`, `fifo:index`, `fifo/produce`, `#buffer`, `<` for the cascade in, `>` for the cascade out."""
    if text in {"<", ">"}:
        return Argument(kind="cascade_in" if text == "<" else "cascade_out")
    if text.startswith("#"):
        return Argument(kind="buffer", name=text[1:])
    name, _, side = text.partition("/")
    name, _, index = name.partition(":")
    return Argument(kind="fifo", name=name, index=int(index or 0), side=side)  # type: ignore[arg-type]


def call(kernel: str, *arguments: str, **scalars: int | str) -> Call:
    return Call(kernel=kernel, arguments=tuple(map(argument, arguments)), scalars=tuple(scalars.items()))


def move(*fifos: str, kernel: str = "move") -> tuple[Step, ...]:
    """One object of each fifo: acquired in order, handed to a kernel, released."""
    return (*(acquire(f) for f in fifos), call(kernel, *fifos), *(release(f) for f in fifos))


def put(fifo: str) -> tuple[Step, ...]:
    return move(fifo, kernel="make")


def take(fifo: str) -> tuple[Step, ...]:
    return move(fifo, kernel="look")


def k_move(_: KernelContext, *blocks: Array) -> None:
    """The sum of all blocks but the last, plus one, into the last."""
    total = np.zeros(blocks[-1].size, np.int64)
    for block in blocks[:-1]:
        total += block.reshape(-1)
    blocks[-1].reshape(-1)[...] = (total + 1).astype(blocks[-1].dtype)


def k_make(context: KernelContext, block: Array) -> None:
    block[...] = context.scalars.get("value", 7)


def k_look(_: KernelContext, *blocks: Array) -> None:
    assert blocks


KERNELS: dict[str, KernelFunction] = {"move": k_move, "make": k_make, "look": k_look}


class Sketch:
    """Collects the parts of a design."""

    def __init__(self, device: str = "npu2") -> None:
        self.device = device
        self.workers: list[Worker] = []
        self.fifos: list[Fifo] = []
        self.links: list[Link] = []
        self.cascades: list[Cascade] = []
        self.buffers: list[Buffer] = []
        self.sequence: list[Transfer] = []
        self.kernels: dict[str, Kernel] = {}
        self.tiles: dict[str, Tile | None] = {}

    def place(self, actor: str, column: int, row: int) -> "Sketch":
        kind = "shim" if actor.startswith("shim") else "mem" if actor.startswith("mem") else "core"
        self.tiles[actor] = Tile(column=column, row=row, kind=kind)  # type: ignore[arg-type]
        return self

    def kernel(self, name: str, **changes: Any) -> "Sketch":
        self.kernels[name] = Kernel(**{"name": name, "op": "", "type": name, **changes})
        return self

    def worker(self, name: str, *program: Step, while_true: bool = True, **rest: Any) -> "Sketch":
        self.workers.append(Worker(name=name, tile=self.tile(name), program=program, while_true=while_true, **rest))
        return self

    def tile(self, actor: str) -> Tile | None:
        """`shim*` and `mem*` are shims and memory tiles, everything else a core; every actor in a column of its own."""
        if actor not in self.tiles:
            self.place(
                actor, 2 * len(self.tiles), 0 if actor.startswith("shim") else 1 if actor.startswith("mem") else 3
            )
        return self.tiles[actor]

    def end(self, actor: str, **changes: Any) -> Endpoint:
        kind = "shim" if actor.startswith("shim") else "mem" if actor.startswith("mem") else "worker"
        return Endpoint(actor=actor, kind=kind, tile=self.tile(actor), **changes)  # type: ignore[arg-type]

    def fifo(
        self,
        name: str,
        producer: str,
        *consumers: str,
        depth: int | Sequence[int] = 2,
        shape: tuple[int, ...] = (4,),
        dims: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
        **rest: Any,
    ) -> "Sketch":
        """`depth` as a list is [producer, consumer 0, ...], taken as it is."""
        listed = None if isinstance(depth, int) else list(depth)
        ends = [
            self.end(actor, depth=None if listed is None else listed[i], dims=(dims or {}).get(actor, ()))
            for i, actor in enumerate((producer, *consumers))
        ]
        own = {
            "dtype": "int32",
            "depth": depth if isinstance(depth, int) else max(depth),
            "literal": listed is not None,
        }
        self.fifos.append(Fifo(name=name, shape=shape, producer=ends[0], consumers=tuple(ends[1:]), **{**own, **rest}))
        return self

    def link(
        self, kind: LinkKind, sources: str, targets: str, *, offsets: tuple[int, ...] = (), tile: Tile | None = None
    ) -> "Sketch":
        self.links.append(
            Link(kind=kind, sources=tuple(sources.split()), targets=tuple(targets.split()), offsets=offsets, tile=tile)
        )
        return self

    def fill(self, fifo: str, objects: int, **rest: Any) -> "Sketch":
        return self.transfer(fifo, "fill", objects, **rest)

    def drain(self, fifo: str, objects: int, **rest: Any) -> "Sketch":
        return self.transfer(fifo, "drain", objects, **{"wait": True, **rest})

    def transfer(self, fifo: str, direction: Direction, objects: int, **rest: Any) -> "Sketch":
        own = {"tensor": fifo, **rest}
        self.sequence.append(Transfer(fifo=fifo, direction=direction, objects=objects, **own))
        return self

    def design(self) -> Design:
        for name in ("move", "make", "look"):
            if name not in self.kernels:
                self.kernel(name)
        return Design(
            dispatch="d0",
            device=self.device,
            workers=tuple(self.workers),
            fifos=tuple(self.fifos),
            kernels=tuple(self.kernels.values()),
            links=tuple(self.links),
            buffers=tuple(self.buffers),
            cascades=tuple(self.cascades),
            sequence=tuple(self.sequence),
        )

    def run(self, **options: Any) -> SimResult:
        """Without data."""
        return simulate(self.design(), options=SimOptions(**options))

    def run_with(
        self,
        inputs: Sequence[Mapping[str, Array]],
        *,
        outputs: Sequence[Mapping[str, Array]] = (),
        fifos: Sequence[Mapping[str, Array]] = (),
        arrays: Mapping[str, Array] | None = None,
        kernels: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> SimResult:
        data = SimData(
            kernels={**KERNELS, **(kernels or {})},
            inputs=inputs,
            arrays=arrays or {},
            outputs=outputs,
            fifos=fifos,
        )
        return simulate(self.design(), data=data, options=SimOptions(**options))


def numbers(objects: int, shape: tuple[int, ...] = (4,), *, seed: int = 0, dtype: str = "int32") -> Array:
    """Objects of distinct small numbers."""
    return np.random.default_rng(seed).integers(-1000, 1000, (objects, *shape)).astype(dtype)


def three(objects: int, shape: tuple[int, ...] = (4,), dtype: str = "int32") -> list[Array]:
    return [numbers(objects, shape, seed=i, dtype=dtype) for i in range(3)]
