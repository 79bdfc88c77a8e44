import dataclasses
import json
from typing import Any

import pytest

from manifest.errors import RefusedError, UpstreamError
from manifest.io import canonical_json, is_canonical
from presim.design import Argument, Call, Design, Loop, Release, Step
from presim.design_io import design_errors, design_from_json, design_from_value, design_to_json
from tests.presim_designs import copy_design, every_part


def value(design: Design) -> Any:
    return json.loads(design_to_json((design,)))[0]


def test_a_design_with_every_part_reads_back_equal_and_canonical() -> None:
    designs = (every_part(), copy_design())
    data = design_to_json(designs)
    assert is_canonical(data)
    assert design_from_json(data) == designs
    assert design_errors(json.loads(data)) == ()
    assert design_from_json(design_to_json(())) == ()


def test_steps_with_the_same_fields_stay_apart() -> None:
    steps = value(copy_design())["workers"][0]["program"][0]["body"]
    assert [step["step"] for step in steps] == ["acquire", "acquire", "call", "release", "release"]


def test_every_field_of_every_type_is_in_the_file() -> None:
    written = value(every_part())
    assert set(written) == {f.name for f in dataclasses.fields(Design)}
    call = written["workers"][0]["program"][0]["body"][2]
    assert set(call) == {"step", *(f.name for f in dataclasses.fields(Call))}
    assert set(call["arguments"][0]) == {f.name for f in dataclasses.fields(Argument)}


def test_a_person_may_leave_out_what_has_a_default() -> None:
    small = {"dispatch": "p", "device": "npu2", "workers": [], "fifos": []}
    assert design_from_value(small, "probe.json") == Design(dispatch="p", device="npu2", workers=(), fifos=())
    with pytest.raises(UpstreamError, match="a field is missing"):
        design_from_json(canonical_json([small]))


def broken(path: tuple[Any, ...], new: Any) -> Any:
    whole = value(every_part())
    place = whole
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return whole


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        (("dispatch",), 3, "dispatch: expected str, got 3"),
        (("workers",), {}, "workers"),
        (("fifos", 0, "depth"), 0, "fifos/0/depth: 0 is less than the minimum of 1"),
        (("fifos", 0, "depth"), 1.0, "depth: expected int, got 1.0"),
        (("fifos", 0, "depth"), True, "depth: expected int, got True"),
        (("fifos", 0, "producer", "kind"), "tile", "kind"),
        (("fifos", 0, "surprise"), 1, "unknown fields ['surprise']"),
        (("fifos", 1, "producer", "dims"), [[1, 2, 3]], "expected 2 values, got 3"),
        (("workers", 0, "program", 0, "step"), "jump", "expected a step (acquire, release, call, loop)"),
        (("workers", 0, "program", 0), 7, "expected a step"),
        (("workers", 0, "program", 0), {"step": "loop", "times": 1}, "missing fields ['body']"),
        (("sequence", 0, "direction"), "up", "direction"),
        (("schema_version",), 2, "schema_version: 1 was expected"),
    ],
)
def test_a_fault_is_refused_with_its_place(path: tuple[Any, ...], new: Any, words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        design_from_value(broken(path, new), "probe.json")
    assert words in str(caught.value)
    assert "probe.json" in str(caught.value)
    with pytest.raises(UpstreamError, match=r"design\.json: tampered"):
        design_from_json(canonical_json([broken(path, new)]))


def test_a_file_that_is_not_canonical_is_tampered() -> None:
    data = design_to_json((copy_design(),))
    with pytest.raises(UpstreamError, match="canonical"):
        design_from_json(data + b"\n")


def test_deep_nesting_is_refused_and_not_a_fault_of_the_tool() -> None:
    step: Step = Release(fifo="x", count=1)
    for _ in range(100):
        step = Loop(times=1, body=(step,))
    design = dataclasses.replace(
        copy_design(), workers=(dataclasses.replace(copy_design().workers[0], program=(step,)),)
    )
    with pytest.raises(RefusedError, match="nested deeper than"):
        design_from_value(value(design), "probe.json")


def test_what_json_cannot_hold_is_a_fault() -> None:
    kernel = dataclasses.replace(every_part().kernels[0], attributes=(("a", float("nan")),))
    with pytest.raises(TypeError, match="expected a value that JSON holds"):
        design_to_json((dataclasses.replace(every_part(), kernels=(kernel,)),))
