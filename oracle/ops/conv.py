"""Conv: also QLinearConv and FusedConv. One matrix product per output row.

Why this layout: with the rows of the image outermost, then kernel column and channel, the window of one output row is a
plain strided matrix, so the kernel's height costs no copy: the product reads it in place.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from manifest.model import Op
from oracle.contraction import Contraction, weights_of
from oracle.contraction import prepare as contract
from oracle.value import Array, Finish, Plan, Scope, Values, Workspace, refuse
from oracle.window import Axis, axes_of

_BLOCK_BYTES = 4 << 20
"""Size that the expanded columns of one block of rows may reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Geometry and weights. Group-wise: G groups of `cin` input and `cout` output channels."""

    name: str
    rows: Axis
    cols: Axis
    groups: int
    cin: int
    cout: int
    sums: Contraction
    workspace: Workspace
    flat: bool
    """The tensor has one spatial axis; a row axis of size 1 stands in."""

    def image(self, values: Values) -> Array:
        """The input as (H, G, cin, W, N, F)."""
        x = values[self.name]
        if self.flat:
            x = x[:, :, None]
        n, _, h, w, feeds = x.shape
        return x.transpose(2, 1, 3, 0, 4).reshape(h, self.groups, self.cin, w, n, feeds)

    def logical(self, out: Array) -> Array:
        """(OH, OC, OW, N, F) as the ONNX shape with the feed axis last."""
        result = out.transpose(3, 1, 0, 2, 4)
        return result[:, :, 0] if self.flat else result


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x NCHW, w OIHW, bias or ""); attributes strides, pads, dilations, group."""
    tensor = scope.tensors[op.inputs[0]]
    stored, scales = weights_of(op, scope, 0)
    rows, cols = axes_of(op, tensor.shape[2:], stored.shape[2:])
    if stored.ndim == 3:
        stored = stored[:, :, None]
    group = op.attributes.get("group", 1)
    groups = group if isinstance(group, int) else 1
    channels = stored.shape[0]
    cin, cout = stored.shape[1], channels // groups
    if tensor.shape[1] != cin * groups or cout * groups != channels:
        raise refuse(op, "channels do not match", expected=f"{cin * groups} inputs in {groups} groups")
    weights = stored.transpose(0, 2, 3, 1).reshape(groups, 1, cout, -1)
    layer = _Layer(
        name=op.inputs[0],
        rows=rows,
        cols=cols,
        groups=groups,
        cin=cin,
        cout=cout,
        sums=contract(op, scope, weights, scales, channels=channels, axis=1),
        workspace=scope.workspace,
        flat=tensor.shape[2:] != (rows.size, cols.size),
    )
    compute: Callable[[Array, slice, Array], None]
    if cin == cout == 1 and groups > 1:
        taps = stored.reshape(channels, -1).astype(layer.sums.product.dtype)
        compute = _Depthwise(layer, taps)
    else:
        compute = _Columns(layer)

    def run(values: Values, finish: Finish) -> Array:
        return _rows(layer, compute, values, finish)

    sums = layer.sums
    return Plan(run=run, exact=sums.exact, rank=3, axis=1, multiplier=sums.multiplier)


def _rows(layer: _Layer, compute: Callable[[Array, slice, Array], None], values: Values, finish: Finish) -> Array:
    """Walk over blocks of output rows: columns, product, bias, finish."""
    image = layer.image(values)
    n, feeds = image.shape[4:]
    rows, width = layer.rows, layer.cols.out * n * feeds
    channels = layer.groups * layer.cout
    out = np.empty((rows.out, channels, width), finish.dtype)
    itemsize = layer.sums.product.dtype.itemsize
    row_bytes = max(layer.cols.kernel * layer.groups * layer.cin, channels) * width * itemsize * rows.stride
    step = max(1, _BLOCK_BYTES // max(row_bytes, 1))
    for start in range(0, rows.out, step):
        block = slice(start, min(start + step, rows.out))
        count = block.stop - start
        acc = layer.workspace.take("acc", (count, channels, width), layer.sums.product.carrier)
        compute(image, block, acc)
        finish(layer.sums.bias(acc, (1, -1, 1)), out[block])
    return layer.logical(out.reshape(rows.out, channels, layer.cols.out, n, feeds))


class _Columns:
    """Product over expanded columns."""

    def __init__(self, layer: _Layer) -> None:
        self._layer = layer

    def __call__(self, image: Array, block: slice, acc: Array) -> None:
        """Sums of the output rows `block` into `acc` (rows, OC, OW * N * F)."""
        layer = self._layer
        groups, width = layer.groups, acc.shape[2]
        windows = self._dilated(image, block) if layer.rows.dilation > 1 else self._plain(image, block)
        out = acc.reshape(acc.shape[0], groups, layer.cout, width).transpose(1, 0, 2, 3)
        layer.sums.product(windows, out)

    def _plain(self, image: Array, block: slice) -> Array:
        """Windows (G, rows, K, OW * N * F), overlapping views of one buffer."""
        layer, rows = self._layer, self._layer.rows
        first = block.start * rows.stride - rows.begin
        count = (block.stop - 1 - block.start) * rows.stride + rows.kernel
        low, high = max(first, 0), min(first + count, rows.size)
        buffer = self._buffer(image, count)
        buffer[:, : low - first] = 0
        buffer[:, max(high, low) - first :] = 0
        if high > low:
            self._fill(image[low:high], buffer[:, low - first : high - first])
        width = buffer.shape[4] * buffer.shape[5] * buffer.shape[6]
        group, row, column = buffer.strides[0], buffer.strides[1], width * buffer.itemsize
        depth = rows.kernel * layer.cols.kernel * layer.cin
        shape = (layer.groups, block.stop - block.start, depth, width)
        return as_strided(buffer, shape, (group, row * rows.stride, column, buffer.itemsize))

    def _dilated(self, image: Array, block: slice) -> Array:
        """Windows (G, rows, K, OW * N * F), expanded along the kernel's height too."""
        layer, rows = self._layer, self._layer.rows
        count = block.stop - block.start
        buffer = self._buffer(image, count * rows.kernel)
        tapped = buffer.reshape(layer.groups, count, rows.kernel, *buffer.shape[2:])
        for tap in range(rows.kernel):
            windows, places = rows.valid(tap, block.start, block.stop)
            part = tapped[:, :, tap]
            part[:, : windows.start] = 0
            part[:, windows.stop :] = 0
            if windows.stop > windows.start:
                self._fill(image[places], part[:, windows])
        return buffer.reshape(layer.groups, count, -1, int(np.prod(buffer.shape[4:])))

    def _buffer(self, image: Array, rows: int) -> Array:
        layer = self._layer
        shape = (layer.groups, rows, layer.cols.kernel, layer.cin, layer.cols.out, *image.shape[4:])
        return layer.workspace.take("columns", shape, layer.sums.product.dtype)

    def _fill(self, rows: Array, buffer: Array) -> None:
        """Centred input (R, G, cin, W, N, F) into (G, R, KW, cin, OW, N, F), 0 where the tap meets padding."""
        layer = self._layer
        source = rows.transpose(1, 0, 2, 3, 4, 5)
        for tap in range(layer.cols.kernel):
            windows, places = layer.cols.valid(tap)
            part = buffer[:, :, tap]
            part[:, :, :, : windows.start] = 0
            part[:, :, :, windows.stop :] = 0
            centre(source[:, :, :, places], layer.sums.point, part[:, :, :, windows])


class _Depthwise:
    """One input and one output channel per group: multiply and add tap by tap."""

    def __init__(self, layer: _Layer, taps: Array) -> None:
        self._layer = layer
        self._taps = taps

    def __call__(self, image: Array, block: slice, acc: Array) -> None:
        """Sums of the output rows `block` into `acc` (rows, C, OW * N * F)."""
        layer, rows, cols = self._layer, self._layer.rows, self._layer.cols
        tail = image.shape[4:]
        dtype = layer.sums.product.dtype
        low = max(block.start * rows.stride - rows.begin, 0)
        last = (block.stop - 1) * rows.stride - rows.begin + (rows.kernel - 1) * rows.dilation
        source = image[low : max(last + 1, low), :, 0]
        centred = layer.workspace.take("columns", source.shape, dtype)
        centre(source, layer.sums.point, centred)
        acc[...] = 0
        out = acc.reshape(acc.shape[0], acc.shape[1], cols.out, *tail)
        scratch = layer.workspace.take("taps", out.shape, dtype)
        for i in range(rows.kernel):
            windows, places = rows.valid(i, block.start, block.stop)
            if windows.stop == windows.start:
                continue
            lines = centred[places.start - low : places.stop - low : places.step]
            for j in range(cols.kernel):
                across, where = cols.valid(j)
                weight = self._taps[:, i * cols.kernel + j].reshape(1, -1, 1, 1, 1)
                part = scratch[windows, :, across]
                np.multiply(lines[:, :, where], weight, out=part)
                target = out[windows, :, across]
                np.add(target, part, out=target)


def centre(source: Array, point: int, out: Array) -> None:
    """Codes minus the zero point, in the dtype of `out`."""
    if point:
        np.subtract(source, np.asarray(point, dtype=out.dtype), out=out, casting="unsafe", dtype=out.dtype)
    else:
        np.copyto(out, source, casting="unsafe")
