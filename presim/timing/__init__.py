"""First timing of a design: predicted cycles, never measured ones.

Why no second simulator: a design is a network of programs that each read and write in a fixed order, so the time at
which an object becomes full or free does not depend on the order of execution. Every object carries its time, every
actor a clock of its own, and an acquire moves the clock to the time of what it waited for (max-plus).

Left out, and so optimistic: contention of streams for a switch, of DMAs and cores for a memory bank, of channels for
external memory, and the host.
"""

from presim.timing.calibration import Calibration, load_calibration
from presim.timing.model import ActorTime, Span, Timing
from presim.timing.predict import time_design, unknown_figures
from presim.timing.regimes import regimes
from presim.timing.trace import trace_json

__all__ = [
    "ActorTime",
    "Calibration",
    "Span",
    "Timing",
    "load_calibration",
    "regimes",
    "time_design",
    "trace_json",
    "unknown_figures",
]
