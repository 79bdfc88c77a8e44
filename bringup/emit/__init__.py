"""Emitters: IRON design files, kernels, packed weights, a Makefile and a test for the board."""

from bringup.emit.emit import emit, golden_path, step_folder
from bringup.emit.folder import write
from bringup.emit.model import PROFILE, EmitInput, StepDesign
from bringup.emit.names import emitted_names, identifier, original, planned_names

__all__ = [
    "PROFILE",
    "EmitInput",
    "StepDesign",
    "emit",
    "emitted_names",
    "golden_path",
    "identifier",
    "original",
    "planned_names",
    "step_folder",
    "write",
]
