"""A board that is not there: the double of pyxrt, built files for every job, and what goes wrong with them."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.backends import BackendOptions, XrtBackend
from bringup.backends.generated import folder_of, read_generated
from bringup.backends.xrt.artifacts import INSTS, LINK, XCLBIN, needed_sources
from bringup.model import DeviceIdentity, Job, Outcome, Unavailable
from tests.bringup.backends import fake_pyxrt

Array = NDArray[Any]
MODULE: Final = "tests.bringup.backends.fake_pyxrt"


def _nothing(_: Array, __: int) -> None:
    """The outputs stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What the device is and does.

    Attributes:
        reported: name that the driver gives.
        present: whether there is a device.
        states: state that runs of a job end in, by a part of the job's name; else COMPLETED.
        spoil: changes an output, bytes, in place; gets the number of the run of the job, from 0.
        keep: bytes at the end of an output that are not written.
        built: changes the folder of built files of a job.
    """

    reported: str = "RyzenAI-npu4"
    present: bool = True
    states: Mapping[str, str] = field(default_factory=dict)
    spoil: Callable[[Array, int], None] = _nothing
    keep: int = 0
    built: Callable[[Path], None] | None = None


class Target:
    """The xrt backend on the double; builds every job before it runs it.

    Args:
        device: catalogue name of the port.
        driver: see there.
        build: folder of built files.
        record: folder of recordings, None = none.
    """

    name = "xrt"

    def __init__(self, device: str, driver: Driver, build: Path, record: Path | None = None) -> None:
        self.driver = driver
        self.build = build
        self.right: dict[str, Sequence[Mapping[str, Array]]] = {}
        self.inner = XrtBackend(device, BackendOptions(build=build, record=record), module=MODULE)
        vars(fake_pyxrt.BOARD).update(vars(fake_pyxrt.Board(name=driver.reported, present=driver.present)))

    def identity(self) -> DeviceIdentity | Unavailable:
        """See `bringup.model.Backend.identity`."""
        return self.inner.identity()

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        """See `bringup.model.Backend.run`."""
        self._make(job)
        board = fake_pyxrt.BOARD
        words = [state for part, state in self.driver.states.items() if part in job.name]
        board.states = [fake_pyxrt.ert_cmd_state[f"ERT_CMD_STATE_{w}"] for w in words]
        board.compute = self._computing(job, inputs)
        return self.inner.run(job, inputs)

    def _make(self, job: Job) -> None:
        """What the Makefile leaves."""
        generated = read_generated(job.root)
        folder = self.build / folder_of(job)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / XCLBIN).write_bytes(b"xclbin2" + hashlib.sha256(job.name.encode()).digest())
        (folder / INSTS).write_bytes(b"\1\0\0\0" * 4)
        lines = [f"{sha256}  {name}\n" for name, sha256 in needed_sources(generated, job).items()]
        (folder / LINK).write_text("".join(lines), encoding="utf-8")
        newest = max(p.stat().st_mtime_ns for p in job.root.rglob("*") if p.is_file())
        for path in folder.iterdir():
            os.utime(path, ns=(newest + 1, newest + 1))
        if self.driver.built is not None:
            self.driver.built(folder)

    def _computing(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Callable[[list[Array]], None]:
        """The oracle's outputs for the inputs that lie in the buffers."""
        tensors = read_generated(job.root).tensors(job)
        right = self.right.setdefault(job.name, job.outputs)  # a run for the diagnosis does not say what is right
        runs = iter(range(1 << 30))

        def compute(buffers: list[Array]) -> None:
            held = {t.name: b.view(np.uint8) for t, b in zip(tensors, buffers, strict=False)}
            filled = [t.name for t in tensors if t.filled]
            index = next(i for i, row in enumerate(inputs) if all(_begins(held[n], row[n]) for n in filled))
            number = next(runs)
            for name, values in right[index].items():
                data = np.ascontiguousarray(np.ma.getdata(values)).reshape(-1).view(np.uint8).copy()
                self.driver.spoil(data, number)
                held[name][: data.size - self.driver.keep] = data[: data.size - self.driver.keep]

        return compute


def _begins(buffer: Array, values: Array) -> bool:
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return bool(np.array_equal(buffer[: data.size], data))
