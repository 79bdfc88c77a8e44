"""Tables that a phase adds to its reports, apart from how they are printed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table.

    Attributes:
        title: a few words.
        basis: what its figures are: simulated, predicted, quoted.
        columns: heads.
        rows: cells as text.
    """

    title: str
    basis: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
