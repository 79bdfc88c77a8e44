"""Small designs made by hand."""

from presim.design import (
    Acquire,
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
    Split,
    Tile,
    Transfer,
    Worker,
)

SHIM = Tile(column=0, row=0, kind="shim")
CORE = Tile(column=0, row=2)


def copy_design(objects: int = 4, *, depth: int = 2) -> Design:
    """`x` through one worker that copies each object into `y`: vectors of 8 int8."""
    body = (
        Acquire(fifo="x", count=1),
        Acquire(fifo="y", count=1),
        Call(kernel="copy", arguments=(Argument(kind="fifo", name="x"), Argument(kind="fifo", name="y"))),
        Release(fifo="x", count=1),
        Release(fifo="y", count=1),
    )
    core = Endpoint(actor="w", tile=CORE)
    shim = Endpoint(actor="shim0", kind="shim", tile=SHIM)
    return Design(
        dispatch="d0",
        device="npu2",
        workers=(Worker(name="w", tile=CORE, program=(Loop(times=objects, body=body),), stage="copy"),),
        fifos=(
            Fifo(name="x", shape=(8,), dtype="int8", producer=shim, consumers=(core,), depth=depth, tensor="x"),
            Fifo(name="y", shape=(8,), dtype="int8", producer=core, consumers=(shim,), depth=depth, tensor="y"),
        ),
        kernels=(Kernel(name="copy", op="copy", type="copy", attributes=(("out_channels", 8),)),),
        sequence=(
            Transfer(fifo="x", direction="fill", tensor="x", objects=objects),
            Transfer(fifo="y", direction="drain", tensor="y", objects=objects, wait=True),
        ),
        splits=(Split(op="copy", kind="rows", parts=1, padding_fraction=0.0, resident_weights=True, macs=0),),
    )


def every_part() -> Design:
    """A design that makes no sense and has every part once, to be written and read."""
    one = copy_design()
    fifo = one.fifos[0]
    return Design(
        dispatch="d0",
        device="npu2",
        workers=one.workers,
        fifos=(
            fifo,
            Fifo(
                name="z",
                shape=(2, 4),
                dtype="int16",
                producer=Endpoint(actor="mem0", kind="mem", dims=((2, 4), (4, 1))),
                consumers=(Endpoint(actor="w", depth=3),),
                literal=True,
                via_dma=True,
                repeat_count=2,
                iter_count=3,
                init_array="k",
                init_objects=1,
                consumer_shape=(4,),
            ),
        ),
        kernels=(
            Kernel(
                name="k",
                op="conv",
                type="conv",
                attributes=(("a", 1), ("b", 0.5), ("c", "words"), ("d", (1, 2)), ("e", ())),
                rounding="",
                saturation="",
                program_bytes=9,
                table_bytes=3,
            ),
        ),
        links=(
            Link(kind="split", sources=("x",), targets=("z",), offsets=(0,), tile=Tile(column=1, row=1, kind="mem")),
        ),
        buffers=(Buffer(name="b", tile=None, shape=(3,), dtype="int32", array="weights:conv:0", keep=True),),
        cascades=(Cascade(source="w", target="w"),),
        sequence=(
            Transfer(
                fifo="x",
                direction="fill",
                tensor="x",
                objects=1,
                offset=2,
                sizes=(1, 2),
                strides=(4, 1),
                wait=True,
                group="g",
            ),
        ),
        splits=one.splits,
        rules=("rule",),
        notes=("note",),
    )
