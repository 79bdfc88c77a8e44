# mypy: ignore-errors
"""One core adds one. `hang`: the host awaits the fill before it starts the drain, and the pools hold less."""

import sys

import numpy as np
from aie.iron import ObjectFifo, Program, Runtime, TaskGroup, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2

HANG = "hang" in sys.argv
BLOCK, BLOCKS = 16, 8
tile_ty = np.ndarray[(BLOCK,), np.dtype[np.int16]]
host_ty = np.ndarray[(BLOCK * BLOCKS,), np.dtype[np.int16]]
of_in = ObjectFifo(tile_ty, name="in")
of_out = ObjectFifo(tile_ty, name="out")


def add_one(of_in, of_out):
    for _ in range_(BLOCKS):
        taken = of_in.acquire(1)
        made = of_out.acquire(1)
        for i in range_(BLOCK):
            made[i] = taken[i] + 1
        of_in.release(1)
        of_out.release(1)


def sequence(x, y, in_h, out_h):
    group = TaskGroup()
    in_h.fill(x, wait=HANG, group=group)
    if HANG:
        group.finish()
    out_h.drain(y, wait=True)
    if not HANG:
        group.finish()


worker = Worker(add_one, [of_in.cons(), of_out.prod()])
rt = Runtime(sequence, [host_ty, host_ty, of_in.prod(), of_out.cons()])
print(Program(NPU2(), rt, workers=[worker]).resolve_program())
