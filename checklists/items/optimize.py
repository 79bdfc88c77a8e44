"""The optimization checklist: what has to hold before a design is called better.

To add an item, add one function in a file beside this one and one row here.
"""

from typing import Final

from checklists.items.optimize_design import (
    bandwidth_labelled,
    boundaries_considered,
    conversions_costed,
    kernels_screened,
    placement_legal,
    regimes_apart,
    streaming_decided,
)
from checklists.items.optimize_search import (
    ablation_ranked,
    candidates_exact,
    effort_follows,
    measured_on_device,
    outputs_identical,
    winner_proved,
)
from checklists.model import CheckItem
from optimize.evidence import OptimizeEvidence

GUIDE: Final = "mlir-aie porting guide, optimization"
TIMED: Final = "predicted by the timing model from calibration data with sources, never measured"
COMPARED: Final = "simulated on this host against the oracle"

ITEMS: Final[tuple[CheckItem[OptimizeEvidence], ...]] = (
    CheckItem(
        code="OP001",
        title="Contribution ranked by no-op ablation",
        source=f"{GUIDE}: never by intuition",
        basis=TIMED,
        run=ablation_ranked,
    ),
    CheckItem(
        code="OP002",
        title="Effort follows the ranking",
        source=f"{GUIDE}: effort follows it",
        basis="counted",
        run=effort_follows,
    ),
    CheckItem(
        code="OP003",
        title="Candidates exact before their time counts",
        source=f"{GUIDE}: every accepted change bit-exact",
        basis=COMPARED,
        run=candidates_exact,
    ),
    CheckItem(
        code="OP004",
        title="Winner proved by gates of its own",
        source="design, sections 3 and 8",
        basis=TIMED,
        run=winner_proved,
    ),
    CheckItem(
        code="OP005",
        title="Outputs bit-identical before and after",
        source=f"{GUIDE}: every accepted change bit-exact",
        basis=COMPARED,
        run=outputs_identical,
    ),
    CheckItem(
        code="OP006",
        title="Placement legal, with bound",
        source="aie4ml placement rules; device catalogue",
        basis="checked by code that the placer does not share",
        run=placement_legal,
    ),
    CheckItem(
        code="OP007",
        title="Dispatch boundaries reconsidered for speed",
        source=f"{GUIDE}: round trips against resource pressure",
        basis=TIMED,
        run=boundaries_considered,
    ),
    CheckItem(
        code="OP008",
        title="Regimes placed apart where the bound differs",
        source=f"{GUIDE}: separate placements for separate regimes",
        basis=TIMED,
        run=regimes_apart,
    ),
    CheckItem(
        code="OP009",
        title="Bandwidth measured, or marked",
        source=f"{GUIDE}: bandwidth per column and channel",
        basis="read from the table",
        run=bandwidth_labelled,
    ),
    CheckItem(
        code="OP010",
        title="Conversions costed on compute tiles",
        source=f"{GUIDE}: conversions that DMA cannot do",
        basis=TIMED,
        run=conversions_costed,
    ),
    CheckItem(
        code="OP011",
        title="Streaming decided with placement",
        source=f"{GUIDE}: static or streamed weights",
        basis="read from the design",
        run=streaming_decided,
    ),
    CheckItem(
        code="OP012",
        title="Kernels screened, nothing claimed",
        source=f"{GUIDE}: a static number is a prediction, never a result",
        basis="read from the emitted sources; hardware unconfirmed",
        run=kernels_screened,
    ),
    CheckItem(
        code="OP013",
        title="Gain measured on the device",
        source=f"{GUIDE}: two arms back to back",
        basis="measured on a device",
        run=measured_on_device,
        level="hardware",
    ),
)
