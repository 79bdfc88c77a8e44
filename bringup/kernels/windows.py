"""Figures of a sliding window and the rows that it holds."""

from bringup.kernels.elementwise import Figure, by_role, c_type, extents, numbers
from bringup.kernels.model import Row


def window_figures(row: Row) -> dict[str, Figure]:
    """Members of `K` that pool_window.h asks for, without those of the output."""
    first = by_role(row, "object_in")[0]
    (height, width), (down, right) = numbers(row, "kernel"), numbers(row, "dilations")
    return {
        "X": c_type(first.dtype),
        "kernel_height": height,
        "kernel_width": width,
        "step": numbers(row, "strides")[1],
        "down": down,
        "right": right,
        "left": numbers(row, "pads_lr")[0],
        "in_width": extents(first.shape).width,
    }


def held_rows(row: Row) -> str:
    """Statement that makes `rows`, the rows of the window from the top."""
    inputs = by_role(row, "object_in")
    names = ", ".join(p.name for p in inputs)
    return f"const {c_type(inputs[0].dtype)} *const rows[] = {{{names}}};"
