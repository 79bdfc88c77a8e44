"""Every seeded fault, by what it breaks."""

from typing import Final

from tests.bringup_faults.arithmetic import ARITHMETIC
from tests.bringup_faults.designs import DESIGNS
from tests.bringup_faults.devices import DEVICES
from tests.bringup_faults.harness import Fault
from tests.bringup_faults.memory import MEMORY
from tests.bringup_faults.stored import STORED

FAULTS: Final[tuple[Fault, ...]] = (*ARITHMETIC, *MEMORY, *STORED, *DESIGNS, *DEVICES)
