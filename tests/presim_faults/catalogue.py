"""Every seeded fault, by what it breaks."""

from typing import Final

from tests.presim_faults.arithmetic import ARITHMETIC
from tests.presim_faults.harness import Fault
from tests.presim_faults.programs import PROGRAMS
from tests.presim_faults.structure import STRUCTURE

FAULTS: Final[tuple[Fault, ...]] = (*PROGRAMS, *ARITHMETIC, *STRUCTURE)
