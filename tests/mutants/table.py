"""docs/mutants.md from the outcomes."""

from collections.abc import Sequence

from tests.mutants.harness import Outcome


def table(outcomes: Sequence[Outcome]) -> str:
    return ""
