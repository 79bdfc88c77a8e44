"""Ctrl-C while a command is still being imported: one line and exit 130, as later, instead of a traceback."""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Final, NoReturn

EXIT_CODE: Final = 130


def end(code: int) -> NoReturn:
    """Flush what was said and end the process at once.

    Why not `sys.exit`: once an interrupt has passed through `exec`, Python dies of the signal instead of returning 130.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def quiet_ctrl_c() -> None:
    """Give the process an exception hook that knows Ctrl-C; every other exception goes on to the old one.

    Why the signal is remembered: a C extension may turn KeyboardInterrupt into an ImportError of its own.
    """
    before = sys.excepthook
    pressed: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not pressed and not issubclass(kind, KeyboardInterrupt):
            before(kind, error, trace)
            return
        if sys.stderr is not None:
            sys.stderr.write("interrupted; the port is intact\n")
        end(EXIT_CODE)

    sys.excepthook = hook
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, remember)
