"""Exit codes of every command; the first of 2, 3, 4, 1 that holds."""

from typing import Final

from manifest.errors import LockedError, PortError, RefusedError, UnavailableError, UpstreamError

OK: Final = 0
GATE_NOT_PASSED: Final = 1
"""The gate of the phase that ran is not PASS; for `diff`: the two are different."""
REFUSED: Final = 2
"""The input is wrong or refused, or another run holds the port; nothing was written."""
UPSTREAM: Final = 3
"""A gate above is not PASS, missing, stale or tampered, or the port is interrupted."""
UNAVAILABLE: Final = 4
"""What was asked needs a tool or a device that is absent."""
INTERNAL: Final = 70
"""A fault of this tool; it prints a traceback. Not 1, which is a judgement about the model."""
INTERRUPTED: Final = 130
"""Ctrl-C; the port is intact."""

PRECEDENCE: Final = (REFUSED, UPSTREAM, UNAVAILABLE, GATE_NOT_PASSED)


def first_that_holds(*codes: int) -> int:
    """The exit code for several outcomes at once: the first of 2, 3, 4, 1 among `codes`, else 0."""
    return next((code for code in PRECEDENCE if code in codes), OK)


def exit_code_of(error: BaseException) -> int:
    """The exit code for an exception that reached the command line."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, RefusedError | LockedError):
        return REFUSED
    if isinstance(error, UpstreamError):
        return UPSTREAM
    if isinstance(error, UnavailableError):
        return UNAVAILABLE
    return REFUSED if isinstance(error, PortError) else INTERNAL
