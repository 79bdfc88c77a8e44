"""`flatten`: elements in the order of another shape, where that is more than another name.

Arguments and attributes as `transpose`.
"""

from presim.kernels.transpose import run

__all__ = ["run"]
