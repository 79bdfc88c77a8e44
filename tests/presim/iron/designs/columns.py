# mypy: ignore-errors
"""Columns of a matrix through one core each, a vector to both. `hang`: the host awaits one column before the other."""

import sys

import numpy as np
from aie.helpers.taplib import TensorAccessPattern
from aie.iron import Kernel, ObjectFifo, Program, Runtime, TaskGroup, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2

HANG = "hang" in sys.argv
ROWS, WIDTH, CORES = 6, 8, 2
PART = WIDTH // CORES
part_ty = np.ndarray[(PART,), np.dtype[np.int32]]
scalar_ty = np.ndarray[(1,), np.dtype[np.int32]]
host_ty = np.ndarray[(ROWS, WIDTH), np.dtype[np.int32]]
vector_ty = np.ndarray[(ROWS,), np.dtype[np.int32]]
shift = Kernel("shift", "shift.o", [part_ty, scalar_ty, part_ty])
ins = [ObjectFifo(part_ty, name=f"in{i}") for i in range(CORES)]
outs = [ObjectFifo(part_ty, name=f"out{i}") for i in range(CORES)]
of_vector = ObjectFifo(scalar_ty, name="vector")
taps = [TensorAccessPattern((ROWS, WIDTH), PART * i, [1, 1, ROWS, PART], [0, 0, WIDTH, 1]) for i in range(CORES)]


def core(of_in, of_vector, of_out, shift):
    for _ in range_(ROWS):
        taken = of_in.acquire(1)
        by = of_vector.acquire(1)
        made = of_out.acquire(1)
        shift(taken, by, made)
        of_in.release(1)
        of_vector.release(1)
        of_out.release(1)


def sequence(x, v, y, ins, vector, outs):  # noqa: PLR0917 (one parameter for each argument)
    vector.fill(v)
    groups = [TaskGroup() for _ in range(CORES)] if HANG else [TaskGroup()] * CORES
    for i in range(CORES):
        ins[i].fill(x, tap=taps[i], group=groups[i])
        outs[i].drain(y, tap=taps[i], wait=True, group=groups[i])
        if HANG:
            groups[i].finish()
    if not HANG:
        groups[0].finish()


workers = [Worker(core, [ins[i].cons(), of_vector.cons(), outs[i].prod(), shift]) for i in range(CORES)]
handles = [[f.prod() for f in ins], of_vector.prod(), [f.cons() for f in outs]]
rt = Runtime(sequence, [host_ty, vector_ty, host_ty, *handles])
print(Program(NPU2(), rt, workers=workers).resolve_program())
