"""Simulate a design: several inputs back to back, several schedules, one verdict."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.device import DEVICES, load_device
from manifest.errors import Problem, RefusedError
from presim.design import Design
from presim.pools import Pool, Wiring, wire
from presim.simulate.build import Changes, World, WorldBuilder
from presim.simulate.data import SimData, SimOptions, compare
from presim.simulate.diagnose import Diagnosis, diagnose, stuck
from presim.simulate.engine import Engine, Outcome
from presim.simulate.fixes import Allowance, Found, Search, least_depth, search
from presim.simulate.given import require_data
from presim.simulate.lane import ENDLESS
from presim.simulate.result import Fault, Fix, Left, Margin, MismatchError, SimFaultError, SimResult
from presim.simulate.snapshot import Key, initial, judge, snapshot
from presim.static.structure import structure

SETUP: Final = 50
"""Instructions that a run of the search counts at least for every worker, fifo and host transfer."""

PATIENCE: Final = 200_000
"""Instructions after which it is first asked whether the goal is out of reach though something still moves."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run of one schedule: its verdict, and what other schedules have to agree with."""

    result: SimResult
    digests: dict[str, int]
    settled: bool
    diagnosis: Diagnosis | None = None


def simulate(design: Design, *, data: SimData | None = None, options: SimOptions | None = None) -> SimResult:
    """Run a design and say what it does.

    Args:
        design: as planned or written by hand.
        data: arrays, kernels and what to compare with; None = objects without values, for hangs alone.
        options: see `SimOptions`.

    Returns:
        The verdict with cause and place. With several schedules the report is that of round-robin.

    Raises:
        RefusedError: the design's structure makes no sense, or arrays or kernels that it names are not given.
    """
    options = options or SimOptions()
    _require_structure(design)
    if data is not None:
        require_data(design, data)
        options = replace(options, inferences=len(data.inputs))
    return _Simulation(design, data, options).run()


def _require_structure(design: Design) -> None:
    problems = tuple(
        Problem(code="DESIGN-STRUCTURE", where=finding.where, what=finding.text) for finding in structure(design)
    )
    if problems:
        raise RefusedError(problems)


class _Simulation:
    def __init__(self, design: Design, data: SimData | None, options: SimOptions) -> None:
        self.design = design
        self.data = data
        self.options = options
        arch = load_device(design.device).arch if design.device in DEVICES else "aie2"
        self.wiring: Wiring = wire(design, arch)
        self.arbitrated = any(f.arbiter for f in design.fifos)
        parts = len(design.workers) + len(design.fifos) + len(design.sequence)
        self.allowance = Allowance(options.fix_steps, least=SETUP * parts)

    def run(self) -> SimResult:
        if not any(t.wait and t.direction == "drain" for t in self.design.sequence):
            return SimResult(
                verdict="inconclusive",
                text="inconclusive: no drain of the runtime sequence is awaited, so nothing shows that it is done",
            )
        base = self.once(None)
        for seed in range(self.options.schedules):
            other = self.once(seed)
            if self.arbitrated and {base.result.verdict, other.result.verdict} & {"deadlock", "starvation"}:
                return self.arbitration(base, other, seed)
            difference = self.difference(base, other)
            if difference:
                text = f"nondeterministic: schedule {seed} and round-robin differ in {difference}"
                return replace(base.result, verdict="nondeterministic", text=text, schedules=seed + 2)
        result = replace(base.result, schedules=self.options.schedules + 1)
        if result.verdict == "deadlock" and base.diagnosis is not None and self.options.search_fix:
            return self.mend(result, base.diagnosis)
        return result

    def arbitration(self, base: _Run, other: _Run, seed: int) -> SimResult:
        """Flows that share an arbiter hang in some order: one is enough, the hardware has its own."""
        stuck = base if base.result.verdict in {"deadlock", "starvation"} else other
        result = replace(stuck.result, schedules=seed + 2)
        if stuck.diagnosis is None:
            return result
        note = "" if base.result.verdict == other.result.verdict else "; other orders of arbitration get through"
        if self.attempt(Changes(circuits=True))[1]:
            hint = "circuits of their own for the flows of the arbiter let it run"
            return explain(result, stuck.diagnosis, Search(any_depth=False), self.wiring.pools, hint=hint + note)
        return self.mend(result, stuck.diagnosis)

    def once(self, seed: int | None) -> _Run:
        """One schedule over all inferences."""
        world = WorldBuilder(self.design, self.wiring, self.data, self.options).build()
        engine = Engine(world.actors, max_steps=self.options.max_steps, seed=seed)
        run = _Run(result=SimResult(verdict="completes", text=""), digests={}, settled=True)
        counts: list[dict[Key, int]] = []
        start = initial(world)
        try:
            for inference in range(self.options.inferences):
                begin = engine.steps
                outcome = self.inference(world, engine, inference)
                if outcome != "goal":
                    run.result, run.diagnosis = self.stopped(world, engine, inference, outcome)
                    break
                run.settled &= engine.run(limit=max(PATIENCE, 2 * (engine.steps - begin))) == "fixpoint"
                self.check_outputs(world, inference)
                counts.append(snapshot(world))
            else:
                run.result = self.completed(world, judge(start, counts, settled=run.settled))
        except SimFaultError as error:
            run.result = SimResult(verdict="fault", text=f"fault: {error.fault.text}", fault=error.fault)
        except MismatchError as error:
            run.result = _wrong(error)
        run.digests = self.digests(world, settled=run.settled)
        run.result = self.filled(run, world, engine, len(counts))
        return run

    def inference(self, world: World, engine: Engine, inference: int) -> Outcome:
        if inference:
            world.host.begin_next()
        if world.memory is not None:
            world.memory.begin(inference, world.outputs)
        return to_goal(world, engine)

    def check_outputs(self, world: World, inference: int) -> None:
        if self.data is None or world.memory is None or inference >= len(self.data.outputs):
            return
        for name, expected in self.data.outputs[inference].items():
            got = world.memory.outputs[inference].get(name)
            if got is None:
                text = f"nothing of the runtime sequence drains tensor {name!r}"
                raise SimFaultError(Fault(kind="data", actor="host", step="", fifo="", number=-1, text=text))
            producers = sorted({t.fifo for t in self.design.sequence if t.direction == "drain" and t.tensor == name})
            world.compared[name] = world.compared.get(name, 0) + compare(
                expected.reshape(-1),
                got,
                where=name,
                producer=", ".join(producers),
                inference=inference,
                number=-1,
                shape=expected.shape,
            )

    def completed(self, world: World, left: tuple[Left, ...]) -> SimResult:
        short = next((w for w in world.watches if w.count < w.total), None)
        if short is not None:
            text = f"fifo {short.name!r} carried {short.count} objects of {short.total} that were expected"
            fault = Fault(kind="data", actor=short.producer, step="", fifo=short.name, number=short.count, text=text)
            return SimResult(verdict="fault", text=f"fault: {text}", fault=fault, left=left)
        if not left:
            return SimResult(
                verdict="completes", text=f"completes {self.options.inferences} inferences, nothing is left"
            )
        bad = [entry for entry in left if not entry.fine]
        names = ", ".join(f"{e.kind} of fifo {e.fifo!r} at {e.where}" for e in bad or left)
        judged = "what is left changes with every inference" if bad else "what is left does not grow"
        text = f"completes {self.options.inferences} inferences; {judged}: {names}"
        return SimResult(verdict="completes_leaving", text=text, left=left)

    def stopped(
        self, world: World, engine: Engine, inference: int, outcome: Outcome
    ) -> tuple[SimResult, Diagnosis | None]:
        if outcome == "bound":
            text = (
                f"inconclusive: {engine.steps} instructions were not enough for inference {inference};"
                " raise max_steps (SimOptions.max_steps)"
            )
            return SimResult(verdict="inconclusive", text=text), None
        found = diagnose([world.host])
        if found.cycle or found.crowded:
            return SimResult(verdict="deadlock", text="", cycle=found.cycle, chain=found.chain), found
        text = f"starvation in inference {inference}: {found.reason}"
        return SimResult(verdict="starvation", text=text, chain=found.chain), found

    def filled(self, run: _Run, world: World, engine: Engine, inferences: int) -> SimResult:
        """The parts of a result that every verdict has."""
        compared = dict(world.compared)
        compared.update({w.name: w.compared for w in world.watches if w.total})
        quiet = run.result.verdict in {"completes", "completes_leaving"}
        notes = () if run.settled else ("a part of the design runs on for ever without the host",)
        captured: dict[str, NDArray[Any]] = {
            w.name: np.array(w.kept).reshape(-1, *w.shape) for w in world.watches if w.kept is not None
        }
        outputs = () if world.memory is None else tuple(world.memory.outputs[:inferences])
        return replace(
            run.result,
            inferences=inferences,
            compared=compared,
            operations=engine.operations,
            events=() if quiet else tuple(e for actor in world.actors for e in actor.events()),
            notes=run.result.notes + notes,
            outputs=outputs,
            captured=captured,
        )

    def digests(self, world: World, *, settled: bool) -> dict[str, int]:
        """What has to be the same in every schedule, by name."""
        found: dict[str, int] = {}
        if settled:
            found = {f"fifo {w.name!r}": w.digest for w in world.watches}
        if world.memory is not None:
            for index, tensors in enumerate(world.memory.outputs):
                for name, array in tensors.items():
                    found[f"tensor {name!r} of inference {index}"] = zlib.crc32(np.ascontiguousarray(array).data)
        return found

    def difference(self, base: _Run, other: _Run) -> str:
        """What two schedules do not agree on, "" = nothing."""
        if base.result.verdict != other.result.verdict:
            return f"the verdict ({base.result.verdict} and {other.result.verdict})"
        if base.result.verdict not in {"completes", "completes_leaving"}:
            return ""
        for name, digest in base.digests.items():
            if other.digests.get(name, digest) != digest:
                return name
        if base.settled and other.settled and base.result.left != other.result.left:
            return "what is left"
        return ""

    def mend(self, result: SimResult, diagnosis: Diagnosis) -> SimResult:
        """Name the smallest change that lifts a deadlock, or say that no depth does."""
        pools = self.wiring.pools
        depths = {name: pool.depth for name, pool in pools.items() if not pool.static}
        unlimited, most = self.unlimited(depths)
        found = search(
            self.trial,
            depths=depths,
            crowded=diagnosis.crowded,
            starved=diagnosis.starved,
            most=most,
            unlimited=unlimited,
            runs=self.options.fix_runs,
        )
        return explain(result, diagnosis, found, pools)

    def unlimited(self, depths: Mapping[str, int]) -> tuple[bool | None, dict[str, int]]:
        """Whether the design runs with pools of any depth, and the objects of one inference by pool."""
        world, outcome = self.attempt(Changes(depths=dict.fromkeys(depths, ENDLESS)))
        most = {}
        for name, lanes in world.lanes.items():
            moved = max(min(lane.published, lane.taken + lane.tokens()) - lane.initial for lane in lanes)
            fed = self.wiring.pools[name].static
            most[name] = 0 if fed else -(-moved // self.options.inferences)
        return outcome, most

    def trial(self, changes: Changes) -> bool | None:
        return self.attempt(changes)[1] if self.allowance.left > 0 else None

    def attempt(self, changes: Changes) -> tuple[World, bool | None]:
        """Run without data and with changes, within what is left for such runs; None = nobody knows."""
        options = replace(self.options, log_events=0)
        world = WorldBuilder(self.design, self.wiring, None, options, changes, track=False).build()
        engine = Engine(world.actors, max_steps=max(0, min(options.max_steps, self.allowance.left)))
        outcome: Outcome = "goal"
        for inference in range(options.inferences):
            if outcome == "goal":
                outcome = self.inference(world, engine, inference)
        self.allowance.spend(engine.steps)
        return world, None if outcome == "bound" else outcome == "goal"


def margins(design: Design, *, options: SimOptions | None = None) -> tuple[Margin, ...]:
    """The least depth of every pool with which the design still runs, the others as they are.

    Pools for which `fix_steps` are not enough are left out.

    Args:
        design: of sound structure.
        options: see `SimOptions`.

    Raises:
        RefusedError: the design's structure makes no sense.
    """
    _require_structure(design)
    simulation = _Simulation(design, None, options or SimOptions())
    found = []
    for name, pool in simulation.wiring.pools.items():
        if not pool.static:
            least = least_depth(simulation.trial, name, max(1, pool.init_objects), pool.depth)
            if simulation.allowance.left <= 0:
                break
            side = name.removeprefix(f"{pool.fifo}:")
            found.append(Margin(fifo=pool.fifo, side=side, depth=pool.depth, least=least))
    return tuple(found)


def to_goal(world: World, engine: Engine) -> Outcome:
    """Run until the host is through, nothing moves, or what the host needs never will."""
    limit = PATIENCE
    while True:
        outcome = engine.run(world.goal, limit=limit)
        if outcome != "bound" or engine.steps >= engine.max_steps:
            return outcome
        if id(world.host) in stuck(world.actors):
            return "fixpoint"
        limit *= 2


def _wrong(error: MismatchError) -> SimResult:
    m = error.mismatch
    place = f"object {m.number} of fifo {m.where!r}" if m.number >= 0 else f"tensor {m.where!r}"
    fresh = " (memory that nobody wrote)" if m.never_written else ""
    text = (
        f"wrong data: {place} in inference {m.inference}, written by {m.producer}: element {list(m.index)} is"
        f" {m.got}{fresh}, expected {m.expected}; {m.different} of {m.elements} differ"
    )
    return SimResult(verdict="wrong_data", text=text, mismatch=m)


def explain(
    result: SimResult, diagnosis: Diagnosis, found: Search, pools: Mapping[str, Pool], *, hint: str = ""
) -> SimResult:
    """Put what the search found into the result of a deadlock."""
    waits = "; ".join(w.line() for w in diagnosis.cycle or diagnosis.chain)
    singles = [_fixes(f, pools) for f in found.singles]
    together = _fixes(found.joint or found.initial, pools)
    fixes = singles[0] if singles else together
    if not fixes and not diagnosis.cycle:
        return replace(result, verdict="starvation", text=f"starvation: {diagnosis.reason or waits}", hint="")
    if not hint and (not fixes or found.exhausted):
        hint = _hint(found, diagnosis)
    mend = " and ".join(_fix_text(f, pools) for f in fixes)
    text = f"deadlock: {waits}" + (f"; {mend}" if mend else "") + (f"; {hint}" if hint else "")
    return replace(result, text=text, fixes=fixes, alternatives=tuple(f[0] for f in singles[1:]), hint=hint)


def _fixes(found: Found | None, pools: Mapping[str, Pool]) -> tuple[Fix, ...]:
    if found is None:
        return ()
    return tuple(
        Fix(
            fifo=pools[name].fifo,
            side=name.removeprefix(f"{pools[name].fifo}:"),
            what="depth" if found.what == "depth" else "init_objects",
            before=found.before[name],
            after=after,
            exact=found.exact,
        )
        for name, after in found.after.items()
    )


def _fix_text(fix: Fix, pools: Mapping[str, Pool]) -> str:
    if fix.what == "init_objects":
        return f"{fix.after} object{'s' if fix.after > 1 else ''} at the start of fifo {fix.fifo!r} lets it run"
    pool = pools[f"{fix.fifo}:{fix.side}"]
    listed = " as a depth list (an integer is a hint)" if pool.largest_acquire and fix.after > pool.allocated else ""
    return f"depth {fix.after} in place of {fix.before} for fifo {fix.fifo!r} at {fix.side}{listed} lets it run"


def _hint(found: Search, diagnosis: Diagnosis) -> str:
    if found.exhausted:
        return "the search for a fix was cut short; raise fix_runs or max_steps (SimOptions)"
    if any(w.actor == "host" for w in diagnosis.cycle):
        awaited = next((w.fifo for w in diagnosis.cycle if w.actor == "host"), "")
        later = [w.fifo for w in diagnosis.cycle if w.side == "host" and w.actor != "host"]
        return (
            f"no depth helps: the host awaits fifo {awaited!r} before it starts its tasks for {later}; start them first"
        )
    if diagnosis.reason:
        return f"no depth helps: {diagnosis.reason}"
    return "no depth of any fifo helps: every actor of the cycle waits for the next to begin"
