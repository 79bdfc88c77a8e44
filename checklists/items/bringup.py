"""The bring-up checklist: what has to hold before a generated design is called working.

To add an item, add one function in a file beside this one and one row here.
"""

from typing import Final

from bringup.evidence import BringupEvidence
from checklists.items.bringup_code import (
    artifacts_linked,
    emitted_is_simulated,
    outputs_alive,
    overflows_split,
    rules_recorded,
    sources_clean,
)
from checklists.items.bringup_device import (
    device_chain,
    device_dispatches,
    device_handoff,
    device_matches,
    device_runs,
    device_stack,
    device_stages,
)
from checklists.items.bringup_host import host_chain, host_dispatches, host_handoff, host_runs, host_stages
from checklists.model import CheckItem

GUIDE: Final = "mlir-aie porting guide, hardware bring-up"
EXECUTED: Final = "emitted sources executed on this host with sanitizers; AI Engine arithmetic modelled by own headers"
MEASURED: Final = "measured on a device, by this run or recorded"
READ: Final = "read from the generated sources"

ITEMS: Final[tuple[CheckItem[BringupEvidence], ...]] = (
    CheckItem(
        code="BU001",
        title="Emitted design is the simulated one",
        source="design, section 7",
        basis="emitted design run under the stand-in on this host and compared as a value",
        run=emitted_is_simulated,
    ),
    CheckItem(
        code="BU002",
        title="Static rules of the sources hold",
        source="mlir-aie guides, static kernel rules",
        basis=READ,
        run=sources_clean,
    ),
    CheckItem(
        code="BU003",
        title="Executed what was emitted",
        source=f"{GUIDE}: stale artifacts first",
        basis="hashes computed on this host",
        run=artifacts_linked,
    ),
    CheckItem(
        code="BU004",
        title="Overflows solved by tile splits",
        source=f"{GUIDE}: never by lower precision",
        basis="predicted from the packed buffers, against figures quoted in the device catalogue",
        run=overflows_split,
    ),
    CheckItem(
        code="BU005",
        title="Every stage exact alone",
        source=f"{GUIDE}: smallest piece first",
        basis=EXECUTED,
        run=host_stages,
    ),
    CheckItem(
        code="BU006",
        title="Exactly one new thing per step",
        source=f"{GUIDE}: one new block between two passes",
        basis=EXECUTED,
        run=host_chain,
    ),
    CheckItem(
        code="BU007",
        title="Every dispatch exact on the canary",
        source=f"{GUIDE}: full chain exact on a real canary",
        basis=EXECUTED,
        run=host_dispatches,
    ),
    CheckItem(
        code="BU008",
        title="Hand-off exact as its own step",
        source=f"{GUIDE}: dispatches and hand-off each validated",
        basis=EXECUTED,
        run=host_handoff,
    ),
    CheckItem(
        code="BU009",
        title="No hang, crash or difference between orders",
        source=f"{GUIDE}; mlir-aie, ObjectFifo lowering notes",
        basis=EXECUTED,
        run=host_runs,
    ),
    CheckItem(
        code="BU010",
        title="Outputs are alive",
        source=f"{GUIDE}: silent zeros",
        basis="compared on this host",
        run=outputs_alive,
    ),
    CheckItem(
        code="BU011",
        title="Design rules recorded",
        source=f"{GUIDE}: rules learned are written down",
        basis="read from design-rules.json",
        run=rules_recorded,
    ),
    CheckItem(
        code="BU012",
        title="Device is the target",
        source=f"{GUIDE}: device name against hardware",
        basis=MEASURED,
        run=device_matches,
        level="hardware",
    ),
    CheckItem(
        code="BU013",
        title="Every stage exact on the device",
        source=f"{GUIDE}: every block exact on hardware",
        basis=MEASURED,
        run=device_stages,
        level="hardware",
    ),
    CheckItem(
        code="BU014",
        title="One new thing per step on the device",
        source=f"{GUIDE}: incrementally",
        basis=MEASURED,
        run=device_chain,
        level="hardware",
    ),
    CheckItem(
        code="BU015",
        title="Every dispatch exact on the device",
        source=f"{GUIDE}: full chain exact on a real canary",
        basis=MEASURED,
        run=device_dispatches,
        level="hardware",
    ),
    CheckItem(
        code="BU016",
        title="Hand-off exact on the device",
        source=f"{GUIDE}: the hand-off as its own step",
        basis=MEASURED,
        run=device_handoff,
        level="hardware",
    ),
    CheckItem(
        code="BU017",
        title="Driver says completed, repetitions agree",
        source="XRT run states; mlir-aie host runtime",
        basis=MEASURED,
        run=device_runs,
        level="hardware",
    ),
    CheckItem(
        code="BU018",
        title="Stack is enough",
        source="mlir-air PR 1980",
        basis=MEASURED,
        run=device_stack,
        level="hardware",
    ),
)
