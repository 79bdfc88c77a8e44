"""What an op file provides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Constant, Node, Shape, refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known in front of a node: shapes of tensors that are computed, constants, opset."""

    shapes: Mapping[str, Shape]
    constants: Mapping[str, Constant]
    opset: int

    def shape(self, node: Node, position: int) -> Shape:
        """Shape of an input, of a constant too."""
        name = node.input(position)
        if name in self.shapes:
            return self.shapes[name]
        if name in self.constants:
            return tuple(self.constants[name].array.shape)
        raise refusal(node, "ONNX-SHAPE", f"shape of input {name!r} is not known")

    def integers(self, node: Node, position: int, attribute: str) -> tuple[int, ...] | None:
        """Integers from an attribute (old opsets) or a constant input; None where neither is there."""
        given = node.integers(attribute)
        name = node.input(position)
        if given is not None or not name:
            return given
        if name not in self.constants:
            raise refusal(
                node, "ONNX-DYNAMIC-SHAPE", f"{attribute} {name!r} is computed at run time", expected="a constant"
            )
        return tuple(int(v) for v in self.constants[name].array.ravel())


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRule:
    """How one kind of node is imported.

    Attributes:
        shape: shapes of the outputs.
        lower: emits ops; raises RefusedError for what is beyond the tool.
    """

    shape: Callable[[Node, Facts], tuple[Shape, ...]]
    lower: Callable[[Node, Builder], None]
