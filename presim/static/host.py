"""The runtime sequence: every shim fifo has its tasks, queues do not overflow, what is read back was awaited."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from presim.design import Transfer
from presim.static.findings import Checked, StaticFinding, error, warning
from presim.static.scope import Scope, unknown

TASKS: Final = "host_tasks"
QUEUES: Final = "task_queues"
AWAITED: Final = "awaited_drains"

SLACK: Final = 2
"""Tasks that a channel takes beyond its queue: one that runs and one in between (mlir-air 1822: "absorbs 6")."""


def host_tasks(scope: Scope) -> Checked:
    """Every fifo that begins or ends at a shim is filled or drained by a task of the sequence."""
    started = Counter((t.fifo, t.direction) for t in scope.design.sequence)
    found, looked_at = [], 0
    for fifo in scope.design.fifos:
        if fifo.producer.kind == "shim":
            looked_at += 1
            if not started[fifo.name, "fill"]:
                text = "begins at a shim and no task fills it: its consumers wait for ever"
                found.append(error(TASKS, f"fifo {fifo.name!r}", text, used=0, limit=1))
        if any(c.kind == "shim" for c in fifo.consumers):
            looked_at += 1
            if not started[fifo.name, "drain"]:
                text = "ends at a shim and no task drains it: its producer stops when the pool is full"
                found.append(error(TASKS, f"fifo {fifo.name!r}", text, used=0, limit=1))
    return Checked(rule=TASKS, looked_at=looked_at, findings=tuple(found))


def awaited_drains(scope: Scope) -> Checked:
    """The host waits for every drain, or for a later one of the same channel, before it reads what was drained."""
    drains = [t for t in scope.design.sequence if t.direction == "drain"]
    found = []
    if not any(t.wait for t in drains):
        found.append(error(AWAITED, "runtime sequence", "no drain is awaited: nothing says when the outputs are there"))
    else:
        for index, transfer in enumerate(drains):
            later = [t for t in drains[index:] if t.fifo == transfer.fifo and t.wait]
            if not later:
                text = f"tensor {transfer.tensor!r} is read back though nothing says that its drain is over"
                found.append(error(AWAITED, f"fifo {transfer.fifo!r}", text))
    return Checked(rule=AWAITED, looked_at=len(drains), findings=tuple(found))


def task_queues(scope: Scope) -> Checked:
    """A channel never has more tasks outstanding than its queue takes: one more is dropped without an error.

    Waiting for a task retires it and everything before it on its channel. The queue and two more are a warning, as
    one task runs and toolchains saw one in between absorbed; beyond that tasks are lost.
    """
    depth = scope.figure("dma_queue_depth")
    most = outstanding(scope.design.sequence)
    found: list[StaticFinding] = []
    for fifo, count in most.items():
        where = f"shim channel of fifo {fifo!r}"
        if depth is None:
            found.append(unknown(QUEUES, where, "dma_queue_depth", scope.device, count))
        elif count > depth + SLACK:
            text = f"{count} tasks are outstanding and the queue takes {depth}: those beyond are dropped, await some"
            found.append(error(QUEUES, where, text, used=count, limit=depth))
        elif count > depth:
            text = f"{count} tasks are outstanding and the queue takes {depth}; it works only while the first ones run"
            found.append(warning(QUEUES, where, text, used=count, limit=depth))
    return Checked(rule=QUEUES, looked_at=len(most), findings=tuple(found))


def outstanding(sequence: tuple[Transfer, ...]) -> dict[str, int]:
    """Most tasks that are started and not known to be over, by fifo."""
    most: dict[str, int] = {}
    open_tasks: dict[str, list[int]] = {}
    last = {t.group: i for i, t in enumerate(sequence) if t.group}
    for index, transfer in enumerate(sequence):
        queue = open_tasks.setdefault(transfer.fifo, [])
        queue.append(index)
        most[transfer.fifo] = max(most.get(transfer.fifo, 0), len(queue))
        if transfer.group and last[transfer.group] == index:
            for waited in _waited(sequence, transfer.group):
                tasks = open_tasks[sequence[waited].fifo]
                if waited in tasks:
                    del tasks[: tasks.index(waited) + 1]
    return most


def _waited(sequence: tuple[Transfer, ...], group: str) -> Iterator[int]:
    return (i for i, t in enumerate(sequence) if t.group == group and t.wait)
