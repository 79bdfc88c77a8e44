"""The presim checklist: what has to hold before any code is generated.

Why the functions are in `presim_*.py`: a file stays short enough to read; to add an item, add one function there and
one row here.
"""

from typing import Final

from checklists.items.presim_design import (
    budgets_hold,
    design_reproducible,
    kernels_agree,
    modes_set,
    static_checks_clean,
)
from checklists.items.presim_model import (
    decompositions_equivalent,
    mechanisms_probed,
    regimes_predicted,
    regression_suite_green,
)
from checklists.items.presim_runs import (
    accesses_and_leftovers,
    chain_grows_by_one,
    full_design_exact,
    no_hang,
    stages_exact_alone,
)
from checklists.model import CheckItem
from presim.evidence import PresimEvidence

GUIDE: Final = "mlir-aie porting guide, dataflow presim"
FIFOS: Final = "mlir-aie, ObjectFifo lowering notes"
SIMULATED: Final = "simulated on this host, with kernels and oracle independent of each other"

ITEMS: Final[tuple[CheckItem[PresimEvidence], ...]] = (
    CheckItem(
        code="PS001",
        title="Every stage exact alone",
        source=f"{GUIDE}: every block alone before the chain",
        basis=SIMULATED,
        run=stages_exact_alone,
    ),
    CheckItem(
        code="PS002",
        title="Chain grown one stage at a time",
        source=f"{GUIDE}: one link at a time",
        basis=SIMULATED,
        run=chain_grows_by_one,
    ),
    CheckItem(
        code="PS003",
        title="Full design exact on every boundary",
        source=f"{GUIDE}: real math in the kernels",
        basis=SIMULATED,
        run=full_design_exact,
    ),
    CheckItem(
        code="PS004",
        title="No hang under any schedule",
        source=f"{GUIDE}: every blocking step bounded; {FIFOS}",
        basis=SIMULATED,
        run=no_hang,
    ),
    CheckItem(
        code="PS005",
        title="Accesses hold and nothing that is left grows",
        source=FIFOS,
        basis=SIMULATED,
        run=accesses_and_leftovers,
    ),
    CheckItem(
        code="PS006",
        title="Static checks clean",
        source=f"{FIFOS}; mlir-aie programming guide, section 2",
        basis="exact checks of the design, against figures quoted in the device catalogue",
        run=static_checks_clean,
    ),
    CheckItem(
        code="PS007",
        title="Budgets of every tile and channel hold",
        source="AM020, UG1603 and the mlir-aie target models, per figure in the device catalogue",
        basis="predicted from the design, against figures quoted in the device catalogue",
        run=budgets_hold,
    ),
    CheckItem(
        code="PS008",
        title="Rounding and saturation set at entry",
        source="UG1603, Rounding and Saturation Modes",
        basis="read from the design",
        run=modes_set,
    ),
    CheckItem(
        code="PS009",
        title="Design valid and reproducible",
        source="design, section 3",
        basis="computed twice on this host",
        run=design_reproducible,
    ),
    CheckItem(
        code="PS010",
        title="Novel mechanisms probed",
        source=f"{GUIDE}: the smallest isolated probe first",
        basis=SIMULATED,
        run=mechanisms_probed,
    ),
    CheckItem(
        code="PS011",
        title="Decompositions equivalent on real data",
        source=f"{GUIDE}: equivalence before any dataflow",
        basis="computed on this host",
        run=decompositions_equivalent,
    ),
    CheckItem(
        code="PS012",
        title="Regimes predicted",
        source=f"{GUIDE}: cost model per regime",
        basis="predicted from calibration data with sources",
        run=regimes_predicted,
    ),
    CheckItem(
        code="PS013",
        title="Standing regression suite green",
        source=f"{GUIDE}: every validated block a standing test",
        basis=SIMULATED,
        run=regression_suite_green,
    ),
    CheckItem(
        code="PS014",
        title="Kernels round and clamp as the manifest says",
        source="UG1603, Rounding and Saturation Modes; design, section 5",
        basis="read from the design and the manifest",
        run=kernels_agree,
    ),
)
