"""The verdict over two measured arms; integers alone, so that the same files give the same word everywhere.

Rules: the least traced cycles of a call count, never a mean; ranges that are disjoint confirm or reject, ranges that
overlap say nothing changed. What makes the comparison worthless makes it void, whatever the numbers say. Without a
trace the least wall clock counts, beyond the noise of a dispatch (-19.1 to +13.3 us, and 3 %).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from optimize.comparator.arm import Arm
from optimize.evidence import Outcome

MIN_RUNS: Final = 20
MAX_SPREAD_PERCENT: Final = 1
"""(largest - least) / least of an arm stays below this."""
FASTER_NOISE_NS: Final = 19_100
SLOWER_NOISE_NS: Final = 13_300
NOISE_PERCENT: Final = 3
WORDS: Final[Mapping[Outcome, str]] = {
    "confirmed": "confirmed",
    "no_change": "no change",
    "rejected": "rejected",
    "void": "void",
}
"""How an outcome is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What two arms show.

    Attributes:
        outcome: the verdict.
        reasons: for it, one line each; of `void` all of them.
        before, after: (least, largest) of each arm.
        unit: of these.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    before: tuple[int, int]
    after: tuple[int, int]
    unit: str

    @property
    def word(self) -> str:
        """The verdict as it is printed."""
        return WORDS[self.outcome]


def judge_arms(before: Arm, after: Arm) -> Judgement:
    """Compare two arms.

    Args:
        before: with the kernel as it was.
        after: with the kernel as it is now, nothing else changed.
    """
    unit = "cycles" if before.metric == "traced_cycles" else "ns"
    ranges = _range(before), _range(after)
    reasons = (*_alone(before), *_alone(after), *_together(before, after))
    if reasons:
        return Judgement(outcome="void", reasons=reasons, before=ranges[0], after=ranges[1], unit=unit)
    outcome, reason = _cycles(*ranges) if before.metric == "traced_cycles" else _wall(ranges[0][0], ranges[1][0])
    return Judgement(outcome=outcome, reasons=(reason,), before=ranges[0], after=ranges[1], unit=unit)


def _range(arm: Arm) -> tuple[int, int]:
    return min(arm.values), max(arm.values)


def _alone(arm: Arm) -> Iterator[str]:
    """What makes one arm worthless."""
    count, (least, largest) = len(arm.values), _range(arm)
    if count < MIN_RUNS:
        yield f"{arm.name}: {count} runs, at least {MIN_RUNS} expected"
    if 2 * count < arm.calls:
        yield f"{arm.name}: {count} of {arm.calls} calls were measured, at least half expected"
    if arm.truncated:
        yield f"{arm.name}: the trace is truncated"
    if arm.metric == "traced_cycles" and 100 * (largest - least) >= MAX_SPREAD_PERCENT * least:
        yield f"{arm.name}: {least} to {largest} cycles, a spread under {MAX_SPREAD_PERCENT} % expected"
    if arm.metric == "wall_ns" and not arm.pinned:
        yield f"{arm.name}: wall clock of a process that is not pinned"


def _together(before: Arm, after: Arm) -> Iterator[str]:
    """What makes two arms no pair: anything but the kernel is different, or the kernel is not."""
    one, two = before.provenance, after.provenance
    pairs = {
        "metric": (before.metric, after.metric),
        "kernel": (before.kernel, after.kernel),
        "session": (one.session, two.session),
        "host": (one.host, two.host),
        "device": (one.device, two.device),
        "compiler": (one.compiler, two.compiler),
    }
    for what, (a, b) in pairs.items():
        if a != b:
            yield f"{what}: {a} and {b}, one and the same expected"
    if one.kernel_sha256 == two.kernel_sha256:
        yield f"kernel digest: {one.kernel_sha256[:12]} in both arms, nothing was changed"
    if before.unchanged is not None and after.unchanged is not None and before.unchanged != after.unchanged:
        have = " and ".join(f"{u.kernel} {u.cycles}" for u in (before.unchanged, after.unchanged))
        yield f"unchanged kernel: {have} cycles, the same to the cycle expected"


def _cycles(before: tuple[int, int], after: tuple[int, int]) -> tuple[Outcome, str]:
    words = f"{after[0]} to {after[1]} cycles after {before[0]} to {before[1]}"
    if after[1] < before[0]:
        return "confirmed", f"{words}: below, the ranges are disjoint"
    if after[0] > before[1]:
        return "rejected", f"{words}: above, the ranges are disjoint"
    return "no_change", f"{words}: the ranges overlap"


def _wall(before: int, after: int) -> tuple[Outcome, str]:
    """By the least of each arm, in ns."""
    words = f"least wall clock {after} ns after {before} ns"
    if 100 * (before - after) > 100 * FASTER_NOISE_NS + NOISE_PERCENT * before:
        return "confirmed", f"{words}: more than {FASTER_NOISE_NS} ns and {NOISE_PERCENT} % less"
    if 100 * (after - before) > 100 * SLOWER_NOISE_NS + NOISE_PERCENT * before:
        return "rejected", f"{words}: more than {SLOWER_NOISE_NS} ns and {NOISE_PERCENT} % more"
    return "no_change", f"{words}: within the noise of a dispatch"
