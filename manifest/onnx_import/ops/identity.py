"""Identity and Dropout: another name for the same tensor."""

from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.rules import Facts


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The shape of the input, for the mask of a Dropout too."""
    return (facts.shape(node, 0),) * len(node.outputs)


def lower(node: Node, b: Builder) -> None:
    """An alias."""
    value = b.value(node, 0)
    b.set(node.outputs[0], value.kind, value.tensor)


def lower_dropout(node: Node, b: Builder) -> None:
    """Dropout at inference: an alias; training mode and a used mask are refused."""
    mask = node.outputs[1] if len(node.outputs) > 1 else ""
    training = b.graph.constants.get(node.input(2)) if node.input(2) else None
    on = node.input(2) and (training is None or bool(training.array.any()))
    if on or (mask and (mask in b.graph.consumers() or b.is_output(mask))):
        raise refusal(node, "ONNX-DROPOUT", "training mode or a used mask is not supported")
    lower(node, b)
