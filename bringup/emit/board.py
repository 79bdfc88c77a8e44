"""Files for the machine with the board: Makefile, test.py, README."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bringup.emit.model import PROFILE, EmitInput

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
TARGETS: Final[Mapping[str, str]] = {"aie2": "aie2-none-unknown-elf", "aie2p": "aie2p-none-unknown-elf"}
"""Peano's target by architecture (mlir-aie, programming_examples/makefile-common)."""


def board_files(
    given: EmitInput, jobs: Sequence[Mapping[str, Any]], kernels: Sequence[str], header: Sequence[str]
) -> dict[str, str]:
    """Texts by path.

    Args:
        given: for device and architecture.
        jobs: of `generated.json`.
        kernels: symbols.
        header: lines with hashes.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    values = {
        "header": header,
        "profile": PROFILE,
        "device": given.device.name,
        "target": TARGETS[given.device.arch],
        "jobs": jobs,
        "dispatches": [job for job in jobs if job["kind"] == "dispatch"],
        "steps": [job for job in jobs if job["kind"] != "dispatch"],
        "kernels": kernels,
    }
    names = ("Makefile", "README.md", "test.py")
    return {name: environment.get_template(f"{name}.j2").render(values) for name in names}
