"""Evidence of phase 2: frozen numbers and hashes, filled by `phases.presim.collect`, judged by the presim items.

Everything here is simulated or predicted, never measured on hardware. None or an empty tuple means "not run".
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """One simulation.

    Attributes:
        name: of the stage, the chain prefix or the dispatch.
        order: 0, 1, 2, ... in which it was run.
        added: what is new against the run before ("" for a stage alone).
        verdict: of `presim.simulate`.
        text: the verdict in one line, with the place.
        inferences: back-to-back inferences without reset.
        schedules: orders of execution that were tried.
        boundaries: fifos that were compared.
        elements: elements compared with the oracle.
        mismatches: 0, or 1 and more where the first one stopped the run.
        left: (fifo, where, fine, why) of what was left.
    """

    name: str
    order: int
    added: str
    verdict: str
    text: str
    inferences: int
    schedules: int
    boundaries: int
    elements: int
    mismatches: int
    left: tuple[tuple[str, str, bool, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticEvidence:
    """One static check of one dispatch: what was looked at, and every finding (place, text)."""

    dispatch: str
    check: str
    looked_at: int
    findings: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One budget of one tile or of the array: need against have; `have` None = the catalogue does not know it."""

    dispatch: str
    place: str
    what: str
    need: int
    have: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismEvidence:
    """A mechanism that the design uses: known (simulated and tested before) or novel, then probed or not."""

    name: str
    uses: int
    known: bool
    probe_verdict: str = ""
    probe_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceEvidence:
    """A decomposition that changes the mathematics, held numerically against the whole on real data."""

    name: str
    elements: int
    mismatches: int
    largest_difference: float
    allowed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeEvidence:
    """Predicted figures of one regime (batch 1, batch N, ...)."""

    name: str
    batch: int
    latency_cycles: int
    interval_cycles: int
    bound: Literal["compute", "on_chip", "dram"]
    compute_cycles: int
    on_chip_cycles: int
    dram_cycles: int
    calibration_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvidence:
    """The standing regression suite: stages that have a test, tests run, tests failed."""

    stages: int
    tests: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PresimEvidence:
    """Everything the presim gate judges."""

    device: str
    design_device: str
    design_sha256: str
    manifest_sha256: str
    stages_expected: tuple[str, ...]
    stages: tuple[RunEvidence, ...]
    chain: tuple[RunEvidence, ...]
    full: tuple[RunEvidence, ...]
    static: tuple[StaticEvidence, ...]
    budgets: tuple[BudgetRow, ...]
    unset_modes: tuple[str, ...]
    kernels: int
    mechanisms: tuple[MechanismEvidence, ...]
    equivalences: tuple[EquivalenceEvidence, ...]
    decompositions: int
    regimes: tuple[RegimeEvidence, ...]
    regression: RegressionEvidence | None
    margins: tuple[tuple[str, int, int], ...] = ()
    """(fifo, depth, least depth that runs)."""
