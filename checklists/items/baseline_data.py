"""Baseline items about real data: BL003 and BL012."""

import math
from typing import Final

from checklists.items.words import NO_DATA, SHOWN, counted, listed, not_run, percent, quoted
from checklists.model import FigureTable, Finding, Verdict, number
from oracle.evidence import AccuracyEvidence, BaselineEvidence, InputRange

SLACK: Final = 1e-9
"""What decimal thresholds lose in binary: 0.97 - 0.96 is a drop of 0.01."""
MAX_CLIPPED: Final = 0.01
EDGE: Final = 1 / 64
FAR: Final = 8.0
TRAP: Final = 8
"""From this ratio of sizes on, the cause is called a wrong scaling."""
MIN_USED_8_BIT: Final = 1 / 32
MIN_USED_16_BIT: Final = 1 / 128


def granularity_holds(e: BaselineEvidence) -> Finding:
    """The full quantised model on real data keeps the accuracy that its float meaning has.

    With labels: accuracy may drop by at most `max_accuracy_drop`. Without: SQNR of the outputs is at least
    `min_sqnr_db`, and top-1 agreement at least `min_top1_agreement` where the model classifies; cosine is reported.
    A float model that is worse than always giving the commonest label does not fit labels or preprocessing: FAIL,
    whatever the outputs say. With labels and no float meaning at all, accuracy is at least the commonest label's
    share. The limits come from `port.toml`. The layers with the lowest SQNR and the accuracy cliffs are named: a wrong
    granularity shows there and in no test of a single op. NOT_RUN without data, or with nothing to compare with.
    """
    a = e.accuracy
    if not e.data:
        return not_run(NO_DATA)
    if a is None or a.samples <= 0:
        return not_run("the full model was not judged on real data")
    verdict, words = _accuracy_verdict(a)
    if a.cliffs:
        words += "; accuracy cliffs: " + ", ".join(a.cliffs[:SHOWN])
        words += f" and {len(a.cliffs) - SHOWN} more" if len(a.cliffs) > SHOWN else ""
    if verdict is Verdict.FAIL and a.worst_layers:
        lowest = listed([name for name, _ in a.worst_layers])
        words += f"; lowest SQNR in {lowest}: per-tensor scale or outlier channel there?"
    figures: FigureTable = {
        "samples": a.samples,
        "against": a.against,
        "accuracy": number(a.accuracy),
        "float_accuracy": number(a.float_accuracy),
        "max_accuracy_drop": a.max_accuracy_drop,
        "majority_share": number(a.majority_share),
        "sqnr_db": number(a.sqnr_db),
        "min_sqnr_db": a.min_sqnr_db,
        "cosine": number(a.cosine),
        "top1_agreement": number(a.top1_agreement),
        "min_top1_agreement": a.min_top1_agreement,
        "cliffs": a.cliffs,
        "worst_layers_sqnr_db": tuple(f"{name}: {db:.2f}" for name, db in a.worst_layers),
    }
    return Finding(verdict=verdict, summary=words, figures=figures)


def _accuracy_verdict(a: AccuracyEvidence) -> tuple[Verdict, str]:
    """Verdict and words, by the best comparison that there is."""
    share = a.majority_share
    if a.labels and a.accuracy is not None and a.float_accuracy is not None:
        if share is None or a.float_accuracy >= share:
            return _by_drop(a, a.accuracy, a.float_accuracy)
        misfit = f"float accuracy {percent(a.float_accuracy)} is below the commonest label's {percent(share)}"
        return Verdict.FAIL, f"{misfit}: labels or preprocessing do not fit the model; {_by_outputs(a)[1]}"
    if a.sqnr_db is not None:
        return _by_outputs(a)
    if a.labels and a.accuracy is not None and share is not None:
        words = f"accuracy {percent(a.accuracy)} on {counted(a.samples, 'sample')}, "
        words += f"at least the commonest label's {percent(share)}"
        words += "; no float meaning to compare with"
        return (Verdict.PASS if a.accuracy >= share else Verdict.FAIL), words
    return Verdict.NOT_RUN, "neither a float meaning nor labels to compare the outputs with"


def _by_drop(a: AccuracyEvidence, accuracy: float, float_accuracy: float) -> tuple[Verdict, str]:
    """Judge the drop of accuracy against labels."""
    drop = float_accuracy - accuracy
    words = (
        f"accuracy {percent(accuracy)} against {percent(float_accuracy)} of {a.against or 'the float model'} on "
        f"{counted(a.samples, 'sample')}: drop {percent(drop)}, at most {percent(a.max_accuracy_drop)}"
    )
    return (Verdict.PASS if drop <= a.max_accuracy_drop + SLACK else Verdict.FAIL), words


def _by_outputs(a: AccuracyEvidence) -> tuple[Verdict, str]:
    """Judge SQNR and top-1 agreement of the outputs."""
    if a.sqnr_db is None:
        return Verdict.NOT_RUN, "outputs were not compared with a float meaning"
    good = a.sqnr_db >= a.min_sqnr_db - SLACK
    against = a.against or "the float model"
    words = (
        f"SQNR {a.sqnr_db:.2f} dB against {against} on {counted(a.samples, 'sample')}, at least {a.min_sqnr_db:g} dB"
    )
    if a.cosine is not None:
        words += f"; cosine {a.cosine:.6f}"
    if a.top1_agreement is not None:
        good = good and a.top1_agreement >= a.min_top1_agreement - SLACK
        words += f"; top-1 agreement {percent(a.top1_agreement)}, at least {percent(a.min_top1_agreement)}"
    return (Verdict.PASS if good else Verdict.FAIL), words


def inputs_in_range(e: BaselineEvidence) -> Finding:
    """Real inputs lie in the calibrated range and in the one that `port.toml` declares, and use it.

    FAIL where more than 1 % of the elements are clipped by more than 1/64 of the range (the top code of a symmetric
    type may miss 1.0 by a step); where data lies beyond the range by more than 8 times its width; where the data spans
    less than 1/32 of the range (1/128 for 16 bits), or of the declared one; where any value is outside the declared
    range or not finite. The usual cause, 0..255 against 0..1, is named. NOT_RUN without data and for an input with
    neither a quantised nor a declared range.
    """
    if not e.data:
        return not_run(NO_DATA)
    if not e.inputs:
        return not_run("no input's range was looked at")
    faults = {i.name: fault for i in e.inputs if (fault := _fault(i))}
    gaps = {i.name: why for i in e.inputs if i.name not in faults and (why := _unjudged(i))}
    figures: FigureTable = {"inputs": len(e.inputs), "clipped_limit": MAX_CLIPPED}
    for i in e.inputs:
        figures[f"{i.name}: data"] = f"{i.minimum:g}..{i.maximum:g}"
        figures[f"{i.name}: quantised range"] = _range(i.representable_minimum, i.representable_maximum)
        figures[f"{i.name}: declared range"] = _range(i.declared_minimum, i.declared_maximum)
        figures[f"{i.name}: clipped elements"] = i.clipped
        figures[f"{i.name}: elements"] = i.elements
        figures[f"{i.name}: share of range used"] = number(i.used_codes_fraction)
    words = "; ".join(f"input {quoted(name)}: {what}" for name, what in (faults | gaps).items())
    if faults:
        return Finding(verdict=Verdict.FAIL, summary=words, figures=figures, subjects=(*faults, *gaps))
    if gaps:
        return Finding(verdict=Verdict.NOT_RUN, summary=words, figures=figures, subjects=tuple(gaps))
    told = ", ".join(f"{quoted(i.name)} {i.minimum:g}..{i.maximum:g}" for i in e.inputs)
    summary = f"data within range: {told}; {counted(sum(i.clipped for i in e.inputs), 'element')} clipped"
    return Finding(verdict=Verdict.PASS, summary=summary, figures=figures)


def _range(low: float | None, high: float | None) -> str:
    """A range in words."""
    return "none" if low is None or high is None else f"{low:g}..{high:g}"


def _unjudged(i: InputRange) -> str:
    """Why an input could not be judged, or ""."""
    if i.samples <= 0 or i.elements <= 0:
        return "no data"
    if i.representable_minimum is None and i.declared_minimum is None and i.declared_maximum is None:
        return "no quantised range to compare with; declare one in port.toml"
    return ""


def _fault(i: InputRange) -> str:
    """What is wrong with an input's data, or ""."""
    if i.samples <= 0 or i.elements <= 0:
        return ""
    if not (math.isfinite(i.minimum) and math.isfinite(i.maximum)):
        return f"data is not finite ({i.minimum:g}..{i.maximum:g})"
    return _against_declared(i) or _against_quantised(i)


def _against_declared(i: InputRange) -> str:
    """What is wrong with the data against the declared range, or ""."""
    low = -math.inf if i.declared_minimum is None else i.declared_minimum
    high = math.inf if i.declared_maximum is None else i.declared_maximum
    slack = 1e-6 * max((abs(x) for x in (low, high) if math.isfinite(x)), default=0.0)
    said = f"data {i.minimum:g}..{i.maximum:g}, declared {low:g}..{high:g} in port.toml"
    if i.minimum < low - slack or i.maximum > high + slack:
        return f"outside the declared range: {said}{_trap(i.minimum, i.maximum, low, high)}"
    span = high - low
    if math.isfinite(span) and span > 0 and (i.maximum - i.minimum) / span < _minimum_share(i):
        return f"spans too little of the declared range: {said}{_trap(i.minimum, i.maximum, low, high)}"
    return ""


def _against_quantised(i: InputRange) -> str:
    """What is wrong with the data against the range that the input's scale can hold, or ""."""
    low, high = i.representable_minimum, i.representable_maximum
    if low is None or high is None:
        return ""
    said = f"data {i.minimum:g}..{i.maximum:g}, calibrated range {low:g}..{high:g}"
    beyond = max(i.maximum - high, low - i.minimum) / (high - low)
    share = i.clipped / i.elements
    if (share > MAX_CLIPPED and beyond > EDGE) or beyond > FAR:
        return (
            f"{i.clipped} of {counted(i.elements, 'element')} clipped: {said}{_trap(i.minimum, i.maximum, low, high)}"
        )
    if not i.used_codes_fraction >= _minimum_share(i):
        used = f"only {i.used_codes_fraction:.4f} of the range used: {said}"
        return used + _trap(i.minimum, i.maximum, low, high)
    return ""


def _minimum_share(i: InputRange) -> float:
    """Share of a range that data has to span."""
    return MIN_USED_8_BIT if i.codes <= 256 else MIN_USED_16_BIT


def _trap(minimum: float, maximum: float, low: float, high: float) -> str:
    """The likely cause in words, by the sizes of both ranges."""
    data, model = max(abs(minimum), abs(maximum)), max(abs(low), abs(high))
    if data > TRAP * model:
        size = f" (about {data / model:.0f} times too large)" if model else ""
        return f"; likely cause: inputs look like 0..255 where the model expects 0..1 or normalised values{size}"
    if model > TRAP * data:
        size = f" (about {model / data:.0f} times too small)" if data else " (all are 0)"
        return f"; likely cause: inputs look like 0..1 where the model expects 0..255{size}"
    return "; likely cause: other preprocessing (mean, scale, layout) than the model was calibrated with"
