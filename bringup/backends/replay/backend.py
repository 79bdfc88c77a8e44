"""The replay backend: recordings count only for exactly the generated files, inputs and device that they name."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from bringup.backends.devices import device_of
from bringup.backends.generated import Generated, GeneratedError, folder_of, read_generated
from bringup.backends.options import BackendOptions
from bringup.backends.recording import FILE, Recording, RecordingError, input_sha256, read_recording
from bringup.backends.xrt.artifacts import INSTS, XCLBIN
from bringup.backends.xrt.driver import COMPLETED
from bringup.model import DeviceIdentity, Job, Outcome, Unavailable

Array = NDArray[Any]
MAX_RECORDINGS: Final = 10_000


class ReplayBackend:
    """Judges recordings.

    Args:
        device: catalogue name that the designs are for.
        options: `recordings` is the folder.
    """

    name = "replay"

    def __init__(self, device: str, options: BackendOptions) -> None:
        self.device = device
        self.folder = options.recordings

    def identity(self) -> DeviceIdentity | Unavailable:
        """The device that the recordings name; they have to agree."""
        looked_for = f"{FILE} in the folder of recordings"
        if self.folder is None or not self.folder.is_dir():
            return Unavailable(what="there is no folder of recordings", looked_for=looked_for)
        said: dict[tuple[str, str], Path] = {}
        for path in sorted(self.folder.rglob(FILE))[:MAX_RECORDINGS]:
            try:
                recording = read_recording(path.parent)
            except RecordingError as error:
                return Unavailable(what=f"{path.relative_to(self.folder)}: {error}", looked_for=looked_for)
            if recording is not None:
                said.setdefault((recording.device_reported, recording.device_architecture), path)
        if len(said) != 1:
            what = "no recording is there" if not said else f"the recordings name {len(said)} different devices"
            return Unavailable(what=what, looked_for=looked_for)
        reported, architecture = next(iter(said))
        name = device_of(reported, architecture)
        if not name:
            return Unavailable(
                what=f"the recordings are of {reported!r}, which no device of the catalogue is known by",
                looked_for=f"recordings of {self.device}",
            )
        return DeviceIdentity(
            name=name, reported=f"{reported} ({architecture})" if architecture else reported, runs="recorded"
        )

    def close(self) -> None:
        """Nothing is held."""

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        """See `bringup.model.Backend.run`."""
        begin = time.monotonic()
        outcome = self._run(job, inputs)
        return replace(outcome, seconds=time.monotonic() - begin)

    def _run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        try:
            recording = None if self.folder is None else read_recording(self.folder / folder_of(job))
        except RecordingError as error:
            return Outcome(status="stale", text=f"{folder_of(job)}: {error}")
        if recording is None:
            return Outcome(status="absent", text=f"{folder_of(job)}: no recording of this job")
        try:
            generated = read_generated(job.root)
            sources = generated.on_disk(job)
        except GeneratedError as error:
            return Outcome(status="stale", text=str(error))
        outcome = self._judged(job, inputs, recording, generated)
        return replace(
            outcome,
            outputs=recording.outputs if outcome.status == "completed" else (),
            driver_status=recording.status,
            artifacts=recording.artifacts,
            sources=sources,
        )

    def _judged(
        self, job: Job, inputs: Sequence[Mapping[str, Array]], recording: Recording, generated: Generated
    ) -> Outcome:
        """Device, provenance, state, in this order."""
        device = device_of(recording.device_reported, recording.device_architecture)
        wanted = {self.device, job.design.device, generated.device, recording.device_target}
        if wanted != {device}:
            text = (
                f"recorded on {recording.device_reported!r} ({device or 'not known'}), for {', '.join(sorted(wanted))}"
            )
            return Outcome(status="wrong_device", text=text)
        stale = next(_stale(job, inputs, recording, generated), "")
        if stale:
            return Outcome(status="stale", text=f"{folder_of(job)}: {stale}")
        if recording.status != COMPLETED:
            status = "timeout" if recording.status.endswith("TIMEOUT") else "device_error"
            text = f"the device ended in {recording.status}, expected {COMPLETED}"
            return Outcome(status=status, text=text)  # type: ignore[arg-type]
        if recording.repeats < 2 or not recording.repeats_equal:
            what = "was run once" if recording.repeats < 2 else "did not give the same bytes every time"
            return Outcome(status="mismatch", text=f"the recording {what}; repeated runs have to be identical")
        text = f"{len(recording.outputs)} inferences recorded on {recording.device_reported}"
        return Outcome(status="completed", text=text, schedules=recording.repeats)


def _stale(
    job: Job, inputs: Sequence[Mapping[str, Array]], recording: Recording, generated: Generated
) -> Iterator[str]:
    """What the recording was not made from, in words."""
    for name in ("manifest_sha256", "design_sha256", "generated_sha256"):
        mine = generated.sha256 if name == "generated_sha256" else getattr(generated, name)
        if getattr(recording, name) != mine:
            yield f"{name} is {getattr(recording, name)[:12]}, the generated folder has {mine[:12]}"
    for name, emitted in sorted(generated.used_by(job).items()):
        if recording.sources.get(name) != emitted:
            yield f"recorded with {'another' if name in recording.sources else 'no'} {name}"
    for name in (XCLBIN, INSTS):
        if not recording.artifacts.get(name):
            yield f"does not say which {name} was executed"
    yield from _other_inputs(inputs, recording)
    yield from _other_types(job, recording)


def _other_types(job: Job, recording: Recording) -> Iterator[str]:
    """Equal values of another type are not what the host buffer held."""
    for index, (got, want) in enumerate(zip(recording.outputs, job.outputs, strict=False)):
        for name in sorted(set(got) & set(want)):
            if got[name].dtype != want[name].dtype:
                yield f"output {name!r} of inference {index} is {got[name].dtype}, expected {want[name].dtype}"


def _other_inputs(inputs: Sequence[Mapping[str, Array]], recording: Recording) -> Iterator[str]:
    if len(recording.outputs) != len(inputs):
        yield f"{len(recording.outputs)} inferences recorded, {len(inputs)} asked for"
    for index, named in enumerate(inputs):
        for name, array in named.items():
            if recording.inputs.get((index, name)) != input_sha256(array):
                yield f"recorded with another input {name!r} in inference {index}"
