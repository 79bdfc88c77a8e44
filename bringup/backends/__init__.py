"""Where generated designs run: one row for each backend."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from bringup.backends.host.backend import HostBackend
from bringup.backends.options import BackendOptions
from bringup.backends.replay.backend import ReplayBackend
from bringup.backends.xrt.backend import XrtBackend
from bringup.model import Backend
from manifest.errors import Problem, RefusedError

__all__ = ["BACKENDS", "BackendOptions", "HostBackend", "ReplayBackend", "XrtBackend", "backend_of"]

BACKENDS: Final[Mapping[str, Callable[[str, BackendOptions], Backend]]] = MappingProxyType(
    {"host": HostBackend, "xrt": XrtBackend, "replay": ReplayBackend}
)
"""Name -> maker, called with the catalogue name of the target and the options."""


def backend_of(name: str, *, device: str, options: BackendOptions | None = None) -> Backend:
    """A backend by name.

    Raises:
        RefusedError: there is none of that name.
    """
    if name not in BACKENDS:
        problem = Problem(
            code="BRINGUP-BACKEND", where=f"backend {name!r}", what="is unknown", expected=", ".join(BACKENDS)
        )
        raise RefusedError((problem,))
    return BACKENDS[name](device, options or BackendOptions())
