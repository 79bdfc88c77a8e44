"""Ctrl-C while a command is still being imported: one line and exit 130, as later, instead of a traceback.

Why no import here that Python has not made itself: until the handler stands, Ctrl-C is a traceback.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without its enums
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import NoReturn

EXIT_CODE = 130
INTERRUPTED = "interrupted; the port is intact\n"

_pressed: list[int] = []
_working: list[bool] = []


def end(code: int) -> "NoReturn":
    """Flush what was said and end the process at once.

    Why not `sys.exit`: once an interrupt has passed through `exec`, Python dies of the signal instead of returning 130.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
    os._exit(code)


def say_interrupted() -> None:
    """The one line, where there is anywhere to say it."""
    try:
        sys.stderr.write(INTERRUPTED)
    except (AttributeError, OSError, ValueError):
        return


def working() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt, so that what has begun is put in order."""
    _working.append(True)


def was_pressed() -> bool:
    """Whether Ctrl-C was pressed: a C extension may turn KeyboardInterrupt into an ImportError of its own."""
    return bool(_pressed)


def remember(number: int, frame: "FrameType | None") -> None:
    """Note the signal. While modules are imported nothing has begun: the process ends at once.

    Why not by an exception: one that passes through a module of C code in its making can crash the process.
    """
    _pressed.append(number)
    if _working:
        raise KeyboardInterrupt
    say_interrupted()
    end(EXIT_CODE)


def quiet_ctrl_c() -> None:
    """Take Ctrl-C over from Python, and give the process an exception hook that knows it."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, remember)
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
        if not _pressed and not issubclass(kind, KeyboardInterrupt):
            before(kind, error, trace)
            return
        say_interrupted()
        end(EXIT_CODE)

    sys.excepthook = hook
