"""The phases in their order, and what each reads of the person's own files."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from checklists.items import baseline, bringup, optimize, presim
from checklists.model import CheckItem
from phases.state import KERNELS, PORT_TOML, WAIVERS_TOML

DISTRIBUTION: Final = "aie-port"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase.

    Attributes:
        name: of its package `phases.<name>` and its gate `gates/<name>.json`.
        question: what it answers.
        reads: files or folders (`kernels/`) of the person that its gate depends on.
        items: its checklist; empty where the phase is not part of this version.
    """

    name: str
    question: str
    reads: tuple[str, ...]
    items: tuple[CheckItem[Any], ...] = ()

    @property
    def gate(self) -> str:
        """Name of its gate file in the port."""
        return f"gates/{self.name}.json"

    @property
    def command(self) -> str:
        """The command that runs it."""
        return f"python -m phases.{self.name}"


PHASES: Final = (
    Phase(
        name="baseline",
        question="what exactly are the numbers?",
        reads=(PORT_TOML, WAIVERS_TOML),
        items=baseline.ITEMS,
    ),
    Phase(
        name="presim",
        question="does the dataflow work, without the NPU?",
        reads=(PORT_TOML, WAIVERS_TOML),
        items=presim.ITEMS,
    ),
    Phase(
        name="bringup",
        question="does generated code do it, stage by stage?",
        reads=(PORT_TOML, WAIVERS_TOML, KERNELS),
        items=bringup.ITEMS,
    ),
    Phase(
        name="optimize",
        question="what limits it, and what is provably better?",
        reads=(PORT_TOML, WAIVERS_TOML, KERNELS),
        items=optimize.ITEMS,
    ),
)

NAMES: Final = tuple(phase.name for phase in PHASES)


def phase_named(name: str) -> Phase:
    """The phase called `name`; KeyError where there is none."""
    return {phase.name: phase for phase in PHASES}[name]


def tool_version() -> str:
    """Version of this package; `0+source` where it runs without being installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+source"


def item_codes() -> frozenset[str]:
    """Codes of the checklist items of all phases."""
    return frozenset(item.code for phase in PHASES for item in phase.items)
