"""The simulator of a design: fifos, DMAs, cores and the host, with or without data."""

from presim.simulate.data import SimData, SimOptions
from presim.simulate.kernel import CascadePort, KernelContext, KernelFunction
from presim.simulate.result import Event, Fault, Fix, Left, Margin, Mismatch, SimResult, Verdict, Wait
from presim.simulate.run import margins, simulate

__all__ = [
    "CascadePort",
    "Event",
    "Fault",
    "Fix",
    "KernelContext",
    "KernelFunction",
    "Left",
    "Margin",
    "Mismatch",
    "SimData",
    "SimOptions",
    "SimResult",
    "Verdict",
    "Wait",
    "margins",
    "simulate",
]
