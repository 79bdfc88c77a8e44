# mypy: ignore-errors
"""A sum over two cores through the cascade. `hang`: the second awaits a token behind the first one's second block."""

import sys

import numpy as np
from aie.iron import CascadeFlow, Kernel, ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2, Tile

HANG = "hang" in sys.argv
BLOCK, BLOCKS = 8, 4
block_ty = np.ndarray[(BLOCK,), np.dtype[np.int32]]
token_ty = np.ndarray[(1,), np.dtype[np.int32]]
host_ty = np.ndarray[(BLOCK * BLOCKS,), np.dtype[np.int32]]
put = Kernel("square_put_cascade", "k.o", [block_ty])
get = Kernel("add_get_cascade", "k.o", [block_ty, block_ty])
mark = Kernel("mark", "k.o", [token_ty])
of_x, of_w = ObjectFifo(block_ty, name="x"), ObjectFifo(block_ty, name="w")
of_out = ObjectFifo(block_ty, name="out")
of_token = ObjectFifo(token_ty, name="token")


def head(of_x, token, put, mark):
    for _ in range_(BLOCKS // 2):
        for _ in range_(2):
            put(of_x.acquire(1))
            of_x.release(1)
        mark(token.acquire(1))
        token.release(1)


def tail(of_w, of_out, token, get):
    for _ in range_(BLOCKS // 2):
        if HANG:
            token.acquire(1)
        for _ in range_(2):
            get(of_w.acquire(1), of_out.acquire(1))
            of_w.release(1)
            of_out.release(1)
        if not HANG:
            token.acquire(1)
        token.release(1)


def sequence(x, w, y, x_h, w_h, y_h):  # noqa: PLR0917 (one parameter for each argument)
    x_h.fill(x)
    w_h.fill(w)
    y_h.drain(y, wait=True)


workers = [
    Worker(head, [of_x.cons(), of_token.prod(), put, mark], tile=Tile(0, 3)),
    Worker(tail, [of_w.cons(), of_out.prod(), of_token.cons(), get], tile=Tile(0, 2)),
]
CascadeFlow(workers[0], workers[1])
rt = Runtime(sequence, [host_ty, host_ty, host_ty, of_x.prod(), of_w.prod(), of_out.cons()])
print(Program(NPU2(), rt, workers=workers).resolve_program())
