"""All gates of a port on one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from checklists.model import GateReport, one_line
from manifest.model import QRANGE, Dispatch, Manifest, Tensor
from phases.reports.text import MEANINGS, counts, figure_rows

TEMPLATES: Final = Path(__file__).resolve().parent.parent / "templates"
SHOWN_ROWS: Final = 500
"""Rows of a table on the page; the manifest file holds all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRow:
    """One activation: what its scale can hold, what the data showed, and both as a bar from 0 to 100."""

    name: str
    dtype: str
    shape: str
    scale: str
    zero_point: str
    holds: str
    seen: str
    left: float
    width: float
    used: str


def render_html(gates: Sequence[GateReport], manifest: Manifest) -> bytes:
    """Return the page: per gate its items, figures and decisions; activations, ops per dispatch, notes.

    Every name is escaped, so that a hostile one shows as text.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = one_line
    ranges = [row for t in manifest.tensors if (row := range_row(t)) is not None]
    text = environment.get_template("report.html.j2").render(
        gates=gates,
        counts=counts,
        figure_rows=figure_rows,
        meanings=MEANINGS,
        manifest=manifest,
        ranges=ranges[:SHOWN_ROWS],
        ranges_left=max(0, len(ranges) - SHOWN_ROWS),
        dispatch_words=dispatch_words,
        shown=SHOWN_ROWS,
    )
    return text.encode("utf-8")


def range_row(tensor: Tensor) -> RangeRow | None:
    """The row of a quantised activation with one scale, None for every other tensor."""
    quant = tensor.quant
    if tensor.array is not None or quant is None or len(quant.scales) != 1 or tensor.dtype not in QRANGE:
        return None
    scale, zero_point = quant.scales[0], quant.zero_points[0]
    low, high = ((code - zero_point) * scale for code in QRANGE[tensor.dtype])
    seen = tensor.observed
    left, right = (0.0, 0.0) if seen is None else (_place(x, low, high) for x in (seen.minimum, seen.maximum))
    exponent = f" = 2^{quant.exponents[0]}" if quant.exponents else ""
    return RangeRow(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=" x ".join(map(str, tensor.shape)) or "one value",
        scale=f"{scale:.6g}{exponent}",
        zero_point=str(zero_point),
        holds=f"{low:.6g} .. {high:.6g}",
        seen="not measured" if seen is None else f"{seen.minimum:.6g} .. {seen.maximum:.6g}",
        left=round(left, 2),
        width=round(max(right - left, 0.5), 2) if seen is not None else 0.0,
        used="" if seen is None else f"{right - left:.1f} %",
    )


def dispatch_words(dispatch: Dispatch) -> str:
    """What a dispatch hands on, in words."""
    return f"{len(dispatch.ops)} ops on {'the array' if dispatch.where == 'npu' else 'the host'}"


def _place(value: float, low: float, high: float) -> float:
    """Where a value lies between `low` and `high`, 0 to 100, clipped."""
    return 100.0 * min(1.0, max(0.0, (value - low) / (high - low)))
