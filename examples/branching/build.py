"""Builds the branching example: `branching.onnx` and `branching.npz`, the same bytes every time.

16 tokens of 64 features, int16 at 2**-9. A shared dense layer (trunk) feeds two branches: branch 1 has a transpose
between its two dense layers, branch 2 is a chain of three. Dense layers have 64 units, int8 weights at 2**-7 and an
int8 bias at 2**-5; hidden activations are uint8 at 2**-8 behind a Relu, both outputs int8 at 2**-5.

Run from the project: `python examples/branching/build.py [FOLDER]`.
"""

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.io import write_npz

SEED: Final = 20
TOKENS: Final = 16
FEATURES: Final = 64
FEEDS: Final = 64
OPSET: Final = 21
INPUT, WEIGHT, BIAS, HIDDEN, OUTPUT = -9, -7, -5, -8, -5
"""Exponents of the scales."""


class Builder:
    """Nodes and constants of the graph in order."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """A node named after its output."""
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A constant, stored once."""
        self.constants.setdefault(name, value)
        return name

    def quantization(self, exponent: int, dtype: str) -> list[str]:
        """Names of scale and zero point."""
        scale = self.constant(f"scale_m{-exponent}", np.ldexp(np.float32(1), exponent).astype(np.float32))
        return [scale, self.constant(f"zero_{dtype}", np.zeros((), dtype))]

    def pair(self, source: str, name: str, exponent: int, dtype: str) -> str:
        """QuantizeLinear `<name>_q` and DequantizeLinear `name`."""
        parameters = self.quantization(exponent, dtype)
        codes = self.add("QuantizeLinear", [source, *parameters], f"{name}_q")
        return self.add("DequantizeLinear", [codes, *parameters], name)

    def codes(self, spread: int, shape: tuple[int, ...]) -> NDArray[np.int8]:
        """Bell-shaped int8 codes with a standard deviation of about `spread`."""
        parts = self.rng.integers(-spread, spread + 1, (3, *shape))
        found: NDArray[np.int8] = np.clip(parts.sum(axis=0), -127, 127).astype(np.int8)
        return found

    def dense(self, source: str, name: str, width: int, spread: int) -> str:
        """A dense layer of FEATURES units over the last axis, of size `width`."""
        weight = self.constant(f"{name}_w", self.codes(spread, (width, FEATURES)))
        bias = self.constant(f"{name}_b", self.codes(1, (FEATURES,)))
        weight = self.add("DequantizeLinear", [weight, *self.quantization(WEIGHT, "int8")], f"{name}_weight")
        bias = self.add("DequantizeLinear", [bias, *self.quantization(BIAS, "int8")], f"{name}_bias")
        product = self.add("MatMul", [source, weight], name)
        return self.add("Add", [product, bias], f"{name}_sum")

    def hidden(self, source: str, name: str, spread: int) -> str:
        """A dense layer with Relu and a uint8 result."""
        relu = self.add("Relu", [self.dense(source, name, FEATURES, spread)], f"{name}_relu")
        return self.pair(relu, f"{name}_out", HIDDEN, "uint8")


def build_model() -> bytes:
    """The serialised model."""
    b = Builder(np.random.default_rng(SEED))
    trunk = b.hidden(b.pair("in", "in_real", INPUT, "int16"), "trunk_fc", spread=3)
    turned = b.add("Transpose", [b.hidden(trunk, "b1_fc1", spread=20)], "b1_permute", perm=[0, 2, 1])
    b.pair(b.dense(turned, "b1_fc2", TOKENS, spread=70), "branch1", OUTPUT, "int8")
    chain = b.hidden(b.hidden(trunk, "b2_fc1", spread=20), "b2_fc2", spread=20)
    b.pair(b.dense(chain, "b2_fc3", FEATURES, spread=60), "branch2", OUTPUT, "int8")
    graph = helper.make_graph(
        b.nodes,
        "branching",
        [helper.make_tensor_value_info("in", onnx.TensorProto.FLOAT, (1, TOKENS, FEATURES))],
        [
            helper.make_tensor_value_info("branch1", onnx.TensorProto.FLOAT, (1, FEATURES, FEATURES)),
            helper.make_tensor_value_info("branch2", onnx.TensorProto.FLOAT, (1, TOKENS, FEATURES)),
        ],
        [numpy_helper.from_array(value, name) for name, value in b.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    model.producer_name = "branching example"
    onnx.checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def build_feeds() -> NDArray[np.float32]:
    """Feeds of the input `in`, (FEEDS, 1, TOKENS, FEATURES): bell-shaped, not on the grid of the int16 codes."""
    rng = np.random.default_rng(SEED + 1)
    parts = rng.integers(-(1 << 12), (1 << 12) + 1, (3, FEEDS, 1, TOKENS, FEATURES))
    feeds: NDArray[np.float32] = (parts.sum(axis=0) / np.float64(1 << 12)).astype(np.float32)
    return feeds


def main(folder: Path) -> None:
    """Write both files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "branching.onnx").write_bytes(build_model())
    write_npz(folder / "branching.npz", {"in": build_feeds()})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
