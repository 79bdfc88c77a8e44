"""Progress on stderr, and the seconds of each step of a run for `reports/run.json`."""

import os
import time
from typing import Any, Final

from manifest.io import parse_canonical
from phases import cli
from phases.port import Port

RUN: Final = "reports/run.json"


def earlier_runs(port: Port) -> dict[str, Any]:
    """What the phases that ran before wrote about their own runs.

    Raises:
        UpstreamError: the file was tampered with.
    """
    if RUN not in port.state.files:
        return {}
    value = parse_canonical(port.read(RUN), RUN)
    return dict(value) if isinstance(value, dict) else {}


class Clock:
    """Names the step that runs, where a person watches, and remembers how long each took."""

    def __init__(self) -> None:
        self.console = cli.console(stderr=True)
        self.rows: list[tuple[str, float]] = []
        self.name = ""
        self.since = time.monotonic()
        self.status = self.console.status("", spinner="line")
        if self.console.is_terminal:
            self.status.start()

    def step(self, words: str) -> None:
        """Begin a step."""
        self._close()
        self.name = words
        if self.console.is_terminal:
            self.status.update(cli.plain(words))

    def _close(self) -> None:
        now = time.monotonic()
        if self.name:
            self.rows.append((self.name, now - self.since))
        self.since = now
        self.name = ""

    def record(self) -> dict[str, Any]:
        """Clocks, durations and host: the only file that has them."""
        self._close()
        return {
            "seconds": {name: round(seconds, 3) for name, seconds in self.rows},
            "unix_time": round(time.time(), 3),
            "load": [round(x, 2) for x in os.getloadavg()],
            "host": os.uname().machine,
        }

    def end(self) -> None:
        """Take the progress line away."""
        self.status.stop()
