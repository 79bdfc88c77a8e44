"""Two operands side by side: objects of activations in their order, a constant one in between."""

from dataclasses import dataclass

from bringup.kernels.elementwise import Figure, by_role, c_type, extents, number
from bringup.kernels.model import Parameter, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One operand.

    Attributes:
        parameter: where it is.
        constant: whether it is one; it then has 1 or as many objects as there are calls.
        zero_point: taken off every code.
        channels: 1 = broadcast.
    """

    parameter: Parameter
    constant: bool
    zero_point: int
    channels: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one object."""
        return self.parameter.shape[1:] if self.constant else self.parameter.shape

    @property
    def pointer(self) -> str:
        """Expression for the object of this call."""
        if not self.constant or self.parameter.shape[0] == 1:
            return self.parameter.name
        return f"{self.parameter.name} + row * {extents(self.shape).elements}"


def operands_of(row: Row, names: tuple[str, str], constant: int) -> tuple[Operand, Operand]:
    """Both operands.

    Args:
        row: the kernel.
        names: prefixes of the attributes `<name>_zero_point` and `<name>_channels`, in the order of the operands.
        constant: position of the constant one, -1 = none.
    """
    inputs = list(by_role(row, "object_in"))
    held = by_role(row, "constant")
    found = []
    for index, name in enumerate(names):
        is_constant = index == constant
        parameter = held[0] if is_constant else inputs.pop(0)
        count = min(number(row, "out_channels"), number(row, f"{name}_channels"))
        zero_point = number(row, f"{name}_zero_point")
        found.append(Operand(parameter=parameter, constant=is_constant, zero_point=zero_point, channels=count))
    return found[0], found[1]


def operand_figures(row: Row, pair: tuple[Operand, Operand], constant: int) -> dict[str, Figure]:
    """Members of `K` that operands.h asks for."""
    figures: dict[str, Figure] = {"constant": constant}
    for name, operand in zip("ab", pair, strict=True):
        size = extents(operand.shape)
        figures[name.upper()] = c_type(operand.parameter.dtype)
        figures[f"{name}_zero_point"] = operand.zero_point
        figures[f"{name}_channels"] = operand.channels
        figures[f"{name}_width"] = size.width
    return figures
