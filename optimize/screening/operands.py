"""Levers on operands and instructions: packed order, wider multiplications, DMAs, vectors, accumulators, shifts."""

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from bringup.lint.cxx import Source
from bringup.lint.kernels import catalogue, numpy_type
from optimize.screening.model import Array, Hit, Hits, View

_REORDER: Final = re.compile(r"\baie::(?:transpose|interleave_\w+|filter_even|filter_odd|shuffle\w*)\b|\bmemcpy\s*\(")
_MMUL: Final = re.compile(r"\bmmul<\s*([^<>]+?)\s*>")
_VECTORS: Final = re.compile(r"\baie::(?:mmul|vector|load_v|load_unaligned_v|accum|mac|mul|max|min)\b")
_WIDE: Final = re.compile(r"\b(?:aie::)?(?:accum|mmul|mul|mac|zeros)<[^<>;]*\bacc64\b")
_PRODUCT: Final = re.compile(r"\baie::(?:mul|mac)\b|\bscaled\s*\(|\bmultiplier\b")
_SHIFTED: Final = re.compile(r"\b(?:W_ZEROS|PROMOTIONS)\[\]\s*=\s*\{([^}]*)\}")
MATRIX: Final = frozenset(["gemm", "gemm_rows", "matmul", "conv"])
MOVES: Final = frozenset(["transpose", "reshape", "flatten", "copy", "concat"])
LIMIT: Final = 1 << 31


def packing(view: View) -> Hits:
    """Operands of a multiplication that are put in order by the core, again in every call."""
    for name, source in view.sources.items():
        if _MMUL.search(source.code) is None:
            continue
        spans = [(loop.body_start, loop.body_start + len(loop.body)) for loop in source.loops()]
        for match in _REORDER.finditer(source.code):
            if any(begin <= match.start() < end for begin, end in spans):
                what = match.group().strip("( ")
                text = f"{what} puts operands of mmul in order in a loop; packed in mmul order they load as they are"
                yield Hit(file=name, position=match.start(), confidence="medium", text=text)


def wider(view: View) -> Hits:
    """Multiplications that are smaller than the device's largest, and matrix kernels without any."""
    shapes = catalogue(view.device)
    seen = False
    for name, source in view.sources.items():
        for match in _MMUL.finditer(source.code):
            seen = True
            yield from _wider(match, name, source, view)
    kind = str(view.row.get("type", ""))
    if seen or kind not in MATRIX:
        return
    weights, objects = view.parameters("weights"), view.parameters("object_in")
    pair = (objects[0]["dtype"], weights[0]["dtype"]) if objects and weights else ("", "")
    native = shapes.get(pair) if pair[0] else None
    if native:
        best = max(native, key=lambda s: s[0] * s[1] * s[2])
        text = f"{kind} of {pair[0]} and {pair[1]} without mmul; {view.device} has {_times(best)} in one instruction"
        yield Hit(file=view.file, position=-1, confidence="medium", text=text)


def _wider(match: "re.Match[str]", name: str, source: Source, view: View) -> Hits:
    """One `mmul` against the catalogue."""
    arguments = [a.strip() for a in match.group(1).split(",")]
    sizes = [source.value(a) for a in arguments[:3]]
    pair = tuple(numpy_type(source.types.get(a.rpartition("::")[2], a)) for a in arguments[3:5])
    native = catalogue(view.device).get(pair) if len(pair) == 2 and None not in pair else None
    if not native or any(s is None for s in sizes):
        return
    used = tuple(s for s in sizes if s is not None)
    best = max(native, key=lambda s: s[0] * s[1] * s[2])
    if used[0] * used[1] * used[2] < best[0] * best[1] * best[2]:
        text = f"mmul {_times(used)} of {pair[0]} and {pair[1]}; {view.device} has {_times(best)}"
        yield Hit(file=name, position=match.start(), confidence="high", text=text)


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def movement(view: View) -> Hits:
    """Kernels that only move data."""
    kind = str(view.row.get("type", ""))
    if kind in MOVES:
        text = f"{kind} moves data and computes nothing; sizes and strides of a memory tile's DMA may do it on the way"
        yield Hit(file=view.file, position=-1, confidence="low" if kind == "concat" else "medium", text=text)


def scalar(view: View) -> Hits:
    """Kernels without vectors on the way of the data."""
    if not any(_VECTORS.search(source.code) for source in view.sources.values()):
        text = "no vector operation of the AIE API is reached: one element at a time"
        yield Hit(file=view.file, position=-1, confidence="high", text=text)
    elif view.row.get("vectorized") is False:
        notes = "; ".join(map(str, view.row.get("notes", ())))
        text = f"its emitter calls it not vectorized{f' ({notes})' if notes else ''}"
        yield Hit(file=view.file, position=-1, confidence="medium", text=text)


def accumulators(view: View) -> Hits:
    """64-bit sums of products whose largest value fits 32 bits, by the weights themselves."""
    position = _wide_at(view)
    if position is None:
        return
    bound = _bound(view)
    if bound is not None and bound < LIMIT:
        text = f"64-bit accumulators; with these weights no sum exceeds {bound}, and 32 bits hold {LIMIT - 1}"
        yield Hit(file=view.file, position=position, confidence="high", text=text)


def _wide_at(view: View) -> int | None:
    """Where the kernel's own file asks for 64-bit sums."""
    source = view.sources[view.file]
    declared = re.search(r"\bBITS\s*=", source.code)
    if declared is not None:
        return declared.start() if source.value("BITS") == 64 else None
    found = _WIDE.search(source.code)
    return found.start() if found else None


def _bound(view: View) -> int | None:
    """An upper bound of any sum: weights against the largest input, and the largest bias; None = unknown.

    Conservative on purpose: packed weights do not say which channel they are of, and padding counts.
    """
    weights, inputs = view.parameters("weights"), view.parameters("object_in")
    if not weights or not inputs or not all(_integer(p["dtype"]) for p in (*weights, *inputs)):
        return None
    bias = view.parameters("bias")
    if any(not view.arrays.get(p["name"]) for p in (*weights, *bias)):
        return None
    value = max(1 << (8 * int(np.dtype(p["dtype"]).itemsize)) for p in inputs)
    if not _plain(view):
        return None
    channels = view.figure("CHUNK") or 8 * (view.figure("CHUNK_BLOCKS") or 0)
    sums = [_sum(array, channels) for p in weights for array in view.arrays[p["name"]]]
    added = max((_largest(array) for p in bias for array in view.arrays[p["name"]]), default=0)
    return value * max(sums) + added


def _plain(view: View) -> bool:
    """Whether sums are of the packed weights as they are: no zero points of theirs, no shift in front of the bias."""
    found = _SHIFTED.findall(view.sources[view.file].code)
    return all(not text.replace(" ", "").replace(",", "").strip("0") for text in found)


def _sum(weights: Array, channels: int) -> int:
    """Most that the weights of one of so many channels can add up to; 0 = their number is not known."""
    total = int(np.abs(weights.astype(np.int64)).sum())
    if channels <= 0:
        return total
    return min(total, -(-weights.size // channels) * _largest(weights))


def _largest(array: Array) -> int:
    return max(abs(int(array.max(initial=0))), abs(int(array.min(initial=0))))


def _integer(dtype: Any) -> bool:
    return str(dtype).startswith(("int", "uint"))


def multipliers(view: View) -> Hits:
    """Multiplications in front of the rounding by powers of two: the shift alone does it."""
    if not any(_PRODUCT.search(source.code) for source in view.sources.values()):
        return
    for parameter in view.parameters("requant"):
        rows = [found for array in view.arrays.get(parameter["name"], ()) for found in _multipliers(array)]
        if rows and all(m > 0 and m & (m - 1) == 0 for m in rows):
            words = f"is {rows[0]} everywhere" if len(set(rows)) == 1 else "are powers of two"
            text = f"multiplier{'' if len(set(rows)) == 1 else 's'} in {parameter['name']} {words}; a shift does it"
            yield Hit(file=view.file, position=-1, confidence="high", text=text)


def _multipliers(array: Array) -> Iterator[int]:
    """Multipliers of a packed array that holds one {multiplier, shift}, or (blocks, 2, 8) of them."""
    if array.dtype != np.int32:
        return
    if array.size == 2:
        yield int(array.reshape(-1)[0])
    elif array.ndim == 3 and array.shape[1:] == (2, 8):
        yield from (int(m) for m, s in zip(array[:, 0].reshape(-1), array[:, 1].reshape(-1), strict=True) if m or s)
