"""Float ops that run on the host between dispatches (`--host-ops`): shapes and lowering.

They are no part of the bit-exact promise: they are compared with a tolerance, and a note says so.
"""

from collections.abc import Mapping
from typing import Any, Final

import onnx
import onnx.defs

from manifest.model import AttributeValue, DType
from manifest.onnx_import.builder import Builder, Value
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.quant import dequantize_array, dtype_of
from manifest.onnx_import.rules import Facts, OpRule
from manifest.onnx_import.shapes import broadcast, normalize_axis
from manifest.opset import OPSET

_BINARY: Final = (":Sub", ":Div", ":Pow", ":Add", ":Mul")
_REDUCING: Final = (":ArgMax", ":ReduceMean", ":ReduceSum", ":ReduceMax")


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """Shape of the output: broadcast, reduced or as the input."""
    if node.key in _BINARY:
        return (broadcast(node, [facts.shape(node, 0), facts.shape(node, 1)]),)
    x = facts.shape(node, 0)
    if node.key not in _REDUCING:
        return (x,) * len(node.outputs)
    axes = (node.integer("axis", 0),) if node.key == ":ArgMax" else facts.integers(node, 1, "axes")
    if not axes:
        if node.integer("noop_with_empty_axes", 0):
            return (x,)
        axes = tuple(range(len(x)))
    gone = {normalize_axis(node, a, len(x)) for a in axes}
    if node.integer("keepdims", 1):
        return (tuple(1 if i in gone else s for i, s in enumerate(x)),)
    return (tuple(s for i, s in enumerate(x) if i not in gone),)


def as_float(b: Builder, value: Value, onnx_name: str, node: Node) -> str:
    """The float32 tensor of a value: itself, or the output of a DequantizeLinear on the host."""
    if value.kind == "float":
        return value.tensor
    if value.kind == "codes":
        raise refusal(node, "ONNX-INTEGER-INPUT", f"input {onnx_name!r} is integer", expected="a float tensor")
    name = onnx_name
    if name in b.tensors:
        if b.tensors[name].dtype == "float32":
            return name
        name = b.names.fresh(onnx_name, "float")
    return dequantize(b, value.tensor, name, ())


def dequantize(b: Builder, source: str, name: str, nodes: tuple[str, ...], *, op_name: str = "") -> str:
    """Append a DequantizeLinear on the host from an integer or exact tensor to a float32 one."""
    b.add_tensor(name, b.tensors[source].shape, "float32", onnx_dtype="float32")
    b.host_op(op_name or b.names.fresh(name, "DequantizeLinear"), "DequantizeLinear", (source,), (name,), nodes=nodes)
    return name


def _operand(b: Builder, node: Node, position: int) -> str:
    """An input of a host op as a float32 or int64 tensor."""
    name = node.input(position)
    if not name:
        return ""
    constant = b.graph.constants.get(name)
    if constant is None:
        return as_float(b, b.value(node, position), name, node)
    array = constant.array if constant.quant is None else dequantize_array(constant.array, constant.quant)
    if dtype_of(array) not in ("float32", "int64"):
        raise refusal(node, "ONNX-CONSTANT-TYPE", f"constant {name!r}", expected="float32", got=array.dtype.name)
    plain = type(constant)(array=array, origin=name if constant.quant is not None else constant.origin)
    return b.add_constant(plain, "constant", alias=name).name


def _plain(value: Any) -> AttributeValue | None:
    """An attribute as the manifest stores it, None for what it cannot hold."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, int | float) for v in value):
        return tuple(value)
    return None


def attributes(node: Node, opset: int) -> dict[str, AttributeValue]:
    """Attributes of the node with the defaults of its schema filled in."""
    found: dict[str, AttributeValue] = {}
    domain = "" if node.key.startswith(":") else node.domain
    if onnx.defs.has(node.type, domain):
        schema = onnx.defs.get_schema(node.type, opset, domain)
        for name, attribute in schema.attributes.items():
            default = (
                _plain(onnx.helper.get_attribute_value(attribute.default_value))
                if attribute.default_value.name
                else None
            )
            if default is not None:
                found[name] = default
    for name, value in node.attributes.items():
        plain = _plain(value)
        if plain is not None:
            found[name] = plain
    return found


def lower(node: Node, b: Builder) -> None:
    """Append a host op over float32 tensors."""
    inputs = tuple(_operand(b, node, i) for i in range(len(node.inputs)))
    dtype: DType = "int64" if node.key == ":ArgMax" else "float32"
    outputs = tuple(o for o in node.outputs if o)
    for name in outputs:
        b.add_tensor(name, b.shape(name), dtype, onnx_dtype=dtype)
        b.set(name, "float", name)
    b.host_op(node.name, node.type, inputs, outputs, nodes=(node.name,), attributes=attributes(node, b.graph.opset))
    note_host_op(node, b)


def note_host_op(node: Node, b: Builder) -> None:
    """Say that this op is not part of the bit-exact promise."""
    b.note(
        "HOST-OP",
        node.name,
        f"{node.type} runs on the host in float32: it is compared with a tolerance, not bit for bit",
    )


HOST_RULES: Final[Mapping[str, OpRule]] = {
    key: OpRule(shape=shape, lower=lower) for key, row in OPSET.items() if row.host
}
