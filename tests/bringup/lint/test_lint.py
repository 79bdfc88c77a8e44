"""Every rule has an example that breaks it and one beside it that does not."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bringup.lint import RULES, lint
from manifest.io import canonical_json, sha256_hex

HEADER = "manifest sha256 " + "a" * 64 + "\n{0} design sha256 " + "b" * 64 + "\n"
KERNEL = """\
#include <aie_api/aie.hpp>
extern "C" void k(const int8_t *__restrict x, const int8_t *__restrict w, int8_t *__restrict y, int32_t row) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    run<16>(x, w, y, row);
    event1();
}
"""
DESIGN = """\
import sys
from pathlib import Path
import numpy as np
from aie.iron import Buffer, Kernel, ObjectFifo, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import NPU2, Tile

int8_16 = np.ndarray[(16,), np.dtype[np.int8]]
int8_32 = np.ndarray[(32,), np.dtype[np.int8]]
int8_64 = np.ndarray[(64,), np.dtype[np.int8]]

def stored(path):
    return np.load(Path(__file__).parent / path, allow_pickle=False)

def core_a(fifo0_cons0, fifo1_prod, buffer0, kernel0):
    for i in range_(4):
        one = fifo0_cons0.acquire(1)
        two = fifo1_prod.acquire(1)
        kernel0(one, buffer0, two, i)
        fifo0_cons0.release(1)
        fifo1_prod.release(1)

def design():
    tile_0_0 = Tile(col=0, row=0)
    fifo0 = ObjectFifo(obj_type=int8_16, depth=2, name="x")
    fifo0_prod = fifo0.prod(depth=2, tile=tile_0_0)
    fifo0_cons0 = fifo0.cons(depth=2)
    fifo1 = ObjectFifo(obj_type=int8_16, depth=2, name="y")
    fifo1_prod = fifo1.prod(depth=2)
    fifo1_cons0 = fifo1.cons(depth=2, tile=tile_0_0)
    kernel0 = Kernel(name="k", object_file_name="k.o", arg_types=[int8_16, int8_64, int8_16, np.int32])
    buffer0 = Buffer(type=int8_64, initial_value=stored("weights/000.npy"), name="w")
    worker0 = Worker(core_fn=core_a, fn_args=[fifo0_cons0, fifo1_prod, buffer0, kernel0], tile=Tile(col=0, row=2))

    def sequence(x, y, fifo0_prod, fifo1_cons0):
        fifo0_prod.fill(x)
        fifo1_cons0.drain(y, wait=True)

    runtime = Runtime(sequence_fn=sequence, fn_args=[int8_64, int8_64, fifo0_prod, fifo1_cons0])
    return Program(device=NPU2(), rt=runtime, workers=[worker0]).resolve_program()
"""
PARAMETERS = [
    {"name": "x", "role": "object_in", "dtype": "int8", "shape": [16], "writes": False},
    {"name": "w", "role": "weights", "dtype": "int8", "shape": [64], "writes": False},
    {"name": "y", "role": "object_out", "dtype": "int8", "shape": [16], "writes": True},
]


def npy(array: Any) -> bytes:
    import io  # noqa: PLC0415

    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def folder(
    *, kernel: str = KERNEL, design: str = DESIGN, header: str = "", row: Mapping[str, Any] | None = None
) -> dict[str, bytes]:
    """A folder with one kernel and one design, its index in step."""
    files = {
        "kernels/k.cc": ("// " + HEADER.format("//") + kernel).encode(),
        "kernels/h.h": ("// " + HEADER.format("//") + header).encode(),
        "d0/design.py": ("# " + HEADER.format("#") + design).encode(),
        "d0/weights/000.npy": npy(np.zeros(64, np.int8)),
    }
    return indexed(files, row)


def indexed(files: dict[str, bytes], row: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    about = {"rounding": "conv_even", "saturation": "saturate", "parameters": PARAMETERS, **(row or {})}
    index = {
        "manifest_sha256": "a" * 64,
        "design_sha256": "b" * 64,
        "device": "npu2",
        "files": {n: sha256_hex(d) for n, d in files.items()},
        "kernels": {"k": about},
    }
    return {**files, "generated.json": canonical_json(index)}


def swapped(text: str, old: str, new: str) -> str:
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def body(statements: str) -> str:
    """A header with a function of these statements."""
    return f"inline void f(const int8_t *__restrict a, int8_t *__restrict b, int32_t n) {{\n{statements}\n}}\n"


def test_the_example_keeps_every_rule() -> None:
    good = body("    PORT_LOOP_AT_LEAST(1)\n    for (int32_t i = 0; i < 64; i += 16) {\n        b[i] = a[i];\n    }")
    assert lint(folder(header=good)) == ()


KERNELS = {
    "GL002": ("run<16>", "chess_storage(x); run<16>"),
    "GL003": ("const int8_t *__restrict w", "const int8_t *w"),
    "GL006": ("    aie::set_saturation(aie::saturation_mode::saturate);\n", ""),
    "GL007": ("    event1();\n", "    if (row == 0) { return; }\n    event1();\n"),
    "GL008": ("run<16>", '__asm__ volatile("nop"); run<16>'),
    "GL012": ("run<16>", "float half = 0.5f; run<16>"),
    "GL013": ("int32_t row", "int16_t row"),
    "GL014": ('extern "C" void', "void"),
}
HEADERS = {
    "GL001": (
        "PORT_LOOP_AT_LEAST(1) for (int i = 0; i < n; ++i) { b[i] = a[i]; }",
        "AIE_PREPARE_FOR_PIPELINING for (int i = 0; i < n; ++i) { b[i] = a[i]; }",
    ),
    "GL004": (
        "for (int i = 0; i < 64; i += 16) { copy(b + i, a + i); }",
        "for (int i = 0; i < 40; i += 16) { copy(b + i, a + i); }",
    ),
    "GL005": (
        "using M = aie::mmul<8, 8, 8, int8_t, int8_t>;",
        "using M = aie::mmul<8, 4, 8, int8_t, int8_t>;",
    ),
    "GL009": ("b[0] = int8_t(n >> 3);", "b[0] = int8_t(n / 8);"),
    "GL010": (
        "const int q = total; for (int i = 0; i < n; ++i) { b[i] = int8_t(q); }",
        "for (int i = 0; i < n; ++i) { b[i] = int8_t(n / 3); }",
    ),
    "GL011": (
        "for (int i = 0; i < n; ++i) { b[i] = a[i] > 0 ? a[i] : int8_t(0); }",
        "for (int i = 0; i < n; ++i) { if (i > 3) { b[i] = a[i]; } }",
    ),
}
DESIGNS = {
    "GL020": ("import sys", "import sys\nimport bringup.emit"),
    "GL021": ("import Buffer, Kernel", "import Buffer, GlobalBuffer, Kernel"),
    "GL022": ("ObjectFifo(obj_type=int8_16, depth=2", "ObjectFifo(int8_16, depth=2"),
    "GL023": ("one = fifo0_cons0.acquire(1)", "one = fifo0_cons0.acquire(3)"),
    "GL024": ("        fifo0_cons0.release(1)\n", ""),
    "GL025": (
        "    kernel0 = Kernel",
        "    fifo2, fifo3 = fifo0_cons0.split(offsets=[0, 8], obj_types=[int8_4, int8_4], names=['p', 'q'])\n"
        "    kernel0 = Kernel",
    ),
    "GL026": (
        "int8_16 = np.ndarray[(16,), np.dtype[np.int8]]",
        "int8_16 = np.ndarray[(18,), np.dtype[np.int8]]",
    ),
    "GL027": ("        fifo0_prod.fill(x)\n", ""),
    "GL028": (", wait=True", ""),
    "GL029": ("type=int8_64, initial_value", "type=int8_32, initial_value"),
    "GL031": ("def design():", "def design(:"),
    "GL032": ("        fifo0_prod.fill(x)\n", "        fifo0_prod.fill(x)\n" * 5),
    "GL033": ("tile=Tile(col=0, row=2))", "tile=Tile(col=0, row=2), stack_size=1028)"),
}


@pytest.mark.parametrize("rule", sorted(KERNELS))
def test_kernels(rule: str) -> None:
    old, new = KERNELS[rule]
    assert rule in rules(lint(folder(kernel=swapped(KERNEL, old, new))))


@pytest.mark.parametrize("rule", sorted(HEADERS))
def test_headers(rule: str) -> None:
    good, bad = HEADERS[rule]
    assert lint(folder(header=body(good))) == ()
    (found,) = lint(folder(header=body(bad)))
    assert (found.rule, found.file, found.line) == (rule, "kernels/h.h", 4)


@pytest.mark.parametrize("rule", sorted(DESIGNS))
def test_designs(rule: str) -> None:
    old, new = DESIGNS[rule]
    text = swapped(DESIGN, old, new)
    if "int8_4" in new:
        text = swapped(text, "\ndef stored", "\nint8_4 = np.ndarray[(4,), np.dtype[np.int8]]\n\ndef stored")
    assert rule in rules(lint(folder(design=text)))


def rules(found: Any) -> set[str]:
    return {f.rule for f in found}


def test_every_rule_has_an_example() -> None:
    assert {*KERNELS, *HEADERS, *DESIGNS, "GL030"} == set(RULES)


def test_hashes() -> None:
    good = folder()
    assert rules(lint({**good, "d0/design.py": good["d0/design.py"] + b"# more\n"})) == {"GL030"}
    assert rules(lint({n: d for n, d in good.items() if n != "d0/weights/000.npy"})) == {"GL029", "GL030"}
    assert rules(lint({**good, "extra": b""})) == {"GL030"}
    assert rules(lint({n: d for n, d in good.items() if n != "generated.json"})) >= {"GL030"}
    other = json.loads(good["generated.json"]) | {"design_sha256": "c" * 64}
    assert rules(lint({**good, "generated.json": canonical_json(other)})) == {"GL030"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    event0();\n", ""),
        ("    event1();\n", ""),
        ("    event1();\n", "    event1();\n    run<16>(x, w, y, row);\n"),
        ("    event0();\n", "    run<16>(x, w, y, row);\n    event0();\n"),
    ],
)
def test_events_bracket_the_entry(old: str, new: str) -> None:
    assert "GL007" in rules(lint(folder(kernel=swapped(KERNEL, old, new))))


def test_modes_come_first_and_may_be_left_to_the_tile() -> None:
    late = swapped(KERNEL, "    aie::set_rounding(aie::rounding_mode::conv_even);\n", "")
    late = swapped(late, "    event1();", "    aie::set_rounding(aie::rounding_mode::conv_even);\n    event1();")
    (found,) = lint(folder(kernel=late))
    assert found.rule == "GL006"
    assert "not the first thing" in found.text
    without = swapped(KERNEL, "    aie::set_rounding(aie::rounding_mode::conv_even);\n", "")
    assert lint(folder(kernel=without, row={"rounding": ""})) == ()
    assert rules(lint(folder(kernel=without))) == {"GL006"}


def test_a_lambda_may_return() -> None:
    text = swapped(KERNEL, "run<16>(x, w, y, row)", "run<16>([&](int32_t i) { return x + i; }, w, y, row)")
    assert lint(folder(kernel=text)) == ()


@pytest.mark.parametrize(
    "code",
    [
        "constexpr int32_t half_of = 16 / 2; b[0] = int8_t(half_of);",
        "if constexpr (C::WIDTH % 8 != 0) { b[0] = 0; }",
        "b[0] = int8_t(C::WIDTH / 8);",
        "static_assert(C::WIDTH % 16 == 0);",
        "// n / 8 in words",
        'say("n / 8");',
    ],
)
def test_what_the_compiler_folds_is_no_division(code: str) -> None:
    assert lint(folder(header=body(code))) == ()


def test_unsigned_powers_of_two_are_free_outside_loops() -> None:
    assert lint(folder(header=body("b[0] = int8_t(n % 8u);"))) == ()


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        ("chess_prepare_for_pipelining", {"GL001"}),
        ("AIE_PREPARE_FOR_PIPELINING AIE_LOOP_MIN_ITERATION_COUNT(4)", set()),
        ("AIE_PREPARE_FOR_POSTPIPELINING", {"GL001"}),
        ("", set()),
    ],
)
def test_hints(hint: str, found: set[str]) -> None:
    loop = f"{hint} for (int i = 0; i < n; ++i) {{ b[i] = a[i]; }}"
    assert rules(lint(folder(header=body(loop)))) == found


def test_weights_are_whole_blocks_of_the_multiplication() -> None:
    good = "using M = aie::mmul<8, 8, 8, int8_t, int8_t>;\n" + KERNEL
    assert lint(folder(kernel=good)) == ()
    parameters = [{**p, "shape": [65]} if p["role"] == "weights" else p for p in PARAMETERS]
    assert rules(lint(folder(kernel=good, row={"parameters": parameters}))) == {"GL005"}


@pytest.mark.parametrize(("rows", "good"), [(8, True), (4, True), (2, False)])
def test_multiplications_of_headers_have_the_figures_of_the_kernel(rows: int, good: bool) -> None:
    figures = f"struct K {{ static constexpr int32_t R = {rows}; using X = int8_t; using W = int8_t; }};\n"
    kernel = f'#include "h.h"\n{figures}{KERNEL}'
    found = lint(folder(kernel=kernel, header="using M = aie::mmul<C::R, 8, 8, X, W>;\n", row={"row": "a/k"}))
    assert (found == ()) is good
    if not good:
        (one,) = found
        assert (one.rule, one.file) == ("GL005", "kernels/h.h")
        assert "mmul (2, 8, 8) of int8 and int8: npu2 has [(4, 8, 8), (8, 8, 8)] (figures of 'a/k')" in one.text


def test_the_index_in_outer_loops_and_as_a_subscript_is_no_branch() -> None:
    outer = "for (int i = 0; i < n; ++i) { if (i > 3) { for (int j = 0; j < n; ++j) { b[j] = a[j]; } } }"
    subscript = "for (int i = 0; i < n; ++i) { if (a[i] > 3) { b[i] = a[i]; } }"
    call = "for (int i = 0; i < n; ++i) { b[i] = i > 3 ? edge(a) : inner(a); }"
    assert lint(folder(header=body(outer))) == ()
    assert lint(folder(header=body(subscript))) == ()
    assert rules(lint(folder(header=body(call)))) == {"GL011"}


@pytest.mark.parametrize(
    ("offsets", "sizes", "good"),
    [("[0, 8]", (8, 8), True), ("[0, 8]", (8, 4), False), ("[0, 4]", (8, 8), False), ("[4, 8]", (4, 8), False)],
)
def test_parts_tile_the_object(offsets: str, sizes: tuple[int, int], good: bool) -> None:
    types = ", ".join(f"int8_{n}" for n in sizes)
    made = f"    fifo2, fifo3 = fifo0_cons0.split(offsets={offsets}, obj_types=[{types}], names=['p', 'q'])\n"
    text = swapped(DESIGN, "    kernel0 = Kernel", made + "    kernel0 = Kernel")
    forms = "".join(f"int8_{n} = np.ndarray[({n},), np.dtype[np.int8]]\n" for n in (4, 8))
    text = swapped(text, "\ndef stored", f"\n{forms}\ndef stored")
    assert ("GL025" not in rules(lint(folder(design=text)))) is good


@pytest.mark.parametrize(
    ("keywords", "found"),
    [
        ("fifo0.cons(depth=2, placement=tile_0_0)", {"GL022"}),
        ("fifo0.cons(2)", {"GL022"}),
        ("fifo0.cons(depth=2, dims_from_stream=[(2, 8), (8, 1)])", set()),
    ],
)
def test_keywords_of_methods(keywords: str, found: set[str]) -> None:
    assert rules(lint(folder(design=swapped(DESIGN, "fifo0.cons(depth=2)", keywords)))) == found


def test_a_kernel_that_is_declared_and_missing() -> None:
    text = swapped(DESIGN, 'name="k", object_file_name="k.o"', 'name="other", object_file_name="other.o"')
    assert rules(lint(folder(design=text))) == {"GL013"}


@pytest.mark.parametrize(
    ("device", "size", "found"),
    [
        ("NPU2", 1024, set()),
        ("NPU2", 1028, {"GL033"}),
        ("NPU2", 1056, {"GL033"}),
        ("NPU1", 1056, set()),
        ("NPU1", 1028, {"GL033"}),
    ],
)
def test_stacks_are_whole_vectors_of_the_generation(device: str, size: int, found: set[str]) -> None:
    text = swapped(DESIGN, "tile=Tile(col=0, row=2))", f"tile=Tile(col=0, row=2), stack_size={size})")
    assert rules(lint(folder(design=text.replace("NPU2", device)))) == found


def test_awaited_tasks_leave_the_queue() -> None:
    first = "        group0 = TaskGroup()\n" + "        fifo0_prod.fill(x, wait=True, group=group0)\n" * 4
    again = first.replace("group0 = TaskGroup()", "group1 = TaskGroup()").replace("group=group0", "group=group1")
    for finish, found in (("        group0.finish()\n", set()), ("", {"GL032"})):
        text = swapped(DESIGN, "        fifo0_prod.fill(x)\n", first + finish + again)
        text = swapped(text, "Runtime, Worker", "Runtime, TaskGroup, Worker")
        assert rules(lint(folder(design=text))) == found


def test_objects_held_at_the_end() -> None:
    held = swapped(DESIGN, "        fifo0_cons0.release(1)\n", "")
    (found,) = [f for f in lint(folder(design=held)) if f.rule == "GL024"]
    assert "1 objects of fifo0_cons0 are held at its end" in found.text
    twice = swapped(DESIGN, "        fifo0_cons0.release(1)\n", "        fifo0_cons0.release(2)\n")
    assert "GL024" in rules(lint(folder(design=twice)))
