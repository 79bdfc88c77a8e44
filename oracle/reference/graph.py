"""A graph in the two forms that are compared: ONNX bytes and manifest, and the list of tensors to compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

from manifest.model import Manifest, Tensor
from manifest.onnx_import.instrument import expose, quantized_outputs, tensor_names
from oracle.reference.session import Session, Settings
from oracle.run import Oracle

Array = npt.NDArray[Any]

_ELEMENT_TYPE: Final = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7}
"""Numbers of `onnx.TensorProto.DataType`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which tensors of a graph are compared.

    Attributes:
        codes: integer tensors that onnxruntime shows as integers (outputs of QuantizeLinear and QOperator nodes, and of
            Clip, MaxPool and layout ops on the integer side).
        aliases: integer tensors that the file holds as float32 (a MaxPool behind a DequantizeLinear): compared after
            dequantisation, bit for bit.
        floats: float32 graph outputs.
        absent: quantised outputs of the file without a counterpart in the manifest.
    """

    codes: tuple[str, ...]
    aliases: tuple[str, ...]
    floats: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def visible(self) -> tuple[str, ...]:
        """All tensors that onnxruntime has to return."""
        return (*self.codes, *self.aliases, *self.floats)

    @property
    def expected(self) -> int:
        """How many tensors a complete comparison has."""
        return len(self.visible) + len(self.absent)


def targets(
    manifest: Manifest, quantized: tuple[str, ...], present: frozenset[str], constants: tuple[str, ...] = ()
) -> Target:
    """The tensors to compare.

    Args:
        manifest: of the graph.
        quantized: names that the graph's QuantizeLinear and QOperator nodes write.
        present: every tensor of the graph. Codes behind a float graph output have a name of their own that it lacks.
        constants: those among further QuantizeLinear outputs that depend on no graph input.
    """
    by_name = manifest.by_name()
    made = {name for op in manifest.ops for name in op.outputs}
    absent = tuple(n for n in quantized if n not in by_name)
    quantized += tuple(n for n in constants if n in by_name and by_name[n].array is not None and n not in quantized)
    shown = set(quantized)
    aliases = tuple(t.name for t in manifest.tensors if t.name in made & present - shown and is_float_alias(t))
    shown |= {t.name for t in manifest.tensors if t.name in made & present and _is_integer_side(t)}
    moved = tuple(t.name for t in manifest.tensors if t.name in shown and t.name not in quantized)
    outputs = tuple(n for n in manifest.model.outputs if n in by_name and n not in shown and n not in aliases)
    return Target(
        codes=tuple(n for n in quantized if n in by_name)
        + moved
        + tuple(n for n in outputs if by_name[n].dtype != "float32"),
        aliases=aliases,
        floats=tuple(n for n in outputs if by_name[n].dtype == "float32"),
        absent=absent,
    )


def _is_integer_side(tensor: Tensor) -> bool:
    """Whether the file holds an activation as the integers that the manifest has."""
    return tensor.quant is not None and tensor.array is None and tensor.onnx_dtype == tensor.dtype


def is_float_alias(tensor: Tensor) -> bool:
    """Whether the file holds an integer activation of the manifest as float32."""
    return tensor.onnx_dtype == "float32" and tensor.quant is not None and tensor.array is None


def type_at_cut(tensor: Tensor) -> tuple[int, tuple[int, ...]]:
    """ONNX element type and shape of an activation in the file."""
    return _ELEMENT_TYPE["float32" if is_float_alias(tensor) else tensor.dtype], tensor.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph, its manifest, its constants, an oracle of it and the tensors to compare."""

    model_bytes: bytes
    manifest: Manifest
    arrays: Mapping[str, Array]
    oracle: Oracle
    target: Target

    def session(self, settings: Settings) -> Session:
        """The graph in onnxruntime with the compared tensors as outputs.

        Raises:
            OnnxruntimeError: onnxruntime refuses the graph.
        """
        return Session(expose(self.model_bytes, self.target.visible), settings)


def graph_of(model_bytes: bytes, manifest: Manifest, arrays: Mapping[str, Array], *, fma: bool) -> Graph:
    """Put a graph together.

    Args:
        model_bytes: self-contained ONNX model.
        manifest: imported from it.
        arrays: constants of the manifest.
        fma: whether onnxruntime's QLinearAdd runs with fused multiply-add on this CPU.
    """
    return Graph(
        model_bytes=model_bytes,
        manifest=manifest,
        arrays=arrays,
        oracle=Oracle(manifest, arrays, blas_threads=1, fma=fma),
        target=targets(
            manifest,
            quantized_outputs(model_bytes),
            tensor_names(model_bytes),
            quantized_outputs(model_bytes, constants=True),
        ),
    )
