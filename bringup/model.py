"""What phase 3 hands to a backend and gets back: frozen values and one protocol.

A *job* is one generated design to be run: a stage alone, the chain so far, or a whole dispatch. Backends differ in
where they run it; what they report has one form, and a backend that cannot run says so instead of guessing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from presim.design import Design

Array = NDArray[Any]
JobKind = Literal["stage", "chain", "dispatch"]
Status = Literal[
    "completed",
    "mismatch",
    "deadlock",
    "timeout",
    "crash",
    "compile_error",
    "device_error",
    "wrong_device",
    "stale",
    "absent",
]
"""`completed`: it ran to its goal and nothing that the backend itself compared differs. `absent`: no recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One generated design.

    Attributes:
        name: unique in the run, `<dispatch>/<NN>_<kind>_<stage>`.
        kind: stage, chain or dispatch.
        dispatch: name.
        design: as planned; what the generated design has to be.
        root: folder of the generated files.
        design_file: of this job, relative to `root`.
        expected: objects of fifos, (objects, ...) for each inference, for backends that see inside.
        outputs: host tensors that the job has to drain, by name, for each inference.
    """

    name: str
    kind: JobKind
    dispatch: str
    design: Design
    root: Path
    design_file: str
    expected: Sequence[Mapping[str, Array]] = ()
    outputs: Sequence[Mapping[str, Array]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """The device that a backend runs on.

    Attributes:
        name: catalogue name (`npu1`, ...), "" = the host stands in for it.
        reported: what the driver or the tool chain says of itself, word for word.
        runs: what was executed: `host`, `hardware` or `recorded`.
    """

    name: str
    reported: str
    runs: Literal["host", "hardware", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """Why a backend cannot run here: what is absent and where it was looked for."""

    what: str
    looked_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something went wrong, as far as the backend knows; "" and -1 = it does not.

    Attributes:
        worker: of the design.
        kernel: symbol.
        argument: parameter of the kernel.
        fifo: of the design.
        tensor: manifest or host tensor.
        inference: number.
        object_number: of the fifo.
        index: of the element.
        expected: value.
        got: value.
    """

    worker: str = ""
    kernel: str = ""
    argument: str = ""
    fifo: str = ""
    tensor: str = ""
    inference: int = -1
    object_number: int = -1
    index: tuple[int, ...] = ()
    expected: float | None = None
    got: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one job showed.

    Attributes:
        status: see `Status`.
        text: one line, with the place.
        outputs: drained host tensors by inference, in the shape of `Job.outputs` where known.
        place: of what went wrong.
        compared: elements that the backend compared itself, by fifo.
        cycle: of a deadlock: the waits, in words.
        schedules: orders of execution that were run and agree.
        driver_status: word for word, "" where there is no driver.
        artifacts: name -> sha256 of what was executed (library, xclbin, instructions, lowered design).
        sources: name -> sha256 of the generated files that it was built from.
        stack_bytes: measured stack by worker, where known.
        seconds: wall time, for run.json only.
    """

    status: Status
    text: str
    outputs: Sequence[Mapping[str, Array]] = ()
    place: Place = field(default_factory=Place)
    compared: Mapping[str, int] = field(default_factory=dict)
    cycle: tuple[str, ...] = ()
    schedules: int = 0
    driver_status: str = ""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    stack_bytes: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class Backend(Protocol):
    """Where generated designs run; one conformance suite holds every implementation."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    def identity(self) -> DeviceIdentity | Unavailable:
        """The device, or why there is none; runs nothing."""

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        """Run one job.

        Args:
            job: generated and written to disk.
            inputs: host tensors of each inference, elements in the order that the transfers count.

        Returns:
            What it showed; a fault of the design, of its build or of the device is an outcome, not an exception.
        """
