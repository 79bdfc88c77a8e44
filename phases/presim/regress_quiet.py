"""A pytest plugin that the suite of a port loads (`regress/pytest.ini`): running it leaves nothing in the port.

Why a plugin: the compiled form of a test module is written before its first line runs.
"""

import sys

sys.dont_write_bytecode = True
