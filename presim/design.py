"""The dataflow design: frozen values, no arrays, no behaviour.

A `Design` says which tile runs which program, which object fifos join them and how deep they are, what the host moves
in and out. It is what `design.json` holds, what the simulator runs and what an emitter prints.

Words: a *block* is a piece of a tensor, a *tile* is hardware. An *endpoint* is one side of a fifo on one tile; every
endpoint has its own pool of objects unless producer and consumer share a memory.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

DESIGN_SCHEMA_VERSION: Final = 1

TileKind = Literal["core", "mem", "shim"]
ActorKind = Literal["worker", "mem", "shim"]
LinkKind = Literal["forward", "split", "join"]
Direction = Literal["fill", "drain"]
Side = Literal["", "produce", "consume"]
AttributeValue = int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Tile:
    """A tile by absolute (column, row); row 0 is the shim row."""

    column: int
    row: int
    kind: TileKind = "core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One side of a fifo.

    Attributes:
        actor: name of the worker, or of the tile's DMA for `mem` and `shim` (a name of its own, such as `mem0`).
        kind: what the actor is.
        tile: where it is; None = not placed yet.
        depth: objects that the program declares at this side; None = the fifo's `depth`.
        dims: (size, stride) outer to inner, in elements: gather order of a producer, scatter order of a consumer;
            () = as it is.
    """

    actor: str
    kind: ActorKind = "worker"
    tile: Tile | None = None
    depth: int | None = None
    dims: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of a tensor that a fifo carries: `count` places from `first` on, `step` apart.

    Attributes:
        axis: `channels` (axis 1 at rank 4, else the last one), `columns` (the last axis at rank 4) or `objects` (in
            their order).
    """

    axis: Literal["channels", "columns", "objects"]
    first: int
    count: int
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fifo:
    """An object fifo: one producer, one or more consumers (broadcast).

    Attributes:
        name: unique.
        shape: of one object, in elements.
        dtype: of one element, numpy's name.
        producer: who fills it.
        consumers: who empties it; every consumer sees every object.
        depth: declared depth, a hint as in IRON: a pool that a core touches is allocated for the largest acquire plus
            one, a pool that no core touches gets the declared size.
        literal: the depths of the endpoints are taken as they are (IRON's depth list).
        via_dma: never share a memory, even where producer and consumer could.
        repeat_count: times each object is sent before the next.
        iter_count: passes that the DMA chain makes before it ends; None = for ever.
        init_array: key of the values that the pool is full of at the start, None = it starts empty.
        init_objects: how many objects are there at the start (all of `init_array`, or tokens of a feedback edge).
        tensor: manifest tensor whose blocks flow here, "" for none (weights: their name too).
        consumer_shape: of the objects that the consumers get, where it is not `shape` (IRON's `consumer_obj_type`):
            each object is cut into them, so its elements are a multiple of theirs; () = the same.
        form: shape by which `tensor` is cut into objects, its elements in C order those of the tensor (a Flatten that
            costs nothing); () = its own.
        slices: what of the tensor flows here; () = all of it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    producer: Endpoint
    consumers: tuple[Endpoint, ...]
    depth: int = 2
    literal: bool = False
    via_dma: bool = False
    repeat_count: int = 1
    iter_count: int | None = None
    init_array: str | None = None
    init_objects: int = 0
    tensor: str = ""
    consumer_shape: tuple[int, ...] = ()
    arbiter: str = ""
    form: tuple[int, ...] = ()
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Fifos joined in a memory tile: the pool between them is shared, each segment has its own lock pair.

    Attributes:
        kind: `forward` 1:1; `split` one source, its object cut into segments; `join` many sources into one object.
        sources: fifos that end here.
        targets: fifos that begin here.
        offsets: element offset of each segment in the larger object (split: per target, join: per source).
        tile: the memory tile.
    """

    kind: LinkKind
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    offsets: tuple[int, ...] = ()
    tile: Tile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Memory of a core tile that is no fifo: resident weights, tables, accumulators, scratch.

    Attributes:
        name: unique.
        tile: whose memory; None = the worker's that uses it.
        shape: in elements.
        dtype: numpy's name.
        array: key of its initial values (`tensors.npz` key, packed by the planner), None = scratch.
        keep: its content survives from one inference to the next (state); scratch is poisoned at every start.
    """

    name: str
    tile: Tile | None
    shape: tuple[int, ...]
    dtype: str
    array: str | None = None
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquire:
    """Hold `count` objects of a fifo: absolute, as in IRON (what is held already counts). Blocks.

    `side` says which end is meant where the worker is both producer and consumer of the fifo; "" = the one it is.
    """

    fifo: str
    count: int
    side: Side = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give back the oldest `count` objects held of a fifo; `side` as in `Acquire`."""

    fifo: str
    count: int
    side: Side = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What a kernel gets: the `index`-th object held of a fifo (0 = oldest), a buffer, or the cascade.

    `side` as in `Acquire`.
    """

    kind: Literal["fifo", "buffer", "cascade_in", "cascade_out"]
    name: str = ""
    index: int = 0
    side: Side = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Run a kernel on held objects and buffers; never blocks, except where it reads or writes the cascade.

    Attributes:
        kernel: name of a row in `Design.kernels`.
        arguments: in the order of the kernel's parameters.
        scalars: integers by name (row number, border flag, ...), or the variable of an enclosing loop as `@counter`,
            `@counter*2`, `@counter*2+1`, `@counter-1`.
        macs: multiply-accumulates of this call, for the timing model.
    """

    kernel: str
    arguments: tuple[Argument, ...]
    scalars: tuple[tuple[str, int | str], ...] = ()
    macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Repeat a body; `counter` names the loop variable, 0 to `times` - 1, that a `Call` may use as a scalar."""

    times: int
    body: "tuple[Step, ...]"
    counter: str = ""


Step = Acquire | Release | Call | Loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel body: arithmetic of one manifest op (or a part of it) on blocks.

    Attributes:
        name: unique.
        op: manifest op it belongs to, "" for pure data movement.
        type: file in `presim/kernels` and `bringup/kernels` (`conv`, `gemm`, `add`, ...).
        attributes: compile-time figures: block shape, channel range, shift, multipliers, zero points, ...
        rounding: mode that it sets at entry, "" = it relies on what the tile is in.
        saturation: likewise.
        program_bytes: assumed size of its code.
        table_bytes: data memory of its tables that are no `Buffer` (the tables of a library routine).
    """

    name: str
    op: str
    type: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    rounding: str = "conv_even"
    saturation: str = "saturate"
    program_bytes: int = 0
    table_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A program on a core tile.

    Attributes:
        name: unique.
        tile: where; None = not placed yet.
        program: steps of one inference.
        while_true: the program starts again when it ends, with what it still holds.
        stack_bytes: stack of the tile.
        stage: stage of the manifest that it computes (a part of), for validation and reports.
    """

    name: str
    tile: Tile | None
    program: tuple[Step, ...]
    while_true: bool = True
    stack_bytes: int = 1024
    stage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """A cascade stream from one worker to a neighbour (south or east of it).

    Attributes:
        depth: words that the stream holds.
        words: words of what one call puts on it; 0 = more than it holds, so that a call ends only with its reader's.
    """

    source: str
    target: str
    depth: int = 4
    words: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One task of the runtime sequence: a tensor of the host into (fill) or out of (drain) a fifo at a shim.

    Attributes:
        fifo: which.
        direction: fill or drain.
        tensor: host tensor (manifest name); its blocks are described by `taps`.
        objects: objects that one inference moves.
        offset: first element.
        sizes: access pattern, outer to inner, elements; () = contiguous.
        strides: likewise.
        wait: the host waits for its end.
        group: tasks of a group are waited for together, as soon as the last of them was started; "" = at the end of
            the sequence (IRON's default group).
    """

    fifo: str
    direction: Direction
    tensor: str
    objects: int
    offset: int = 0
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    wait: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How an op was spread, for reports: `kind` output_channels, reduction, rows, columns, batch; `parts` >= 1."""

    op: str
    kind: str
    parts: int
    padding_fraction: float
    resident_weights: bool
    macs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """One dispatch: everything that runs together on the array.

    Attributes:
        views: (tensor, tensor whose objects carry it): outputs of a Flatten, Reshape or Reinterpret that move nothing.
    """

    dispatch: str
    device: str
    workers: tuple[Worker, ...]
    fifos: tuple[Fifo, ...]
    kernels: tuple[Kernel, ...] = ()
    links: tuple[Link, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    cascades: tuple[Cascade, ...] = ()
    sequence: tuple[Transfer, ...] = ()
    splits: tuple[Split, ...] = ()
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    views: tuple[tuple[str, str], ...] = ()
    schema_version: int = field(default=DESIGN_SCHEMA_VERSION)
