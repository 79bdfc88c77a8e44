"""Presim items about the design itself: PS006 to PS009, PS014."""

from checklists.items.presim_runs import no_dispatch
from checklists.items.words import listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict
from presim.evidence import BudgetRow, PresimEvidence


def static_checks_clean(e: PresimEvidence) -> Finding:
    """Every static check of every dispatch was made and finds nothing that cannot work.

    The checks are exact and need no run: split and join segments tile their object, every shim fifo is filled and
    drained as often as it is emptied, no acquire is above its depth, bodies take as much as they give, tasks stay
    within the queues, and what else the figures list. FAIL names check, place and what would be right; warnings are
    listed. NOT_RUN for a check that was not made, or that needs a device figure nobody published: that can be waived
    by its name. NOT_APPLICABLE where no dispatch runs on the array, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    made = {(row.dispatch, row.check) for row in e.static}
    missing = tuple(f"{d}: {c}" for d in e.dispatches for c in e.static_expected if (d, c) not in made)
    unknown = tuple(dict.fromkeys(name for row in e.static for name in row.unknown))
    faults = [(row, place, text) for row in e.static for place, text in row.findings]
    warnings = [(row, place, text) for row in e.static for place, text in row.warnings]
    figures: FigureTable = {
        "checks": len({row.check for row in e.static}),
        "looked_at": sum(row.looked_at for row in e.static),
        "findings": len(faults),
        "warnings": tuple(f"{row.dispatch}: {row.check}: {place}: {text}" for row, place, text in warnings),
        "unknown_device_figures": unknown,
    }
    if faults:
        row, place, text = faults[0]
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        summary = f"dispatch {quoted(row.dispatch)}: {row.check}: {place}: {text}{more}"
        subjects = (*dict.fromkeys(place for _, place, _ in faults), *unknown)
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    if missing or not e.static_expected:
        words = f"not made: {listed(missing)}" if missing else "no static check was made"
        return Finding(verdict=Verdict.NOT_RUN, summary=words, figures=figures, subjects=missing)
    if unknown:
        summary = f"device figure not known for {e.device}: {listed(unknown)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=unknown)
    summary = f"{figures['checks']} checks over {figures['looked_at']} parts find nothing, {len(warnings)} warnings"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def budgets_hold(e: PresimEvidence) -> Finding:
    """On every tile and channel the design needs at most what there is.

    L1 bytes (buffers, fifo pools, stack), memory tile bytes, buffer descriptors with the even and odd partition,
    locks, DMA channels, queue entries, program memory, tiles. FAIL one unit above, naming dispatch, place, need and
    have. NOT_RUN where a dispatch has no row of a budget, or a device figure is not known: it is named and can be
    waived by that name. NOT_APPLICABLE where no dispatch runs on the array, with their number. Program bytes are
    assumed per kernel type.
    """
    if not e.dispatches:
        return no_dispatch(e)
    rows = {(row.dispatch, row.what) for row in e.budgets}
    missing = tuple(f"{d}: {what}" for d in e.dispatches for what in e.budgets_expected if (d, what) not in rows)
    over = [row for row in e.budgets if row.have is not None and row.need > row.have]
    unknown = tuple(dict.fromkeys(row.figure or row.what for row in e.budgets if row.have is None))
    figures = _budget_figures(e.budgets, unknown)
    if over:
        worst = over[0]
        more = f" and {len(over) - 1} more" if len(over) > 1 else ""
        figure = f"{worst.what}: need {worst.need}, have {worst.have}"
        summary = f"dispatch {quoted(worst.dispatch)}: {worst.place}: {figure}{more}"
        subjects = (*dict.fromkeys(row.place for row in over), *unknown)
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    if missing or not e.budgets_expected:
        words = f"no row of {listed(missing)}" if missing else "no budget was drawn up"
        return Finding(verdict=Verdict.NOT_RUN, summary=words, figures=figures, subjects=missing)
    if unknown:
        summary = f"device figure not known for {e.device}: {listed(unknown)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=unknown)
    fullest = max((r for r in e.budgets if r.have), key=lambda r: r.need / (r.have or 1))
    summary = (
        f"{len(e.budgets)} budgets hold on {e.device}; the fullest: {fullest.place}: {fullest.what} "
        f"{fullest.need} of {fullest.have}"
    )
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def _budget_figures(rows: tuple[BudgetRow, ...], unknown: tuple[str, ...]) -> FigureTable:
    """The fullest row of every budget."""
    figures: FigureTable = {"rows": len(rows), "unknown_device_figures": unknown}
    fullest: dict[str, BudgetRow] = {}
    for row in rows:
        before = fullest.get(row.what)
        if before is None or row.need * (before.have or 1) > before.need * (row.have or 1):
            fullest[row.what] = row
    for what, row in fullest.items():
        figures[f"{what}: need (predicted)"] = row.need
        figures[f"{what}: have (quoted)"] = row.have
        figures[f"{what}: place"] = f"{row.dispatch}: {row.place}"
    return figures


def modes_set(e: PresimEvidence) -> Finding:
    """Every kernel that rounds sets rounding and saturation at entry and relies on no kernel before it.

    A tile starts with floor and wrap, and keeps what the last kernel set: forgotten modes give wrong codes only in
    some orders. FAIL names the kernels. NOT_RUN where dispatches run on the array and no kernel was looked at.
    NOT_APPLICABLE where no dispatch does, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    figures: FigureTable = {"kernels": e.kernels, "unset": e.unset_modes}
    if e.unset_modes:
        summary = f"modes are not set at entry by kernel {listed(e.unset_modes)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=e.unset_modes)
    if e.kernels <= 0:
        return not_run("no kernel was looked at")
    summary = f"{e.kernels} kernels set rounding and saturation at entry"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def kernels_agree(e: PresimEvidence) -> Finding:
    """Every kernel rounds and clamps as the manifest says: modes, limits, zero point, type of what it writes.

    Read figure by figure, since a limit that no simulated code reaches gives the right data all the same. FAIL names
    the kernel and the figure. NOT_RUN where dispatches run on the array and no kernel was looked at. NOT_APPLICABLE
    where no dispatch does, with their number.
    """
    if not e.dispatches:
        return no_dispatch(e)
    names = tuple(dict.fromkeys(name for name, _ in e.kernel_faults))
    figures: FigureTable = {"kernels": e.kernels, "kernels_that_differ": names}
    if e.kernel_faults:
        name, text = e.kernel_faults[0]
        more = f" and {len(e.kernel_faults) - 1} more" if len(e.kernel_faults) > 1 else ""
        return Finding(
            verdict=Verdict.FAIL, summary=f"kernel {quoted(name)}: {text}{more}", figures=figures, subjects=names
        )
    if e.kernels <= 0:
        return not_run("no kernel was looked at")
    summary = f"{e.kernels} kernels round and clamp as the manifest says"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def design_reproducible(e: PresimEvidence) -> Finding:
    """The design is for the port's device, fits its schema, is planned twice with the same bytes, reads back equal.

    FAIL names both devices, the first schema error, or the two sha256. NOT_RUN where it was not planned twice.
    """
    figures: FigureTable = {
        "device": e.device,
        "design_device": e.design_device,
        "first_sha256": e.design_sha256,
        "second_sha256": e.design_again_sha256,
        "reload_equal": e.design_reload_equal,
        "manifest_sha256": e.manifest_sha256,
        "schema_errors": len(e.design_errors),
    }
    if e.design_errors:
        summary = f"design.json breaks its schema: {e.design_errors[0]}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    if e.dispatches and e.design_device != e.device:
        summary = f"the design is for {quoted(e.design_device)}, the port for {quoted(e.device)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    if not e.design_sha256 or not e.design_again_sha256:
        return not_run("the design was not planned twice")
    if e.design_sha256 != e.design_again_sha256:
        summary = f"two plans of one manifest differ: sha256 {e.design_sha256} and {e.design_again_sha256}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    if not e.design_reload_equal:
        summary = "design.json does not read back as it was written"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    return Finding(verdict=Verdict.PASS, summary=f"sha256 {e.design_sha256} twice, reads back equal", figures=figures)
