"""The standing regression suite of a port: every stage alone, as stored, against the oracle.

Then once more with each twin that a person wrote for one of its ops (`phases.presim.twins`).

`regress/test_stages.py` in a port calls these functions and nothing else, so that a newer tool tests an old port.
"""

import functools
from pathlib import Path
from typing import Final

from bringup.execute.task import HostTask
from bringup.kernels.custom import Custom
from manifest.errors import PortError
from phases.port import open_port
from phases.presim.simulation import Bench, bench_of, expected_of, run_piece
from phases.presim.source import Read, different_inputs, read_source, target_tensors
from phases.presim.stages import Unit, cut, units_of
from phases.presim.twins import person_kernels, twin_results
from presim.design_io import DESIGN_FILE, design_from_json

TEST_FILE: Final = "regress/test_stages.py"

TEXT: Final = '''"""Every validated stage of this port as a standing test. Run: python -m pytest regress

Made by `python -m phases.presim`; a rerun writes it again.
"""

from pathlib import Path

import pytest

from phases.presim import regress

PORT = Path(__file__).resolve().parent.parent
STAGES = (
{stages})


@pytest.mark.parametrize("stage", STAGES)
def test_stage_alone_equals_the_oracle(stage: str) -> None:
    assert regress.failure(PORT, stage) == ""


def test_every_stage_of_the_design_has_a_test() -> None:
    assert regress.stages(PORT) == STAGES
'''


INI_FILE: Final = "regress/pytest.ini"

INI: Final = b"""[pytest]
addopts = -p no:cacheprovider -p phases.presim.regress_quiet
"""
"""Keeps pytest from leaving caches in the port, whose files are all listed."""


def suite_files(stages_: tuple[str, ...]) -> dict[str, bytes]:
    """The files of the suite by their path in the port."""
    return {TEST_FILE: suite_text(stages_), INI_FILE: INI}


def suite_text(stages_: tuple[str, ...]) -> bytes:
    """The bytes of `regress/test_stages.py`."""
    return TEXT.replace("{stages}", "".join(f"    {name!a},\n" for name in stages_)).encode("ascii")


class Suite:
    """The stages of a port, ready to be run one by one.

    Args:
        read: gives the bytes of a file.
        names: files that are there.
    """

    def __init__(self, read: Read, names: frozenset[str]) -> None:
        source = read_source(read, names)
        inputs = different_inputs(source, 1)
        tensors = target_tensors(source, inputs.feeds)
        self.manifest = source.manifest
        self.places: dict[str, tuple[Bench, Unit]] = {}
        for design in design_from_json(read(DESIGN_FILE)):
            bench = bench_of(design, source.manifest, source.arrays, tensors, inputs)
            self.places |= {unit.name: (bench, unit) for unit in units_of(design, source.manifest)}

    def failure(self, stage: str, custom: Custom | None = None) -> str:
        """What is wrong with a stage in one line, "" where it is exact, also with the person's twins in it."""
        if stage not in self.places:
            return f"the design has no stage {stage!r}"
        bench, unit = self.places[stage]
        if not unit.workers:
            return f"no worker computes stage {stage!r}"
        piece = cut(bench.design, unit.workers, self.manifest, bench.counts)
        run = run_piece(bench, piece)
        if not run.result.sound:
            return run.result.text
        if run.uncompared or not any(run.result.compared.values()):
            return f"not everything was compared: {', '.join(run.uncompared) or 'nothing was'}"
        if custom is None or not custom.twins:
            return ""
        row = bench.streams[0]
        task = HostTask(
            name=stage,
            design=piece.design,
            arrays=bench.constants,
            inputs=({name: row[name] for name in piece.fed},),
            fifos=(expected_of(piece.design, row),),
            schedules=0,
        )
        return "; ".join(result.line() for result in twin_results(task, custom) if not result.exact)


def stages(port: Path) -> tuple[str, ...]:
    """Names of the stages of a port's design."""
    return tuple(_suite(port.resolve()).places)


def failure(port: Path, stage: str) -> str:
    """What is wrong with a stage of a port, or with the port, in one line; "" = nothing."""
    try:
        suite = _suite(port.resolve())
        designs = [bench.design for bench, _ in suite.places.values()]
        return suite.failure(stage, person_kernels(port, list({d.dispatch: d for d in designs}.values())))
    except PortError as error:
        return str(error)


@functools.lru_cache(maxsize=1)
def _suite(root: Path) -> Suite:
    port = open_port(root)
    return Suite(port.read, frozenset(port.state.files))
