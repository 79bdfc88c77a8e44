"""Collects the manifest's tensors, ops and notes while the nodes are lowered one after the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from manifest.model import AttributeValue, DType, Note, Op, Quantization, Role, Tensor
from manifest.onnx_import.fuse import Plan
from manifest.onnx_import.graph import Array, Constant, Graph, Node, Shape, refusal
from manifest.onnx_import.names import Names
from manifest.onnx_import.quant import dtype_of, qrange

Kind = Literal["codes", "real", "exact", "float"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What an ONNX tensor is in the manifest.

    kind: `codes`: the integers themselves; `real`: the value that the integers of `tensor` stand for;
    `exact`: an unrounded value; `float`: float32 (or int64) computed on the host.
    """

    kind: Kind
    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Exact value of one unit of an exact tensor's integers: one, or one per index of `axis`.

    `integral`: every value is a whole number of units (a rescaled bias is not). `reach`: no |value| is larger, None
    where that is not known.
    """

    values: tuple[Fraction, ...]
    axis: int | None = None
    integral: bool = True
    reach: Fraction | None = None


class Builder:
    """Tensors, arrays, ops and notes under construction, and what each ONNX tensor became."""

    def __init__(self, graph: Graph, plan: Plan, *, host_ops: bool) -> None:
        self.graph = graph
        self.plan = plan
        self.host_ops = host_ops
        self.names = Names(graph.names())
        self.values: dict[str, Value] = {}
        self.tensors: dict[str, Tensor] = {}
        self.arrays: dict[str, Array] = {}
        self.ops: list[Op] = []
        self.notes: list[Note] = []
        self.ranges: dict[str, tuple[int, int]] = {}
        self.units: dict[str, Units] = {}
        self.dequantised: dict[str, str] = {}
        self._outputs = frozenset(graph.output_names())

    def note(self, code: str, where: str, text: str) -> None:
        """Add a remark."""
        self.notes.append(Note(code=code, where=where, text=text))

    def shape(self, name: str) -> Shape:
        """Shape of an ONNX tensor."""
        return self.graph.shapes[name]

    def is_output(self, name: str) -> bool:
        """Whether an ONNX tensor is a graph output."""
        return name in self._outputs

    def store(self, array: Array) -> str:
        """Keep an array; returns its key."""
        key = f"t{len(self.arrays) + 1:06d}"
        self.arrays[key] = np.array(array, order="C")
        return key

    def add_tensor(
        self,
        name: str,
        shape: Shape,
        dtype: DType,
        *,
        onnx_dtype: str,
        role: Role = "activation",
        quant: Quantization | None = None,
        code_range: tuple[int, int] | None = None,
    ) -> str:
        """Add an activation; a graph output of that name gets the role `output`."""
        fixed: Role = "output" if role != "input" and name in self._outputs else role
        self.tensors[name] = Tensor(name=name, shape=shape, dtype=dtype, onnx_dtype=onnx_dtype, role=fixed, quant=quant)
        if quant is not None:
            self.ranges[name] = code_range or qrange(dtype)
        return name

    def add_op(self, op: Op) -> None:
        """Append an op."""
        self.ops.append(op)

    def host_op(
        self,
        name: str,
        op_type: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        *,
        nodes: tuple[str, ...],
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> None:
        """Append an op that runs on the host."""
        self.add_op(
            Op(
                name=name,
                type=op_type,
                inputs=inputs,
                outputs=outputs,
                attributes=dict(attributes or {}),
                nodes=nodes,
                where="host",
            )
        )

    def value(self, node: Node, position: int) -> Value:
        """What an input of a node is; refuses constants and absent inputs."""
        name = node.input(position)
        if name not in self.values:
            what = f"input {position} ({name!r}) is a constant" if name else f"input {position} is absent"
            raise refusal(node, "ONNX-INPUT", f"{what}, an activation was expected")
        return self.values[name]

    def set(self, name: str, kind: Kind, tensor: str) -> None:
        """Record what an ONNX tensor became."""
        self.values[name] = Value(kind=kind, tensor=tensor)
        if kind == "real":
            self.dequantised[name] = tensor

    def own_name(self, onnx_name: str, suffix: str) -> str:
        """The ONNX name for a float tensor's integer or exact form, a fresh one where the float itself is an output."""
        return self.names.fresh(onnx_name, suffix) if onnx_name in self._outputs else onnx_name

    def add_constant(
        self,
        constant: Constant,
        role: Role,
        *,
        alias: str,
        array: Array | None = None,
        quant: Quantization | None = None,
    ) -> Tensor:
        """Add a constant, or find it again.

        Args:
            constant: codes or values and where they come from.
            role: weight, bias or constant.
            alias: name to take where the constant's own is used with another quantization (the Dequantize output).
            array: replaces the array (a bias brought to one value per channel).
            quant: replaces the quantization (the bias of a QOperator node has none in the file).
        """
        values = constant.array if array is None else array
        scheme = constant.quant if quant is None else quant
        dtype = dtype_of(values)
        if dtype is None:
            msg = f"constant {constant.origin!r} has type {values.dtype.name}"
            raise TypeError(msg)
        for name in (constant.origin, alias):
            found = self.tensors.get(name)
            if found is None and name not in self.values:
                return self._new_constant(name, values, scheme, role, dtype)
            if found is not None and self._same(found, values, scheme):
                return found
        return self._new_constant(self.names.fresh(constant.origin, role), values, scheme, role, dtype)

    def _new_constant(self, name: str, values: Array, quant: Quantization | None, role: Role, dtype: DType) -> Tensor:
        """Add a constant tensor under a free name."""
        tensor = Tensor(
            name=name,
            shape=tuple(values.shape),
            dtype=dtype,
            onnx_dtype=dtype,
            role=role,
            quant=quant,
            array=self.store(values),
        )
        self.tensors[name] = tensor
        if quant is not None:
            self.ranges[name] = (int(values.min(initial=0)), int(values.max(initial=0)))
        return tensor

    def _same(self, found: Tensor, values: Array, quant: Quantization | None) -> bool:
        """Whether a constant that is there already holds these values with this quantization."""
        if found.array is None or found.quant != quant:
            return False
        stored = self.arrays[found.array]
        return stored.dtype == values.dtype and np.array_equal(stored, values)
