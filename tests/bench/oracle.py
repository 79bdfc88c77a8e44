"""Speed of the oracle against onnxruntime and onnx.reference: `python -m tests.bench.oracle`.

Per model, the whole feed, everything loaded before the clock starts, one thread each, every quantised tensor returned
by all three. Passes of the oracle and of onnxruntime (optimisations off) take turns, so that a busy machine hits both.
onnx.reference is slow and gets a few feeds within a time box.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from manifest.errors import PortError
from manifest.onnx_import import Imported, import_model, inspect_model
from manifest.onnx_import.instrument import expose, quantized_outputs, raise_opset
from oracle.cpu import read_cpu_flags
from oracle.reference.session import OFF, Session
from oracle.reference.stagewise import chunks
from oracle.run import Oracle

Array = npt.NDArray[Any]
Feeds = dict[str, Array]

CORPUS: Final = Path(__file__).resolve().parents[3] / "shared" / "corpus"
DEFAULT: Final = ("digits_mlp", "digits_cnn", "mnist_resnet", "cntk_mnist", "qat_")
AIM_ORT: Final = 2.0
AIM_REFERENCE: Final = 20.0
OPSET: Final = 21
_LATENCY_CALLS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Milliseconds per sample over the whole feed and of single calls; None = not measured, `why` says why."""

    model: str
    samples: int
    tensors: int
    oracle_ms: float
    ort_ms: float
    reference_ms: float | None
    oracle_one_ms: float
    ort_one_ms: float
    why: str

    @property
    def against_ort(self) -> float:
        """Oracle time over onnxruntime time."""
        return self.oracle_ms / self.ort_ms

    @property
    def against_ort_one(self) -> float:
        """The same for single calls."""
        return self.oracle_one_ms / self.ort_one_ms

    @property
    def reference_over_oracle(self) -> float | None:
        """How many times slower onnx.reference is."""
        return None if self.reference_ms is None else self.reference_ms / self.oracle_ms


def load_feeds(corpus: Path, file: str, inputs: Iterable[str]) -> Feeds:
    """Real feeds of a corpus file by input name.

    Args:
        corpus: folder with `index.json` and `feeds`.
        file: name of the file in `models`.
        inputs: input names of the model; a single array may be called `x` whatever the input is called.
    """
    index = json.loads((corpus / "index.json").read_text(encoding="utf-8"))
    feed = next((m["feed"] for m in index.values() if f"models/{file}" in m["files"].values()), None)
    if feed is None:
        msg = f"no feed for {file}"
        raise FileNotFoundError(msg)
    with np.load(corpus / "feeds" / f"{feed}.npz", allow_pickle=False) as stored:
        return {name: stored[name if name in stored else "x"] for name in inputs}


def timed(run: Callable[..., object], *arguments: object) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def measure(name: str, imported: Imported, feeds: Feeds, repeats: int, seconds: float) -> Row:
    """All figures of one model."""
    shown = tuple(n for n in quantized_outputs(imported.model_bytes) if n in imported.manifest.by_name())
    model = expose(imported.model_bytes, shown)
    session = Session(model, OFF)
    outputs = tuple(dict.fromkeys((*imported.manifest.model.outputs, *shown)))
    oracle = Oracle(imported.manifest, imported.arrays, blas_threads=1, fma=read_cpu_flags().fma)
    count = len(next(iter(feeds.values())))
    pieces = [piece for _, piece in chunks(imported.manifest, feeds)]
    singles = [{n: a[i] for n, a in feeds.items()} for i in range(count)]

    def one_oracle(feed: Feeds) -> None:
        oracle.run(feed, keep="quantized")

    def whole_oracle() -> None:
        for piece in pieces:
            one_oracle(piece)

    def whole_ort() -> None:
        for feed in singles:
            session.run_one(outputs, feed)

    ones = [{n: a[i : i + 1] for n, a in feeds.items()} for i in range(min(count, _LATENCY_CALLS))]
    one_oracle(ones[0])
    session.run_one(outputs, singles[0])
    passes = [(timed(whole_oracle), timed(whole_ort)) for _ in range(repeats)]
    calls = [
        (timed(one_oracle, one), timed(session.run_one, outputs, single))
        for one, single in zip(ones, singles, strict=False)
    ]
    reference, why = reference_seconds(imported.model_bytes, outputs, singles, seconds)
    return Row(
        model=name,
        samples=count,
        tensors=len(outputs),
        oracle_ms=1e3 * statistics.median(p[0] for p in passes) / count,
        ort_ms=1e3 * statistics.median(p[1] for p in passes) / count,
        reference_ms=None if reference is None else 1e3 * reference,
        oracle_one_ms=1e3 * statistics.median(c[0] for c in calls),
        ort_one_ms=1e3 * statistics.median(c[1] for c in calls),
        why=why,
    )


def reference_seconds(
    model: bytes, outputs: tuple[str, ...], singles: list[Feeds], seconds: float
) -> tuple[float | None, str]:
    """Seconds per sample of onnx.reference (opset raised) within a time box, or why there are none."""
    try:
        evaluator = ReferenceEvaluator(onnx.load_from_string(expose(raise_opset(model, OPSET), outputs)))
        spent: list[float] = []
        for feed in singles:
            spent.append(timed(evaluator.run, list(outputs), feed))
            if sum(spent) > seconds:
                break
    except Exception as error:  # noqa: BLE001  (whatever a foreign evaluator raises is the reason that is printed)
        return None, f"onnx.reference: {type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return statistics.median(spent[1:] or spent), ""


def selected(corpus: Path, prefixes: tuple[str, ...]) -> Iterator[Path]:
    """Quantised files of the corpus whose name starts with one of the prefixes."""
    for path in sorted((corpus / "models").glob("*.onnx")):
        if path.name.startswith(prefixes) and ("." in path.stem or path.stem.endswith("_qcdq")):
            yield path


def table_of(rows: list[Row]) -> Table:
    """All figures, medians last."""
    table = Table(title="ms per sample, one thread, all quantised tensors returned")
    for title in ("model", "samples", "tensors", "oracle", "ort off", "oracle/ort", "reference", "reference/oracle"):
        table.add_column(title, justify="left" if title == "model" else "right")
    for title in ("oracle, 1", "ort off, 1", "oracle/ort, 1"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row.model, str(row.samples), str(row.tensors), f"{row.oracle_ms:.4f}", f"{row.ort_ms:.4f}",
            f"{row.against_ort:.2f}", number(row.reference_ms), number(row.reference_over_oracle, 0),
            f"{row.oracle_one_ms:.3f}", f"{row.ort_one_ms:.3f}", f"{row.against_ort_one:.1f}",
        )  # fmt: skip
    slower = [r.reference_over_oracle for r in rows if r.reference_over_oracle is not None]
    table.add_section()
    table.add_row(
        "median", str(len(rows)), "", "", "", f"{statistics.median(r.against_ort for r in rows):.2f}", "",
        number(statistics.median(slower) if slower else None, 0), "", "",
        f"{statistics.median(r.against_ort_one for r in rows):.1f}",
    )  # fmt: skip
    return table


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def verdict(rows: list[Row]) -> str:
    """The aims beside the medians."""
    ort = statistics.median(r.against_ort for r in rows)
    slower = [r.reference_over_oracle for r in rows if r.reference_over_oracle is not None]
    reference = statistics.median(slower) if slower else float("nan")
    return (
        f"median oracle/onnxruntime {ort:.2f} (aim: at most {AIM_ORT:g}); "
        f"median onnx.reference/oracle {reference:.0f} over {len(slower)} models (aim: at least {AIM_REFERENCE:g})"
    )


def run(corpus: Path, prefixes: tuple[str, ...], repeats: int, seconds: float, console: Console) -> list[Row]:
    """Measure all selected models; prints what could not be measured."""
    rows: list[Row] = []
    left: dict[str, str] = {}
    before = os.getloadavg()[0]
    for path in selected(corpus, prefixes):
        try:
            feeds = load_feeds(corpus, path.name, [given.name for given in inspect_model(path).inputs])
            imported = import_model(path, shapes={name: array.shape[1:] for name, array in feeds.items()})
            row = measure(path.stem, imported, feeds, repeats, seconds)
        except (PortError, FileNotFoundError, KeyError) as error:
            left[path.stem] = str(error).splitlines()[0]
            continue
        rows.append(row)
        if row.why:
            left[path.stem] = row.why
    if rows:
        console.print(f"onnxruntime {ort.__version__}, numpy {np.__version__}, onnx {onnx.__version__}")
        console.print(
            f"load average before and after: {before:.1f}, {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
        console.print(table_of(rows))
        console.print(verdict(rows))
    console.print(f"not or not wholly measured: {len(left)}")
    for model, why in left.items():
        console.print(f"  {model}: {why[:200]}", markup=False)
    return rows


@click.command()
@click.option("--corpus", type=click.Path(path_type=Path, file_okay=False), default=CORPUS, show_default=False)
@click.option("--models", multiple=True, default=DEFAULT, help="Prefix of file names; may be given several times.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, help="Passes over the whole feed.")
@click.option("--seconds", type=float, default=1.5, help="Time box of onnx.reference per model.")
def main(corpus: Path, models: tuple[str, ...], repeats: int, seconds: float) -> None:
    """Speed of the oracle against onnxruntime with optimisations off and against onnx.reference."""
    console = Console(width=165)
    if not (corpus / "models").is_dir():
        console.print(f"no model corpus at {corpus}: nothing measured")
        return
    with threadpool_limits(limits=1):
        run(corpus, models, repeats, seconds, console)


if __name__ == "__main__":
    main()
