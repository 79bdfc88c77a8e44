"""What every check gets: a design of sound structure, its device, its pools."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from manifest.device import Columns, Device, Figure
from presim.design import Design, Fifo, Tile, Worker
from presim.evidence import BudgetRow
from presim.pools import Wiring, wire
from presim.static.findings import Checked, StaticFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A design, the device that it is for, and what its fifos become."""

    design: Design
    device: Device
    wiring: Wiring

    def fifo(self, name: str) -> Fifo:
        """The fifo of a name."""
        return next(f for f in self.design.fifos if f.name == name)

    def worker(self, name: str) -> Worker | None:
        """The worker of a name."""
        return next((w for w in self.design.workers if w.name == name), None)

    def figure(self, name: str) -> int | None:
        """A number of the device, None = not published."""
        found: Figure = getattr(self.device, name)
        return found.value


Check = Callable[[Scope], Checked]


def scope_of(design: Design, device: Device) -> Scope:
    """The scope of a design of sound structure."""
    return Scope(design=design, device=device, wiring=wire(design, device.arch))


def place(tile: Tile | None) -> str:
    """A tile in words."""
    return "a tile that is not placed" if tile is None else f"{tile.kind} tile ({tile.column}, {tile.row})"


def unknown(rule: str, where: str, figure: str, device: Device, used: int | None = None) -> StaticFinding:
    """A finding that cannot be judged because the device's figure is not published."""
    what = next((getattr(device, f.name) for f in fields(device) if f.name == figure), None)
    source = what.source if isinstance(what, Figure | Columns) else "not in the catalogue"
    return StaticFinding(
        rule=rule,
        severity="unknown",
        where=where,
        text=f"cannot be judged: {figure} of {device.name} is not known ({source})",
        used=used,
        figure=figure,
    )


def judged(rule: str, rows: Iterator[BudgetRow] | list[BudgetRow], figures: dict[str, str], scope: Scope) -> Checked:
    """Budget rows as findings: an error where more is needed than there is, unknown where nobody knows.

    Args:
        rule: name of the check.
        rows: needs and haves.
        figures: device figure by `what` of a row.
        scope: for the device.
    """
    looked_at, found = 0, []
    for row in rows:
        looked_at += 1
        where = f"{row.place}, {row.what}"
        if row.have is None:
            found.append(unknown(rule, where, figures[row.what], scope.device, row.need))
        elif row.need > row.have:
            text = f"needs {row.need}, the tile has {row.have}"
            found.append(
                StaticFinding(rule=rule, severity="error", where=where, text=text, used=row.need, limit=row.have)
            )
    return Checked(rule=rule, looked_at=looked_at, findings=tuple(found))
