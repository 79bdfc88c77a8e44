"""The hand-off between dispatches: every one fed with what the ones before really gave, host segments between them.

Why a step of its own: dispatches that are exact alone still fail where one writes what the next does not read in the
same form, and nothing but the hand-off shows it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.evidence import StepEvidence
from manifest.model import Dispatch, Manifest
from oracle.run import Oracle
from phases.bringup.engine import DONE, Engine
from phases.bringup.tasks import Task, host_row
from phases.presim.simulation import Bench, from_host, host_ends

Array = NDArray[Any]
Row = Mapping[str, Array]
NAME: Final = "hand-off"
RESHAPES: Final = frozenset({"Flatten", "Reshape"})


def handoffs(manifest: Manifest) -> int:
    """Places where one dispatch, or a host segment, hands tensors to the next."""
    if not any(d.where == "npu" for d in manifest.dispatches):
        return 0
    return max(0, len(manifest.dispatches) - 1)


class Handoff:
    """Runs all dispatches in their order.

    Args:
        manifest: of the port.
        oracle: computes host segments.
        benches: by dispatch on the array.
        tasks: whole dispatches, by name.
        engine: runs them.
    """

    def __init__(
        self,
        manifest: Manifest,
        oracle: Oracle,
        benches: Mapping[str, Bench],
        tasks: Mapping[str, Task],
        engine: Engine,
    ) -> None:
        self.manifest = manifest
        self.oracle = oracle
        self.benches = benches
        self.tasks = tasks
        self.engine = engine
        self.compared: dict[tuple[int, str], int] = {}
        self.wrong = ""
        self.missing: list[str] = []

    def run(self, feeds: Mapping[str, Array]) -> StepEvidence | None:
        """The whole model on the inputs; None where not every dispatch was exact before.

        Args:
            feeds: by graph input, (F, *shape).
        """
        if any(("dispatch", name) not in self.engine.exact for name in self.tasks):
            return None
        count = len(next(iter(feeds.values())))
        handed: list[dict[str, Array]] = [{n: a[i] for n, a in feeds.items()} for i in range(count)]
        steps = []
        self.compared, self.wrong, self.missing = {}, "", []
        for dispatch in self.manifest.dispatches:
            if dispatch.where == "npu":
                steps.append(self._on_array(dispatch, handed))
                if steps[-1].status != DONE:
                    break
            else:
                self._on_host(dispatch, handed)
            if not self.wrong:
                self._compare(dispatch, handed)
            if self.wrong:
                break
        return self._evidence(steps)

    def _compare(self, dispatch: Dispatch, handed: Sequence[Mapping[str, Array]]) -> None:
        """Hold what is handed on, in the form of the model, against the oracle's run of the whole."""
        rows = next(iter(self.benches.values())).tensors
        for index, (row, right) in enumerate(zip(handed, rows, strict=True)):
            for name in dispatch.outputs:
                if name not in row:
                    self.missing.append(name)
                    continue
                got, want = row[name], right[name]
                wrong = np.flatnonzero(~_equal(got, want)) if got.shape == want.shape else np.zeros(1, np.intp)
                if wrong.size:
                    at = int(wrong[0])
                    values = f"{got.flat[at]}, expected {want.flat[at]}" if got.shape == want.shape else "another shape"
                    self.wrong = (
                        f"inference {index}, tensor {name!r} behind {dispatch.name!r}: element "
                        f"{[int(i) for i in np.unravel_index(at, want.shape)]} is {values}"
                    )
                    return
                self.compared[index, name] = want.size

    def _on_array(self, dispatch: Dispatch, handed: Sequence[dict[str, Array]]) -> StepEvidence:
        bench, task = self.benches[dispatch.name], self.tasks[dispatch.name]
        inputs = [host_row(bench.design, row, "fill") for row in handed]
        step = self.engine.one(task, inputs)
        self.engine.steps.pop()  # it is a part of the hand-off, not a run of the dispatch
        drains = host_ends(bench.design, "drain")
        for row, got, like in zip(handed, step.outcome.outputs, bench.tensors, strict=False):
            row.update({n: from_host(got[n], like[n], fifo) for n, fifo in drains.items() if n in got})
        if step.evidence.status == DONE:
            self._reshape(dispatch, handed)
        return step.evidence

    def _reshape(self, dispatch: Dispatch, handed: Sequence[dict[str, Array]]) -> None:
        """Outputs that are what arrived in another shape: no worker makes them, so no transfer has their name."""
        makers = {n: op for op in self.manifest.ops if op.name in set(dispatch.ops) for n in op.outputs}
        for output in [n for n in dispatch.outputs if n not in handed[0]]:
            name, chain = output, list[str]()
            while name not in handed[0] and name in makers and makers[name].type in RESHAPES:
                chain.insert(0, makers[name].name)
                name = makers[name].inputs[0]
            if chain and name in handed[0]:
                feeds = {name: np.stack([row[name] for row in handed])}
                made = self.oracle.run_ops(tuple(chain), feeds, arithmetic="target", keep="stored")
                for index, row in enumerate(handed):
                    row.update({n: array[index] for n, array in made.items() if n not in row})

    def _on_host(self, dispatch: Dispatch, handed: Sequence[dict[str, Array]]) -> None:
        absent = [name for name in dispatch.inputs if any(name not in row for row in handed)]
        if absent:
            self.wrong = f"tensor {absent[0]!r}, which {dispatch.name!r} reads, never came to the host"
            return
        feeds = {name: np.stack([row[name] for row in handed]) for name in dispatch.inputs}
        computed = self.oracle.run_ops(dispatch.ops, feeds, arithmetic="target", keep="stored")
        for index, row in enumerate(handed):
            row.update({name: computed[name][index] for name in dispatch.outputs})

    def _evidence(self, steps: Sequence[StepEvidence]) -> StepEvidence:
        """One step over all dispatches."""
        wrong = next((s for s in steps if s.status != DONE or s.mismatches), steps[-1] if steps else None)
        status, text = ("mismatch", self.wrong) if wrong is None or self.wrong else (wrong.status, wrong.text)
        return StepEvidence(
            name=NAME,
            kind="handoff",
            runs=self.engine.runs,
            dispatch="",
            order=len(self.engine.steps),
            parts=tuple(d.name for d in self.manifest.dispatches),
            added=(NAME,),
            sources=tuple(sorted({pair for s in steps for pair in s.sources})),
            status=status,
            text=text,
            inferences=min((s.inferences for s in steps), default=0),
            distinct_inputs=min((s.distinct_inputs for s in steps), default=0),
            real_inputs=min((s.real_inputs for s in steps), default=0),
            canary_sha256=self.engine.site.canary_sha256,
            schedules=min((s.schedules for s in steps), default=0),
            boundaries=sum(s.boundaries for s in steps) + len({name for _, name in self.compared}),
            elements=sum(s.elements for s in steps) + sum(self.compared.values()),
            mismatches=sum(s.mismatches for s in steps) + bool(self.wrong),
            uncompared=tuple(dict.fromkeys((*(n for s in steps for n in s.uncompared), *self.missing))),
            uniform=tuple(n for s in steps for n in s.uniform),
            driver_status="" if wrong is None else wrong.driver_status,
        )


def _equal(got: Array, want: Array) -> Array:
    """Where two tensors hold the same value; NaN is the same as NaN."""
    same = np.asarray(got == want)
    if got.dtype.kind == want.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(want)
    return same.reshape(-1)
