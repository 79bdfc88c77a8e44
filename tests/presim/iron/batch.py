"""Runs many design files, each in a fork of one process that has imported everything: by `lowering.refusals`."""

import os
import sys
from pathlib import Path

from presim.iron import child

if __name__ == "__main__":
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        pid = os.fork()
        if not pid:
            os._exit(child.main([str(folder), "npu2", str(folder / "design.py")]))
        os.waitpid(pid, 0)
