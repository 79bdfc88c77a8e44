"""What a person's files stand for, and the signature that they are held to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bringup.kernels.custom import Called, Custom, custom_of, folders_of, signature, with_custom
from bringup.kernels.model import Array, Parameter, Row, Source, symbol_of
from manifest.errors import RefusedError

CALLED = (
    Called(name="conv1:conv", op="conv1", type="conv"),
    Called(name="/f/fc:gemm_rows", op="/f/fc", type="gemm_rows"),
    Called(name="/f/fc:gemm_finish", op="/f/fc", type="gemm_finish"),
    Called(name="move", op="", type="copy"),
)
CONV = symbol_of("conv1:conv")
ROWS, FINISH = symbol_of("/f/fc:gemm_rows"), symbol_of("/f/fc:gemm_finish")
PARAMETERS = (
    Parameter(name="in0", role="object_in", dtype="int8", shape=(8,), writes=False),
    Parameter(name="out", role="object_out", dtype="uint8", shape=(8,), writes=True),
)
MADE = Source(
    symbol=CONV, text="emitted", headers=("conv.h",), parameters=PARAMETERS, scalars=("row",), vectorized=True, notes=()
)
ROW = Row(
    name="conv1:conv",
    op="conv1",
    type="conv",
    attributes={},
    rounding="conv_even",
    saturation="saturate",
    arch="aie2",
    mmul=(),
    parameters=PARAMETERS,
    scalars=("row",),
)


class Emitter:
    def source(self, row: Row) -> Source:
        return replace(MADE, symbol=symbol_of(row.name))

    def pack(self, row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
        del row
        return constants


def problems(files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    with pytest.raises(RefusedError) as caught:
        custom_of(files, CALLED)
    return [(p.code, p.where) for p in caught.value.problems]


def test_files_are_found_by_op_and_symbol() -> None:
    found = custom_of(
        {
            "port.toml": b"",
            "kernels/conv1/kernel.cc": b"one\r\n",
            f"kernels/f_fc/{ROWS}.cc": b"two",
            "kernels/f_fc/twin.py": b"def gemm_rows(context, *arrays): ...\n",
            "kernels/conv1/twin.py": b"run = print\n",
            "kernels/README.md": b"",
            "kernels/conv1/notes.txt": b"\xff",
            "kernels/conv1/__pycache__/twin.pyc": b"\xff",
        },
        CALLED,
    )
    assert {s: c.text for s, c in found.kernels.items()} == {CONV: "one\n", ROWS: "two"}
    assert found.functions == {"/f/fc": {"/f/fc:gemm_rows": "gemm_rows"}, "conv1": {"conv1:conv": "run"}}


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        ("kernels/conv2/kernel.cc", b"", "CUSTOM-OP"),
        ("kernels/kernel.cc", b"", "CUSTOM-FILE"),
        ("kernels/conv1/kernel.cpp", b"", "CUSTOM-FILE"),
        ("kernels/conv1/more/kernel.cc", b"", "CUSTOM-FILE"),
        ("kernels/f_fc/kernel.cc", b"", "CUSTOM-FILE"),
        (f"kernels/f_fc/{CONV}.cc", b"", "CUSTOM-FILE"),
        ("kernels/conv1/kernel.cc", b"\xff", "CUSTOM-FILE"),
        ("kernels/conv1/twin.py", b"\xff", "CUSTOM-FILE"),
        ("kernels/f_fc/twin.py", b"def run(context): ...", "CUSTOM-TWIN"),
        ("kernels/conv1/twin.py", b"class run: ...", "CUSTOM-TWIN"),
    ],
)
def test_what_stands_for_nothing_is_refused(path: str, data: bytes, code: str) -> None:
    assert problems({path: data}) == [(code, path)]


def test_an_op_with_several_kernels_says_which_files_it_takes() -> None:
    with pytest.raises(RefusedError, match=rf"has 2 kernels; expected {ROWS}\.cc, {FINISH}\.cc, twin\.py"):
        custom_of({"kernels/f_fc/kernel.cc": b""}, CALLED)


def test_two_files_for_one_kernel_are_refused() -> None:
    files = {"kernels/conv1/kernel.cc": b"", f"kernels/conv1/{CONV}.cc": b""}
    assert [code for code, _ in problems(files)] == ["CUSTOM-FILE"]


def test_all_problems_come_at_once_and_a_twin_names_the_line() -> None:
    files = {"kernels/a/b.cc": b"", "kernels/conv1/twin.py": b"\nx = (\n"}
    assert problems(files) == [("CUSTOM-OP", "kernels/a/b.cc"), ("CUSTOM-TWIN", "kernels/conv1/twin.py:2")]


def test_folders_of_ops_that_look_alike_are_set_apart() -> None:
    found = folders_of(["/f/fc", "f_fc", "conv.1", "//"])
    assert found["conv.1"] == "conv.1"
    assert found["//"] == "op"
    assert len(set(found.values())) == 4
    assert all(name.startswith("f_fc_") for op, name in found.items() if "fc" in op)


def take(text: str) -> Source:
    custom = custom_of({"kernels/conv1/kernel.cc": text.encode()}, CALLED)
    return with_custom({"conv": Emitter()}, custom)["conv"].source(ROW)


def test_the_text_is_replaced_and_nothing_else() -> None:
    text = f"{signature(MADE)} {{ }}\n"
    made = take(text)
    assert made == replace(MADE, text=text, vectorized=False, notes=("kernels/conv1/kernel.cc of the port",))
    assert take(text.replace("{ }", "{ aie::vector<int8, 16> v; }")).vectorized
    modules: Mapping[str, Any] = {"conv": Emitter()}
    assert with_custom(modules, Custom()) is modules
    other = custom_of({f"kernels/f_fc/{ROWS}.cc": b"x"}, CALLED)
    assert with_custom({"conv": Emitter()}, other)["conv"].source(ROW) == MADE


@pytest.mark.parametrize(
    "parameters",
    [
        "const int8_t *__restrict a, uint8_t *__restrict b, int32_t c",
        "int8_t *a, std::uint8_t *b, const std::int32_t c",
        "const signed_byte *a, uint8 *b, int c",
        "const T *a, uint8_t *b, int32_t c",
    ],
)
def test_signatures_that_the_compiler_can_hold(parameters: str) -> None:
    text = f'using T = int8_t;\nextern "C" void {CONV}({parameters}) {{ }}\n'
    assert take(text).text == text


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ("const int8_t *a, uint8_t *b", "2 parameters"),
        ("const int8_t *a, uint8_t *b, int32_t c, int32_t d", "4 parameters"),
        ("const uint8_t *a, uint8_t *b, int32_t c", r"parameter 0 \(in0\)"),
        ("const int8_t a, uint8_t *b, int32_t c", r"parameter 0 \(in0\)"),
        ("const int8_t *a, const uint8_t *b, int32_t c", r"parameter 1 \(out\)"),
        ("const T *a, uint8_t *b, int32_t c", r"parameter 0 \(in0\)"),
        ("const int8_t *a, uint8_t *b, int64_t c", r"parameter 2 \(row\)"),
        ("const int8_t *a, uint8_t *b, int32_t *c", r"parameter 2 \(row\)"),
    ],
)
def test_another_signature_is_refused_with_the_right_one(parameters: str, what: str) -> None:
    text = f'using T = int16_t;\nextern "C" void {CONV}({parameters}) {{ }}\n'
    with pytest.raises(RefusedError, match=rf"\[CUSTOM-SIGNATURE\] kernels/conv1/kernel\.cc:2: {what}"):
        take(text)


@pytest.mark.parametrize(
    "text", ["", "void f();", f'extern "C" void {CONV}(int a);', f'// extern "C" void {CONV}() {{}}']
)
def test_a_missing_function_is_refused_with_its_declaration(text: str) -> None:
    with pytest.raises(RefusedError, match=r"\[CUSTOM-SYMBOL\].*const int8_t \*__restrict in0, uint8_t"):
        take(text)
