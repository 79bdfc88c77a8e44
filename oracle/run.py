"""Runs a manifest on real inputs: exact integers, every tensor on request.

Feeds are taken in chunks so that scratch memory stays bounded whatever the number of feeds; results do not depend on
how they are cut.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from manifest.errors import Problem, RefusedError
from manifest.model import Manifest, Op, Tensor
from oracle.inputs import checked, deliver
from oracle.ops.dequantize_linear import nearest
from oracle.registry import prepare
from oracle.requantize import Keep, finish_for
from oracle.value import INT64_EXACT, Array, Finish, Plan, Scope, Workspace, as_carrier, refuse

Keeps = Literal["outputs", "quantized", "all", "stored", "carried"]

_CHUNK_BYTES = 32 << 20
_MAX_CHUNK = 256
_INTEGERS = frozenset({"int8", "uint8", "int16", "uint16", "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One op ready to run."""

    op: Op
    plan: Plan
    finish: Finish


class Oracle:
    """A manifest with its constants, ready to run; weights are prepared once. Not for use by several threads at once.

    Args:
        manifest: what to compute.
        arrays: constants by their key in the manifest.
        blas_threads: threads of the matrix products.
        fma: whether QLinearAdd contracts to fused multiply-adds, as onnxruntime does on x86 with AVX2.
    """

    def __init__(
        self, manifest: Manifest, arrays: Mapping[str, NDArray[Any]], *, blas_threads: int = 1, fma: bool = True
    ) -> None:
        self._manifest = manifest
        self._tensors = manifest.by_name()
        self._ops = {op.name: op for op in manifest.ops}
        self._maker = {name: op for op in manifest.ops for name in op.outputs}
        self._threads = blas_threads
        self._controller: ThreadpoolController | None = None
        workspace = self._workspace = Workspace()
        self._scopes = {
            arithmetic: Scope(
                tensors=self._tensors,
                arrays=arrays,
                arithmetic=arithmetic,
                opset=manifest.model.opset,
                fma=fma,
                workspace=workspace,
            )
            for arithmetic in ("reference", "target")
        }
        self._steps: dict[tuple[str, str], _Step] = {}

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory held for reuse (bounded whatever the number of feeds)."""
        return self._workspace.size_bytes

    def run(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        arithmetic: Literal["reference", "target"] = "reference",
        keep: Keeps = "outputs",
    ) -> dict[str, NDArray[Any]]:
        """Run the whole model.

        Args:
            inputs: by graph input name, (F, *shape), in the manifest's dtype.
            arithmetic: `reference`: the file as written; `target`: what the kernels compute.
            keep: `outputs`: graph outputs; `quantized`: these and every tensor that is an integer in the ONNX file;
                `all`: every tensor that an op makes; `stored`: these, exact ones as int64 integers; `carried`: as
                `stored`, and those beyond int64 as Python integers (see `run_ops`).

        Returns:
            (F, *shape) by tensor name: integers in their storage dtype (also where ONNX has their dequantised float),
            float32 for float tensors, and for exact tensors the float32 nearest to the exact value.

        Raises:
            RefusedError: one problem per missing, unknown, mis-shaped or mis-typed input, or an op without meaning.
        """
        wanted = [n for n in self._manifest.model.inputs if n in self._tensors and self._tensors[n].array is None]
        unknown = [n for n in inputs if n not in wanted]
        feeds = checked([self._tensors[n] for n in wanted], inputs, unknown)
        kept = self._kept(self._manifest.ops, keep)
        return self._run(self._manifest.ops, feeds, arithmetic, kept, keep)

    def run_ops(
        self,
        op_names: Iterable[str],
        tensors: Mapping[str, NDArray[Any]],
        *,
        arithmetic: Literal["reference", "target"] = "reference",
        keep: Keeps = "outputs",
    ) -> dict[str, NDArray[Any]]:
        """Run some ops from given tensors.

        Args:
            op_names: any of the manifest's ops; they run in the manifest's order.
            tensors: every activation that they read from outside, (F, *shape), in storage dtype (an exact one as the
                integers that `stored` or `carried` gives); others are ignored.
            arithmetic: as in `run`.
            keep: `outputs`: tensors that leave the group; `quantized`: those that are integers in ONNX; `all`;
                `stored`: all, exact ones as the int64 integers of the accumulator, so that they can be handed on;
                `carried`: likewise, those beyond int64 as arrays of Python integers.

        Returns:
            As `run`.

        Raises:
            RefusedError: as `run`; also an unknown op, or with `stored` an exact tensor beyond int64.
        """
        ops = self._chosen(op_names)
        feeds = checked(self._read(ops), tensors, [n for n in tensors if n not in self._tensors])
        return self._run(ops, feeds, arithmetic, self._kept(ops, keep), keep)

    def exact(
        self,
        op_names: Iterable[str],
        tensors: Mapping[str, NDArray[Any]],
        output: str,
        indices: NDArray[np.int64],
    ) -> list[Fraction | None]:
        """Exact real values of single elements, in units of the output's scale, before rounding and zero point.

        Args:
            op_names: ops that make `output` from `tensors`.
            tensors: as in `run_ops`.
            output: a tensor that one of them makes.
            indices: (n, 1 + rank), the feed first.

        Returns:
            One rational per index; None where there is none (float functions, NaN and infinities).
        """
        ops = self._chosen(op_names)
        op = next((o for o in ops if output in o.outputs), None)
        if op is None:
            what = "is made by none of the given ops"
            raise RefusedError((Problem(code="ORACLE-TENSOR-UNKNOWN", where=f"tensor {output!r}", what=what),))
        feeds = checked(self._read(ops), tensors, [n for n in tensors if n not in self._tensors])
        if not len(indices):
            return []
        chosen, place = np.unique(np.asarray(indices)[:, 0], return_inverse=True)
        rows = np.column_stack([place.reshape(-1), np.asarray(indices)[:, 1:]]).astype(np.intp)
        few = {name: array[chosen] for name, array in feeds.items()}
        before = ops[: ops.index(op)]
        values = self._evaluate(before, few, "reference", None)
        return self._exact(op, values, rows)

    def largest(self, op_name: str) -> int:
        """Largest |integer| that an op's result has before it is rounded, over all inputs; 0 where it is no integer."""
        plan = self._step(self._ops[op_name], "reference").plan
        return 0 if plan.exact is None else plan.exact.bound

    def _exact(self, op: Op, values: dict[str, Array], rows: NDArray[np.intp]) -> list[Fraction | None]:
        scope = self._scopes["reference"]
        tensor = self._tensors[op.outputs[0]]
        scales = tensor.quant.scales if tensor.quant is not None else (1.0,)
        axis = tensor.quant.axis if tensor.quant is not None and len(scales) > 1 else None
        units = [Fraction(scales[int(row[axis + 1]) if axis is not None else 0]) for row in rows]
        places = tuple(np.roll(rows, -1, axis=1).T)
        source = self._tensors[op.inputs[0]]
        if op.type == "QuantizeLinear" and source.dtype == "float32":
            numbers = values[source.name][places].tolist()
            return [Fraction(v) / u if math.isfinite(v) else None for v, u in zip(numbers, units, strict=True)]
        plan = prepare(op, replace(scope, arithmetic="exact"))
        if plan.exact is None:
            return self._codes(op, plan, values, places)
        form = plan.exact
        picked = plan.run(values, Keep(form.dtype))[places].tolist()
        channels = rows[:, form.axis + 1].tolist() if form.axis is not None else [0] * len(rows)
        items = zip(picked, channels, units, strict=True)
        return [(int(v) * form.scales[c] + form.offsets[c]) / u for v, c, u in items]

    def _codes(
        self, op: Op, plan: Plan, values: dict[str, Array], places: tuple[NDArray[Any], ...]
    ) -> list[Fraction | None]:
        """Codes that the op passes on as they are: code - zero point."""
        tensor = self._tensors[op.outputs[0]]
        if tensor.quant is None or tensor.dtype not in _INTEGERS:
            return [None] * len(places[0])
        codes = plan.run(values, Keep(np.dtype(tensor.dtype)))[places].tolist()
        points = tensor.quant.zero_points
        if len(points) == 1:
            return [Fraction(c - points[0]) for c in codes]
        along = places[tensor.quant.axis or 0].tolist()
        return [Fraction(c - points[i]) for c, i in zip(codes, along, strict=True)]

    def _chosen(self, op_names: Iterable[str]) -> tuple[Op, ...]:
        names = dict.fromkeys(op_names)
        missing = [n for n in names if n not in self._ops]
        if missing:
            raise RefusedError(
                tuple(
                    Problem(code="ORACLE-OP-UNKNOWN", where=f"op {n!r}", what="the manifest has no such op")
                    for n in missing
                )
            )
        return tuple(op for op in self._manifest.ops if op.name in names)

    def _read(self, ops: Sequence[Op]) -> list[Tensor]:
        """Activations that the ops read from outside."""
        made = {name for op in ops for name in op.outputs}
        read = (n for op in ops for n in op.inputs if n and n not in made and self._tensors[n].array is None)
        return [self._tensors[n] for n in dict.fromkeys(read)]

    def _kept(self, ops: Sequence[Op], keep: Keeps) -> list[str]:
        made = [name for op in ops for name in op.outputs if name]
        if keep in ("all", "stored", "carried"):
            return made
        whole = len(ops) == len(self._manifest.ops)
        leaving = set(self._manifest.model.outputs)
        if not whole:
            inside = {op.name for op in ops}
            leaving |= {n for op in self._manifest.ops if op.name not in inside for n in op.inputs}
            leaving |= set(made) - {n for op in ops for n in op.inputs}
        if keep == "outputs":
            passed = [n for n in self._manifest.model.outputs if n in self._tensors and n not in made] if whole else []
            return [n for n in made if n in leaving] + passed
        outputs = set(self._manifest.model.outputs) if whole else set()
        return [n for n in made if n in outputs or self._is_quantized(self._tensors[n])]

    @staticmethod
    def _is_quantized(tensor: Tensor) -> bool:
        return tensor.dtype in _INTEGERS and tensor.onnx_dtype in _INTEGERS

    def _step(self, op: Op, arithmetic: Literal["reference", "target"]) -> _Step:
        key = (op.name, arithmetic)
        if key not in self._steps:
            scope = self._scopes[arithmetic]
            for name in op.inputs:
                if name and self._tensors[name].dtype == "exact" and name not in scope.exact:
                    if name not in self._maker:
                        raise refuse(op, f"input {name!r} is exact and no op makes it")
                    self._step(self._maker[name], arithmetic)
            plan = prepare(op, scope)
            if self._tensors[op.outputs[0]].dtype == "exact":
                if plan.exact is None:
                    raise refuse(op, "has no exact value", expected="a quantised output")
                scope.exact[op.outputs[0]] = plan.exact
            self._steps[key] = _Step(op=op, plan=plan, finish=finish_for(op, scope, plan))
        return self._steps[key]

    def _run(
        self,
        ops: Sequence[Op],
        feeds: Mapping[str, Array],
        arithmetic: Literal["reference", "target"],
        kept: Sequence[str],
        keep: Keeps,
    ) -> dict[str, NDArray[Any]]:
        count = len(next(iter(feeds.values()))) if feeds else 1
        size = self._chunk(ops)
        forms = {n: self._result_dtype(n, arithmetic, keep) for n in kept}
        results = {n: np.empty((count, *self._tensors[n].shape), dtype) for n, dtype in forms.items()}
        for start in range(0, count, size):
            piece = {name: array[start : start + size] for name, array in feeds.items()}
            values = self._evaluate(ops, piece, arithmetic, kept)
            for name, out in results.items():
                deliver(self._shown(name, values[name], arithmetic, out.dtype), out[start : start + size])
        return results

    def _chunk(self, ops: Sequence[Op]) -> int:
        """Feeds at a time: what one op holds beside its output stays within bounds."""
        largest = 1
        for op in ops:
            shapes = [self._tensors[n].shape for n in (*op.inputs, *op.outputs) if n and self._tensors[n].array is None]
            largest = max(largest, sum(8 * math.prod(s) for s in shapes))
        return max(1, min(_MAX_CHUNK, _CHUNK_BYTES // largest))

    def _result_dtype(self, name: str, arithmetic: Literal["reference", "target"], keep: Keeps) -> np.dtype[Any]:
        """The dtype that a tensor comes back in; RefusedError where it cannot be kept like this."""
        dtype = self._tensors[name].dtype
        if dtype != "exact":
            return np.dtype(dtype)
        if keep not in ("stored", "carried"):
            return np.dtype(np.float32)
        self._step(self._maker[name], arithmetic)
        if self._scopes[arithmetic].exact[name].bound < INT64_EXACT:
            return np.dtype(np.int64)
        if keep == "carried":
            return np.dtype(object)
        what = "is an exact value beyond int64 and cannot be handed on"
        raise RefusedError((Problem(code="ORACLE-INPUT-EXACT", where=f"tensor {name!r}", what=what),))

    def _shown(
        self, name: str, value: Array, arithmetic: Literal["reference", "target"], dtype: np.dtype[Any]
    ) -> Array:
        if self._tensors[name].dtype != "exact":
            return value
        return nearest(value, self._scopes[arithmetic].exact[name]) if dtype.kind == "f" else as_carrier(value, dtype)

    def _fed(self, name: str, array: NDArray[Any], arithmetic: Literal["reference", "target"]) -> Array:
        """A given array as the ops take it: the feed axis last, exact integers in the dtype that carries them."""
        value = np.ascontiguousarray(np.moveaxis(array, 0, -1))
        if self._tensors[name].dtype != "exact":
            return value
        self._step(self._maker[name], arithmetic)
        return as_carrier(value, self._scopes[arithmetic].exact[name].dtype)

    def _shaped(self, op: Op, value: Array) -> Array:
        """A result, which has the shape that the manifest states."""
        stated = self._tensors[op.outputs[0]].shape
        if value.shape[:-1] != stated:
            where, what = f"op {op.name!r} ({op.type})", f"gives {op.outputs[0]!r} another shape than the manifest"
            problem = Problem(
                code="ORACLE-SHAPE", where=where, what=what, expected=str(stated), got=str(value.shape[:-1])
            )
            raise RefusedError((problem,))
        return value

    def _evaluate(
        self,
        ops: Sequence[Op],
        feeds: Mapping[str, Array],
        arithmetic: Literal["reference", "target"],
        kept: Sequence[str] | None,
    ) -> dict[str, Array]:
        """Values with the feed axis last; those neither kept nor read any more are dropped (None: keep all)."""
        values = {name: self._fed(name, array, arithmetic) for name, array in feeds.items()}
        last = {name: i for i, op in enumerate(ops) for name in op.inputs}
        staying = set(kept or ())
        if self._controller is None:
            self._controller = ThreadpoolController()
        with self._controller.limit(limits=self._threads, user_api="blas"):
            for i, op in enumerate(ops):
                step = self._step(op, arithmetic)
                values[op.outputs[0]] = self._shaped(op, step.plan.run(values, step.finish))
                if kept is not None:
                    for name in op.inputs:
                        if last.get(name) == i and name not in staying:
                            values.pop(name, None)
        return values
