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
        dispatch: of which dispatch.
        distinct_inputs: inputs that differ from each other.
        real_inputs: those of them that are the person's data; the others are made up.
        uncompared: fifos that carry tensors and were not compared.
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
    dispatch: str = ""
    distinct_inputs: int = 0
    real_inputs: int = 0
    uncompared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticEvidence:
    """One static check of one dispatch.

    Attributes:
        dispatch: which.
        check: name of the check.
        looked_at: parts of the design that it is about; 0 = the design has none.
        findings: (place, text) of what cannot work.
        unknown: device figures that it needs and that are not known.
        warnings: (place, text) of what a person has to look at.
    """

    dispatch: str
    check: str
    looked_at: int
    findings: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One budget of one tile or of the array.

    Attributes:
        dispatch: which.
        place: tile, channel or worker.
        what: which budget (`l1_bytes`, `locks`, ...).
        need: units that the design takes.
        have: units that there are; None = the catalogue does not know.
        figure: device figure that `have` comes from, by which an unknown one is waived.
    """

    dispatch: str
    place: str
    what: str
    need: int
    have: int | None
    figure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismEvidence:
    """A mechanism that the design uses: known (simulated and tested before) or novel, then probed or not.

    Attributes:
        name: of the mechanism.
        uses: places of the design that use it.
        known: whether the tool's own tests hold it.
        probe_verdict: what its probe found, "" = none was run.
        probe_sha256: of the probe's record in the port.
        probe_passed: whether that is what the probe expected.
    """

    name: str
    uses: int
    known: bool
    probe_verdict: str = ""
    probe_sha256: str = ""
    probe_passed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceEvidence:
    """A decomposition that changes the mathematics, held numerically against the whole on real data.

    Attributes:
        name: of the record.
        decomposition: that was held, by its name in `presim.decompositions`.
        elements: compared.
        mismatches: further apart than allowed.
        largest_difference: of any element.
        allowed: largest difference that is none.
    """

    name: str
    decomposition: str
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
    """The standing regression suite: stages that have a test, tests run, tests failed, and whose they are."""

    stages: int
    tests: int
    failed: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PresimEvidence:
    """Everything the presim gate judges.

    Attributes:
        device: of the port.
        design_device: that the designs are for, one name, or several joined by `, ` where they differ.
        design_sha256: of the canonical designs.
        manifest_sha256: of the canonical manifest.
        stages_expected: stages with work on the array.
        stages: every one alone.
        chain: the chain grown by one stage at a time.
        full: every dispatch on the array with all its boundaries.
        static: static checks by dispatch.
        budgets: rows by dispatch.
        unset_modes: kernels that rely on the modes that the tile is in.
        kernels: kernels that round or saturate.
        kernel_faults: (kernel, what of its rounding or clamp is other than in the manifest).
        mechanisms: that the designs use.
        equivalences: recorded in the port.
        decompositions: by which kernels of the designs compute other mathematics than the manifest's, each once.
        regimes: predicted.
        regimes_unknown: device figures without which nothing can be predicted.
        regression: the standing suite, as it ran.
        margins: (pool, depth, least depth that runs, the others as they are) of the pools that were tried.
        dispatches: those on the array, in order.
        static_expected: static checks that there are.
        budgets_expected: budgets that every dispatch has rows of.
        design_again_sha256: of the designs planned a second time.
        design_reload_equal: the file reads back equal.
        design_errors: what of it breaks its schema.
    """

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
    decompositions: tuple[str, ...]
    regimes: tuple[RegimeEvidence, ...]
    regression: RegressionEvidence | None
    margins: tuple[tuple[str, int, int], ...] = ()
    dispatches: tuple[str, ...] = ()
    static_expected: tuple[str, ...] = ()
    budgets_expected: tuple[str, ...] = ()
    design_again_sha256: str = ""
    design_reload_equal: bool = False
    design_errors: tuple[str, ...] = ()
    regimes_unknown: tuple[str, ...] = ()
    kernel_faults: tuple[tuple[str, str], ...] = ()
