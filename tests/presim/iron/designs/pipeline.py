# mypy: ignore-errors
"""Two stages with credits on the way back. `hang`: no credit is there at the start."""

import sys

import numpy as np
from aie.iron import Kernel, ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2, Tile

HANG = "hang" in sys.argv
BLOCK, BLOCKS = 8, 6
block_ty = np.ndarray[(BLOCK,), np.dtype[np.int16]]
credit_ty = np.ndarray[(1,), np.dtype[np.int32]]
host_ty = np.ndarray[(BLOCK * BLOCKS,), np.dtype[np.int16]]
double = Kernel("double", "k.o", [block_ty, block_ty])
relu = Kernel("relu", "k.o", [block_ty, block_ty])
of_in = ObjectFifo(block_ty, name="in")
of_mid = ObjectFifo(block_ty, name="mid")
of_out = ObjectFifo(block_ty, name="out")
of_back = ObjectFifo(credit_ty, name="back", init_values=None if HANG else [np.zeros(1, np.int32)])


def first(of_in, of_mid, of_back, double):
    for _ in range_(BLOCKS):
        of_back.acquire(1)
        taken = of_in.acquire(1)
        made = of_mid.acquire(1)
        double(taken, made)
        of_in.release(1)
        of_mid.release(1)
        of_back.release(1)


def second(of_mid, of_out, of_back, relu):
    for _ in range_(BLOCKS):
        taken = of_mid.acquire(1)
        made = of_out.acquire(1)
        relu(taken, made)
        of_mid.release(1)
        of_out.release(1)
        credit = of_back.acquire(1)
        credit[0] = 1
        of_back.release(1)


def sequence(x, y, in_h, out_h):
    in_h.fill(x)
    out_h.drain(y, wait=True)


workers = [
    Worker(first, [of_in.cons(), of_mid.prod(), of_back.cons(), double], tile=Tile(0, 2)),
    Worker(second, [of_mid.cons(), of_out.prod(), of_back.prod(), relu], tile=Tile(0, 3)),
]
rt = Runtime(sequence, [host_ty, host_ty, of_in.prod(), of_out.cons()])
print(Program(NPU2(), rt, workers=workers).resolve_program())
