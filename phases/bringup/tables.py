"""What phase 3 adds to its report: the log of its steps, and where the memory of the tiles went."""

from typing import Final

from bringup.evidence import BringupEvidence
from phases.reports.tables import Table

BASIS: Final = {
    "host": "executed on this host, arithmetic of the AI Engine modelled",
    "hardware": "measured on hardware",
    "recorded": "recorded on hardware",
}


def step_tables(e: BringupEvidence) -> tuple[Table, ...]:
    """The log, one row per step in order, and the data memory of every tile."""
    where = [BASIS[r] for r in dict.fromkeys(s.runs for s in e.steps)]
    log = Table(
        title="Bring-up log",
        basis="; ".join(where) or "nothing was run",
        columns=("step", "where", "new in it", "status", "inferences", "elements", "boundaries", "what was found"),
        rows=tuple(
            (
                f"{s.order}: {s.name}",
                s.runs,
                ", ".join(s.added),
                s.status,
                str(s.inferences),
                str(s.elements),
                str(s.boundaries),
                s.text,
            )
            for s in e.steps
        ),
    )
    memory = Table(
        title="Data memory with packed buffers",
        basis="predicted from the emitted buffers, against figures quoted in the device catalogue",
        columns=("dispatch", "tile", "need, bytes", "have, bytes", "split"),
        rows=tuple(
            (r.dispatch, r.place, str(r.need), "unknown" if r.have is None else str(r.have), r.split) for r in e.memory
        ),
    )
    return (log, memory)
