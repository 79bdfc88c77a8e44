"""Counts of one tensor against onnxruntime, gathered over chunks of feeds."""

from dataclasses import dataclass, field

from oracle.evidence import Mismatch, TensorComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one chunk showed for one tensor; its mismatches are the sum of all but `elements`.

    `first` is the first unexplained element, else the first explained one.
    """

    elements: int
    near_ties: int = 0
    within_tolerance: int = 0
    reference_inexact: int = 0
    unexplained: int = 0
    first: Mismatch | None = None


@dataclass(slots=True)
class Tally:
    """Running sum of `Judged` for one tensor."""

    tensor: str
    op: str
    op_type: str
    elements: int = 0
    near_ties: int = 0
    within_tolerance: int = 0
    reference_inexact: int = 0
    unexplained: int = 0
    first: Mismatch | None = None
    _first_is_unexplained: bool = field(default=False)

    def add(self, judged: Judged) -> None:
        """Count one chunk in."""
        self.elements += judged.elements
        self.near_ties += judged.near_ties
        self.within_tolerance += judged.within_tolerance
        self.reference_inexact += judged.reference_inexact
        self.unexplained += judged.unexplained
        worse = bool(judged.unexplained) and not self._first_is_unexplained
        if judged.first is not None and (self.first is None or worse):
            self.first = judged.first
            self._first_is_unexplained = bool(judged.unexplained)

    def row(self) -> TensorComparison:
        """The evidence row."""
        return TensorComparison(
            tensor=self.tensor,
            op=self.op,
            op_type=self.op_type,
            elements=self.elements,
            mismatches=self.near_ties + self.within_tolerance + self.reference_inexact + self.unexplained,
            near_ties=self.near_ties,
            within_tolerance=self.within_tolerance,
            reference_inexact=self.reference_inexact,
            unexplained=self.unexplained,
            first=self.first,
        )


@dataclass(slots=True)
class Tallies:
    """One `Tally` per tensor, in the order of the plan."""

    rows: dict[str, Tally] = field(default_factory=dict)

    def add(self, tensor: str, op: str, op_type: str, judged: Judged) -> None:
        """Count one chunk of one tensor in."""
        if tensor not in self.rows:
            self.rows[tensor] = Tally(tensor, op, op_type)
        self.rows[tensor].add(judged)

    def table(self) -> tuple[TensorComparison, ...]:
        """All rows, in the order in which the tensors were first seen."""
        return tuple(tally.row() for tally in self.rows.values())
