"""Every mutant, by what it breaks."""

from typing import Final

from tests.mutants.arithmetic import ARITHMETIC
from tests.mutants.harness import Mutant
from tests.mutants.importer import IMPORTER
from tests.mutants.later import LATER
from tests.mutants.shapes import SHAPES
from tests.mutants.survivors import SURVIVORS

MUTANTS: Final[tuple[Mutant, ...]] = (*ARITHMETIC, *SHAPES, *IMPORTER, *LATER, *SURVIVORS)
