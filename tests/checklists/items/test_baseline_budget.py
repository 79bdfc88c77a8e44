from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checklists.items.baseline_budget import dispatches_fit
from checklists.model import Finding, Verdict
from oracle.evidence import BaselineEvidence

Budget = Callable[..., Finding]
SPLIT = (("fc1", "output channels in 4 blocks"),)


@pytest.fixture
def budget(good: BaselineEvidence) -> Budget:
    def judge(*, unknown: tuple[str, ...] = (), **fields: Any) -> Finding:
        dispatch = replace(good.budget.dispatches[0], **fields)
        return dispatches_fit(replace(good, budget=replace(good.budget, dispatches=(dispatch,), unknown=unknown)))

    return judge


def test_BL004_passes_at_every_limit(budget: Budget) -> None:
    finding = budget()
    assert finding.verdict is Verdict.PASS
    assert finding.summary == "1 dispatch: the one on the array fits npu2"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"need_bytes": 1001}, "bytes: need 1001, have 1000"),
        ({"cores_needed": 5}, "cores: need 5, have 4"),
        ({"program_bytes": 4097}, "program bytes per core: need 4097, have 4096"),
        ({"shim_channels_need": 3}, "shim channels: need 3, have 2"),
    ],
)
def test_BL004_fails_one_unit_above_each_limit(budget: Budget, fields: dict[str, int], words: str) -> None:
    finding = budget(**fields)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("d0",)
    assert "'d0'" in finding.summary
    assert words in finding.summary


@pytest.mark.parametrize("fields", [{"need_bytes": 1001}, {"cores_needed": 5}])
def test_BL004_an_op_that_exceeds_alone_passes_with_its_split_in_the_words(
    budget: Budget, fields: dict[str, int]
) -> None:
    finding = budget(**fields, oversized_ops=SPLIT)
    assert finding.verdict is Verdict.PASS
    assert "'fc1'" in finding.summary
    assert "output channels in 4 blocks" in finding.summary
    assert budget(**fields, oversized_ops=(("fc1", ""),)).verdict is Verdict.FAIL


@pytest.mark.parametrize("fields", [{"program_bytes": 4097}, {"shim_channels_need": 3}])
def test_BL004_a_split_mends_neither_program_memory_nor_shim_channels(budget: Budget, fields: dict[str, int]) -> None:
    assert budget(**fields, oversized_ops=SPLIT).verdict is Verdict.FAIL


def test_BL004_an_unknown_device_figure_is_not_run_and_named(budget: Budget) -> None:
    finding = budget(unknown=("l1_bytes",), have_bytes=None)
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("l1_bytes",)
    assert "'l1_bytes'" in finding.summary


@pytest.mark.parametrize("name", ["have_bytes", "cores_have", "program_have_bytes", "shim_channels_have"])
def test_BL004_a_missing_figure_is_never_a_pass_even_where_nobody_named_it(budget: Budget, name: str) -> None:
    finding = budget(**{name: None})
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == (f"d0: {name}",)


def test_BL004_waiving_the_unknown_figure_does_not_hide_the_excess(budget: Budget) -> None:
    finding = budget(unknown=("l1_bytes",), have_bytes=None, shim_channels_need=3)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("d0", "l1_bytes")


def test_BL004_says_where_it_was_cut(good: BaselineEvidence) -> None:
    first = good.budget.dispatches[0]
    two = replace(good.budget, dispatches=(first, replace(first, name="d1")), cuts=("conv_out",))
    finding = dispatches_fit(replace(good, budget=two))
    assert finding.verdict is Verdict.PASS
    assert "2 dispatches" in finding.summary
    assert "'conv_out'" in finding.summary


def test_BL004_one_dispatch_of_two_that_exceeds_fails(good: BaselineEvidence) -> None:
    first = good.budget.dispatches[0]
    two = replace(good.budget, dispatches=(first, replace(first, name="d1", need_bytes=1001)))
    assert dispatches_fit(replace(good, budget=two)).subjects == ("d1",)


def test_BL004_a_host_dispatch_has_no_budget_but_one_on_the_array_has(budget: Budget) -> None:
    host: dict[str, Any] = {"have_bytes": None, "cores_have": None, "program_have_bytes": None}
    finding = budget(**host, shim_channels_have=None, where="host")
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["dispatches"] == 1
    assert budget(**host, shim_channels_have=None, where="npu").verdict is Verdict.NOT_RUN


def test_BL004_is_not_run_without_a_dispatch(good: BaselineEvidence) -> None:
    assert dispatches_fit(replace(good, budget=replace(good.budget, dispatches=()))).verdict is Verdict.NOT_RUN


def test_BL004_labels_what_is_predicted_and_what_is_quoted(budget: Budget) -> None:
    figures = budget().figures
    assert figures["d0: need_bytes (predicted)"] == 1000
    assert figures["d0: have_bytes (quoted)"] == 1000
    assert figures["d0: program_bytes (assumed)"] == 4096
