"""`flatten`: elements in the order of another shape, as `transpose`."""

from bringup.kernels.transpose import pack, source

__all__ = ["pack", "source"]
