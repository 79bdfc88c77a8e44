"""The host backend: exactly the emitted files, lowered and compiled, run in the sanitized child."""

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from bringup.backends.generated import KERNELS, Generated, GeneratedError, read_generated
from bringup.backends.host.compare import Difference, Form, Naming, constants_of, difference, form_of, sha256_of
from bringup.backends.host.outcome import outcome_of
from bringup.backends.options import BackendOptions
from bringup.emit.names import planned_names
from bringup.execute import CompileError, ExternalAbi, HostTask, Library, PointerAbi, Runner, build
from bringup.execute.run import child_environment
from bringup.kernels.model import symbol_of
from bringup.model import DeviceIdentity, Job, Outcome, Place, Unavailable
from manifest.device import DEVICES, load_device
from manifest.errors import RefusedError, UnavailableError
from presim.design import Call, Design
from presim.iron.run import lower_file
from presim.steps import elements_of, steps_of

Array = NDArray[Any]
ARCHITECTURES: Final[Mapping[str, int]] = {"aie2": 20, "aie2p": 21}
"""Value of `__AIE_ARCH__` by architecture."""


class Function(Protocol):
    """A kernel as a design file declares it."""

    @property
    def symbol(self) -> str:
        """Of the function."""

    @property
    def arg_types(self) -> Sequence[Any]:
        """(dtype, shape) of memory, or the name of a number's type, in C order."""


class LoweredDesign(Protocol):
    """What comes of a design file; `presim.iron.lowered.Lowered` is one."""

    @property
    def design(self) -> Design:
        """Under the names of the file."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Initial values by key."""

    @property
    def externals(self) -> Sequence[Function]:
        """Kernels that it declares."""


Lower = Callable[[Path, str, float], LoweredDesign]
"""(design file, device, seconds) -> what it lowers to."""


def lower_emitted(path: Path, device: str, timeout_s: float) -> LoweredDesign:
    """Lower a design file in a process of its own."""
    return lower_file(path, timeout_s=timeout_s, device=device)


class HostBackend:
    """Runs generated designs on this machine.

    Args:
        device: catalogue name that the designs are for.
        options: see there.
        lower: how a design file becomes a design.
    """

    name = "host"

    def __init__(self, device: str, options: BackendOptions, *, lower: Lower = lower_emitted) -> None:
        self.device = device
        self.options = options
        self.lower = lower
        self.work = options.work or Path(tempfile.mkdtemp(prefix="bringup-"))
        self.compile_seconds = 0.0
        self._runners: list[Runner] = []
        self._broken: set[tuple[tuple[str, str], ...]] = set()
        self._end = weakref.finalize(self, _end, self._runners, None if options.work is not None else self.work)

    def identity(self) -> DeviceIdentity | Unavailable:
        """This machine stands in for the device, provided that it has a compiler with sanitizers."""
        try:
            environment = child_environment(sanitize=True)
        except UnavailableError as error:
            return Unavailable(what=str(error), looked_for="g++ with libasan on PATH")
        del environment
        return DeviceIdentity(name="", reported="host", runs="host")

    def close(self) -> None:
        """End the child and remove what is this backend's own; happens by itself where nobody asks for it."""
        self._end()

    def run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        """See `bringup.model.Backend.run`."""
        begin = time.monotonic()
        outcome = self._run(job, inputs)
        return replace(outcome, seconds=time.monotonic() - begin)

    def _run(self, job: Job, inputs: Sequence[Mapping[str, Array]]) -> Outcome:
        try:
            generated = read_generated(job.root)
            externals = generated.externals()
            sources = generated.on_disk(job)
        except GeneratedError as error:
            return Outcome(status="mismatch", text=str(error))
        try:
            lowered = self.lower(job.root / job.design_file, self.device, self.options.lower_timeout_s)
        except RefusedError as error:
            return Outcome(status="mismatch", text=error.problems[0].line(), sources=sources)
        design = planned_names(lowered.design)
        planned, emitted = forms(job, design, inputs, generated)
        artifacts = {"planned design": sha256_of(planned), "lowered design": sha256_of(emitted)}
        found = difference(planned, emitted)
        if found is not None:
            return Outcome(
                status="mismatch", text=found.line(), place=place_of(found), artifacts=artifacts, sources=sources
            )
        wrong = declaration_problem(lowered.externals, externals)
        if wrong is not None:
            return Outcome(status="mismatch", text=wrong[1], place=wrong[0], artifacts=artifacts, sources=sources)
        try:
            called = frozenset(function.symbol for function in lowered.externals)
            library = self.library(generated, externals, called)
        except CompileError as error:
            place = Place(kernel=error.symbol)
            return Outcome(status="compile_error", text=str(error), place=place, artifacts=artifacts, sources=sources)
        artifacts["library"] = library.sha256()
        task = HostTask(
            name=job.name,
            design=with_cascades(design, job.design),
            arrays=lowered.arrays,
            inputs=inputs,
            fifos=job.expected,
            outputs=job.outputs,
            schedules=self.options.schedules,
        )
        result = self.runner().run(task, library)
        return replace(outcome_of(result, job), artifacts=artifacts, sources=sources)

    def library(self, generated: Generated, externals: Sequence[ExternalAbi], called: frozenset[str]) -> Library:
        """All kernels of the generated folder, compiled once as long as they do not change.

        Where one of them does not compile, every job gets those that it calls: the job that fails is then one that
        has the broken kernel in it.

        Args:
            generated: the folder.
            externals: signatures of all kernels.
            called: symbols that the job's design declares.
        """
        mark = tuple(sorted((n, h) for n, h in generated.files.items() if n.startswith(f"{KERNELS}/")))
        if mark in self._broken:
            return self.part(generated, externals, called)
        try:
            return self.compiled(generated.kernel_sources(), externals)
        except CompileError:
            self._broken.add(mark)
            return self.part(generated, externals, called)

    def part(self, generated: Generated, externals: Sequence[ExternalAbi], called: frozenset[str]) -> Library:
        """The kernels of one job and all headers."""
        other = {f"{KERNELS}/{e.symbol}.cc" for e in externals if e.symbol not in called}
        sources = {name: data for name, data in generated.kernel_sources().items() if name not in other}
        return self.compiled(sources, [e for e in externals if e.symbol in called])

    def compiled(self, sources: Mapping[str, bytes], externals: Sequence[ExternalAbi]) -> Library:
        """Compile for the architecture of the device."""
        arch = load_device(self.device).arch if self.device in DEVICES else "aie2"
        flags = (f"-DAIE_HOST_ARCH={ARCHITECTURES.get(arch, 20)}",)
        library = build(sources, externals, self.work / "kernels", flags=flags)
        self.compile_seconds += library.seconds
        return library

    def runner(self) -> Runner:
        """The child's server."""
        if not self._runners:
            self.work.mkdir(parents=True, exist_ok=True)
            jobs = Path(tempfile.mkdtemp(prefix="jobs-", dir=self.work))
            self._runners.append(Runner(jobs, timeout_s=self.options.timeout_s))
        return self._runners[0]


def _end(runners: Sequence[Runner], own: Path | None) -> None:
    for runner in runners:
        runner.close()
    if own is not None:
        shutil.rmtree(own, ignore_errors=True)


def forms(job: Job, lowered: Design, inputs: Sequence[Mapping[str, Array]], generated: Generated) -> tuple[Form, Form]:
    """Planned and lowered design in the form that both are compared in."""
    given = frozenset(name for named in inputs for name in named)
    common = {"scalars": generated.scalars(), "buffers": frozenset(b.name for b in lowered.buffers)}
    constants = constants_of(job.design, given)
    emitted = Naming(symbol=lambda name: name, constants=constants, **common)  # type: ignore[arg-type]
    planned = Naming(symbol=symbol_of, constants=constants, **common)  # type: ignore[arg-type]
    return form_of(job.design, planned), form_of(lowered, emitted)


def place_of(found: Difference) -> Place:
    """The part of the design that a difference is at."""
    kind, name = (*found.where, "", "")[:2]
    return Place(worker=name if kind == "worker" else "", fifo=name if kind in {"fifo", "pool"} else "")


def declaration_problem(declared: Sequence[Function], externals: Sequence[ExternalAbi]) -> tuple[Place, str] | None:
    """The first kernel whose declaration in design.py is not what its code takes."""
    rows = {e.symbol: e for e in externals}
    for function in declared:
        external = rows.get(function.symbol)
        if external is None:
            return Place(kernel=function.symbol), f"kernel {function.symbol}: declared, and no code of it was emitted"
        want = [(p.dtype, p.elements) if isinstance(p, PointerAbi) else (p.dtype, 0) for p in external.parameters]
        have = [(t, 0) if isinstance(t, str) else (t[0], elements_of(t[1])) for t in function.arg_types]
        if want != have:
            number = next((i for i, (a, b) in enumerate(zip(want, have, strict=False)) if a != b), len(want))
            name = external.parameters[number].name if number < len(want) else ""
            text = f"kernel {function.symbol}: declared with {_types(have)}, its code takes {_types(want)}"
            return Place(kernel=function.symbol, argument=name), text
    return None


def _types(rows: Sequence[tuple[str, int]]) -> str:
    return "(" + ", ".join(f"{d}[{n}]" if n else d for d, n in rows) + ")"


def with_cascades(design: Design, planned: Design) -> Design:
    """The lowered design with the cascade as an argument of the calls that use it.

    A design file says which workers a cascade joins, not which of their calls read or write it; the plan does.
    """
    uses: dict[str, list[Any]] = {}
    for worker in planned.workers:
        for step in steps_of(worker.program):
            if isinstance(step, Call):
                uses.setdefault(symbol_of(step.kernel), []).extend(
                    a for a in step.arguments if a.kind.startswith("cascade")
                )
    cascades = {(c.source, c.target): c for c in planned.cascades}

    def mended(step: Any) -> Any:
        if isinstance(step, Call):
            plain = tuple(a for a in step.arguments if not a.kind.startswith("cascade"))
            return replace(step, arguments=(*plain, *dict.fromkeys(uses.get(step.kernel, ()))))
        return replace(step, body=tuple(map(mended, step.body))) if hasattr(step, "body") else step

    workers = tuple(replace(w, program=tuple(map(mended, w.program))) for w in design.workers)
    joined = tuple(cascades.get((c.source, c.target), c) for c in design.cascades)
    return replace(design, workers=workers, cascades=joined)
