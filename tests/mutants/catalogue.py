"""Every mutant, by what it breaks."""

from typing import Final

from tests.mutants.harness import Mutant
from tests.mutants.importer_mutants import IMPORTER
from tests.mutants.oracle_mutants import ORACLE

MUTANTS: Final[tuple[Mutant, ...]] = (*ORACLE, *IMPORTER)
