"""Faults of kernels, each caught in the child and named: kernel, argument, place; the runs after it are not lost."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bringup.execute import HostTask, PointerAbi, Runner, ScalarAbi, simulate_sources
from presim.design import Buffer
from tests.bringup.execute.compiled import compiled, move_abi, move_design, move_task, pointer, rows, run_body, source
from tests.presim.sketches import Sketch, acquire, call, loop, release

COPY = "for (int i = 0; i < 4; ++i) y[i] = x[i];"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(tmp_path_factory.mktemp("jobs"), timeout_s=60) as made:
        yield made


def test_a_right_kernel_completes_and_everything_is_compared(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, COPY)
    assert (result.verdict, result.sound, result.inferences, result.schedules) == ("completes", True, 3, 4)
    assert result.compared == {"y": 3 * 16}
    assert result.calls == 4 * 3 * 4
    for got, wanted in zip(result.outputs, rows(), strict=True):
        np.testing.assert_array_equal(got["y"], wanted.reshape(-1))


def test_the_child_has_neither_onnx_nor_onnxruntime(runner: Runner, out: Path) -> None:
    assert run_body(runner, out, COPY).foreign == ()


def test_wrong_arithmetic_is_a_mismatch_with_its_place(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, "for (int i = 0; i < 4; ++i) y[i] = x[i] + (i == 2);")
    assert result.verdict == "wrong_data"
    assert result.mismatch is not None
    assert (result.mismatch["where"], result.mismatch["number"], list(result.mismatch["index"])) == ("y", 0, [2])
    assert (result.mismatch["expected"], result.mismatch["got"]) == (3, 4)


@pytest.mark.parametrize(
    ("body", "kind", "argument", "offset", "words"),
    [
        ("((char *)y)[16] = 1;", "write_overrun", "y", 16, "writes 1 byte at offset 16 of y, which has 16 bytes"),
        ("y[0] += ((volatile char *)x)[16];", "read_overrun", "x", 16, "reads 1 byte at offset 16 of x"),
        ("((char *)y)[-1] = 1;", "write_overrun", "y", -1, "writes 1 byte at offset -1 of y"),
        ("y[0] += ((volatile char *)x)[-1];", "read_overrun", "x", -1, "reads 1 byte at offset -1 of x"),
        ("y[40] = 1;", "write_overrun", "y", 160, "writes 4 bytes at offset 160 of y"),
        ("__builtin_memcpy(y + 3, x, (unsigned)x[0] * 8);", "write_overrun", "y", 16, "at offset 16 of y"),
    ],
)
def test_one_byte_beyond_a_block_names_kernel_and_argument(  # noqa: PLR0917  (rows of a table)
    runner: Runner, out: Path, body: str, kind: str, argument: str, offset: int, words: str
) -> None:
    result = run_body(runner, out, f"{COPY}\n{body}")
    crash = result.crash
    assert crash is not None, result.text
    assert (crash.kind, crash.worker, crash.kernel, crash.argument) == (kind, "w", "move", argument)
    assert crash.offset_bytes == offset
    assert words in crash.text
    assert crash.source == "kernels/move.cc:4"


def test_the_last_byte_of_a_block_is_the_kernels(runner: Runner, out: Path) -> None:
    body = f"{COPY}\n((volatile char *)y)[15] = ((volatile char *)x)[15];"
    assert run_body(runner, out, body).verdict == "completes"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("volatile int big = 2147483647; y[0] = x[0] + big;", "signed integer overflow: 1 + 2147483647"),
        ("volatile int by = 40; y[0] = x[0] << by;", "shift exponent 40 is too large"),
        ("int local[2] = {1, 2}; y[0] = local[x[0] + 1];", "index 2 out of bounds"),
        ("y[0] = *(std::int32_t *)((char *)x + x[0]);", "misaligned address"),
        ("volatile int zero = 0; y[0] = x[0] / zero;", "division by zero"),
    ],
)
def test_undefined_behaviour_names_kernel_and_line(runner: Runner, out: Path, body: str, words: str) -> None:
    crash = run_body(runner, out, f"{COPY}\n{body}").crash
    assert crash is not None
    assert (crash.kind, crash.kernel, crash.worker, crash.source) == ("undefined", "move", "w", "kernels/move.cc:4")
    assert words in crash.text


def test_wrapping_in_unsigned_arithmetic_is_no_fault(runner: Runner, out: Path) -> None:
    body = "for (int i = 0; i < 4; ++i) y[i] = (std::int32_t)((std::uint32_t)x[i] + 4294967295u) + 1;"
    assert run_body(runner, out, body).verdict == "completes"


def test_a_changed_input_names_argument_and_element(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, f"{COPY}\nx[2] ^= 1;")
    assert result.verdict == "fault"
    assert result.place == {"worker": "w", "kernel": "move", "argument": "x", "element": 2, "kind": "changed"}
    assert "changes element 2 of argument 'x', which it only reads" in result.text


def test_an_output_read_before_it_is_written_is_found(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, "y[0] = x[0] + (y[1] & 1);")
    assert result.verdict == "fault"
    assert result.place == {"worker": "w", "kernel": "move", "argument": "y", "element": 0, "kind": "unwritten"}
    assert "depends on memory that nobody wrote" in result.text


def test_an_output_read_after_it_was_written_is_no_fault(runner: Runner, out: Path) -> None:
    assert run_body(runner, out, f"{COPY}\ny[3] += y[2];\ny[3] -= y[2];").verdict == "completes"


def test_without_rehearsal_only_the_data_can_tell(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, "y[0] = x[0] + (y[1] & 1);", rehearse=False)
    assert result.verdict == "wrong_data"


def test_an_output_that_is_not_written_whole_is_memory_that_nobody_wrote(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, "for (int i = 0; i < 3; ++i) y[i] = x[i];")
    assert result.mismatch is not None
    assert (list(result.mismatch["index"]), result.mismatch["never_written"]) == ([3], True)


def accumulating(clear: str, *, dtype: str = "int32") -> tuple[HostTask, dict[str, bytes], PointerAbi]:
    """Two rows summed up in a scratch buffer before the second is put out."""
    s = Sketch()
    body = (acquire("x"), acquire("y"), call("move", "x", "#acc", "y", row="@i"), release("x"), release("y"))
    s.buffers.append(Buffer(name="acc", tile=None, shape=(4,), dtype=dtype))
    s.fifo("x", "shim0", "w").worker("w", loop(2, *body, counter="i")).fifo("y", "w", "shim9")
    s.fill("x", 2).drain("y", 2)
    given = rows(2, 2)
    wanted = [np.cumsum(g, axis=0).astype(np.int32) for g in given]
    task = HostTask(
        name="acc", design=s.design(), inputs=[{"x": g} for g in given], outputs=[{"y": w} for w in wanted], schedules=1
    )
    kind = f"std::{dtype}_t"
    signature = f"const std::int32_t *x, {kind} *acc, std::int32_t *y, std::int32_t row"
    text = f"for (int i = 0; i < 4; ++i) {{ acc[i] = x[i] + ({clear} ? 0 : acc[i]); y[i] = acc[i]; }}"
    return task, source(text, signature=signature), pointer("acc", dtype=dtype, access="inout")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_an_accumulator_that_is_not_cleared_is_found(runner: Runner, out: Path, dtype: str) -> None:
    for clear, verdict in (("row == 0", "completes"), ("row < 0", "fault")):
        task, text, acc = accumulating(clear, dtype=dtype)
        abi = move_abi(parameters=(pointer("x"), acc, pointer("y", access="out"), ScalarAbi(name="row")))
        result = runner.run(task, compiled(out, text, abi))
        assert result.verdict == verdict, result.text
        if verdict == "fault":
            assert result.place is not None
            assert (result.place["argument"], result.place["element"]) == ("acc", 0)


def test_scalars_come_in_order_and_keep_their_sign(runner: Runner, out: Path) -> None:
    s = Sketch()
    step = call("move", "x", "y", a="@i-1", b=7, c="@i*2+1")
    s.fifo("x", "shim0", "w").worker(
        "w", loop(4, acquire("x"), acquire("y"), step, release("x"), release("y"), counter="i")
    )
    s.fifo("y", "w", "shim9").fill("x", 4).drain("y", 4)
    abi = move_abi(
        parameters=(ScalarAbi(dtype="int8"), pointer("x"), ScalarAbi(), pointer("y", access="out"), ScalarAbi())
    )
    text = source(
        "for (int i = 0; i < 4; ++i) y[i] = a * 1000000 + b * 1000 + c;",
        signature="std::int8_t a, const std::int32_t *x, std::int32_t b, std::int32_t *y, std::int32_t c",
    )
    wanted = np.repeat([(i - 1) * 1000000 + 7000 + 2 * i + 1 for i in range(4)], 4)
    task = HostTask(name="s", design=s.design(), inputs=[{"x": rows(1)[0]}], outputs=[{"y": wanted}])
    result = runner.run(task, compiled(out, text, abi))
    assert result.verdict == "completes", result.text


def test_a_scalar_that_does_not_fit_its_type_is_a_fault(runner: Runner, out: Path) -> None:
    s = Sketch()
    s.fifo("x", "shim0", "w").worker(
        "w", acquire("x"), acquire("y"), call("move", "x", "y", a=128), release("x"), release("y")
    )
    s.fifo("y", "w", "shim9").fill("x", 1).drain("y", 1)
    abi = move_abi(parameters=(pointer("x"), pointer("y", access="out"), ScalarAbi(dtype="int8", name="a")))
    text = source(COPY, signature="std::int32_t *x, std::int32_t *y, std::int8_t a")
    result = runner.run(HostTask(name="s", design=s.design(), inputs=[{"x": rows(1)[0]}]), compiled(out, text, abi))
    assert result.verdict == "fault"
    assert "scalar a: 128 is no int8" in result.text


def test_a_block_of_another_size_than_the_code_takes_is_a_fault(runner: Runner, out: Path) -> None:
    abi = move_abi(parameters=(pointer("x", 5), pointer("y", access="out")))
    result = runner.run(move_task(), compiled(out, source(COPY), abi))
    assert result.verdict == "fault"
    assert "argument 'x': the design holds 16 bytes, its code takes 20" in result.text


def test_another_number_of_blocks_than_the_code_takes_is_refused(runner: Runner, out: Path) -> None:
    abi = move_abi(parameters=(pointer("x"), pointer("y", access="out"), ScalarAbi()))
    text = source(COPY, signature="std::int32_t *x, std::int32_t *y, std::int32_t n")
    result = runner.run(move_task(), compiled(out, text, abi))
    assert (result.verdict, result.crash) == ("refused", None)
    assert "the design passes 2 blocks and 0 scalars, its code takes 2 and 1" in result.text


def test_a_design_without_its_data_is_refused(runner: Runner, out: Path) -> None:
    result = runner.run(move_task(inputs=[{}], outputs=()), compiled(out, source(COPY)))
    assert result.verdict == "refused"
    assert "tensor 'x'" in result.text


@pytest.mark.parametrize(
    ("signature", "verdict"),
    [("const std::int32_t *x, std::int32_t *y", "completes"), ("std::int32_t *x, std::int32_t *y", "completes")],
)
def test_where_the_access_is_not_known_const_says_what_is_read(
    runner: Runner, out: Path, signature: str, verdict: str
) -> None:
    abi = move_abi(parameters=(pointer("x", access="any"), pointer("y", access="any")))
    assert runner.run(move_task(), compiled(out, source(COPY, signature=signature), abi)).verdict == verdict


def test_writing_through_a_const_that_was_cast_away_is_found(runner: Runner, out: Path) -> None:
    abi = move_abi(parameters=(pointer("x", access="any"), pointer("y", access="any")))
    text = source(f"{COPY}\n*const_cast<std::int32_t *>(x) = 9;", signature="const std::int32_t *x, std::int32_t *y")
    result = runner.run(move_task(), compiled(out, text, abi))
    assert result.place is not None
    assert (result.place["argument"], result.place["kind"]) == ("x", "changed")


def test_a_kernel_that_does_not_return_is_named(tmp_path: Path, out: Path) -> None:
    with Runner(tmp_path, timeout_s=1.0) as made:
        body = "for (volatile int i = 0; i < 4;) { if (x[0] != 101) { y[i] = x[i]; i = i + 1; } }"
        result = made.run(move_task(), compiled(out, source(body)))
    assert result.crash is not None
    assert (result.crash.kind, result.crash.kernel) == ("timeout", "move")
    assert "did not return within 1 s" in result.crash.text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("*(volatile int *)4096 = 1;", "memory"),
        ("__builtin_trap();", "signal"),
        ("static int *p; delete[] p; p = new int[1]; delete[] p; p[0] = 1;", "write_overrun"),
    ],
)
def test_a_kernel_that_ends_the_process_is_named(runner: Runner, out: Path, body: str, kind: str) -> None:
    result = run_body(runner, out, body)
    assert result.crash is not None
    assert (result.crash.kind, result.crash.kernel, result.crash.argument) == (kind, "move", "")


def test_scalars_of_the_call_that_failed_are_named(runner: Runner, out: Path) -> None:
    abi = move_abi(parameters=(pointer("x"), pointer("y", access="out"), ScalarAbi(name="row")))
    text = source(f"{COPY}\nif (row == 2) y[4] = 0;", signature="std::int32_t *x, std::int32_t *y, std::int32_t row")
    result = runner.run(move_task(design=move_design(scalar=True)), compiled(out, text, abi))
    assert result.crash is not None
    assert result.crash.scalars == (2,)
    assert "kernel move of worker w (row=2) writes 4 bytes at offset 16 of y" in result.crash.text


def test_a_crash_does_not_lose_the_jobs_after_it_nor_reach_them(tmp_path: Path, out: Path) -> None:
    good, bad = compiled(out, source(COPY)), compiled(out, source(f"{COPY}\ny[4] = 0;"))
    with Runner(tmp_path) as made:
        verdicts = [made.run(move_task(str(i)), bad if i == 1 else good).verdict for i in range(3)]
        server = made.process
        assert verdicts == ["completes", "crash", "completes"]
        assert server is not None
        server.kill()
        server.wait()
        assert made.run(move_task("3"), good).verdict == "completes"


def test_static_memory_of_a_kernel_does_not_reach_the_next_job(runner: Runner, out: Path) -> None:
    body = "static int calls = 0; for (int i = 0; i < 4; ++i) y[i] = x[i] + calls / 12; ++calls;"
    library = compiled(out, source(body))
    for _ in range(2):
        assert runner.run(move_task(schedules=0, rehearse=False), library).verdict == "completes"


def test_without_sanitizers_it_runs_and_the_runner_has_to_be_of_that_kind(tmp_path: Path, out: Path) -> None:
    fast = compiled(out, source(COPY), sanitize=False)
    assert simulate_sources(move_task(), fast, tmp_path).verdict == "completes"
    with Runner(tmp_path) as made, pytest.raises(ValueError, match="expected a library with sanitize=True"):
        made.run(move_task(), fast)


def test_a_masked_element_is_not_compared(runner: Runner, out: Path) -> None:
    mask = np.zeros((4, 4), bool)
    mask[0, 2] = True
    fifos = [{"y": np.ma.masked_array(x, mask)} for x in rows()]
    body = f"{COPY}\nif (x[0] % 100 == 1) y[2] = 0;"
    result = run_body(runner, out, body, fifos=fifos, outputs=())
    assert result.verdict == "completes", result.text
    assert result.compared == {"y": 3 * 15}


def test_a_deadlock_is_reported_with_its_waits(runner: Runner, out: Path) -> None:
    s = Sketch()
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim9").fifo("z", "w", "w")
    s.worker(
        "w",
        loop(
            4,
            acquire("x"),
            acquire("z", 1, "consume"),
            acquire("y"),
            call("move", "x", "y"),
            release("x"),
            release("y"),
        ),
    )
    s.fill("x", 4).drain("y", 4)
    result = runner.run(move_task(design=s.design()), compiled(out, source(COPY)))
    assert result.verdict in {"deadlock", "starvation"}
    assert any("'z'" in line for line in result.cycle)


def test_captured_objects_come_back(runner: Runner, out: Path) -> None:
    result = run_body(runner, out, COPY, capture=frozenset({"x"}))
    np.testing.assert_array_equal(result.captured["x"], np.concatenate(rows()))
