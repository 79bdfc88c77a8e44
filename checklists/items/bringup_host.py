"""Bring-up items at host level: the generated sources, compiled for this machine, inside the simulated dataflow."""

from bringup.evidence import BringupEvidence
from checklists.items.bringup_steps import HOST, chain_exact, dispatches_exact, handoff_exact, runs_clean, stages_exact
from checklists.model import Finding


def host_stages(e: BringupEvidence) -> Finding:
    """Every stage alone, its emitted kernels compiled with sanitizers, gives the oracle's tensors bit for bit.

    FAIL names stage, first element and likely cause, or the kernel and argument of a sanitizer report. NOT_RUN names
    stages that were not run or not compared. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    return stages_exact(e, HOST)


def host_chain(e: BringupEvidence) -> Finding:
    """The chain of generated designs grows by exactly one stage per step, each exact alone before, same sources.

    FAIL names the step that adds another number of stages than one, a stage that joined before it was exact alone, a
    kernel whose source changed in between, or the first wrong element. NOT_APPLICABLE where no dispatch runs on the
    array, with their number.
    """
    return chain_exact(e, HOST)


def host_dispatches(e: BringupEvidence) -> Finding:
    """Every generated dispatch equals the oracle on 3 different inputs back to back, a real one among them.

    FAIL names fifo, object, element and likely cause. NOT_RUN with fewer inputs, none of them real, another canary
    than the port's, or fifos that were not compared. NOT_APPLICABLE where no dispatch runs on the array.
    """
    return dispatches_exact(e, HOST)


def host_handoff(e: BringupEvidence) -> Finding:
    """Dispatches one after the other, each fed with what the one before gave, end in the oracle's outputs.

    A step of its own, after every dispatch was exact. NOT_APPLICABLE with one dispatch and no host segment.
    """
    return handoff_exact(e, HOST)


def host_runs(e: BringupEvidence) -> Finding:
    """No generated design hangs or crashes, and round-robin and 3 seeded schedules of every dispatch agree.

    FAIL gives the wait cycle, or the sanitizer's report with kernel and argument. NOT_RUN with fewer schedules.
    NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    return runs_clean(e, HOST)
