"""`conv`: one row of a convolution, with groups, dilation, uneven pads, any split of output and input channels.

Arguments: rows of the window top to bottom (C/8, W, 8); `cascade_in` (channels, out W) of the part in front; weights
(O, I/group, KH, KW); bias (O,); requant (2, 1 or O); the output row, or `cascade_out`.
Scalars: `pad_top`, `pad_bottom`: rows of the window outside the image (default 0). `out_offset`: first output channel
of the part that these weights are for (default 0; streamed weights).

Attributes: the output's (`finish`, `out_dtype`, `out_channels`, `y_zero_point`, `qmin`, `qmax`, `zero_point_inside`);
`kernel`, `strides`, `dilations` (rows, columns), `pads_lr`; `group`, `group_outputs` (output channels of a group);
`out_first` (channel at the begin of the output object); `in_first`, `in_count` (channels summed over, of a group);
`x_first` (channel at the begin of the input objects); `x_zero_point`, `w_zero_points` (1 or O); `acc_bits`,
`acc_shift` (1 or O: left shifts in front of the bias); `has_bias`, `cascade_in`, `cascade_out`.
"""

from typing import Any

import numpy as np

from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import I64, Array, expect, finish_channels, product, split, takes_requant, wrapped
from presim.kernels.window import windows


def run(context: KernelContext, *arguments: Any) -> None:
    """Compute one output row."""
    has_bias, goes_on = number(context, "has_bias"), number(context, "cascade_out")
    rounds = takes_requant(context) and not goes_on
    inputs, buffers, outputs = split(arguments, 1 + has_bias + rounds)
    before = inputs.pop() if number(context, "cascade_in") else None
    weights = buffers[0]
    bias = buffers[1] if has_bias else None
    requant = buffers[-1] if rounds else None
    offset = context.scalars.get("out_offset", 0)
    count = min(len(weights), number(context, "out_channels") - offset)
    acc = _sums(context, inputs, weights[:count], offset, _out_width(context, inputs, before, outputs[0]))
    bits = number(context, "acc_bits")
    if before is not None:
        acc = acc + before[offset : offset + count].astype(np.int64)
    if goes_on:
        outputs[0].put(wrapped(acc, bits).astype(f"int{bits}"))
    else:
        finish_channels(context, acc, outputs[0], bias=bias, requant=requant, offset=offset)


def _out_width(context: KernelContext, rows: list[Array], before: Array | None, out: Any) -> int:
    """Width of the output row; the head of a cascade knows it from its input alone."""
    if not number(context, "cascade_out"):
        return int(out.shape[1])
    if before is not None:
        return int(before.shape[1])
    width, step, right = (numbers(context, n)[1] for n in ("kernel", "strides", "dilations"))
    padded = rows[0].shape[1] + sum(numbers(context, "pads_lr"))
    return int((padded - (width - 1) * right - 1) // step + 1)


def _sums(context: KernelContext, rows: list[Array], weights: Array, offset: int, out_width: int) -> I64:
    """Sums of products (channels, out_width)."""
    points = np.array(numbers(context, "w_zero_points"), np.int64)
    points = points if len(points) == 1 else points[offset : offset + len(weights)]
    centred = weights.astype(np.int64) - points[:, np.newaxis, np.newaxis, np.newaxis]
    groups, gather = _channels(context, len(weights), offset)
    start = int(gather.min())
    view = windows(
        context,
        rows,
        out_width,
        channels=slice(start, int(gather.max()) + 1),
        zero_point=number(context, "x_zero_point"),
    )
    inputs = weights.shape[1]
    expect("input channels of the weights", inputs, gather.shape[1])
    taps = view.shape[0], view.shape[2]
    if groups == 1:
        patches = view.transpose(1, 0, 2, 3).reshape(1, -1, out_width)
    else:
        patches = view[:, gather - start].transpose(1, 2, 0, 3, 4).reshape(groups, -1, out_width)
    terms = inputs * taps[0] * taps[1]
    return product(centred.reshape(groups, -1, terms), patches, terms=terms).reshape(len(weights), out_width)


def _channels(context: KernelContext, count: int, offset: int) -> tuple[int, Array]:
    """Groups that the outputs fall into, and the lanes (groups, inputs) that each of them reads.

    Outputs that do not fill their groups are each taken as a group of their own.
    """
    group, size = number(context, "group"), number(context, "group_outputs")
    inputs = number(context, "in_count")
    lanes = np.arange(inputs) + number(context, "in_first") - number(context, "x_first")
    if group == 1:
        return 1, lanes[np.newaxis]
    first = number(context, "out_first") + offset
    whole = first % size == 0 and count % size == 0
    found = np.arange(first, first + count, size if whole else 1) // size
    return len(found), lanes + found[:, np.newaxis] * inputs
