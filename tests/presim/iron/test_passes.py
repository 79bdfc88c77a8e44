"""How often a worker's program runs in one inference."""

from presim.design import Acquire, Design, Endpoint, Fifo, Link, Loop, Release, Step, Transfer, Worker
from presim.iron.passes import passes_of


def once(fifo: str, count: int = 1) -> tuple[Step, ...]:
    return (Acquire(fifo=fifo, count=count), Release(fifo=fifo, count=count))


def fifo(name: str, producer: Endpoint, consumer: Endpoint, shape: int = 8, **more: object) -> Fifo:
    return Fifo(name=name, shape=(shape,), dtype="int8", producer=producer, consumers=(consumer,), **more)  # type: ignore[arg-type]


SHIM_IN, SHIM_OUT = Endpoint(actor="shim:a", kind="shim"), Endpoint(actor="shim:c", kind="shim")
MEM = Endpoint(actor="mem:a", kind="mem")


def test_through_a_link_and_two_workers() -> None:
    one = Worker(name="one", tile=None, program=(*once("b", 2), Loop(times=3, body=once("m"))))
    two = Worker(name="two", tile=None, program=(*once("m"), *once("c")))
    idle = Worker(name="idle", tile=None, program=())
    design = Design(
        dispatch="d",
        device="npu2",
        workers=(one, two, idle),
        fifos=(
            fifo("a", SHIM_IN, MEM, shape=16),
            fifo("b", MEM, Endpoint(actor="one")),
            fifo("m", Endpoint(actor="one"), Endpoint(actor="two")),
            fifo("c", Endpoint(actor="two"), SHIM_OUT),
        ),
        links=(Link(kind="forward", sources=("a",), targets=("b",)),),
        sequence=(
            Transfer(fifo="a", direction="fill", tensor="x", objects=2),
            Transfer(fifo="a", direction="fill", tensor="x", objects=2),
        ),
    )
    assert dict(passes_of(design)) == {"one": 4, "two": 12}


def test_from_the_end_and_with_smaller_objects() -> None:
    worker = Worker(name="w", tile=None, program=(*once("a", 4), *once("c")))
    design = Design(
        dispatch="d",
        device="npu2",
        workers=(worker,),
        fifos=(
            fifo("a", SHIM_IN, Endpoint(actor="w"), consumer_shape=(2,)),
            fifo("c", Endpoint(actor="w"), SHIM_OUT),
        ),
        sequence=(Transfer(fifo="c", direction="drain", tensor="y", objects=5),),
    )
    assert dict(passes_of(design)) == {"w": 5}


def test_number_that_is_no_whole_one_is_left_out() -> None:
    worker = Worker(name="w", tile=None, program=once("a", 2))
    design = Design(
        dispatch="d",
        device="npu2",
        workers=(worker,),
        fifos=(fifo("a", SHIM_IN, Endpoint(actor="w")),),
        sequence=(Transfer(fifo="a", direction="fill", tensor="x", objects=3),),
    )
    assert dict(passes_of(design)) == {}
