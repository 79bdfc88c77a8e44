"""The host's C++ compiler and the run-time libraries that belong to it."""

import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from manifest.errors import UnavailableError

COMPILER: Final = "g++"
NEEDS: Final = "GCC 11 or newer, for C++20"
QUERY_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A compiler that was found.

    Attributes:
        compiler: its path.
        version: first line that it says of itself.
    """

    compiler: str
    version: str

    def library(self, name: str) -> Path:
        """A run-time library of the compiler.

        Raises:
            UnavailableError: the compiler has none of that name.
        """
        found = Path(_ask(self.compiler, f"-print-file-name={name}"))
        if not found.is_absolute() or not found.exists():
            msg = f"{name}: not installed with {self.version}; install the sanitizer libraries of the compiler"
            raise UnavailableError(msg)
        return found.resolve()

    def program(self, name: str) -> str:
        """A program that the compiler uses, such as `nm`."""
        return _ask(self.compiler, f"-print-prog-name={name}")


def find_toolchain() -> Toolchain:
    """The compiler on PATH.

    Raises:
        UnavailableError: there is none.
    """
    found = shutil.which(COMPILER)
    if found is None:
        msg = f"{COMPILER}: not found on PATH; generated kernels are executed with it ({NEEDS})"
        raise UnavailableError(msg)
    return _toolchain(found)


@functools.cache
def _toolchain(compiler: str) -> Toolchain:
    return Toolchain(compiler=compiler, version=_ask(compiler, "--version").splitlines()[0])


@functools.cache
def _ask(compiler: str, question: str) -> str:
    try:
        done = subprocess.run([compiler, question], capture_output=True, text=True, check=True, timeout=QUERY_S)
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{compiler} {question}: does not answer ({error})"
        raise UnavailableError(msg) from error
    return done.stdout.strip()
