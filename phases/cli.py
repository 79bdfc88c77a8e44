"""What all commands share: consoles, how an error is printed, exit codes.

Why tables get a wide console in a pipe: a terminal's 80 columns would break names and messages that scripts search.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manifest.errors import PortError, RefusedError
from phases.exit_codes import INTERRUPTED, OK, REFUSED, exit_code_of
from phases.interrupts import end, say_interrupted, was_pressed, working

PIPE_WIDTH: Final = 4000
STYLES: Final = {
    "PASS": "green",
    "OK": "green",
    "WAIVED": "yellow",
    "NOT_APPLICABLE": "dim",
    "NOT_RUN": "yellow",
    "MISSING": "yellow",
    "BLOCKED": "yellow",
    "STALE": "yellow",
    "INTERRUPTED": "yellow",
    "FAIL": "bold red",
    "TAMPERED": "bold red",
}

_PRINTERS: Final = frozenset({"click", "rich"})

PORT_ARGUMENT = click.argument("port", type=click.Path(path_type=Path))


def console(*, stderr: bool = False) -> Console:
    """A console for results (stdout) or progress (stderr); plain and wide in a pipe, NO_COLOR respected."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def verdict_text(verdict: str) -> Text:
    """A verdict in its colour; the word alone says it where there is none."""
    return Text(verdict, style=STYLES.get(verdict, ""))


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table; long words fold instead of being cut."""
    made = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(Text(column), overflow="fold")
    return made


def plain(value: object) -> Text:
    """A cell with text from outside: no markup, everything that is not printable escaped."""
    text = str(value)
    return Text("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text))


def print_error(error: BaseException) -> None:
    """Print what went wrong on stderr: one line per problem and a count, a traceback for faults of this tool."""
    if isinstance(error, RefusedError):
        for problem in error.problems:
            click.echo(problem.line(), err=True)
        count = len(error.problems)
        click.echo(f"{count} problem{'' if count == 1 else 's'}; nothing was written", err=True)
    elif isinstance(error, PortError):
        for line in str(error).splitlines() or [type(error).__name__]:
            click.echo(line, err=True)
    else:
        traceback.print_exception(error, file=sys.stderr)
        click.echo("this is a fault of the tool, please report it with the lines above", err=True)


def _nowhere() -> TextIO:
    """What stands in for a stream that the caller closed (`>&-`)."""
    return Path(os.devnull).open("w", encoding="utf-8")


def run(work: Callable[[], int]) -> int:
    """Run a command and turn what it raises into lines and an exit code.

    Args:
        work: returns the exit code.
    """
    sys.stdout = sys.stdout if sys.stdout is not None else _nowhere()
    sys.stderr = sys.stderr if sys.stderr is not None else _nowhere()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        working()
        code = work()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the pipe left; what it asked for was given.
        _drop(sys.stdout)
        return OK
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # noqa: BLE001  (the edge: everything becomes lines and an exit code here)
        return _interrupted() if was_pressed() else _failed(error)
    return code


def _interrupted() -> int:
    say_interrupted()
    return INTERRUPTED


def _failed(error: Exception) -> int:
    """Say what went wrong and return the exit code; an output that takes nothing is for the caller to mend."""
    unwritable = _is_from_output(error)
    try:
        if unwritable:
            _drop(sys.stdout)
            click.echo(f"the output cannot be written: {_reason(error)}", err=True)
        else:
            print_error(error)
    except OSError:
        _drop(sys.stderr)
    return REFUSED if unwritable else exit_code_of(error)


def _is_from_output(error: Exception) -> bool:
    """Whether the system refused what was printed (a full disk behind `>`): raised where text is printed."""
    if not isinstance(error, OSError):
        return False
    frames = list(traceback.walk_tb(error.__traceback__))
    module = frames[-1][0].f_globals.get("__name__", "") if frames else ""
    return module == __name__ or module.partition(".")[0] in _PRINTERS


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _drop(stream: TextIO) -> None:
    """Let a stream lead nowhere: Python must not flush into it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def leave(code: int) -> NoReturn:
    """End the process with an exit code; from here on Ctrl-C has nothing to stop and changes nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if code == INTERRUPTED:
        end(code)
    sys.exit(code)


def main(command: click.Command, arguments: Sequence[str] | None, program: str) -> int:
    """Run a click command whose callback returns an exit code; usage errors are exit 2.

    Args:
        command: the command or group.
        arguments: without the program's name; None = those of the process.
        program: name shown in help.
    """

    def work() -> int:
        try:
            code: Any = command.main(
                args=None if arguments is None else list(arguments), prog_name=program, standalone_mode=False
            )
        except click.exceptions.Abort:
            raise KeyboardInterrupt from None
        except click.ClickException as error:
            error.show()
            return REFUSED
        return code if isinstance(code, int) else OK

    return run(work)
