"""Windows of pools: the calls at every row of an image."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bringup.kernels.model import KernelModule
from tests.bringup.kernels.emitted import Case
from tests.bringup.kernels.objects import Array, codes, make_case, poisoned


def out_size(attributes: Mapping[str, Any], axis: int, size: int) -> int:
    """Output extent of an axis; `ceil`: a last window may begin inside and end beyond the padding."""
    kernel, stride, dilation = (int(attributes[n][axis]) for n in ("kernel", "strides", "dilations"))
    left: int = size + attributes["pads"][axis] + attributes["pads"][2 + axis] - (kernel - 1) * dilation - 1
    return (left + (stride - 1 if attributes.get("ceil") else 0)) // stride + 1


def pool_case(
    module: KernelModule,
    kind: str,
    attributes: Mapping[str, Any],
    *,
    image: tuple[int, int, int],
    dtypes: tuple[str, str],
    requant: Array | None,
    bits: int = 0,
    **changes: Any,
) -> Case:
    """Every output row of an image (channels, H, W); rows outside hold what must not be read: the largest code.

    Args:
        module: emitter.
        kind: kernel type.
        attributes: with `kernel`, `strides`, `dilations` and `pads` (top, left, bottom, right).
        image: channels, height, width.
        dtypes: of input and output.
        requant: as planned.
        bits: of the input, 0 = all.
        changes: of the row.
    """
    channels, height, width = image
    (kh, _), (down, _), strides = attributes["kernel"], attributes["dilations"], attributes["strides"]
    top, left, _, after = attributes["pads"]
    blocks = -(-channels // 8)
    rows = codes((height, blocks, width, 8), dtypes[0], 3, bits=bits)
    extent = (kh - 1) * down + 1
    wide = out_size(attributes, 1, width)
    out = poisoned((blocks, wide, 8), dtypes[1])
    firsts = [y * strides[0] - top for y in range(out_size(attributes, 0, height))]
    beyond = np.full(rows.shape[1:], np.iinfo(dtypes[0]).max if not bits else 1 << bits, dtypes[0])
    named: dict[str, list[Array]] = {
        f"row{i}": [rows[first + i] if 0 <= first + i < height else beyond for first in firsts] for i in range(extent)
    }
    if requant is not None:
        named["requant"] = [requant]
    named["out"] = [out]
    scalars = [{"pad_top": max(0, -first), "pad_bottom": max(0, first + extent - height)} for first in firsts]
    full = {"pads_lr": (left, after), **attributes}
    return make_case(module, kind, full, named, scalars=scalars, **changes)


def geometry(seed: int) -> dict[str, Any]:
    """A random window over a random image, every window of which holds an element."""
    rng = np.random.default_rng(seed)
    while True:
        kernel, strides, dilations = (
            tuple(int(n) for n in rng.integers(1, most, 2, endpoint=True)) for most in (4, 3, 2)
        )
        image = tuple(int(n) for n in rng.integers((1, 1, 1), (20, 8, 14), endpoint=True))
        pads = tuple(int(n) for n in rng.integers(0, np.array([*kernel, *kernel])))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        sides = list(zip(image[1:], spans, strides, pads[:2], pads[2:], kernel, dilations, strict=True))
        if all(size + low + high >= span for size, span, _, low, high, _, _ in sides) and all(map(_filled, sides)):
            return {"kernel": kernel, "strides": strides, "dilations": dilations, "pads": pads, "image": image}


def _filled(side: tuple[int, ...]) -> bool:
    size, span, stride, low, high, taps, dilation = side
    starts = range(-low, size + high - span + 1, stride)
    return all(any(0 <= s + t * dilation < size for t in range(taps)) for s in starts)
