"""Two measured arms of one kernel, compared: confirmed, no change, rejected or void."""

from optimize.comparator.arm import Arm, Provenance, Unchanged, read_arm
from optimize.comparator.verdict import WORDS, Judgement, judge_arms

__all__ = ["WORDS", "Arm", "Judgement", "Provenance", "Unchanged", "judge_arms", "read_arm"]
