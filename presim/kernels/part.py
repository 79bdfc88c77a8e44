"""Which piece of an op a kernel computes, and the memory that it needs beside its objects."""

import re
from dataclasses import dataclass
from typing import Final

_KERNEL: Final = re.compile(r"[a-z_]{2,}")
_FIELD: Final = re.compile(r"([oiaxc])(\d+)(?:\+(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of an op; the default is all of it, by the kernel of the op's own type.

    Attributes:
        kernel: type in `KERNELS`, "" = the op's own (`gemm_rows`, `gemm_finish`, `global_average_pool_finish`,
            `requantize` for one input of a Concat, `matmul` for a Gemm with whole operands are asked for by name).
        out_first: output channel (Conv, pools, elementwise on rows: channel; Gemm, vectors: element) at the begin of
            the output object. Ops that keep channels read objects that begin there too.
        out_count: output channels of this part, 0 = all from `out_first` on.
        in_first: first input channel (Conv) or k (Gemm) that is summed over; not 0 = a cascade comes in.
        in_count: how many, 0 = all from `in_first` on; where some are left over a cascade goes out.
        x_first: input channel at the begin of the input object: 0 where the objects hold all channels.
        operand: input of the op that `requantize` works on (Concat).
    """

    kernel: str = ""
    out_first: int = 0
    out_count: int = 0
    in_first: int = 0
    in_count: int = 0
    x_first: int = 0
    operand: int = 0

    def text(self) -> str:
        """Short form for keys: `gemm_rows.o0+10`; "all" for the default."""
        fields = [
            (self.out_first or self.out_count, f"o{self.out_first}+{self.out_count}"),
            (self.in_first or self.in_count, f"i{self.in_first}+{self.in_count}"),
            (self.x_first, f"x{self.x_first}"),
            (self.operand, f"a{self.operand}"),
        ]
        found = [self.kernel] if self.kernel else []
        return ".".join(found + [text for used, text in fields if used]) or "all"


def parse_part(text: str) -> Part:
    """The part of `Part.text`.

    Raises:
        ValueError: the text is none of a part.
    """
    values: dict[str, int] = {}
    kernel = ""
    for position, field in enumerate(() if text == "all" else text.split(".")):
        found = _FIELD.fullmatch(field)
        if found is None and position == 0 and _KERNEL.fullmatch(field):
            kernel = field
        elif found is None:
            msg = f"part {text!r}: expected fields such as o0+16, got {field!r}"
            raise ValueError(msg)
        else:
            values[found[1]] = int(found[2])
            values[found[1] + "+"] = int(found[3] or 0)
    get = values.get
    return Part(
        kernel=kernel,
        out_first=get("o", 0),
        out_count=get("o+", 0),
        in_first=get("i", 0),
        in_count=get("i+", 0),
        x_first=get("x", 0),
        operand=get("a", 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSpec:
    """Memory of a kernel that is no object.

    Attributes:
        kind: `weights`, `constant`, `lut`, `acc`, `bias` or `requant`.
        shape: in elements.
        dtype: numpy's name.
        array: key for `Buffer.array` or `Fifo.init_array`, filled by `presim.packing.pack_constants`; None = scratch.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: str
    array: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """Weights as a sequence of objects, for a fifo from a memory tile.

    Attributes:
        shape: of one object; the last one is filled up with zeros.
        dtype: numpy's name.
        count: objects.
        array: key for `Fifo.init_array`.
        chunk: output channels of one object: call number j of a row passes the scalar `out_offset` = j * chunk.
    """

    shape: tuple[int, ...]
    dtype: str
    count: int
    array: str
    chunk: int
