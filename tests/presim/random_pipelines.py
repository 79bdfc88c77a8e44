"""Random designs of two or three cores with windows, broadcasts and skips, as plain data and as a design."""

import random
from typing import Any

from presim.design import Design, Step
from tests.presim.sketches import Sketch, acquire, release

Access = tuple[str, str, int]


def random_pipeline(seed: int) -> dict[str, Any]:
    """Fifos with a producer, consumers, objects of an inference and a depth per end; workers with flat programs."""
    draw = random.Random(seed)
    cores = [f"w{i}" for i in range(draw.choice((2, 2, 3)))]
    objects = draw.choice((2, 2, 3, 4))
    fifos: dict[str, dict[str, Any]] = {}

    def fifo(name: str, producer: str, *consumers: str) -> None:
        depths = {side: draw.choice((1, 1, 1, 2)) for side in (producer, *consumers)}
        fifos[name] = {"producer": producer, "consumers": list(consumers), "objects": objects, "depths": depths}

    fifo("in", "host", cores[0], *([cores[-1]] if draw.random() < 0.6 else []))
    for index, core in enumerate(cores[:-1]):
        extra = [cores[-1]] if index == 0 and len(cores) == 3 and draw.random() < 0.7 else []
        fifo(f"t{index}", core, cores[index + 1], *extra)
    if draw.random() < 0.6:
        fifo("second", cores[0], cores[1])
    fifo("out", cores[-1], "host")
    programs = {core: _program(core, fifos, objects, draw) for core in cores}
    for name, one in fifos.items():
        for core in cores:
            need = max((n for kind, f, n in programs[core] if kind == "acquire" and f == name), default=1)
            if core in one["depths"]:
                one["depths"][core] = max(one["depths"][core], need)
    return {"fifos": fifos, "workers": programs, "inferences": 1 if len(cores) == 3 else draw.choice((1, 2))}


def _program(core: str, fifos: dict[str, dict[str, Any]], objects: int, draw: random.Random) -> list[Access]:
    """Rounds of accesses in some order; some inputs are taken in a window or all at once."""
    inputs = [n for n, f in fifos.items() if core in f["consumers"]]
    outputs = [n for n, f in fifos.items() if f["producer"] == core]
    how = {name: draw.choice(("round", "round", "window", "all", "all")) for name in inputs}
    how |= {name: draw.choice(("round", "round", "all")) for name in outputs}
    steps: list[Access] = []
    order = inputs + outputs
    if draw.random() < 0.3:
        draw.shuffle(order)
    steps += [("acquire", name, objects) for name in order if how[name] == "all"]
    for turn in range(objects):
        now = [name for name in order if how[name] != "all"]
        for name in now:
            ahead = 2 if how[name] == "window" else 1
            steps.append(("acquire", name, min(ahead, objects - turn)))
        steps += [("release", name, 1) for name in now]
    return steps + [("release", name, objects) for name in order if how[name] == "all"]


def design_of(case: dict[str, Any]) -> Design:
    """The same as a design; every end has its own depth."""
    s = Sketch()
    for worker, program in case["workers"].items():
        steps: list[Step] = [(acquire if kind == "acquire" else release)(name, n) for kind, name, n in program]
        s.worker(worker, *steps)
    for index, (name, fifo) in enumerate(case["fifos"].items()):
        ends = [f"shim{index}" if side == "host" else side for side in (fifo["producer"], *fifo["consumers"])]
        s.fifo(name, *ends, depth=[fifo["depths"][side] for side in (fifo["producer"], *fifo["consumers"])])
        if fifo["producer"] == "host":
            s.fill(name, fifo["objects"])
        if "host" in fifo["consumers"]:
            s.drain(name, fifo["objects"])
    return s.design()
