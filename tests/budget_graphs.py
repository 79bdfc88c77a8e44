"""Small manifests built by hand for the tests of the budget."""

from collections.abc import Sequence

from manifest.device import load_device
from manifest.layout import default_layouts
from manifest.model import (
    Accumulator,
    AttributeValue,
    DType,
    Manifest,
    ModelInfo,
    Op,
    Quantization,
    Requantization,
    Role,
    Scheme,
    Target,
    Tensor,
    Where,
)

Q = Quantization(scales=(0.5,), zero_points=(0,))


class Build:
    """Adds ops and tensors; `manifest` gives the result."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.inputs: list[str] = []

    def tensor(self, name: str, shape: Sequence[int], dtype: DType = "int8", role: Role = "activation") -> str:
        key = f"t{len(self.tensors) + 1:06d}" if role in ("weight", "bias", "constant") else None
        quant = Q if dtype not in ("float32", "exact") else None
        self.tensors[name] = Tensor(
            name=name, shape=tuple(shape), dtype=dtype, onnx_dtype=dtype, role=role, quant=quant, array=key
        )
        return name

    def input(self, name: str, shape: Sequence[int], dtype: DType = "int8") -> str:
        self.inputs.append(name)
        return self.tensor(name, shape, dtype, "input")

    def op(
        self,
        op_type: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        name: str = "",
        *,
        dtype: DType = "int8",
        where: Where = "npu",
        **attributes: AttributeValue,
    ) -> str:
        name = name or f"n{len(self.ops)}"
        out = self.tensor(f"{name}_out", shape, dtype)
        requant = Requantization(reference="srs", target="srs", qmin=-128, qmax=127) if dtype == "int8" else None
        accumulator = Accumulator(bits=32, bound=1) if op_type in ("Conv", "Gemm") else None
        self.ops.append(
            Op(
                name=name, type=op_type, inputs=tuple(inputs), outputs=(out,), attributes=attributes, where=where,
                requant=requant, accumulator=accumulator,
            )
        )  # fmt: skip
        return out

    def conv(self, x: str, channels: int, kernel: int = 3, stride: int = 1, pad: int | None = None) -> str:
        name = f"n{len(self.ops)}"
        _, c, h, w = self.tensors[x].shape
        pad = kernel // 2 if pad is None else pad
        self.tensor(f"{name}_w", (channels, c, kernel, kernel), "int8", "weight")
        size = [(d + 2 * pad - kernel) // stride + 1 for d in (h, w)]
        return self.op(
            "Conv", (x, f"{name}_w", ""), (1, channels, *size), name,
            kernel_shape=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4, dilations=(1, 1), group=1,
        )  # fmt: skip

    def dense(self, x: str, n: int, name: str = "", dtype: DType = "int8") -> str:
        name = name or f"n{len(self.ops)}"
        m, k = self.tensors[x].shape
        self.tensor(f"{name}_w", (k, n), "int8", "weight")
        return self.op("Gemm", (x, f"{name}_w", ""), (m, n), name, dtype=dtype, transB=0, transA=0, alpha=1.0, beta=1.0)

    def quantize(self, x: str, name: str = "quant") -> str:
        return self.op("QuantizeLinear", (x,), self.tensors[x].shape, name, where="host")

    def dequantize(self, x: str, name: str = "dequant") -> str:
        return self.op("DequantizeLinear", (x,), self.tensors[x].shape, name, dtype="float32", where="host")

    def manifest(self, *outputs: str, device: str = "npu1") -> Manifest:
        tensors = tuple(sorted(self.tensors.values(), key=lambda t: t.name))
        return Manifest(
            model=ModelInfo(
                sha256="0" * 64, format="qdq", opset=17, ir_version=8, producer="", inputs=tuple(self.inputs),
                outputs=outputs,
            ),
            target=Target(device=device),
            scheme=Scheme(activations="", weights="", bias="", power_of_two=True, not_power_of_two=()),
            tensors=tensors,
            ops=tuple(self.ops),
            layouts=default_layouts(tensors, self.ops, load_device(device)),
        )  # fmt: skip
