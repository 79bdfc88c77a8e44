"""Prints designs without a port: kernels, packed constants and the design file, with the real emitters or a double."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bringup.emit.design_file import DesignText, design_file
from bringup.emit.emit import npy_bytes
from bringup.emit.kernels import Kernels, kernels_of
from bringup.kernels import KERNELS
from bringup.kernels.model import KernelModule
from manifest.device import load_device
from manifest.model import Manifest
from presim.design import Design
from tests.bringup.emit.kinds import KINDS, Array, Kind, constants_of, design_of

GOLDEN = Path(__file__).resolve().parent / "golden"
NO_TENSORS = cast(Manifest, SimpleNamespace(by_name=dict))
"""Nothing is known of any tensor: no fifo carries weights but by its values."""


def printed(
    design: Design,
    constants: Mapping[str, Array] | None = None,
    modules: Mapping[str, KernelModule] = KERNELS,
) -> tuple[Kernels, dict[str, bytes]]:
    """(kernels, files of the folder of one design)."""
    device = load_device(design.device)
    kernels = kernels_of(design, NO_TENSORS, device, constants or {}, modules)
    stored = {name: f"weights/{number:03d}.npy" for number, name in enumerate(sorted(kernels.packed))}
    text = design_file(
        DesignText(
            design=kernels.design or design,
            manifest=NO_TENSORS,
            arch=device.arch,
            rows=kernels.rows,
            sources=kernels.sources,
            files=stored,
            title="A design",
            header=("a header",),
        )
    )
    files = {"design.py": text.encode(), **{path: npy_bytes(kernels.packed[n]) for n, path in stored.items()}}
    return kernels, files


def golden_of(kind: Kind) -> dict[str, str]:
    """Golden texts of a kernel type, by file name."""
    kernels, files = printed(design_of(kind), constants_of(kind))
    (source,) = kernels.sources.values()
    return {f"{kind.type}.cc": source.text, f"{kind.type}.design.py.txt": files["design.py"].decode()}


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder; the design file."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "design.py"


def stacked(*arrays: Any) -> Array:
    """int32 objects of a stream."""
    return np.array(arrays, np.int32)


def main() -> None:
    """`python -m tests.bringup.emit.printing --write`: write the golden files anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    GOLDEN.mkdir(exist_ok=True)
    for kind in KINDS.values():
        for name, text in golden_of(kind).items():
            (GOLDEN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
