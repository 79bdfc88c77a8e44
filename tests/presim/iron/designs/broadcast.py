# mypy: ignore-errors
"""One input to two cores, one of which takes three at a time; a third adds both. `hang`: the short way holds less."""

import sys

import numpy as np
from aie.iron import Kernel, ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2

HANG = "hang" in sys.argv
BLOCK, GROUPS = 4, 2
block_ty = np.ndarray[(BLOCK,), np.dtype[np.int32]]
host_ty = np.ndarray[(3 * GROUPS * BLOCK,), np.dtype[np.int32]]
add = Kernel("add", "add.o", [block_ty] * 3)
total = Kernel("total", "total.o", [block_ty] * 4)
of_in = ObjectFifo(block_ty, name="in", depth=2)
of_sum = ObjectFifo(block_ty, name="sum", depth=1)
of_out = ObjectFifo(block_ty, name="out")


def long_way(of_in, of_sum, total):
    for _ in range_(GROUPS):
        blocks = of_in.acquire(3)
        made = of_sum.acquire(1)
        total(blocks[0], blocks[1], blocks[2], made)
        of_in.release(3)
        of_sum.release(1)


def join(of_in, of_sum, of_out, add):
    for _ in range_(GROUPS):
        whole = of_sum.acquire(1)
        for _ in range_(3):
            block = of_in.acquire(1)
            made = of_out.acquire(1)
            add(block, whole, made)
            of_in.release(1)
            of_out.release(1)
        of_sum.release(1)


def sequence(x, y, in_h, out_h):
    in_h.fill(x)
    out_h.drain(y, wait=True)


workers = [
    Worker(long_way, [of_in.cons(depth=4), of_sum.prod(), total]),
    Worker(join, [of_in.cons(depth=1 if HANG else 3), of_sum.cons(), of_out.prod(), add]),
]
rt = Runtime(sequence, [host_ty, host_ty, of_in.prod(), of_out.cons()])
print(Program(NPU2(), rt, workers=workers).resolve_program())
