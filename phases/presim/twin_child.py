"""The process that runs a person's twin: `python -m phases.presim.twin_child FOLDER`.

It runs the person's code inside the simulated dataflow: FOLDER has `task/` (`bringup.execute.task`), `twin.py` and
`twin.json` (kernel of the design -> function); what comes of it is written to `task/`.
"""

import importlib.util
import json
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bringup.execute import task as files
from presim.kernels import KERNELS
from presim.simulate import SimData, SimOptions, simulate

MEMORY_BYTES: Final = 4 << 30
FILE_BYTES: Final = 256 << 20


def main(arguments: list[str]) -> int:
    """Run the stage with the twin's functions in place of the simulator's."""
    folder = Path(arguments[0])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    task = files.read_task(folder / "task").task
    wanted = json.loads((folder / "twin.json").read_text(encoding="utf-8"))
    kernels: dict[str, Any] = {k.name: KERNELS[k.type] for k in task.design.kernels}
    kernels |= {name: function for name, function in functions(folder, wanted).items() if name in kernels}
    data = SimData(kernels=kernels, inputs=task.inputs, arrays=task.arrays, outputs=task.outputs, fifos=task.fifos)
    options = SimOptions(schedules=task.schedules, max_steps=task.max_steps, inferences=len(task.inputs))
    result = simulate(task.design, data=data, options=options)
    elements = sum(result.compared.values())
    files.write_result(folder / "task", {"sound": result.sound, "text": result.text, "elements": elements}, (), {})
    return 0


def functions(folder: Path, wanted: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    """Functions of `twin.py` by kernel of the design."""
    spec = importlib.util.spec_from_file_location("twin", folder / "twin.py")
    if spec is None or spec.loader is None:
        msg = "twin.py cannot be loaded"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {kernel: getattr(module, name) for kernel, name in wanted.items()}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
