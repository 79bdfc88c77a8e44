"""Stand-in for `aie.utils.hostruntime.argparse`."""

from presim.iron.api import absent
from presim.iron.hostutils import add_compile_args, device_from_args

__all__ = ["add_compile_args", "device_from_args"]

__getattr__ = absent("aie.utils.hostruntime.argparse")
