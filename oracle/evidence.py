"""Evidence of phase 1: frozen numbers and hashes, judged by `checklists/items/baseline.py`.

Filled by `phases/baseline/collect.py`.

None (or an empty tuple) means "not run"; an item must then say NOT_RUN, never PASS.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

FLOAT_TOLERANCE: Final = Fraction(1, 10**5)
"""Tolerance of float outputs that are not dequantised integers, relative to the largest value of the feed or to the
largest term inside a host function, and distance to a tie where codes are made of such floats."""

ComparisonKind = Literal["disable_all", "dump", "dump_op", "file_op", "random_op"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first differing element: index (feed axis first), codes of both sides, what the exact value was."""

    index: tuple[int, ...]
    expected: str
    got: str
    exact: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorComparison:
    """One tensor against onnxruntime.

    mismatches = near_ties + within_tolerance + reference_inexact + unexplained. `near_ties`: exact value within 1e-6
    relative of a rounding tie and codes adjacent; `within_tolerance`: floats (and codes made of floats that a host
    function computed) that differ by no more than `FLOAT_TOLERANCE`; `reference_inexact`: proved bound above 2**24 and
    the oracle equals the exact rational.
    """

    tensor: str
    op: str
    op_type: str
    elements: int
    mismatches: int
    near_ties: int
    reference_inexact: int
    unexplained: int
    first: Mismatch | None = None
    within_tolerance: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One comparison of design 5 over a model: (a) `disable_all`, (b) `dump`, `dump_op`, `file_op`, (c) inside them.

    Attributes:
        kind: which comparison.
        reference: session settings in words.
        samples: feeds compared.
        tensors_expected: Q outputs that the compared graph has.
        tensors: one row per tensor compared.
        left_in_float: ops that the dump left in float and that were judged by the tie rule.
        required: whether the gate needs this comparison for this model's format.
        why_not: reason when it could not be run ("" when it ran).
    """

    kind: ComparisonKind
    reference: str
    samples: int
    tensors_expected: int
    tensors: tuple[TensorComparison, ...]
    left_in_float: tuple[str, ...] = ()
    required: bool = True
    why_not: str = ""

    @property
    def elements(self) -> int:
        """Elements compared over all tensors."""
        return sum(t.elements for t in self.tensors)

    @property
    def mismatches(self) -> int:
        """Differing elements, explained or not."""
        return sum(t.mismatches for t in self.tensors)

    @property
    def unexplained(self) -> int:
        """Differing elements without an accepted explanation."""
        return sum(t.unexplained for t in self.tensors)

    @property
    def near_ties(self) -> int:
        """Differing elements explained by a rounding tie."""
        return sum(t.near_ties for t in self.tensors)

    @property
    def within_tolerance(self) -> int:
        """Differing floats, and codes made of them, within the tolerance of floats."""
        return sum(t.within_tolerance for t in self.tensors)

    @property
    def reference_inexact(self) -> int:
        """Differing elements where onnxruntime is inexact above 2**24 and the oracle is exact."""
        return sum(t.reference_inexact for t in self.tensors)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeEvidence:
    """`unlocked`: tensors between quantised ops without scale; `claims_power_of_two`: what the scheme says.

    `scales` counts all scales, `power_of_two` those found to be 2**k by exact test, `exceptions` names tensors.
    """

    tensors: int
    unlocked: tuple[str, ...]
    claims_power_of_two: bool
    scales: int
    power_of_two: int
    exceptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyEvidence:
    """Full model on real data. Fields that do not apply are None.

    `accuracy` and `float_accuracy` need labels; `sqnr_db`, `cosine`, `top1_agreement` compare with the float
    model; `worst_layers`: (tensor, sqnr_db) ascending. For a file that came quantised `float_*` and the
    comparison fields may be None: then only `accuracy` counts.
    """

    samples: int
    labels: bool
    accuracy: float | None
    float_accuracy: float | None
    sqnr_db: float | None
    cosine: float | None
    top1_agreement: float | None
    max_accuracy_drop: float
    min_sqnr_db: float
    min_top1_agreement: float
    worst_layers: tuple[tuple[str, float], ...] = ()
    cliffs: tuple[str, ...] = ()
    majority_share: float | None = None
    """Share of the commonest label: a model below it does not fit the labels or the preprocessing."""
    against: str = ""
    """What the figures compare with: `float model`, `labels`, or `the file's own float meaning (Q/DQ removed)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchBudget:
    """Bytes and units of one dispatch, need against have (0.8 x (L1 - stack) x cores + 0.8 x memtile)."""

    name: str
    need_bytes: int
    have_bytes: int | None
    weights_bytes: int
    window_bytes: int
    skip_bytes: int
    cores_needed: int
    cores_have: int | None
    kernel_bodies: int
    bodies_per_core: float
    program_bytes: int
    program_have_bytes: int | None
    program_assumed: bool
    shim_channels_need: int
    shim_channels_have: int | None
    oversized_ops: tuple[tuple[str, str], ...] = ()
    """(op, the split that phase 2 must make)."""
    where: Literal["npu", "host"] = "npu"
    """A host dispatch has no budget of the array: its `have` figures are None and are not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetEvidence:
    """All dispatches of the manifest; `unknown` names device figures that are null in the catalogue.

    `lost`: tensors that a dispatch reads and none before it hands on.
    """

    device: str
    dispatches: tuple[DispatchBudget, ...]
    cuts: tuple[str, ...]
    concatenation_elements: int
    concatenation_mismatches: int
    unknown: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEvidence:
    """Schema errors, sha256 of two independent imports, round trip through the file, layout round trips.

    `layout_misplaced`: tensors whose packed elements do not stand where the layout's definition says.
    """

    schema_errors: tuple[str, ...]
    first_sha256: str
    second_sha256: str
    reload_equal: bool
    layouts: int
    layout_failures: tuple[str, ...]
    layout_misplaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatorBound:
    """Proved bound of one op against what the accumulator holds.

    `reached`: |accumulator| for inputs that follow the signs of the weights, computed apart from the bound; None where
    the accumulator is no sum of codes.
    """

    op: str
    bound: int
    bits: int
    reached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEvidence:
    """Which CPU flags chose which reference. `hazard_ops`: u8*s8 ops whose integer kernels could saturate here."""

    flags: tuple[str, ...]
    integer_kernels_exact: bool
    hazard_ops: tuple[str, ...]
    reference_used: str
    switched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetDeviation:
    """`target` against `reference` arithmetic on real data, every quantised tensor."""

    samples: int
    elements: int
    deviating: int
    tensors: tuple[tuple[str, str, int, int], ...]
    """(tensor, op, deviating elements, largest difference in codes), only those that deviate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFault:
    """An op whose kernel is told a wrong number, or whose numbers are rounded wrongly: the first fault in words."""

    tensor: str
    op: str
    op_type: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvidence:
    """Multipliers and shifts of all rescaled ops against the scales, and codes of made-up accumulators.

    `ops`: looked at; `accumulators`: on which shift primitive, target and exact rationals were held together.
    """

    ops: int
    accumulators: int
    faults: tuple[KernelFault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRange:
    """One graph input: real data against the quantised range and the range that `port.toml` declares."""

    name: str
    samples: int
    minimum: float
    maximum: float
    representable_minimum: float | None
    representable_maximum: float | None
    declared_minimum: float | None
    declared_maximum: float | None
    clipped: int
    elements: int
    used_codes_fraction: float
    """Share of the representable range that the data spans (0..255 against 0..1 shows as 0.004 or as clipping)."""
    codes: int = 256
    """Codes that the input's integer type has: 256 or 65,536."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDisagreement:
    """(d): elements on which onnxruntime's own levels (off, EXTENDED) disagree; None where it was not measured."""

    elements: int
    disagreeing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEvidence:
    """Everything the baseline gate judges."""

    data: bool
    scheme: SchemeEvidence
    manifest: ManifestEvidence
    budget: BudgetEvidence
    accumulators: tuple[AccumulatorBound, ...]
    random_ops: Comparison | None
    comparisons: tuple[Comparison, ...]
    cpu: CpuEvidence
    accuracy: AccuracyEvidence | None = None
    target: TargetDeviation | None = None
    inputs: tuple[InputRange, ...] = ()
    levels: LevelDisagreement | None = None
    kernel: KernelEvidence | None = None
