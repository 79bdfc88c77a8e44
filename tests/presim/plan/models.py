"""Small quantized models for plans, each with what makes a plan interesting."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from manifest.onnx_import import Imported, import_model, inspect_model
from tests.qdq_models import Sketch

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT.parent / "shared" / "corpus" / "models"
FIVE = (
    "digits_mlp.quark_xint8",
    "digits_cnn.quark_xint8",
    "cntk_mnist.qdq_u8s8_pc",
    "mnist_resnet.quark_xint8",
    "examples/branching/branching",
)
"""The models that every device has to carry."""

SIXTEENTH = 2.0**-4


class Net(Sketch):
    """A sketch whose methods add a quantised op; everything between is int8."""

    def __init__(self, shape: Sequence[int], seed: int = 0) -> None:
        super().__init__(opset=13)
        self.rng = np.random.default_rng(seed)
        self.x = self.qdq(self.input("x", shape), SIXTEENTH)

    def random(self, *shape: int) -> Any:
        """Weights that use their range."""
        return self.rng.integers(-60, 61, shape)

    def rounded(self, op_type: str, inputs: Sequence[str], scale: float = SIXTEENTH, **attributes: Any) -> str:
        """A node between quantised tensors."""
        return self.qdq(self.node(op_type, inputs, **attributes), scale)

    def conv(self, x: str, channels: tuple[int, int], kernel: int = 3, **attributes: Any) -> str:
        """A convolution that keeps the image unless `attributes` say otherwise."""
        group = attributes.get("group", 1)
        weight = self.weight(self.random(channels[1], channels[0] // group, kernel, kernel), 2.0**-9)
        attributes.setdefault("pads", [kernel // 2] * 4)
        return self.rounded("Conv", [x, weight], **attributes)

    def dense(self, x: str, inner: int, outer: int) -> str:
        """A MatMul with a constant."""
        return self.rounded("MatMul", [x, self.weight(self.random(inner, outer), 2.0**-9)])

    def done(self, *outputs: str) -> Imported:
        """The imported model."""
        for name in outputs:
            self.output(name)
        return self.load()


def residual(convolutions: int = 2, channels: int = 8, height: int = 8, *, on_skip: bool = False) -> Imported:
    """x -> Relu -> convolutions -> Add <- (Relu on the skip) <- the first Relu."""
    net = Net((1, channels, height, 6))
    fork = net.rounded("Relu", [net.x])
    path = fork
    for _ in range(convolutions):
        path = net.conv(path, (channels, channels))
    skip = net.rounded("Relu", [fork], 2.0**-3) if on_skip else fork
    return net.done(net.rounded("Add", [path, skip]))


def mixer(tokens: int, features: int) -> Imported:
    """Dense over the tokens between two transposes, with a skip around all of it."""
    net = Net((1, tokens, features))
    fork = net.rounded("Relu", [net.x])
    across = net.dense(net.node("Transpose", [fork], perm=[0, 2, 1]), tokens, tokens)
    back = net.node("Transpose", [across], perm=[0, 2, 1])
    return net.done(net.rounded("Add", [back, fork]))


@cache
def real(name: str, device: str = "npu2") -> Imported:
    """A model of the corpus, or of the examples; open dimensions are 1."""
    path = ROOT / f"{name}.onnx" if "/" in name else CORPUS / f"{name}.onnx"
    shapes = {
        n: tuple(d if isinstance(d, int) and d > 0 else 1 for d in dims) for n, _, dims in inspect_model(path).inputs
    }
    return import_model(path, shapes=shapes, device=device, host_ops=True)
