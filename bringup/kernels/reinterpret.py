"""`copy`: the same elements (meaning: `presim.kernels.reinterpret`)."""

from collections.abc import Mapping

from bringup.kernels.elementwise import Body, Figure, c_type, emitted, extents, only
from bringup.kernels.model import Array, Row, Source


def source(row: Row) -> Source:
    """The kernel's code."""
    x, out = only(row, "object_in"), only(row, "object_out")
    plain = x.dtype == "int64"
    figures: dict[str, Figure] = {"X": c_type(x.dtype), "elements": extents(out.shape).elements, "plain": plain}
    return emitted(
        row,
        Body(
            header="copy.h",
            figures=figures,
            call=(f"port::copy_kernel<K>({x.name}, {out.name});",),
            parameters=row.parameters,
            headers=("elementwise.h", "port_finish.h", "port_loops.h"),
            vectorized=not plain,
            notes=("element by element: vectors hold no 64-bit integers",) if plain else (),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """There is nothing to pack."""
    del row
    return constants
