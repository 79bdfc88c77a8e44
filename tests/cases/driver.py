"""Runs the command line in this process and holds an oracle's outputs against expected ones."""

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phases import api
from phases.__main__ import main as phases_main
from phases.baseline.__main__ import main as baseline_main

Array = npt.NDArray[Any]
TIE = Fraction(1, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished command: exit code and everything it printed."""

    code: int
    text: str


def command(main: Callable[[Sequence[str]], int], *arguments: object) -> Run:
    """Run a command line in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main([str(argument) for argument in arguments])
    return Run(code=code, text=printed.getvalue())


def baseline(*arguments: object) -> Run:
    """`python -m phases.baseline`."""
    return command(baseline_main, *arguments)


def phases(*arguments: object) -> Run:
    """`python -m phases`."""
    return command(phases_main, *arguments)


def oracle_outputs(port: Path, inputs: Mapping[str, Array], folder: Path, *extra: object) -> dict[str, Array]:
    """Outputs of `python -m phases oracle`, by ONNX name."""
    source, target = folder / "in.npz", folder / "out.npz"
    np.savez(source, **dict(inputs))  # type: ignore[arg-type]  # names come from the golden files
    run = phases("oracle", port, "--inputs", source, "--outputs", target, *extra)
    assert run.code == 0, run.text
    with np.load(target) as found:
        return {name: found[name] for name in found.files}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Elements compared, those that differ, and those of them that no rounding tie explains."""

    elements: int
    near_ties: int
    unexplained: tuple[str, ...]


def judge(port: Path, inputs: Mapping[str, Array], got: Mapping[str, Array], expected: Mapping[str, Array]) -> Verdict:
    """Every element equal, or one code beside the expected one with an exact value near the tie between the two.

    Args:
        port: where the oracle is, for exact values.
        inputs: by ONNX name, in the model's exact shape.
        got: the oracle's outputs by name.
        expected: what they should be.
    """
    elements, ties = 0, 0
    unexplained: list[str] = []
    loaded = api.load(port)
    for name, want in expected.items():
        have = got[name]
        assert have.shape == want.shape, name
        assert have.dtype == want.dtype, name
        elements += want.size
        differing = np.argwhere(have != want)
        if not len(differing):
            continue
        for index, near in zip(differing, _near_tie(loaded, inputs, name, differing, want), strict=True):
            place = tuple(int(i) for i in index)
            ties += near
            if not near:
                unexplained.append(f"{name}{list(place)}: expected {want[place]}, got {have[place]}")
    return Verdict(elements=elements, near_ties=ties, unexplained=tuple(unexplained))


def _near_tie(
    loaded: api.LoadedPort, inputs: Mapping[str, Array], name: str, indices: Array, want: Array
) -> list[bool]:
    """Whether the exact value of each element lies within 1e-6 relative of the tie between both codes."""
    manifest = loaded.manifest
    makers = {output: op for op in manifest.ops for output in op.outputs}
    op = makers[name]
    codes_name = op.inputs[0] if op.type == "DequantizeLinear" else name
    quant = manifest.tensor(codes_name).quant
    if quant is None:
        return [False] * len(indices)
    tensors = loaded.oracle.run({key: value[np.newaxis] for key, value in inputs.items()}, keep="all")
    full = np.concatenate([np.zeros((len(indices), 1), np.int64), indices], axis=1)
    exact = loaded.oracle.exact([makers[codes_name].name], tensors, codes_name, full)
    answers = []
    for place, value in zip(indices, exact, strict=True):
        if value is None:
            answers.append(False)
            continue
        element = want[tuple(place)]
        code = round(Fraction(float(element)) / Fraction(quant.scales[0])) if want.dtype == np.float32 else int(element)
        code -= 0 if want.dtype == np.float32 else quant.zero_points[0]
        tie = Fraction(floor(value)) + Fraction(1, 2)
        answers.append(code in (floor(value), floor(value) + 1) and abs(value - tie) <= TIE * abs(value))
    return answers
