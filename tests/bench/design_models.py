"""Models of the design search: dense networks as QDQ with scales that are powers of two, int8, weights from a seed."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from manifest.onnx_import import Imported
from tests.qdq_models import Sketch

ACTIVATION: Final = 2.0**-4
WEIGHT: Final = 2.0**-9
DEVICE: Final = "vek280"


class DenseNet(Sketch):
    """Dense layers and what joins them; everything between is int8."""

    def __init__(self, *shape: int, seed: int = 7) -> None:
        super().__init__(opset=17)
        self.rng = np.random.default_rng(seed)
        self.width = shape[-1]
        self.x = self.rounded(self.input("x", shape))

    def rounded(self, x: str) -> str:
        """A quantised tensor."""
        return self.qdq(x, ACTIVATION)

    def dense(self, x: str, inner: int, outer: int, name: str, *, relu: bool = True) -> str:
        """x (..., inner) times a constant, and what is negative becomes 0."""
        weight = self.weight(self.rng.integers(-60, 61, (inner, outer)), WEIGHT, name=f"{name}_w")
        product = self.node("MatMul", [x, weight], name=name)
        return self.rounded(self.node("Relu", [product]) if relu else product)

    def add(self, a: str, b: str, name: str) -> str:
        """The sum of two tensors."""
        return self.rounded(self.node("Add", [a, b], name=name))

    def turned(self, x: str) -> str:
        """The last two axes swapped."""
        return self.node("Transpose", [x], perm=[0, 2, 1])

    def done(self, y: str) -> Imported:
        """The imported model."""
        self.output(y)
        return self.load(device=DEVICE)


def mlp() -> Imported:
    """64-64-64-16 with 16 rows."""
    net = DenseNet(16, 64)
    y = net.dense(net.dense(net.x, 64, 64, "fc1"), 64, 64, "fc2")
    return net.done(net.dense(y, 64, 16, "fc3", relu=False))


def branching() -> Imported:
    """A trunk and two branches of two and three layers, 8 rows of 64."""
    net = DenseNet(8, 64)
    trunk = net.dense(net.x, 64, 64, "trunk")
    first = net.dense(net.dense(trunk, 64, 64, "b1_fc1"), 64, 32, "b1_fc2", relu=False)
    second = net.dense(net.dense(trunk, 64, 64, "b2_fc1"), 64, 64, "b2_fc2")
    net.output(first)
    return net.done(net.dense(second, 64, 16, "b2_fc3", relu=False))


def residual() -> Imported:
    """Dense layers with a skip around two of them, 16 rows of 64."""
    net = DenseNet(16, 64)
    fork = net.dense(net.x, 64, 64, "fc1")
    path = net.dense(net.dense(fork, 64, 64, "fc2"), 64, 64, "fc3", relu=False)
    return net.done(net.dense(net.add(path, fork, "add"), 64, 16, "fc4", relu=False))


def mixer(tokens: int = 16, features: int = 32) -> Imported:
    """Mixing of tokens and of channels, each with its skip."""
    net = DenseNet(1, tokens, features)
    embedded = net.dense(net.x, features, features, "embed", relu=False)
    across = net.dense(net.turned(embedded), tokens, tokens, "tok1")
    across = net.turned(net.dense(across, tokens, tokens, "tok2", relu=False))
    mixed = net.add(across, embedded, "add1")
    along = net.dense(net.dense(mixed, features, 64, "ch1"), 64, features, "ch2", relu=False)
    return net.done(net.add(along, mixed, "add2"))


def stack(layers: int, width: int, rows: int) -> Imported:
    """So many dense layers of the same width."""
    net = DenseNet(rows, width)
    y = net.x
    for index in range(layers):
        y = net.dense(y, width, width, f"fc{index}", relu=index + 1 < layers)
    return net.done(y)


def dense_layer(rows: int, inner: int, outer: int) -> Imported:
    """One dense layer."""
    net = DenseNet(rows, inner)
    return net.done(net.dense(net.x, inner, outer, "fc"))


MODELS: Final[Mapping[str, tuple[Callable[[], Imported], str]]] = {
    "mlp 64-64-64-16": (mlp, "3.4"),
    "branching": (branching, "24.5"),
    "residual": (residual, "17.1"),
    "mixer, both skips": (mixer, "refused"),
    "14 dense of 256": (partial(stack, 14, 256, 64), "21.6"),
    "8 dense of 512": (partial(stack, 8, 512, 128), "168.6"),
}
"""Models with the seconds that the peer took, as quoted."""


def ops_of(imported: Imported) -> Mapping[str, Any]:
    """Ops on the array by name."""
    return {op.name: op for op in imported.manifest.ops if op.where == "npu"}
