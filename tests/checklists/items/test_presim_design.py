from dataclasses import replace
from typing import Any

import pytest

from checklists.items.presim_design import (
    budgets_hold,
    design_reproducible,
    kernels_agree,
    modes_set,
    static_checks_clean,
)
from checklists.model import Finding, Verdict
from tests.presim_evidence import good_presim

GOOD = good_presim()


def static(**fields: Any) -> Finding:
    return static_checks_clean(replace(GOOD, static=(replace(GOOD.static[0], **fields), GOOD.static[1])))


def budget(**fields: Any) -> Finding:
    return budgets_hold(replace(GOOD, budgets=(replace(GOOD.budgets[0], **fields), GOOD.budgets[1])))


@pytest.mark.parametrize("item", [static_checks_clean, budgets_hold, modes_set, kernels_agree])
def test_items_about_the_design_apply_as_soon_as_one_dispatch_runs_on_the_array(item: Any) -> None:
    nothing = replace(GOOD, static=(), static_expected=(), budgets=(), budgets_expected=(), kernels=0, dispatches=())
    finding = item(nothing)
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["array_dispatches"] == 0
    assert item(replace(nothing, dispatches=("d0",))).verdict is Verdict.NOT_RUN


def test_PS006_passes_and_counts() -> None:
    assert static().summary == "2 checks over 5 parts find nothing, 0 warnings"


def test_PS006_one_finding_fails_and_names_check_and_place() -> None:
    finding = static(findings=(("link 0", "segments cover 256 of 1024 elements"),))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("link 0",)
    assert finding.summary == "dispatch 'd0': tiles: link 0: segments cover 256 of 1024 elements"


def test_PS006_further_findings_are_counted() -> None:
    finding = static(findings=(("link 0", "wrong"), ("link 1", "wrong too"), ("link 2", "wrong again")))
    assert finding.summary == "dispatch 'd0': tiles: link 0: wrong and 2 more"
    assert finding.subjects == ("link 0", "link 1", "link 2")


def test_PS006_a_warning_passes_and_is_listed() -> None:
    finding = static(warnings=(("fifo 'f'", "5 pushes outstanding"),))
    assert finding.verdict is Verdict.PASS
    assert finding.figures["warnings"] == ("d0: tiles: fifo 'f': 5 pushes outstanding",)


def test_PS006_an_unknown_device_figure_is_not_run_and_can_be_named() -> None:
    finding = static(unknown=("dma_queue_depth",))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("dma_queue_depth",)


def test_PS006_waiving_the_unknown_figure_does_not_hide_a_finding() -> None:
    finding = static(unknown=("dma_queue_depth",), findings=(("link 0", "wrong"),))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("link 0", "dma_queue_depth")


def test_PS006_a_check_that_was_not_made_is_not_run() -> None:
    finding = static_checks_clean(replace(GOOD, static=GOOD.static[:1]))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("d0: queues",)
    assert static_checks_clean(replace(GOOD, dispatches=("d0", "d1"))).verdict is Verdict.NOT_RUN
    assert static_checks_clean(replace(GOOD, static_expected=())).verdict is Verdict.NOT_RUN


def test_PS007_passes_at_the_limit_and_fails_one_unit_above() -> None:
    assert budget(need=64).verdict is Verdict.PASS
    finding = budget(need=65)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("core (0, 2)",)
    assert finding.summary == "dispatch 'd0': core (0, 2): l1_bytes: need 65, have 64"


def test_PS007_an_unknown_device_figure_is_not_run_and_named_by_the_figure() -> None:
    finding = budget(have=None)
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("l1_bytes",)
    assert budget(have=None, figure="").subjects == ("l1_bytes",)
    both = (GOOD.budgets[0], replace(GOOD.budgets[1], have=None))
    assert budgets_hold(replace(GOOD, budgets=both)).subjects == ("mem_locks",)


def test_PS007_waiving_the_unknown_figure_does_not_hide_the_excess() -> None:
    rows = (replace(GOOD.budgets[0], have=None), replace(GOOD.budgets[1], need=65))
    finding = budgets_hold(replace(GOOD, budgets=rows))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("mem (0, 1)", "l1_bytes")


def test_PS007_a_budget_without_a_row_is_not_run() -> None:
    finding = budgets_hold(replace(GOOD, budgets=GOOD.budgets[:1]))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("d0: locks",)
    assert budgets_hold(replace(GOOD, budgets_expected=())).verdict is Verdict.NOT_RUN


def test_PS007_figures_hold_the_fullest_row_of_every_budget() -> None:
    more = replace(GOOD.budgets[1], place="mem (1, 1)", need=3)
    figures = budgets_hold(replace(GOOD, budgets=(*GOOD.budgets, more))).figures
    assert figures["locks: need (predicted)"] == 3
    assert figures["locks: have (quoted)"] == 64
    assert figures["locks: place"] == "d0: mem (1, 1)"


def test_PS008_passes_and_one_kernel_that_relies_on_the_tile_fails() -> None:
    assert modes_set(GOOD).verdict is Verdict.PASS
    finding = modes_set(replace(GOOD, unset_modes=("conv_k",)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("conv_k",)


def test_PS008_no_kernel_is_not_run_and_one_passes() -> None:
    assert modes_set(replace(GOOD, kernels=0)).verdict is Verdict.NOT_RUN
    assert modes_set(replace(GOOD, kernels=1)).verdict is Verdict.PASS


def test_PS009_passes() -> None:
    assert design_reproducible(GOOD).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"design_device": "npu1"}, "the design is for 'npu1', the port for 'npu2'"),
        ({"design_again_sha256": "e" * 64}, "two plans of one manifest differ"),
        ({"design_reload_equal": False}, "does not read back"),
        ({"design_errors": ("0/fifos: expected a list",)}, "0/fifos: expected a list"),
    ],
)
def test_PS009_fails(fields: dict[str, Any], words: str) -> None:
    finding = design_reproducible(replace(GOOD, **fields))
    assert finding.verdict is Verdict.FAIL
    assert words in finding.summary


@pytest.mark.parametrize("field", ["design_sha256", "design_again_sha256"])
def test_PS009_a_design_that_was_planned_once_is_not_run(field: str) -> None:
    empty: dict[str, Any] = {field: ""}
    assert design_reproducible(replace(GOOD, **empty)).verdict is Verdict.NOT_RUN


def test_PS014_one_figure_that_differs_fails_by_name() -> None:
    assert kernels_agree(GOOD).verdict is Verdict.PASS
    finding = kernels_agree(replace(GOOD, kernel_faults=(("a:gemm", "qmax is 254, expected 255"),) * 2))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("a:gemm",)
    assert finding.summary == "kernel 'a:gemm': qmax is 254, expected 255 and 1 more"


def test_PS014_needs_kernels_where_dispatches_run_on_the_array() -> None:
    assert kernels_agree(replace(GOOD, kernels=0)).verdict is Verdict.NOT_RUN
    assert kernels_agree(replace(GOOD, kernels=1)).verdict is Verdict.PASS
