"""Whether the kernels of a design round and clamp as the manifest says, figure by figure.

Why beside the simulation: a clamp that no simulated code reaches, or a mode that no simulated tie needs, computes the
right data all the same.
"""

from typing import Final

from manifest.errors import RefusedError
from manifest.model import Manifest
from presim.design import AttributeValue, Design, Kernel
from presim.kernels.attributes import Forms, Part, attributes_of

FIGURES: Final = ("finish", "out_dtype", "qmin", "qmax", "y_zero_point", "zero_point_inside")
"""Attributes that are the same for every part of an op."""

MOVES: Final = ("copy",)
"""Kernels that only move codes: they have no such figures."""


def disagreements(design: Design, manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """(kernel, what is other than in the manifest) of the kernels that compute an op.

    Args:
        design: of a dispatch of the manifest.
        manifest: what its kernels have to be.
    """
    forms = Forms(manifest)
    ops = {op.name: op for op in manifest.ops}
    found: list[tuple[str, str]] = []
    for kernel in design.kernels:
        if not kernel.op:
            continue
        op = ops.get(kernel.op)
        if op is None:
            found.append((kernel.name, f"the manifest has no op {kernel.op!r}"))
            continue
        try:
            wanted = dict(attributes_of(op, forms, Part(kernel=kernel.type)))
        except (RefusedError, ValueError, KeyError, IndexError):
            found.append((kernel.name, f"{op.type} {op.name!r} is not computed by a kernel {kernel.type!r}"))
            continue
        rows: list[tuple[str, AttributeValue, AttributeValue]] = []
        if kernel.type not in MOVES:
            rows = [(n, wanted[n], _attribute(kernel, n)) for n in FIGURES if n in wanted]
        if op.requant is not None:
            rows += [("rounding", op.requant.rounding, kernel.rounding or op.requant.rounding)]
            rows += [("saturation", op.requant.saturation, kernel.saturation or op.requant.saturation)]
        found += [(kernel.name, f"{name} is {got!r}, expected {want!r}") for name, want, got in rows if got != want]
    return tuple(found)


def _attribute(kernel: Kernel, name: str) -> AttributeValue:
    """An attribute, "" where it is not there."""
    return dict(kernel.attributes).get(name, "")
