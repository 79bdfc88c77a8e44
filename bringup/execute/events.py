"""The page that outlives a crash: what the child was doing, shared between it and its parent.

Why a page and not a log: it is written before every kernel call, and what is written there is in the file even when
the next instruction ends the process.
"""

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

Stage = Literal["starting", "loading", "simulating", "kernel", "done"]

STAGES: Final[tuple[Stage, ...]] = ("starting", "loading", "simulating", "kernel", "done")
PLACES: Final = 512
SCALARS: Final = 8
MAX_SCALARS: Final = 40
BLOCKS: Final = 64
MAX_BLOCKS: Final = PLACES - BLOCKS
_STAGE, _WORKER, _KERNEL, _COUNT, _CALLS = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEvent:
    """What the child did last.

    Attributes:
        stage: how far it came.
        worker: index in the design, of a kernel call.
        kernel: index among the externals.
        scalars: of the call.
        blocks: address of the copy of each pointer's block.
        calls: kernel calls so far.
    """

    stage: Stage
    worker: int
    kernel: int
    scalars: tuple[int, ...]
    blocks: tuple[int, ...]
    calls: int


class EventPage:
    """The child's side."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), PLACES * 8)
        self.words: Any = (ctypes.c_int64 * PLACES).from_buffer(self.memory)
        self.calls = 0

    def stage(self, stage: Stage) -> None:
        """How far it is."""
        self.words[_STAGE] = STAGES.index(stage)

    def call(self, worker: int, kernel: int, scalars: Sequence[int]) -> None:
        """A kernel call begins."""
        words = self.words
        words[_WORKER] = worker
        words[_KERNEL] = kernel
        words[_COUNT] = len(scalars)
        for i, value in enumerate(scalars[:MAX_SCALARS]):
            words[SCALARS + i] = value
        self.calls += 1
        words[_CALLS] = self.calls
        words[_STAGE] = 3

    def returned(self) -> None:
        """The call is over."""
        self.words[_STAGE] = 2

    def blocks(self) -> tuple[Any, int]:
        """Where the trampolines write addresses: (pointer, places)."""
        return ctypes.byref(self.words, BLOCKS * 8), MAX_BLOCKS


def make_page(path: Path) -> None:
    """An empty page."""
    path.write_bytes(bytes(PLACES * 8))


def read_page(path: Path, pointers: Sequence[int]) -> LastEvent:
    """The parent's side, after the end of the child.

    Args:
        path: the page.
        pointers: number of pointers of each external.
    """
    words = memoryview(path.read_bytes()).cast("q")
    kernel = int(words[_KERNEL])
    count = pointers[kernel] if 0 <= kernel < len(pointers) else 0
    return LastEvent(
        stage=STAGES[int(words[_STAGE])],
        worker=int(words[_WORKER]),
        kernel=kernel,
        scalars=tuple(int(w) for w in words[SCALARS : SCALARS + min(int(words[_COUNT]), MAX_SCALARS)]),
        blocks=tuple(int(w) for w in words[BLOCKS : BLOCKS + count]),
        calls=int(words[_CALLS]),
    )
