"""What the emitter is given: frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from numpy.typing import NDArray

from manifest.device import Device
from manifest.model import Manifest
from presim.design import Design

Array = NDArray[Any]
StepKind = Literal["stage", "chain"]

PROFILE: Final = "1.4.0"
"""Toolchain profile: the mlir-aie release whose IRON the emitted files are written for."""

IRON_DEVICES: Final[Mapping[str, str]] = {"npu1": "NPU1", "npu2": "NPU2"}
"""Device of the port -> class in `aie.iron.device`; the others have no IRON runtime in this profile."""

SCALARS: Final[Mapping[str, tuple[str, ...]]] = {
    "conv": ("pad_top", "pad_bottom", "out_offset"),
    "max_pool": ("pad_top", "pad_bottom"),
    "average_pool": ("pad_top", "pad_bottom"),
    "gemm": ("out_offset",),
    "gemm_rows": ("row",),
    "global_average_pool": ("row",),
    "add": ("row",),
    "mul": ("row",),
    "concat": ("row",),
}
"""Integers that every call of a kernel type passes, in C order; the others pass none."""

WINDOWS: Final = ("conv", "max_pool", "average_pool")
"""Kernel types whose first arguments are the rows of a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDesign:
    """A piece of a dispatch that is brought up by itself.

    Attributes:
        dispatch: whose piece.
        name: of the stage alone, or that is new in the chain.
        kind: `stage` or `chain`.
        order: position in the run, from 0.
        design: the piece, as `phases.presim.stages.cut` gives it.
    """

    dispatch: str
    name: str
    kind: StepKind
    order: int
    design: Design


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitInput:
    """Everything that is printed.

    Attributes:
        manifest_bytes: canonical `manifest.json`.
        design_bytes: canonical `design.json`.
        manifest: the same, read.
        designs: the same, read; one for each dispatch on the array.
        device: of the port.
        constants: by dispatch, arrays of buffers and fifos by their key, as planned (`presim.packing`).
        steps: pieces that get a design file of their own.
        golden: `<dispatch>/<inference>/<host tensor>` -> elements as the host holds them, one-dimensional.
    """

    manifest_bytes: bytes
    design_bytes: bytes
    manifest: Manifest
    designs: tuple[Design, ...]
    device: Device
    constants: Mapping[str, Mapping[str, Array]]
    steps: tuple[StepDesign, ...] = ()
    golden: Mapping[str, Array] = field(default_factory=dict)
