"""`aie.iron.algorithms`: row templates of convolution pipelines, called inside a core function."""

from collections.abc import Callable
from typing import Any

from presim.iron.api import row
from presim.iron.control import range_

Kernel = Callable[..., Any]


def _weights(of_wts: Any) -> Any:
    return None if of_wts is None else of_wts.acquire(1)


def _back(of_wts: Any) -> None:
    if of_wts is not None:
        of_wts.release(1)


@row("aie.iron.algorithms.row_at_a_time")
def row_at_a_time(of_in: Any, of_out: Any, *, n_rows: int, do_kernel: Kernel, of_wts: Any = None) -> None:
    """One row in, one row out: `do_kernel(row_in, row_out, weights)`."""
    weights = _weights(of_wts)
    for _ in range_(n_rows):
        taken, made = of_in.acquire(1), of_out.acquire(1)
        do_kernel(taken, made, weights)
        of_in.release(1)
        of_out.release(1)
    _back(of_wts)


@row("aie.iron.algorithms.row_at_a_time_tiled")
def row_at_a_time_tiled(
    of_in: Any, of_out: Any, *, n_rows: int, n_tiles_per_row: int, do_kernel: Kernel, of_wts: Any = None
) -> None:
    """Each row in several blocks: `do_kernel(block_in, block_out, weights)`."""
    weights = _weights(of_wts)
    for _ in range_(n_rows):
        for _ in range_(n_tiles_per_row):
            taken, made = of_in.acquire(1), of_out.acquire(1)
            do_kernel(taken, made, weights)
            of_in.release(1)
            of_out.release(1)
    _back(of_wts)


@row("aie.iron.algorithms.row_at_a_time_with_skip")
def row_at_a_time_with_skip(
    of_in: Any, of_out: Any, of_skip: Any, *, n_rows: int, do_kernel: Kernel, of_wts: Any = None
) -> None:
    """One row in, one of the skip, one row out: `do_kernel(row_in, row_out, row_skip, weights)`."""
    weights = _weights(of_wts)
    for _ in range_(n_rows):
        taken, made, skipped = of_in.acquire(1), of_out.acquire(1), of_skip.acquire(1)
        do_kernel(taken, made, skipped, weights)
        of_in.release(1)
        of_out.release(1)
        of_skip.release(1)
    _back(of_wts)


@row("aie.iron.algorithms.sliding_3row")
def sliding_3row(of_in: Any, of_out: Any, *, n_out_rows: int, do_kernel: Kernel, of_wts: Any = None) -> None:
    """Three rows in a sliding window, border rows twice: `do_kernel(top, mid, bottom, row_out, weights, border)`."""
    weights = _weights(of_wts)
    rows = of_in.acquire(2)
    made = of_out.acquire(1)
    do_kernel(rows[0], rows[0], rows[1], made, weights, 0)
    of_out.release(1)
    for _ in range_(n_out_rows - 2):
        rows = of_in.acquire(3)
        made = of_out.acquire(1)
        do_kernel(rows[0], rows[1], rows[2], made, weights, 1)
        of_in.release(1)
        of_out.release(1)
    rows = of_in.acquire(2)
    made = of_out.acquire(1)
    do_kernel(rows[0], rows[1], rows[1], made, weights, 2)
    of_in.release(2)
    of_out.release(1)
    _back(of_wts)
