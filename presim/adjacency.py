"""Which tile reaches which: memories of neighbours, cascades. The one place that knows.

Rows and columns are absolute. A core reaches its own memory and those of the cores north and south of it; of the two
beside it in its row it reaches one: west of it from AIE-ML on, on the first generation west in odd rows and east in
even ones. AIE-ML v2 documents "all four directions"; only what holds under every reading of that is used. (mlir-aie
`AIETargetModel.cpp`, `isMemWest` and the like; AM020.)
"""

from typing import Final

from presim.design import Tile

FIRST_GENERATION: Final = "aie1"

Step = tuple[int, int]
"""(columns east, rows north) from a tile to a neighbour."""


def beside(a: Tile, b: Tile) -> bool:
    """Whether two core tiles are the same or share an edge: at least one of them reaches the other's memory."""
    return a.kind == b.kind == "core" and abs(a.column - b.column) + abs(a.row - b.row) <= 1


def memory_side(row: int, arch: str) -> int:
    """-1 where cores of an absolute row reach the memory west of them, 1 where east."""
    return 1 if arch == FIRST_GENERATION and row % 2 == 0 else -1


def reaches(core: Tile, memory: Tile, arch: str) -> bool:
    """Whether the core of a tile loads from and stores to the data memory of a core tile."""
    if not beside(core, memory):
        return False
    return memory.column - core.column in (0, memory_side(core.row, arch))


def shared_tile(producer: Tile | None, consumer: Tile | None, arch: str) -> Tile | None:
    """The tile that holds a shared pool: the producer's unless only the consumer's memory is within reach of both.

    Args:
        producer: beside `consumer`; None = not placed.
        consumer: likewise.
        arch: of the device.
    """
    if producer is None or consumer is None or reaches(consumer, producer, arch):
        return producer
    return consumer


def cascade_steps(row: int, arch: str) -> tuple[Step, ...]:
    """Where the cascade of a core in an absolute row leads: east or south, on the first generation along the row."""
    if arch == FIRST_GENERATION:
        return ((1 if row % 2 == 0 else -1, 0),)
    return ((1, 0), (0, -1))


def cascades_to(source: Tile, target: Tile, arch: str) -> bool:
    """Whether a cascade leads from one core tile to another."""
    return (target.column - source.column, target.row - source.row) in cascade_steps(source.row, arch)
