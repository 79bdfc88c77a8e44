# mypy: ignore-errors
"""A factor that the host writes before it sets a barrier. `hang`: it sets the barrier behind the awaited drain.

`again`: the core takes the value off the barrier, and its body runs once for each inference.
"""

import sys

import numpy as np
from aie.iron import Buffer, Kernel, ObjectFifo, Program, Runtime, TaskGroup, Worker, WorkerRuntimeBarrier
from aie.iron.controlflow import range_
from aie.iron.device import NPU2

HANG, AGAIN = "hang" in sys.argv, "again" in sys.argv
BLOCK, BLOCKS = 8, 4
block_ty = np.ndarray[(BLOCK,), np.dtype[np.int32]]
host_ty = np.ndarray[(BLOCK * BLOCKS,), np.dtype[np.int32]]
scale = Kernel("scale", "scale.o", [block_ty, block_ty, np.int32])
of_in = ObjectFifo(block_ty, name="in")
of_out = ObjectFifo(block_ty, name="out")
rtp = Buffer(np.ndarray[(2,), np.dtype[np.int32]], name="rtp", use_write_rtp=True)
barrier = WorkerRuntimeBarrier()


def core(of_in, of_out, rtp, barrier, scale):
    barrier.wait_for_value(1)
    for _ in range_(rtp[1] if AGAIN else 1):
        taken = of_in.acquire(1)
        made = of_out.acquire(1)
        scale(taken, made, rtp[0])
        of_in.release(1)
        of_out.release(1)
    if AGAIN:
        barrier.release_with_value(1)


def sequence(x, y, in_h, out_h):
    rtp[0] = 7
    rtp[1] = BLOCKS
    in_h.fill(x)
    if not HANG:
        barrier.set(1)
    group = TaskGroup()
    out_h.drain(y, wait=True, group=group)
    group.finish()
    if HANG:
        barrier.set(1)


worker = Worker(core, [of_in.cons(), of_out.prod(), rtp, barrier, scale])
rt = Runtime(sequence, [host_ty, host_ty, of_in.prod(), of_out.cons()])
print(Program(NPU2(), rt, workers=[worker]).resolve_program())
