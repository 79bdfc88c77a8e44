"""What the fifos of a split or join are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from presim.iron.errors import WrongValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One new fifo of a link; the fields are IRON's arguments for it."""

    name: str
    obj_type: Any
    depth: int
    to_stream: Any
    from_stream: Any
    repeat: int | None


def parts_of(  # noqa: PLR0917 (one call)
    fifo: str, depth: int, obj_type: Any, count: int, suffix: str, given: Mapping[str, Sequence[Any] | None]
) -> list[Part]:
    """Parts of a split or join, with IRON's defaults.

    Args:
        fifo: that is split or joined.
        depth: of its end.
        obj_type: of it.
        count: of offsets.
        suffix: of default names.
        given: lists of the call by name, None = not given.
    """
    default: dict[str, list[Any]] = {
        "depths": [depth] * count,
        "obj_types": [obj_type] * count,
        "names": [f"{fifo}{suffix}{i}" for i in range(count)],
        "dims_to_stream": [None] * count,
        "dims_from_stream": [None] * count,
        "repeat_counts": [None] * count,
    }
    found = {name: list(values) if (values := given[name]) is not None else default[name] for name in default}
    for name, values in found.items():
        if len(values) != count:
            msg = f"{suffix[1:]}() of fifo {fifo!r}: {len(values)} {name} for {count} offsets"
            raise WrongValueError(msg)
    return [
        Part(
            name=found["names"][i],
            obj_type=found["obj_types"][i],
            depth=found["depths"][i],
            to_stream=found["dims_to_stream"][i],
            from_stream=found["dims_from_stream"][i],
            repeat=found["repeat_counts"][i],
        )
        for i in range(count)
    ]
