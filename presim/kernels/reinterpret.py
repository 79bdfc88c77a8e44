"""`copy`: the same elements; also where the shape of the object changes and its elements do not.

Arguments: an object, the output object. Attributes: `out_channels`.
"""

from presim.kernel_context import KernelContext
from presim.kernels.finish import Array


def run(context: KernelContext, x: Array, out: Array) -> None:
    """Copy one object."""
    del context
    out[...] = x.reshape(out.shape)
