"""The four phases and the command line."""

import sys

from phases.interrupts import quiet_ctrl_c

if sys.argv[:1] == ["-m"]:  # `python -m phases...` looks for the module: its imports take a second
    quiet_ctrl_c()
