# mypy: ignore-errors
"""Three rows in a sliding window and a skip around it. `hang`: the skip holds one row less than the window needs."""

import sys

import numpy as np
from aie.iron import Buffer, Kernel, ObjectFifo, Program, Runtime, Worker
from aie.iron.algorithms import row_at_a_time_with_skip, sliding_3row
from aie.iron.device import NPU2

HANG = "hang" in sys.argv
WIDTH, HEIGHT = 8, 5
row_ty = np.ndarray[(WIDTH,), np.dtype[np.int32]]
host_ty = np.ndarray[(HEIGHT, WIDTH), np.dtype[np.int32]]
filter_ty = np.ndarray[(3,), np.dtype[np.int32]]
blur = Kernel("blur", "blur.o", [row_ty, row_ty, row_ty, filter_ty, row_ty, np.int32])
add = Kernel("add", "add.o", [row_ty, row_ty, row_ty])
taps = Buffer(initial_value=np.array([1, 2, 3], np.int32), name="taps")
of_in = ObjectFifo(row_ty, name="in", depth=1)
of_mid = ObjectFifo(row_ty, name="mid", depth=1)
of_out = ObjectFifo(row_ty, name="out")
window = of_in.cons(depth=4)
skip = of_in.cons(depth=1).forward(depth=1, name="skip")
skip_in = skip.cons(depth=1) if HANG else skip.cons(depth=2)


def conv(window, of_mid, taps, blur):
    def call(top, mid, bottom, made, weights, border):  # noqa: PLR0917 (one parameter for each argument)
        blur(top, mid, bottom, taps, made, border)

    sliding_3row(window, of_mid, n_out_rows=HEIGHT, do_kernel=call)


def residual(of_mid, skip_in, of_out, add):
    row_at_a_time_with_skip(of_mid, of_out, skip_in, n_rows=HEIGHT, do_kernel=lambda a, o, s, _: add(a, s, o))


def late(of_mid, skip_in, of_out, add):
    """Takes two filtered rows before the first of the skip."""
    for _ in range(HEIGHT // 2):
        rows = of_mid.acquire(2)
        for row in rows:
            made = of_out.acquire(1)
            add(row, skip_in.acquire(1), made)
            skip_in.release(1)
            of_out.release(1)
        of_mid.release(2)
    made = of_out.acquire(1)
    add(of_mid.acquire(1), skip_in.acquire(1), made)
    of_mid.release(1)
    skip_in.release(1)
    of_out.release(1)


def sequence(x, y, in_h, out_h):
    in_h.fill(x)
    out_h.drain(y, wait=True)


mid = of_mid.cons(depth=2) if HANG else of_mid.cons()
workers = [
    Worker(conv, [window, of_mid.prod(), taps, blur]),
    Worker(late if HANG else residual, [mid, skip_in, of_out.prod(), add]),
]
rt = Runtime(sequence, [host_ty, host_ty, of_in.prod(), of_out.cons()])
print(Program(NPU2(), rt, workers=workers).resolve_program())
