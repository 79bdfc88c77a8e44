"""Baseline items about the scheme and the manifest itself: BL001, BL002, BL005, BL006, BL007."""

from checklists.items.words import counted, listed, not_run, quoted
from checklists.model import FigureTable, Finding, Verdict
from oracle.evidence import BaselineEvidence

ACCUMULATING: frozenset[str] = frozenset({"Conv", "Gemm", "MatMul"})


def scheme_locked(e: BaselineEvidence) -> Finding:
    """Every tensor between quantised ops has a type, a scale and a zero point.

    FAIL names each tensor without one: a kernel cannot be chosen for it. NOT_RUN where the manifest has no
    quantised tensor at all.
    """
    s = e.scheme
    figures = {"tensors": s.tensors, "unlocked": len(s.unlocked)}
    if s.unlocked:
        summary = f"no scale for {listed(s.unlocked)}: quantise the activation, or leave the op to the host"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=s.unlocked)
    if not s.tensors:
        return not_run("the manifest has no quantised tensor")
    return Finding(
        verdict=Verdict.PASS, summary=f"{counted(s.tensors, 'tensor')}, each with type and scale", figures=figures
    )


def power_of_two_verified(e: BaselineEvidence) -> Finding:
    """Where the scheme claims power-of-two scales, every scale is exactly 2**k, by an exact test of each one.

    FAIL where the claim is made and a scale is not 2**k (its tensor is named), and where the count and the list of
    exceptions contradict each other. Without the claim the exceptions are listed and the item is NOT_APPLICABLE:
    kernels then need a multiplier beside the shift. NOT_RUN where no scale was looked at.
    """
    s = e.scheme
    others = s.scales - s.power_of_two
    figures: FigureTable = {
        "claimed": s.claims_power_of_two,
        "scales": s.scales,
        "power_of_two": s.power_of_two,
        "exceptions": s.exceptions,
    }
    if s.scales <= 0:
        return not_run("no scale was looked at")
    if bool(others) != bool(s.exceptions) or others < len(s.exceptions):
        counts = f"{others} of {counted(s.scales, 'scale')} not 2**k"
        summary = f"{counts}, but {counted(len(s.exceptions), 'tensor')} listed: count or list is wrong"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=s.exceptions)
    if others == 0:
        return Finding(
            verdict=Verdict.PASS, summary=f"{counted(s.scales, 'scale')}, each exactly 2**k", figures=figures
        )
    if s.claims_power_of_two:
        summary = f"power-of-two scales are claimed, but {others} of {s.scales} are not, in {listed(s.exceptions)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=s.exceptions)
    summary = f"no power-of-two claim: {others} of {counted(s.scales, 'scale')} not 2**k, in {listed(s.exceptions)}"
    return Finding(verdict=Verdict.NOT_APPLICABLE, summary=summary, figures=figures)


def manifest_reproducible(e: BaselineEvidence) -> Finding:
    """The manifest fits its schema, a second independent import gives the same bytes, and the file reads back equal.

    FAIL names the first schema error, or the two sha256. NOT_RUN where it was not imported twice.
    """
    m = e.manifest
    figures: FigureTable = {
        "schema_errors": len(m.schema_errors),
        "first_sha256": m.first_sha256,
        "second_sha256": m.second_sha256,
        "reload_equal": m.reload_equal,
    }
    if m.schema_errors:
        summary = f"manifest.json breaks its schema: {m.schema_errors[0]}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    if not m.first_sha256 or not m.second_sha256:
        return not_run("the model was not imported twice")
    if m.first_sha256 != m.second_sha256:
        summary = f"two imports of one model differ: sha256 {m.first_sha256} and {m.second_sha256}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    if not m.reload_equal:
        summary = "manifest.json or tensors.npz does not read back as it was written"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures)
    return Finding(verdict=Verdict.PASS, summary=f"sha256 {m.first_sha256} twice, reads back equal", figures=figures)


def layouts_round_trip(e: BaselineEvidence) -> Finding:
    """Every layout transform, packed and unpacked again, gives the array back, without any quantisation math.

    The packed elements stand where the transform's definition says: a swapped block axis undoes itself on the way
    back. FAIL names each tensor. NOT_APPLICABLE where the manifest has no layout and no op with weights.
    """
    m = e.manifest
    figures = {"layouts": m.layouts, "failures": len(m.layout_failures), "misplaced": len(m.layout_misplaced)}
    if m.layout_failures:
        summary = f"pack then unpack changes {listed(m.layout_failures)}"
        subjects = (*m.layout_failures, *m.layout_misplaced)
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    if m.layout_misplaced:
        summary = (
            f"packed elements of {listed(m.layout_misplaced)} do not stand where the layout says; "
            "likely cause: axes of the packed array in another order"
        )
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=m.layout_misplaced)
    if m.layouts:
        return Finding(
            verdict=Verdict.PASS,
            summary=f"{counted(m.layouts, 'layout')}, packed and unpacked without change",
            figures=figures,
        )
    if accumulating_ops(e):
        return not_run(f"no layout was tried, though {listed(accumulating_ops(e))} has weights")
    return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no op has weights: 0 layouts", figures=figures)


def accumulator_proved(e: BaselineEvidence) -> Finding:
    """The largest possible |accumulator|, from the actual weights and the whole range of the input, fits its width.

    The limit: bound <= 2**(bits - 1) - 1, and no made-up input (codes that follow the signs of the weights) reaches
    beyond the bound. FAIL names the op, its bound and its width or what was reached. NOT_APPLICABLE where no op
    accumulates; NOT_RUN where one does and has no bound, or where no input was tried on one that has a bound.
    """
    bounded = {a.op for a in e.accumulators}
    unproved = tuple(op for op in accumulating_ops(e) if op not in bounded)
    over = [a for a in e.accumulators if not 0 <= a.bound < 1 << (a.bits - 1)]
    beyond = [a for a in e.accumulators if a.reached is not None and a.reached > a.bound]
    untried = tuple(a.op for a in e.accumulators if a.reached is None)
    figures: dict[str, int] = {"ops": len(e.accumulators), "over": len(over), "unproved": len(unproved)}
    figures |= {"tried": len(e.accumulators) - len(untried), "reached_beyond": len(beyond)}
    if e.accumulators:
        tightest = max(e.accumulators, key=lambda a: a.bound.bit_length() - a.bits)
        figures |= {"largest_bound": tightest.bound, "bits": tightest.bits}
    if over:
        worst = over[0]
        summary = (
            f"op {quoted(worst.op)}: |accumulator| can reach {worst.bound}, expected at most "
            f"{(1 << (worst.bits - 1)) - 1} ({worst.bits} bits); likely cause: too many products or too large a bias; "
            "split the reduction or use a wider accumulator"
        )
        subjects = tuple(a.op for a in over) + unproved
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    if beyond:
        worst = beyond[0]
        summary = (
            f"op {quoted(worst.op)}: a made-up input reaches |accumulator| {worst.reached}, beyond the bound "
            f"{worst.bound} that is stated as proved; likely cause: a wrong sum over the weights, or the bias left out"
        )
        subjects = tuple(a.op for a in beyond) + unproved
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=subjects)
    if unproved:
        summary = f"no bound was proved for {listed(unproved)}"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=unproved)
    if not e.accumulators:
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="no op accumulates", figures=figures)
    if untried:
        summary = f"no made-up input was tried on {listed(untried)}, so that the bound stands alone"
        return Finding(verdict=Verdict.NOT_RUN, summary=summary, figures=figures, subjects=untried)
    bits = figures["bits"]
    summary = (
        f"{counted(len(e.accumulators), 'op')}, made-up inputs stay within each bound; the fullest can reach "
        f"{figures['largest_bound']} of {(1 << (bits - 1)) - 1} ({bits} bits)"
    )
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def accumulating_ops(e: BaselineEvidence) -> tuple[str, ...]:
    """Ops with weights that any comparison met, by name: what the manifest may not have forgotten.

    A comparison of the graph that onnxruntime dumps names its nodes and is left out.
    """
    rows = [
        t
        for c in (e.random_ops, *e.comparisons)
        if c is not None and c.kind not in ("dump", "dump_op")
        for t in c.tensors
    ]
    return tuple(sorted({t.op for t in rows if t.op_type in ACCUMULATING}))
