"""The baseline checklist: what has to hold before anything downstream is generated.

Why the functions are in `baseline_*.py`: a file stays short enough to read; to add an item, add one function there
and one row here.
"""

from typing import Final

from checklists.items.baseline_budget import dispatches_fit
from checklists.items.baseline_data import granularity_holds, inputs_in_range
from checklists.items.baseline_exact import (
    dispatches_concatenate,
    exact_full_model,
    exact_per_op,
    kernel_numbers_exact,
    reference_trustworthy,
    target_equals_reference,
)
from checklists.items.baseline_scheme import (
    accumulator_proved,
    layouts_round_trip,
    manifest_reproducible,
    power_of_two_verified,
    scheme_locked,
)
from checklists.model import CheckItem
from oracle.evidence import BaselineEvidence

GUIDE: Final = "mlir-aie porting guide, model baseline"
ORT: Final = "measured on this host's CPU with onnxruntime"

ITEMS: Final[tuple[CheckItem[BaselineEvidence], ...]] = (
    CheckItem(
        code="BL001",
        title="Scheme locked for every tensor",
        source=f"{GUIDE}, section 1",
        basis="read from the model file",
        run=scheme_locked,
    ),
    CheckItem(
        code="BL002",
        title="Power-of-two claim verified",
        source=f"{GUIDE}, section 1",
        basis="exact test of every scale",
        run=power_of_two_verified,
    ),
    CheckItem(
        code="BL003",
        title="Granularity validated on the full model with real data",
        source=f"{GUIDE}, section 1",
        basis=ORT,
        run=granularity_holds,
    ),
    CheckItem(
        code="BL004",
        title="Single-dispatch budget, or cuts",
        source=f"{GUIDE}, section 2",
        basis="predicted from the manifest, against figures quoted in the device catalogue",
        run=dispatches_fit,
    ),
    CheckItem(
        code="BL005",
        title="Manifest valid and reproducible",
        source=f"{GUIDE}, section 3",
        basis="computed twice on this host",
        run=manifest_reproducible,
    ),
    CheckItem(
        code="BL006",
        title="Layouts round trip",
        source=f"{GUIDE}, section 3",
        basis="computed on this host",
        run=layouts_round_trip,
    ),
    CheckItem(
        code="BL007",
        title="Accumulator range proved from the weights",
        source=f"{GUIDE}, section 4",
        basis="proved",
        run=accumulator_proved,
    ),
    CheckItem(
        code="BL008",
        title="Exact per op on random and boundary inputs",
        source=f"{GUIDE}, section 4",
        basis=ORT,
        run=exact_per_op,
    ),
    CheckItem(
        code="BL009",
        title="Exact on the full model with real data, every tensor",
        source=f"{GUIDE}, section 4",
        basis=ORT,
        run=exact_full_model,
    ),
    CheckItem(
        code="BL010",
        title="Reference trustworthy on this CPU",
        source="onnxruntime: u8*s8 kernels saturate without VNNI",
        basis="read from this host's CPU",
        run=reference_trustworthy,
    ),
    CheckItem(
        code="BL011",
        title="Target arithmetic equals the reference, or accepted",
        source=f"{GUIDE}, section 4",
        basis="measured in the oracle on real data",
        run=target_equals_reference,
    ),
    CheckItem(
        code="BL012",
        title="Real inputs within calibrated and declared range",
        source=f"{GUIDE}, section 1",
        basis="measured on the given data",
        run=inputs_in_range,
    ),
    CheckItem(
        code="BL013",
        title="Dispatches concatenated equal the whole",
        source=f"{GUIDE}, section 2",
        basis="measured in the oracle",
        run=dispatches_concatenate,
    ),
    CheckItem(
        code="BL014",
        title="Multipliers and shifts are what the scales say",
        source="AIE shift-round-saturate; design, section 5",
        basis="proved and computed on this host",
        run=kernel_numbers_exact,
    ),
)
