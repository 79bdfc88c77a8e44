"""Phases 1 to 3 over models and devices: emitted sources, compiled and executed, against the oracle.

`python -m tests.bringup_models.report [--models a,b] [--devices x,y] [--write docs/bringup-models.md]`
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from phases.bringup.__main__ import main as bringup
from tests.presim_models.report import MODELS, gate_of, open_items, phase, run

DEVICES: Final = ("npu1", "npu2")
INPUTS: Final = 3
HEAD: Final = f"""\
Phases 1 to 3 on each model's real data, `--backend host --level host`: the emitted `design.py` under the stand-in, the
emitted kernels compiled with address and undefined-behaviour sanitizers and executed, every stage alone and the whole
for {INPUTS} different inputs, every fifo against the oracle. Nothing is measured on a device. Made by
`python -m tests.bringup_models.report`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Outcome of one model on one device.

    Attributes:
        verdict: of the gate of phase 3, or "exit N" of the first phase that wrote none.
        stages: exact alone.
        steps: jobs that were run.
        elements: compared with the oracle in phase 3.
        mismatches: of them.
        kernels: emitted functions.
        open_items: codes that are FAIL or NOT_RUN, or the first line of a refusal.
        seconds: phase 3 alone.
    """

    model: str
    device: str
    verdict: str
    stages: int = 0
    steps: int = 0
    inputs: int = 0
    elements: int = 0
    mismatches: int = 0
    kernels: int = 0
    open_items: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """The gate passes, and everything was compared on three inputs and is equal."""
        compared = self.elements > 0 and self.stages > 0 and self.kernels > 0
        return (self.verdict, self.mismatches, self.inputs) == ("PASS", 0, INPUTS) and compared


def bring_up(model: str, device: str, port: Path) -> Row:
    """All three phases in this process."""
    above = run(model, device, port)
    if not above.good:
        words = above.open_items or f"baseline {above.baseline}, presim {above.presim}"
        return Row(model=model, device=device, verdict="-", open_items=words)
    start = time.monotonic()
    verdict, refusal = phase(bringup, [str(port), "--backend", "host", "--level", "host"], port, "bringup")
    seconds = time.monotonic() - start
    if refusal:
        return Row(model=model, device=device, verdict=verdict, open_items=refusal, seconds=seconds)
    items: dict[str, dict[str, Any]] = {i["code"]: i["figures"] for i in gate_of(port, "bringup")["items"]}
    stages, chain, whole = (items[code] for code in ("BU005", "BU006", "BU007"))
    return Row(
        model=model,
        device=device,
        verdict=verdict,
        stages=stages["steps"],
        steps=sum(f["steps"] for f in (stages, chain, whole)),
        inputs=min(stages["distinct_inputs"], whole["distinct_inputs"]),
        elements=sum(f["elements_compared"] for f in (stages, chain, whole)),
        mismatches=sum(f["mismatches"] for f in (stages, chain, whole)),
        kernels=len(list((port / "generated" / "kernels").glob("*.cc"))),
        open_items=open_items(port, "bringup"),
        seconds=seconds,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown; seconds are left out, they are no property of a model."""
    columns = ("model", "device", "bring-up", "stages", "jobs", "inputs", "kernels", "elements", "mismatches", "open")
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in rows:
        counts = (row.stages, row.steps, row.inputs, row.kernels, row.elements, row.mismatches)
        cells = [row.model, row.device, row.verdict, *(f"{n:,}" for n in counts)]
        lines.append(f"| {' | '.join([*cells, row.open_items.replace('|', '/')])} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run and print; 1 if any row is not good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--devices", default=",".join(DEVICES))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for model in given.models.split(","):
            for device in given.devices.split(","):
                row = bring_up(model, device, Path(scratch) / f"{model}.{device}.port")
                rows.append(row)
                print(f"{row.seconds:6.1f} s  {table([row]).splitlines()[-1]}", flush=True)
    if given.write:
        given.write.write_text(f"# Models brought up on the host\n\n{HEAD}\n\n{table(rows)}")
    return 0 if rows and all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
