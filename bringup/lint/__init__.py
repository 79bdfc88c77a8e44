"""Static rules on generated sources, for machines without the compiler."""

from bringup.lint.model import LintFinding
from bringup.lint.run import RULES, lint

__all__ = ["RULES", "LintFinding", "lint"]
