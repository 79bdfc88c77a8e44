"""How often the program of a worker runs in one inference, from what the host moves."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from presim.design import Design, Fifo, Link, Loop, Release, Step
from presim.steps import elements_of, side_of

End = tuple[str, str]
"""(fifo, "produce" or "consume")."""


def passes_of(design: Design) -> Mapping[str, int]:
    """Passes of one inference by worker; a worker whose number does not follow is left out."""
    solver = _Solver(design)
    while solver.step():
        pass
    return {name: int(n) for name, n in solver.passes.items() if n.denominator == 1 and n >= 1}


class _Solver:
    def __init__(self, design: Design) -> None:
        self.design = design
        self.fifos = {f.name: f for f in design.fifos}
        self.counts: dict[End, Fraction] = {}
        self.passes: dict[str, Fraction] = {}
        self.rates = {w.name: _rates(w.program, w.name, self.fifos) for w in design.workers}
        for transfer in design.sequence:
            end = (transfer.fifo, "produce" if transfer.direction == "fill" else "consume")
            self.counts[end] = self.counts.get(end, Fraction(0)) + transfer.objects

    def step(self) -> bool:
        """One round; whether something new was found."""
        before = (len(self.counts), len(self.passes))
        for fifo in self.design.fifos:
            self._fifo(fifo)
        for link in self.design.links:
            self._link(link)
        for name, rates in self.rates.items():
            self._worker(name, rates)
        return before != (len(self.counts), len(self.passes))

    def _fifo(self, fifo: Fifo) -> None:
        ratio = Fraction(elements_of(fifo.shape), elements_of(fifo.consumer_shape or fifo.shape)) * fifo.repeat_count
        self._both((fifo.name, "produce"), (fifo.name, "consume"), ratio)

    def _both(self, a: End, b: End, ratio: Fraction) -> None:
        """`b` counts `ratio` times `a`."""
        if a in self.counts:
            self.counts.setdefault(b, self.counts[a] * ratio)
        elif b in self.counts:
            self.counts.setdefault(a, self.counts[b] / ratio)

    def _link(self, link: Link) -> None:
        for source in link.sources:
            for target in link.targets:
                ratio = Fraction(1)
                if link.kind == "forward":
                    left = self.fifos[source]
                    whole = elements_of(left.consumer_shape or left.shape)
                    ratio = Fraction(whole, elements_of(self.fifos[target].shape))
                self._both((source, "consume"), (target, "produce"), ratio)

    def _worker(self, name: str, rates: Mapping[End, int]) -> None:
        known = [(end, rate) for end, rate in rates.items() if end in self.counts and rate]
        if known and name not in self.passes:
            end, rate = known[0]
            self.passes[name] = self.counts[end] / rate
        if name in self.passes:
            for end, rate in rates.items():
                self.counts.setdefault(end, self.passes[name] * rate)


def _rates(program: Iterable[Step], worker: str, fifos: Mapping[str, Fifo]) -> Counter[End]:
    """Objects that one pass releases, by end of a fifo."""
    found: Counter[End] = Counter()
    for step in program:
        if isinstance(step, Loop):
            for end, count in _rates(step.body, worker, fifos).items():
                found[end] += step.times * count
        elif isinstance(step, Release) and step.fifo in fifos:
            found[step.fifo, side_of(fifos[step.fifo], worker, step.side)] += step.count
    return found
