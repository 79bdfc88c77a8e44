import ast
import keyword

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bringup.emit import emitted_names, identifier, original, planned_names
from bringup.emit.names import CORE, folder_name
from tests.presim.sketches import Sketch, move

NAMES = st.text(min_size=1, max_size=20) | st.text(alphabet="_u2f/ab0", min_size=1, max_size=12)


@given(NAMES)
@example("/f/f.0/Conv")
@example("_u2f_")
@example("a_u2f_b")
@example("__u")
@example("in")
@example("print")
@example("0abc")
def test_identifiers_are_python_and_come_back(name: str) -> None:
    text = identifier(name)
    assert text.isascii()
    assert text.isidentifier()
    assert not keyword.iskeyword(text)
    assert original(text) == name
    ast.parse(f"{text} = 1")


@given(NAMES, NAMES)
def test_different_names_have_different_identifiers(a: str, b: str) -> None:
    assert (identifier(a) == identifier(b)) == (a == b)


@pytest.mark.parametrize(("name", "text"), [("x_quantized", "x_quantized"), ("a/b", "a_u2f_b"), ("a_ub", "a_u5f_ub")])
def test_plain_names_stay(name: str, text: str) -> None:
    assert identifier(name) == text


def test_folder_names_are_short_and_unique() -> None:
    long = "x" * 200
    assert folder_name("conv_1") == "conv_1"
    assert len(folder_name(long)) < 60
    assert folder_name(long) != folder_name(long + "y")
    assert folder_name("a/b") != folder_name("a_b")
    assert folder_name("///")


def test_designs_are_renamed_and_back() -> None:
    sketch = Sketch().fifo("a/x", "shim0", "w/1").fifo("b", "w/1", "shim1")
    design = sketch.worker("w/1", *move("a/x", "b")).fill("a/x", 1, tensor="t.0").drain("b", 1).design()
    emitted = emitted_names(design)
    assert [f.name for f in emitted.fifos] == ["a_u2f_x", "b"]
    assert emitted.sequence[0].tensor == "t_u2e_0"
    assert planned_names(emitted) == design
    assert original(f"{CORE}w_u2f_1".removeprefix(CORE)) == "w/1"
