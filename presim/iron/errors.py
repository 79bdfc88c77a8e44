"""Errors of the stand-in: one line each, raised inside the process that runs a person's design file."""

from typing import Final

from presim.iron.sites import design_site

VERSION: Final = "1.4.0"


class StandInError(Exception):
    """A design file asks for something that IRON 1.4 has not, or that the stand-in cannot follow.

    Args:
        text: what is wrong, on one line.
    """

    def __init__(self, text: str) -> None:
        self.site = design_site()
        super().__init__(text)


class MissingNameError(StandInError, ImportError):
    """A module of `aie` has no such name in 1.4.

    Why an ImportError too: a design file may guard an import that not every version has.
    """


class WrongCallError(StandInError, TypeError):
    """A call with keywords or arguments that 1.4 does not take."""


class WrongValueError(StandInError, ValueError):
    """A value that IRON 1.4 itself refuses."""


class UnsupportedError(StandInError):
    """IRON 1.4 has it, the stand-in does not follow it; the text is the exact reason."""
