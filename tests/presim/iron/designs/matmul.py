# mypy: ignore-errors
"""A matrix product on one core, blocks arranged by the memory tile. `hang`: A is awaited before B is started."""

import sys

import numpy as np
from aie.helpers.taplib import TensorTiler2D
from aie.iron import ObjectFifo, Program, Runtime, TaskGroup, Worker, kernels
from aie.iron.controlflow import range_
from aie.iron.device import NPU1

HANG = "hang" in sys.argv
M, K, N, B = 16, 24, 8, 8
mm = kernels.mm(dim_m=B, dim_k=B, dim_n=B, input_dtype=np.int16, output_dtype=np.int32, vectorized=False)
a_ty, b_ty = np.ndarray[(M, K), np.dtype[np.int16]], np.ndarray[(K, N), np.dtype[np.int16]]
c_ty = np.ndarray[(M, N), np.dtype[np.int32]]
in_ty, out_ty = np.ndarray[(B * B,), np.dtype[np.int16]], np.ndarray[(B * B,), np.dtype[np.int32]]
of_a, of_b = ObjectFifo(in_ty, name="a"), ObjectFifo(in_ty, name="b")
half = TensorTiler2D.group_tiler((B, B), (B, 4), (1, 2))[0].transformation_dims
a_l1 = of_a.cons().forward(name="a_l1", dims_to_stream=half)
b_l1 = of_b.cons().forward(name="b_l1")
of_c = ObjectFifo(out_ty, name="c")
c_l3 = of_c.cons().forward(name="c_l3")


def core(of_a, of_b, of_c, zero, mm):
    for _ in range_(M // B * N // B):
        made = of_c.acquire(1)
        zero(made)
        for _ in range_(K // B):
            mm(of_a.acquire(1), of_b.acquire(1), made)
            of_a.release(1)
            of_b.release(1)
        of_c.release(1)


a_taps = TensorTiler2D.group_tiler((M, K), (B, B), (1, K // B), pattern_repeat=N // B)
b_tap = TensorTiler2D.group_tiler((K, N), (B, B), (K // B, N // B), tile_group_col_major=True)[0]
c_taps = TensorTiler2D.group_tiler((M, N), (B, B), (1, N // B))


def sequence(a, b, c, a_h, b_h, c_h):  # noqa: PLR0917 (one parameter for each argument)
    if HANG:
        first = TaskGroup()
        for tap in a_taps:
            a_h.fill(a, tap=tap, wait=True, group=first)
        first.finish()
    for i in range(M // B):
        group = TaskGroup()
        if not HANG:
            a_h.fill(a, tap=a_taps[i], group=group)
        b_h.fill(b, tap=b_tap, group=group)
        c_h.drain(c, tap=c_taps[i], wait=True, group=group)
        group.finish()


worker = Worker(core, [a_l1.cons(), b_l1.cons(), of_c.prod(), mm.zero, mm])
rt = Runtime(sequence, [a_ty, b_ty, c_ty, of_a.prod(), of_b.prod(), c_l3.cons()])
print(Program(NPU1(), rt, workers=[worker]).resolve_program())
