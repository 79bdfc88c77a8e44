# mypy: ignore-errors
"""Three cores each scale a third. `hang`: a core takes two objects for one, the host gives them one by one."""

import sys

import numpy as np
from aie.iron import Kernel, ObjectFifo, Program, Runtime, TaskGroup, Worker
from aie.iron.device import NPU1

HANG = "hang" in sys.argv
CORES, PART, OBJECTS = 3, 8, 4
whole_ty = np.ndarray[(CORES * PART,), np.dtype[np.int32]]
part_ty = np.ndarray[(PART,), np.dtype[np.int32]]
host_ty = np.ndarray[(OBJECTS, CORES * PART), np.dtype[np.int32]]
scale = Kernel("scale", "scale.o", [part_ty, part_ty, np.int32])
offsets = [PART * i for i in range(CORES)]
of_in = ObjectFifo(whole_ty, name="in")
of_out = ObjectFifo(whole_ty, name="out")
ins = of_in.cons().split(offsets, obj_types=[part_ty] * CORES, names=[f"in{i}" for i in range(CORES)])
outs = of_out.prod().join(offsets, obj_types=[part_ty] * CORES, names=[f"out{i}" for i in range(CORES)])


def core(of_in, of_out, scale, factor):
    taken = of_in.acquire(2) if HANG else [of_in.acquire(1)]
    made = of_out.acquire(1)
    scale(taken[0], made, factor)
    of_in.release(len(taken))
    of_out.release(1)


def sequence(x, y, in_h, out_h):
    for i in range(OBJECTS):
        group = TaskGroup()
        size = CORES * PART
        in_h.fill(x, offset=i * size, sizes=[size], strides=[1], group=group)
        out_h.drain(y, offset=i * size, sizes=[size], strides=[1], wait=True, group=group)
        group.finish()


workers = [Worker(core, [ins[i].cons(), outs[i].prod(), scale, i + 2]) for i in range(CORES)]
rt = Runtime(sequence, [host_ty, host_ty, of_in.prod(), of_out.cons()])
print(Program(NPU1(), rt, workers=workers).resolve_program())
