"""Static findings on emitted kernels, in the order of the guide's levers: candidates, never speed-ups."""

from optimize.screening.model import UNCONFIRMED, Candidate
from optimize.screening.run import RULES, screen, screen_evidence

__all__ = ["RULES", "UNCONFIRMED", "Candidate", "screen", "screen_evidence"]
