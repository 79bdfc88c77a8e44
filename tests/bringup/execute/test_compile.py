"""What is compiled: the ABI is held, everything that goes in is in the name, errors name file and line."""

from pathlib import Path

import pytest

from bringup.execute import CompileError, ExternalAbi, PointerAbi, ScalarAbi, build, external, toolchain
from bringup.execute.compile import source_of
from manifest.errors import UnavailableError
from tests.bringup.execute.compiled import HEAD, compiled, move_abi, pointer, source

COPY = "for (int i = 0; i < 4; ++i) y[i] = x[i];"


def test_the_same_input_is_compiled_once_and_every_change_gives_another_name(tmp_path: Path) -> None:
    first = compiled(tmp_path, source(COPY))
    assert first.seconds > 0
    assert first.path.name == f"kernels-{first.source_sha256[:16]}.so"
    again = compiled(tmp_path, source(COPY))
    assert (again.path, again.seconds) == (first.path, 0.0)
    others = [
        compiled(tmp_path, source(f"// a comment\n{COPY}")),
        compiled(tmp_path, source(COPY), move_abi(parameters=(pointer("x"), pointer("y", access="inout")))),
        compiled(tmp_path, {**source(COPY), "kernels/other.h": b"// not even included\n"}),
        compiled(tmp_path, source(COPY), flags=("-DX=1",)),
        compiled(tmp_path, source(COPY), sanitize=False),
    ]
    assert len({first.path, *(o.path for o in others)}) == 6


def test_a_header_of_the_host_api_is_part_of_the_name(tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "other.h").write_text("#define ONE 1\n")
    first = compiled(tmp_path, source(COPY), include=[extra])
    (extra / "other.h").write_text("#define ONE 2\n")
    assert compiled(tmp_path, source(COPY), include=[extra]).path != first.path


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ((pointer("x"),), "move: the design passes 1 arguments"),
        ((pointer("x", dtype="uint32"), pointer("y")), r"move: parameter 0 \(x\) points to uint32"),
        ((pointer("x"), pointer("y", dtype="int8")), r"move: parameter 1 \(y\) points to int8"),
        ((pointer("x"), ScalarAbi(name="n")), r"move: parameter 1 \(n\) is passed as a scalar int32"),
    ],
)
def test_a_signature_that_is_not_the_declared_one_does_not_compile(
    tmp_path: Path, parameters: tuple[PointerAbi | ScalarAbi, ...], text: str
) -> None:
    with pytest.raises(CompileError, match=text) as caught:
        compiled(tmp_path, source(COPY), move_abi(parameters=parameters))
    assert (caught.value.symbol, caught.value.file) == ("move", "kernels/move.cc")


def test_what_is_written_may_not_be_const_and_what_is_read_may(tmp_path: Path) -> None:
    text = source(COPY, signature="const std::int32_t *x, std::int32_t *__restrict y")
    compiled(tmp_path, text)
    both = move_abi(parameters=(pointer("x", access="out"), pointer("y", access="out")))
    with pytest.raises(CompileError, match=r"move: parameter 0 \(x\) is written"):
        compiled(tmp_path, text, both)


def test_scalars_of_every_place_and_width_are_accepted(tmp_path: Path) -> None:
    signature = "std::int32_t n, std::int32_t *x, std::int8_t b, std::int32_t *y, float f"
    rows = (ScalarAbi(), pointer("x"), ScalarAbi(dtype="int8"), pointer("y", access="any"), ScalarAbi(dtype="float32"))
    compiled(tmp_path, source("y[0] = x[0] + n + b + (f > 1);", signature=signature), move_abi(parameters=rows))


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="expected") as caught:
        compiled(tmp_path, source("int a = ;\n"))
    assert (caught.value.file, caught.value.line) == ("kernels/move.cc", 3)
    assert str(tmp_path) not in str(caught.value)


def test_a_function_with_a_cpp_name_is_refused(tmp_path: Path) -> None:
    text = {"move.cc": f"{HEAD}void move(std::int32_t *x, std::int32_t *y) {{ y[0] = x[0]; }}\n".encode()}
    with pytest.raises(CompileError, match='kernel move is not defined as extern "C"'):
        compiled(tmp_path, text)


def test_a_function_that_nobody_defines_fails_at_the_link(tmp_path: Path) -> None:
    text = source("helper(x);\n" + COPY)
    text["kernels/move.cc"] = b'#include <cstdint>\nextern "C" void helper(std::int32_t *);\n' + text["kernels/move.cc"]
    with pytest.raises(CompileError, match="undefined reference to helper"):
        compiled(tmp_path, text)


def test_the_source_of_a_kernel_is_the_one_it_names_or_that_has_its_name_or_mentions_it() -> None:
    a = ExternalAbi(symbol="a", parameters=())
    assert source_of(a, {"k/a.cc": b"", "b.cc": b"a", "a.h": b"a"}) == "k/a.cc"
    assert source_of(a, {"k/c.cc": b"void a()", "b.cc": b"aa"}) == "k/c.cc"
    assert source_of(ExternalAbi(symbol="a", parameters=(), source="b.cc"), {"a.cc": b"", "b.cc": b""}) == "b.cc"
    with pytest.raises(CompileError, match=r"kernel a: several sources define it: b\.cc, c\.cc"):
        source_of(a, {"c.cc": b"a", "b.cc": b"a"})
    with pytest.raises(CompileError, match="kernel a: no source defines it"):
        source_of(a, {"c.cc": b"b"})


def test_two_kernels_of_one_source_share_a_unit(tmp_path: Path) -> None:
    text = f'{HEAD}extern "C" {{ void one(std::int32_t *x) {{ x[0] = 1; }} void two(std::int32_t *x) {{ x[0] = 2; }} }}'
    rows = [external(name, [("int32", 4, True)]) for name in ("one", "two")]
    library = build({"both.cc": text.encode()}, rows, tmp_path, api=None)
    assert len(list(tmp_path.glob("build-*/unit*.cc"))) == 1
    assert [e.symbol for e in library.externals] == ["one", "two"]


@pytest.mark.parametrize("name", ["/etc/x.cc", "../x.cc", "a/../../x.cc", "", 'a".cc', "a\n.cc"])
def test_a_source_outside_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="expected a relative path inside the folder"):
        build({name: b""}, [], tmp_path, api=None)


def test_a_kernel_declared_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="kernels declared twice: move"):
        compiled(tmp_path, source(COPY), move_abi(), move_abi())


@pytest.mark.parametrize("symbol", ["a b", "", "1a", 'a"', "é"])
def test_a_symbol_that_is_no_identifier_is_refused(symbol: str) -> None:
    with pytest.raises(ValueError, match="is no C identifier"):
        ExternalAbi(symbol=symbol, parameters=())


@pytest.mark.parametrize("flag", ["-o/x", "-include/etc/passwd", "-D\n", "@file", "-fplugin=x"])
def test_flags_other_than_definitions_are_refused(flag: str) -> None:
    with pytest.raises(ValueError, match="only -D and -U"):
        ExternalAbi(symbol="a", parameters=(), flags=(flag,))


@pytest.mark.parametrize(("dtype", "elements", "access"), [("int7", 1, "in"), ("int8", 0, "in"), ("int8", 1, "read")])
def test_a_pointer_that_makes_no_sense_is_refused(dtype: str, elements: int, access: str) -> None:
    with pytest.raises(ValueError, match="pointer"):
        PointerAbi(dtype=dtype, elements=elements, access=access)  # type: ignore[arg-type]


def test_without_a_compiler_it_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"g\+\+: not found on PATH"):
        compiled(tmp_path, source(COPY))


def test_without_sanitizer_libraries_it_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="install the sanitizer libraries"):
        toolchain.find_toolchain().library("libnothing.so")
