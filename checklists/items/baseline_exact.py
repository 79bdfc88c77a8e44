"""Baseline items about exactness: BL008, BL009, BL010, BL011, BL013, BL014."""

from typing import Final

from checklists.items.words import NO_DATA, counted, listed, not_run, placed, quoted
from checklists.model import FigureTable, Finding, Verdict
from oracle.evidence import FLOAT_TOLERANCE, BaselineEvidence, Comparison, TensorComparison

TIE_RULE_KINDS: Final = frozenset({"dump_op", "file_op", "random_op"})
"""Comparisons against onnxruntime's float path, where an element within 1e-6 relative of a tie is explained."""


def unexplained(comparison: Comparison, row: TensorComparison) -> int:
    """Differing elements of a row that nothing explains; a row that does not add up is taken at its worst."""
    tie_rule = comparison.kind in TIE_RULE_KINDS or row.op in comparison.left_in_float
    explained = row.reference_inexact + (row.near_ties + row.within_tolerance if tie_rule else 0)
    return max(row.unexplained, row.mismatches - explained)


def gap(comparison: Comparison) -> str:
    """Why a comparison does not cover what it should, or ""."""
    c = comparison
    if c.why_not:
        return c.why_not
    if c.kind == "dump_op" and not c.tensors_expected and not c.left_in_float:
        return ""  # the dump left nothing in float
    compared = len({t.tensor for t in c.tensors})
    empty = sorted({t.tensor for t in c.tensors if t.elements <= 0})
    if c.samples <= 0 or c.elements <= 0:
        return f"{counted(c.samples, 'sample')}, {counted(c.elements, 'element')} compared"
    if empty:
        return f"0 elements compared of {listed(empty)}"
    if not 0 < c.tensors_expected <= compared:
        return f"{counted(compared, 'tensor')} compared, {c.tensors_expected} expected"
    return ""


def differing(row: TensorComparison, count: int) -> str:
    """The first difference of a tensor in words."""
    where = (
        f"tensor {quoted(row.tensor)} (op {quoted(row.op)}, {row.op_type}): {count} of "
        f"{counted(row.elements, 'element')} {'differs' if count == 1 else 'differ'}"
    )
    if row.first is None:
        return f"{where} without explanation"
    m = row.first
    cause = f"; likely cause: {m.cause}" if m.cause else ""
    return f"{where}, first at {list(m.index)}: expected {m.expected}, got {m.got}, exact value {m.exact}{cause}"


def judged(comparisons: tuple[Comparison, ...]) -> Finding:
    """FAIL where a difference is unexplained, NOT_RUN where something was not compared, else PASS."""
    bad = [(t, n) for c in comparisons for t in c.tensors if (n := unexplained(c, t)) > 0]
    gaps = {c.kind: why for c in comparisons if (why := gap(c))}
    figures = {
        "samples": max((c.samples for c in comparisons), default=0),
        "tensors": sum(len({t.tensor for t in c.tensors}) for c in comparisons),
        "tensors_expected": sum(c.tensors_expected for c in comparisons),
        "elements": sum(c.elements for c in comparisons),
        "mismatches": sum(c.mismatches for c in comparisons),
        "near_ties": sum(c.near_ties for c in comparisons),
        "floats_within_tolerance": sum(c.within_tolerance for c in comparisons),
        "reference_inexact_above_2_24": sum(c.reference_inexact for c in comparisons),
        "unexplained": sum(n for _, n in bad),
        "left_in_float": len({op for c in comparisons for op in c.left_in_float}),
    }
    not_compared = "; ".join(f"comparison {kind}: {why}" for kind, why in gaps.items())
    if bad:
        row, count = bad[0]
        tensors = tuple(dict.fromkeys(t.tensor for t, _ in bad))
        others = len(tensors) - 1
        more = f"; {counted(others, 'more tensor')} {'differs' if others == 1 else 'differ'}" if others else ""
        summary = differing(row, count) + more + (f"; {not_compared}" if gaps else "")
        ops = {t.tensor: t.op for t, _ in bad}
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=(*tensors, *gaps), ops=ops)
    if gaps or not figures["elements"]:
        return Finding(verdict=Verdict.NOT_RUN, summary=not_compared or "0 elements compared", figures=figures)
    summary = (
        f"{counted(figures['elements'], 'element')} of {counted(figures['tensors'], 'tensor')}: "
        f"{figures['mismatches']} differ, of them {counted(figures['near_ties'], 'near tie')}, "
        f"{counted(figures['floats_within_tolerance'], 'float')} within {float(FLOAT_TOLERANCE):g} relative, "
        f"reference inexact above 2^24: {counted(figures['reference_inexact_above_2_24'], 'element')}, 0 unexplained"
    )
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def exact_per_op(e: BaselineEvidence) -> Finding:
    """Every op alone equals onnxruntime on random and boundary inputs.

    A difference is explained only where the exact rational value lies within 1e-6 relative of a rounding tie, or
    where the proved bound is above 2^24 and the oracle is the exact one. A float output that is a sum or a host
    function, and codes made of such floats, may be off by 1e-5 relative to the feed's largest value or the largest term
    inside the function (1 in a Sigmoid); these are counted apart. FAIL names tensor, op and element. NOT_RUN where an
    op, or everything, was left out.
    """
    if e.random_ops is None:
        return not_run("no op was run alone against onnxruntime")
    return judged((e.random_ops,))


def exact_full_model(e: BaselineEvidence) -> Finding:
    """The oracle equals onnxruntime on real data on every quantised tensor, in every comparison the format needs.

    QOperator files and files with 2**k scales: onnxruntime with optimisations off, 0 differences. Other QDQ files:
    the graph that onnxruntime dumps at EXTENDED, 0 differences (an op that the dump leaves in float by the tie
    rule), and the file op by op by the tie rule: the exact value within 1e-6 relative of a rounding tie. A
    difference is explained also where onnxruntime is inexact above 2^24 and the oracle is exact. FAIL names tensor,
    op, element and likely cause; NOT_RUN over 0 elements, over fewer tensors than the file has, and without data.
    Beside it stands how many elements onnxruntime's own levels disagree on.
    """
    required = tuple(c for c in e.comparisons if c.required)
    if not e.data:
        return not_run(NO_DATA)
    if not required:
        return not_run("no comparison with onnxruntime was made")
    finding = judged(required)
    levels = e.levels
    beside: FigureTable = {
        "comparisons": tuple(f"{c.kind}: {c.reference}" for c in required),
        "comparisons_left_out": tuple(f"{c.kind}: {c.why_not}" for c in e.comparisons if not c.required),
        "elements_by_comparison": tuple(f"{c.kind}: {c.elements}" for c in required),
        "near_ties_by_comparison": tuple(f"{c.kind}: {c.near_ties}" for c in required),
        "floats_within_tolerance_by_comparison": tuple(f"{c.kind}: {c.within_tolerance}" for c in required),
        "levels_disagree_elements": levels.disagreeing if levels else None,
        "levels_compared_elements": levels.elements if levels else None,
    }
    said = (
        f"; onnxruntime's own levels disagree on {levels.disagreeing} of {levels.elements}"
        if levels
        else "; disagreement of onnxruntime's own levels not measured"
    )
    return Finding(
        verdict=finding.verdict,
        summary=finding.summary + said,
        figures={**finding.figures, **beside},
        subjects=finding.subjects,
        ops=finding.ops,
    )


def reference_trustworthy(e: BaselineEvidence) -> Finding:
    """The integer kernels of onnxruntime that the comparison rests on are exact on this CPU, or were not used.

    On x86 without VNNI the u8*s8 kernels add pairs in 16 bits and saturate. FAIL names the ops that it could hit
    where the phase did not switch to another reference. NOT_RUN where the CPU's flags or the reference are unknown.
    """
    c = e.cpu
    figures: FigureTable = {
        "flags": c.flags,
        "integer_kernels_exact": c.integer_kernels_exact,
        "hazard_ops": len(c.hazard_ops),
        "switched": c.switched,
        "reference": c.reference_used,
    }
    if not c.flags or not c.reference_used:
        return not_run("the CPU's flags or the reference used are not known")
    if c.hazard_ops and not c.integer_kernels_exact and not c.switched:
        summary = f"u8*s8 kernels can saturate on this CPU and were the reference for {listed(c.hazard_ops)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=c.hazard_ops)
    if c.switched:
        summary = f"integer kernels are not exact on this CPU: switched to {c.reference_used}"
    elif c.integer_kernels_exact:
        summary = f"integer kernels are exact on this CPU; reference: {c.reference_used}"
    else:
        summary = (
            f"integer kernels are not exact on this CPU, but no op of the model meets it; reference: {c.reference_used}"
        )
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def target_equals_reference(e: BaselineEvidence) -> Finding:
    """What the kernel computes (target) equals what the file means (reference) on real data, or a person accepted it.

    FAIL with 1 deviating element names tensor, op, count and largest difference; `phases waive` records a decision to
    accept it, by tensor or op. Where every scale is 2**k both are the same numbers, and only an average without an
    exact multiplier, a bias rescaled to the accumulator or a sum above 2^24 in the file's own float32 may deviate.
    NOT_RUN over 0 elements and without data.
    """
    t = e.target
    if not e.data:
        return not_run(NO_DATA)
    if t is None or t.samples <= 0 or t.elements <= 0:
        return not_run("target was not run against reference on real data")
    figures: FigureTable = {
        "samples": t.samples,
        "elements": t.elements,
        "deviating": t.deviating,
        "tensors": len(t.tensors),
    }
    if not t.deviating and not t.tensors:
        summary = f"target equals reference on all {t.elements} elements"
        return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)
    figures["largest_difference_codes"] = max((row[3] for row in t.tensors), default=0)
    words = f"target deviates from reference on {t.deviating} of {t.elements} elements"
    if t.tensors:
        tensor, op, count, difference = t.tensors[0]
        size = f"{counted(count, 'element')}, at most {counted(difference, 'code')}"
        words += f", first in tensor {quoted(tensor)} (op {quoted(op)}): {size}"
    words += (
        "; every scale is 2**k, so only an average without an exact multiplier, a rescaled bias or a sum above 2^24 "
        "may deviate: anything else is a defect"
        if 0 < e.scheme.scales == e.scheme.power_of_two
        else "; likely cause: multiplier and shift in place of the file's float scale"
    )
    return Finding(
        verdict=Verdict.FAIL,
        summary=f"{words}; `phases waive` records a decision to accept it",
        figures=figures,
        subjects=tuple(row[0] for row in t.tensors),
        ops={row[0]: row[1] for row in t.tensors},
    )


def dispatches_concatenate(e: BaselineEvidence) -> Finding:
    """The dispatches run one after the other in the oracle give the whole model's outputs, bit for bit.

    NOT_APPLICABLE with 1 dispatch. With more: FAIL with 1 differing element, or 1 tensor that a dispatch reads and none
    before it hands on; NOT_RUN over 0 elements.
    """
    b = e.budget
    figures: FigureTable = {
        "dispatches": len(b.dispatches),
        "elements": b.concatenation_elements,
        "mismatches": b.concatenation_mismatches,
        "lost": b.lost,
        "cuts": b.cuts,
    }
    if not b.dispatches:
        return not_run("the manifest has no dispatch")
    if len(b.dispatches) == 1:
        return Finding(
            verdict=Verdict.NOT_APPLICABLE, summary=f"{placed(b.dispatches)}: nothing to concatenate", figures=figures
        )
    if b.lost:
        summary = f"a dispatch reads {listed(b.lost)}, and no dispatch before it hands that on"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=b.lost)
    if b.concatenation_mismatches:
        counts = f"{b.concatenation_mismatches} of {counted(b.concatenation_elements, 'output element')}"
        differ = "differs" if b.concatenation_mismatches == 1 else "differ"
        summary = f"{counts} {differ} from the whole; cut tensors: {listed(b.cuts)}"
        return Finding(verdict=Verdict.FAIL, summary=summary, figures=figures, subjects=b.cuts)
    if b.concatenation_elements <= 0:
        return not_run(f"{placed(b.dispatches)} were not run one after the other")
    summary = f"{placed(b.dispatches)} equal the whole on {counted(b.concatenation_elements, 'element')}"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def kernel_numbers_exact(e: BaselineEvidence) -> Finding:
    """Every multiplier and shift that a kernel is told is what the scales say, and is rounded as stated.

    A multiplier is the exact ratio, or the nearest that 31 bits can say, or was proved: then it gives the reference's
    code on every possible sum. On accumulators around ties and at the ends of the range the shift primitive and the
    oracle's target give the code that rational arithmetic gives. FAIL names tensor, op and number. Unlike BL011 this
    needs no data and meets every tie. NOT_APPLICABLE where no op is rescaled; NOT_RUN where it was not looked at.
    """
    k = e.kernel
    if k is None:
        return not_run("multipliers and shifts were not held against the scales")
    figures: FigureTable = {"ops": k.ops, "accumulators": k.accumulators, "faults": len(k.faults)}
    if k.faults:
        first = k.faults[0]
        more = f"; {counted(len(k.faults) - 1, 'more op')}" if len(k.faults) > 1 else ""
        return Finding(
            verdict=Verdict.FAIL,
            summary=f"tensor {quoted(first.tensor)} (op {quoted(first.op)}, {first.op_type}): {first.what}{more}",
            figures=figures,
            subjects=tuple(f.tensor for f in k.faults),
            ops={f.tensor: f.op for f in k.faults},
        )
    if not k.ops:
        return Finding(verdict=Verdict.NOT_APPLICABLE, summary="0 ops are rescaled", figures=figures)
    summary = (
        f"{counted(k.ops, 'op')}; {counted(k.accumulators, 'accumulator')}, each rounded as exact arithmetic rounds it"
    )
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)
