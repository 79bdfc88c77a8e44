"""The xrt backend: device held against the target, artifacts against the sources, two runs against each other."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.backends.generated import Generated, GeneratedError, HostTensor, folder_of, read_generated
from bringup.backends.options import BackendOptions
from bringup.backends.recording import Recording, input_sha256, write_recording
from bringup.backends.xrt.artifacts import Artifacts, StaleError, find_artifacts
from bringup.backends.xrt.driver import COMPLETED, LOST, TIMEOUT, DriverError, Opened, Session, open_device
from bringup.model import DeviceIdentity, Job, Outcome, Place, Unavailable

Array = NDArray[Any]

POISONS: Final = (0xA5, 0x5A)
"""Bytes that outputs hold before the first and the second run: what keeps both was never written."""


class XrtBackend:
    """Runs generated designs on the NPU of this machine.

    Args:
        device: catalogue name that the designs are for.
        options: see there.
        module: that stands for pyxrt.
    """

    name = "xrt"

    def __init__(self, device: str, options: BackendOptions, *, module: str = "pyxrt") -> None:
        self.device = device
        self.options = options
        self.module = module
        self._opened: Opened | Unavailable | None = None
        self._lost = ""

    def identity(self) -> DeviceIdentity | Unavailable:
        """The device; one that the catalogue does not have, or another than the target, is as good as none."""
        opened = self._open()
        if isinstance(opened, Unavailable):
            return opened
        found = opened.identity
        if not found.name:
            return Unavailable(
                what=f"the driver reports {found.reported!r}, which no device of the catalogue is known by",
                looked_for=f"a device that is {self.device}",
            )
        return found

    def close(self) -> None:
        """Give the device back."""
        self._opened = None

    def _open(self) -> Opened | Unavailable:
        if self._opened is None:
            self._opened = open_device(self.module)
        return self._opened

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        """See `bringup.model.Backend.run`."""
        begin = time.monotonic()
        outcome = self._run(job, inputs)
        return replace(outcome, seconds=time.monotonic() - begin)

    def _run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        identity = self.identity()
        opened = self._opened
        if isinstance(identity, Unavailable) or not isinstance(opened, Opened):
            text = f"{identity.what}; expected {identity.looked_for}" if isinstance(identity, Unavailable) else "gone"
            return Outcome(status="wrong_device", text=text)
        try:
            generated = read_generated(job.root)
            sources = generated.on_disk(job)
            tensors = generated.tensors(job)
        except GeneratedError as error:
            return Outcome(status="stale", text=str(error))
        refused = self._refused(job, inputs, tensors, generated, identity)
        if refused is not None:
            return replace(refused, sources=sources)
        try:
            build = self.options.build or job.root / "build"
            artifacts = find_artifacts(generated, job, build, dated=self.options.dated)
        except StaleError as error:
            return Outcome(status="stale", text=str(error), sources=sources)
        outcome = self._execute(opened, job, inputs, tensors, artifacts)
        outcome = replace(outcome, artifacts=artifacts.sha256, sources=sources)
        if self.options.record is not None:
            self._record(job, inputs, outcome, generated, opened)
        return outcome

    def _refused(
        self,
        job: Job,
        inputs: Sequence[Mapping[str, Array]],
        tensors: Sequence[HostTensor],
        generated: Generated,
        identity: DeviceIdentity,
    ) -> Outcome | None:
        """What must not even be tried."""
        wanted = {self.device, job.design.device, generated.device}
        if wanted != {identity.name}:
            text = f"built for {', '.join(sorted(wanted))}, the device is {identity.name} ({identity.reported})"
            return Outcome(status="wrong_device", text=text)
        for index, named in enumerate(inputs):
            for tensor in tensors:
                if tensor.filled and not _fits(named.get(tensor.name), tensor):
                    text = (
                        f"inference {index}: input {tensor.name!r} is absent, or of another type or size than the"
                        f" design fills ({tensor.elements} of {tensor.dtype})"
                    )
                    return Outcome(status="mismatch", text=text, place=Place(tensor=tensor.name, inference=index))
        return None

    def _execute(
        self,
        opened: Opened,
        job: Job,
        inputs: Sequence[Mapping[str, Array]],
        tensors: Sequence[HostTensor],
        artifacts: Artifacts,
    ) -> Outcome:
        """Every inference twice, with other bytes in the outputs before."""
        timeout_ms = max(1, int(self.options.timeout_s * 1000))
        found: list[dict[str, Array]] = []
        try:
            session = Session(opened, artifacts, tensors)
            for named in inputs:
                outputs = session.run(named, POISONS[0], timeout_ms)
                found.append(outputs)
            for index, named in enumerate(inputs):
                again = session.run(named, POISONS[1], timeout_ms)
                problem = _repeated(found[index], again, index)
                if problem is not None:
                    return replace(problem, outputs=tuple(found), driver_status=COMPLETED)
        except DriverError as error:
            return self._failed(job, error, len(found))
        self._lost = ""
        uniform = _uniform(found, job.outputs)
        if uniform is not None:
            return replace(uniform, outputs=tuple(found), driver_status=COMPLETED, schedules=len(POISONS))
        return Outcome(
            status="completed",
            text=f"{len(inputs)} inferences completed, each twice with the same result",
            outputs=tuple(found),
            schedules=len(POISONS),
            driver_status=COMPLETED,
        )

    def _failed(self, job: Job, error: DriverError, inferences: int) -> Outcome:
        """A state after which a device may stay lost is remembered, so that what follows from it is known as such.

        The device stays open: every job makes a context of its own, and opening a device again can fail for reasons
        that have nothing to do with it (mlir-aie, python/utils/hostruntime/xrtruntime/device.py).
        """
        text = f"inference {inferences}: {error}" if error.status else str(error)
        if self._lost and error.status in LOST - {TIMEOUT}:
            text += f"; the device was lost before, by job {self._lost}"
        if error.status in LOST:
            self._lost = self._lost or job.name
        status = "timeout" if error.status == TIMEOUT else "device_error"
        return Outcome(
            status=status,  # type: ignore[arg-type]
            text=text,
            place=Place(inference=inferences if error.status else -1),
            driver_status=error.status or str(error),
        )

    def _record(
        self,
        job: Job,
        inputs: Sequence[Mapping[str, Array]],
        outcome: Outcome,
        generated: Generated,
        opened: Opened,
    ) -> None:
        if self.options.record is None or not outcome.outputs:
            return
        given = {(i, n): input_sha256(a) for i, named in enumerate(inputs) for n, a in named.items()}
        recording = Recording(
            generated_sha256=generated.sha256,
            manifest_sha256=generated.manifest_sha256,
            design_sha256=generated.design_sha256,
            device_target=self.device,
            device_reported=opened.identity.reported.removesuffix(f" ({opened.architecture})"),
            device_architecture=opened.architecture,
            status=outcome.driver_status,
            repeats=len(POISONS),
            repeats_equal=outcome.status == "completed",
            artifacts=outcome.artifacts,
            sources=outcome.sources,
            inputs=given,
            outputs=outcome.outputs,
        )
        write_recording(self.options.record / folder_of(job), recording)


def _fits(array: Array | None, tensor: HostTensor) -> bool:
    return array is not None and array.dtype == np.dtype(tensor.dtype) and array.size >= tensor.elements


def _repeated(first: Mapping[str, Array], second: Mapping[str, Array], inference: int) -> Outcome | None:
    """What two runs of the same inputs do not agree on."""
    for name, array in first.items():
        one, two = array.view(np.uint8), second[name].view(np.uint8)
        differs = np.flatnonzero(one != two)
        if not differs.size:
            continue
        kept = (one == POISONS[0]) & (two == POISONS[1])
        place = Place(tensor=name, inference=inference, index=(int(differs[0]) // array.itemsize,))
        if kept.all():
            text = f"inference {inference}: nothing of tensor {name!r} was written, it holds what was there before"
        elif kept[differs].all():
            count = -(-int(kept.sum()) // array.itemsize)
            text = (
                f"inference {inference}: {count} of {array.size} elements of tensor {name!r} were not written, the"
                f" first is element {place.index[0]}"
            )
        else:
            text = (
                f"inference {inference}: two runs with the same inputs differ in tensor {name!r}, first in element"
                f" {place.index[0]}"
            )
        return Outcome(status="mismatch", text=text, place=place)
    return None


def _uniform(found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]) -> Outcome | None:
    """An output that is one value everywhere though it should not be, or for every input though inputs differ."""
    for index, named in enumerate(found):
        for name, array in named.items():
            expected = wanted[index].get(name) if index < len(wanted) else None
            flat = expected is not None and expected.size > 0 and bool((expected == expected.reshape(-1)[0]).all())
            if array.size > 1 and bool((array == array[0]).all()) and not flat:
                text = f"inference {index}: every element of tensor {name!r} is {array[0].item()}"
                return Outcome(status="mismatch", text=text, place=Place(tensor=name, inference=index, index=(0,)))
    return None
