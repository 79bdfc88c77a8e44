"""Where in the person's design file something happened."""

import sys
from pathlib import Path
from typing import Final

ROOT: Final = str(Path(__file__).resolve().parent)
NOT_HERE: Final = ("<frozen", "<string>")


def design_site() -> str:
    """`file:line` of the innermost frame outside this package and Python's own machinery, "" for none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((ROOT, sys.base_prefix, *NOT_HERE)):
            return f"{Path(name).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return ""
