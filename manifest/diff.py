"""What moved between two manifests: the regression artifact of phase 1, one typed difference per value.

Tensors, ops and dispatches are matched by name. Keys into `tensors.npz` are not compared, the arrays behind them are.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from manifest.model import Dispatch, Layout, Manifest, Op, Tensor

Kind = Literal[
    "model",
    "target",
    "scheme",
    "tensor_added",
    "tensor_removed",
    "scale",
    "zero_point",
    "quantization",
    "shape",
    "dtype",
    "role",
    "observed",
    "weights",
    "layout",
    "op_added",
    "op_removed",
    "op_order",
    "op",
    "attributes",
    "accumulator",
    "bias",
    "activation",
    "requant",
    "shift",
    "multiplier",
    "dispatch",
    "note",
]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
Arrays = Mapping[str, NDArray[Any]]

ABSENT: Final = "absent"
_TENSOR_KINDS: Final[Mapping[str, Kind]] = {
    "shape": "shape",
    "dtype": "dtype",
    "onnx_dtype": "dtype",
    "role": "role",
    "observed": "observed",
}
_QUANT_KINDS: Final[Mapping[str, Kind]] = {
    "scales": "scale",
    "zero_points": "zero_point",
    "axis": "quantization",
    "exponents": "scale",
}
_OP_KINDS: Final[Mapping[str, Kind]] = {
    "type": "op",
    "inputs": "op",
    "outputs": "op",
    "origin": "op",
    "nodes": "op",
    "where": "op",
    "accumulator": "accumulator",
    "activation": "activation",
}
_REQUANT_KINDS: Final[Mapping[str, Kind]] = {"multipliers": "multiplier", "shifts": "shift"}
_MAX_TEXT: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that moved.

    Attributes:
        kind: what kind of value.
        where: `tensor 'x'`, `op 'conv1'`, `dispatch 'd0'` or `manifest`.
        what: which field, and which elements of it.
        before: value in the first manifest, in short; `absent` where there is none.
        after: value in the second.
    """

    kind: Kind
    where: str
    what: str
    before: str
    after: str

    def line(self) -> str:
        """The difference on one line; unprintable characters of names are escaped."""
        text = f"{self.where}: {self.what}: {self.before} -> {self.after}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def diff(a: Manifest, b: Manifest, arrays_a: Arrays, arrays_b: Arrays) -> tuple[Difference, ...]:
    """Everything that differs, in the order manifest, tensors, ops, layouts, dispatches, notes; empty when equal.

    Args:
        a: the first manifest.
        b: the second manifest.
        arrays_a: arrays of `a` by key (`t000001`).
        arrays_b: arrays of `b` by key.
    """
    return (
        *_top(a, b),
        *_tensors(a, b, arrays_a, arrays_b),
        *_ops(a, b, arrays_a, arrays_b),
        *_layouts(a.layouts, b.layouts),
        *_dispatches(a.dispatches, b.dispatches),
        *_notes(a, b),
    )


def _top(a: Manifest, b: Manifest) -> Iterator[Difference]:
    yield from _values("model", "manifest", "model", a.model, b.model)
    yield from _values("target", "manifest", "target", a.target, b.target)
    yield from _values("scheme", "manifest", "scheme", a.scheme, b.scheme)
    yield from _values("model", "manifest", "schema_version", a.schema_version, b.schema_version)


def _tensors(a: Manifest, b: Manifest, arrays_a: Arrays, arrays_b: Arrays) -> Iterator[Difference]:
    before, after = a.by_name(), b.by_name()
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        where = f"tensor {name!r}"
        if old is None or new is None:
            yield from _present("tensor_added", "tensor_removed", where, _tensor_text(old), _tensor_text(new))
            continue
        for field, kind in _TENSOR_KINDS.items():
            yield from _values(kind, where, field, getattr(old, field), getattr(new, field))
        yield from _quantization(where, old, new)
        yield from _array("weights", where, "values", _of(old.array, arrays_a), _of(new.array, arrays_b))


def _tensor_text(tensor: Tensor | None) -> str | None:
    return None if tensor is None else f"{tensor.dtype} {tensor.shape}"


def _quantization(where: str, old: Tensor, new: Tensor) -> Iterator[Difference]:
    if old.quant is None or new.quant is None:
        yield from _values("quantization", where, "quantization", old.quant, new.quant)
        return
    for field, kind in _QUANT_KINDS.items():
        yield from _values(kind, where, field, getattr(old.quant, field), getattr(new.quant, field))


def _of(key: str | None, arrays: Arrays) -> NDArray[Any] | None:
    return None if key is None else arrays.get(key)


def _array(
    kind: Kind, where: str, what: str, old: NDArray[Any] | None, new: NDArray[Any] | None
) -> Iterator[Difference]:
    """Elements that moved: how many, and the first of them (floats compared bit for bit)."""
    if old is None or new is None:
        yield from _values(kind, where, what, _array_text(old), _array_text(new))
    elif old.shape != new.shape or old.dtype != new.dtype:
        yield Difference(kind=kind, where=where, what=what, before=_array_text(old), after=_array_text(new))
    else:
        moved = _bits(old) != _bits(new)
        if moved.any():
            at = tuple(int(i) for i in np.argwhere(moved)[0]) if moved.ndim else ()
            text = f"{what}: {int(moved.sum())} of {moved.size} moved, first at {list(at)}"
            yield Difference(kind=kind, where=where, what=text, before=str(old[at]), after=str(new[at]))


def _array_text(array: NDArray[Any] | None) -> str:
    return ABSENT if array is None else f"{array.dtype} {array.shape}"


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "f" else array


def _ops(a: Manifest, b: Manifest, arrays_a: Arrays, arrays_b: Arrays) -> Iterator[Difference]:
    before, after = {op.name: op for op in a.ops}, {op.name: op for op in b.ops}
    for name in (*before, *(n for n in after if n not in before)):
        old, new = before.get(name), after.get(name)
        where = f"op {name!r}"
        if old is None or new is None:
            texts = [None if op is None else op.type for op in (old, new)]
            yield from _present("op_added", "op_removed", where, *texts)
            continue
        yield from _op(where, old, new, arrays_a, arrays_b)
    common = ([n for n in before if n in after], [n for n in after if n in before])
    yield from _values("op_order", "manifest", "order of ops", *map(tuple, common))


def _op(where: str, old: Op, new: Op, arrays_a: Arrays, arrays_b: Arrays) -> Iterator[Difference]:
    for field, kind in _OP_KINDS.items():
        yield from _values(kind, where, field, getattr(old, field), getattr(new, field))
    for key in sorted(old.attributes.keys() | new.attributes.keys()):
        pair = (old.attributes.get(key, ABSENT), new.attributes.get(key, ABSENT))
        yield from _values("attributes", where, f"attribute {key}", *pair)
    if old.bias is None or new.bias is None:
        yield from _values("bias", where, "bias", old.bias, new.bias)
    else:
        yield from _fields("bias", where, old.bias, new.bias, prefix="bias.", without="target_array")
        keys = (_of(old.bias.target_array, arrays_a), _of(new.bias.target_array, arrays_b))
        yield from _array("bias", where, "bias.target_array", *keys)
    if old.requant is None or new.requant is None:
        yield from _values("requant", where, "requant", old.requant, new.requant)
        return
    for name in (f.name for f in dataclasses.fields(old.requant) if f.name != "lut"):
        values = (getattr(old.requant, name), getattr(new.requant, name))
        yield from _values(_REQUANT_KINDS.get(name, "requant"), where, f"requant.{name}", *values)
    luts = (_of(old.requant.lut, arrays_a), _of(new.requant.lut, arrays_b))
    yield from _array("requant", where, "requant.lut", *luts)


def _layouts(a: tuple[Layout, ...], b: tuple[Layout, ...]) -> Iterator[Difference]:
    before, after = {x.tensor: x for x in a}, {x.tensor: x for x in b}
    for name in sorted(before.keys() | after.keys()):
        yield from _values("layout", f"tensor {name!r}", "layout", before.get(name), after.get(name))


def _dispatches(a: tuple[Dispatch, ...], b: tuple[Dispatch, ...]) -> Iterator[Difference]:
    before, after = {x.name: x for x in a}, {x.name: x for x in b}
    for name in (*before, *(n for n in after if n not in before)):
        old, new = before.get(name), after.get(name)
        where = f"dispatch {name!r}"
        if old is None or new is None:
            ops = [None if x is None else x.ops for x in (old, new)]
            yield from _values("dispatch", where, "ops", *ops)
        else:
            yield from _values("dispatch", where, "", old, new)
    if before.keys() == after.keys():
        yield from _values("dispatch", "manifest", "order of dispatches", tuple(before), tuple(after))


def _notes(a: Manifest, b: Manifest) -> Iterator[Difference]:
    before, after = (Counter(f"{n.code} {n.where}: {n.text}" for n in m.notes) for m in (a, b))
    for text in (before - after).elements():
        yield Difference(kind="note", where="manifest", what="note", before=_short(text), after=ABSENT)
    for text in (after - before).elements():
        yield Difference(kind="note", where="manifest", what="note", before=ABSENT, after=_short(text))
    if before == after:
        yield from _values("note", "manifest", "order of notes", a.notes, b.notes)


def _present(added: Kind, removed: Kind, where: str, old: str | None, new: str | None) -> Iterator[Difference]:
    kind = added if old is None else removed
    yield Difference(kind=kind, where=where, what=kind.partition("_")[2], before=old or ABSENT, after=new or ABSENT)


def _fields(kind: Kind, where: str, old: Any, new: Any, *, prefix: str = "", without: str = "") -> Iterator[Difference]:
    for name in (f.name for f in dataclasses.fields(old) if f.name != without):
        yield from _values(kind, where, f"{prefix}{name}", getattr(old, name), getattr(new, name))


def _values(kind: Kind, where: str, what: str, old: object, new: object) -> Iterator[Difference]:
    """Nothing where the values are spelled alike (1 and 1.0 are not); fields and tuples down to what moved."""
    if repr(old) == repr(new):
        return
    if dataclasses.is_dataclass(old) and type(old) is type(new):
        yield from _fields(kind, where, old, new, prefix=f"{what}." if what else "")
        return
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new) > 1:
        moved = [i for i, (x, y) in enumerate(zip(old, new, strict=True)) if repr(x) != repr(y)]
        what = f"{what}[{moved[0]}] ({len(moved)} of {len(old)} moved)"
        old, new = old[moved[0]], new[moved[0]]
    yield Difference(kind=kind, where=where, what=what, before=_short(old), after=_short(new))


def _short(value: object) -> str:
    text = ABSENT if value is None else value if isinstance(value, str) else repr(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 20]} ... ({len(text)} characters)"
