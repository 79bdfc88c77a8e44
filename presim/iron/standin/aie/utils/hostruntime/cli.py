"""Stand-in for `aie.utils.hostruntime.cli`."""

from presim.iron.api import absent
from presim.iron.hostutils import run_design_cli

__all__ = ["run_design_cli"]

__getattr__ = absent("aie.utils.hostruntime.cli")
