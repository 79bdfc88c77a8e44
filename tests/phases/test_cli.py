"""The edge: exit codes, one line per problem, a traceback only for faults of the tool."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from manifest.errors import LockedError, PortError, Problem, RefusedError, UnavailableError, UpstreamError
from phases import cli
from phases.exit_codes import INTERNAL, INTERRUPTED, exit_code_of, first_that_holds

PROBLEM = Problem(code="A-B", where="x", what="bad")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RefusedError((PROBLEM,)), 2),
        (LockedError("held"), 2),
        (UpstreamError("stale"), 3),
        (UnavailableError("no tool"), 4),
        (PortError("other"), 2),
        (KeyboardInterrupt(), INTERRUPTED),
        (ValueError("fault"), INTERNAL),
    ],
)
def test_exit_codes_of_errors(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise error

    assert exit_code_of(error) == code
    assert cli.run(fail) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert ("Traceback" in err) == (code == INTERNAL)


@pytest.mark.parametrize(
    ("codes", "first"), [((0,), 0), ((1, 0), 1), ((1, 4), 4), ((4, 3, 1), 3), ((1, 3, 4, 2), 2), ((), 0)]
)
def test_the_first_of_2_3_4_1_holds(codes: tuple[int, ...], first: int) -> None:
    assert first_that_holds(*codes) == first


def test_problems_are_lines_and_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    cli.print_error(RefusedError((PROBLEM, Problem(code="C-D", where="a\nb", what="bad"))))
    assert capsys.readouterr().err == "[A-B] x: bad\n[C-D] a\\nb: bad\n2 problems; nothing was written\n"


def test_usage_errors_are_exit_2() -> None:
    @click.command()
    @click.option("--n", type=int)
    def command(n: int) -> int:
        return n

    assert cli.main(command, ["--n", "x"], "c") == 2
    assert cli.main(command, ["--m"], "c") == 2
    assert cli.main(command, ["--n", "1"], "c") == 1
    assert cli.main(command, ["--help"], "c") == 0


def test_hostile_text_is_no_markup_and_one_line() -> None:
    assert cli.plain("[red]x[/red]\n\x1b[2J").plain == "[red]x[/red]\\n\\x1b[2J"


def python(code: str, root: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=root, capture_output=True, env={**os.environ, **environment}, check=False)


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ("phases.baseline", "absent.onnx"),
        ("phases.presim", "--help"),
        ("phases", "--help"),
        ("phases", "explain", "BL008"),
    ],
)
def test_an_output_that_takes_nothing_is_one_line_and_exit_2(root: Path, command: tuple[str, ...]) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=root, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"the output cannot be written: No space left on device\n"


def test_another_fault_of_the_system_stays_a_fault_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise OSError(28, "No space left on device")

    assert cli.run(fail) == INTERNAL
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_where_nothing_can_be_said_at_all_the_exit_code_says_it(root: Path) -> None:
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "phases", "--help"]
        assert subprocess.run(command, cwd=root, stdout=full, stderr=full, check=False).returncode == 2


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_text_that_waits_in_a_buffer_fails_alike(root: Path) -> None:
    code = "import sys; from phases import cli; raise SystemExit(cli.run(lambda: sys.stdout.write('x') and 0))"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=root, stdout=full, stderr=subprocess.PIPE, env=buffered, check=False
        )
    assert (done.returncode, done.stderr) == (2, b"the output cannot be written: No space left on device\n")


def test_an_ascii_terminal_gets_escapes_not_a_traceback(root: Path) -> None:
    code = "from phases import cli; raise SystemExit(cli.run(lambda: cli.console().print('\\u2192') or 0))"
    done = python(code, root, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert (done.returncode, done.stdout) == (0, b"\\u2192\n")


def test_a_reader_that_leaves_the_pipe_is_no_fault(root: Path) -> None:
    work = "lambda: [click.echo('x' * 100) for _ in range(9999)] and 0"
    code = f"import click\nfrom phases import cli\nraise SystemExit(cli.run({work}))"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_ctrl_c_while_committing_comes_after_the_commit(root: Path, tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from phases import cli, journal
from phases.port import write_phase, writing
from tests.ports import make_port
root = make_port(Path({str(tmp_path)!r}))
finish = journal._finish
def slow(*a):
    os.kill(os.getpid(), signal.SIGINT)
    finish(*a)
journal._finish = slow
def work():
    with writing(root):
        write_phase(root, "presim", {{"design.json": b"[]\\n"}}, {{}})
    return 0
raise SystemExit(cli.run(work))
"""
    done = python(code, root)
    assert done.returncode == INTERRUPTED, done.stderr
    assert b"the port is intact" in done.stderr
    assert (tmp_path / "m.port" / "design.json").read_bytes() == b"[]\n"
    assert not (tmp_path / "m.port" / "journal.json").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.port", "real.npz"]


def test_no_color_and_pipes_are_plain(root: Path) -> None:
    code = "from phases import cli; cli.console().print(cli.verdict_text('FAIL'))"
    assert python(code, root).stdout == b"FAIL\n"


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_is_no_fault(root: Path, closed: str) -> None:
    work = "lambda: cli.console().print('out') or cli.print_error(ValueError('x')) or cli.console(stderr=True).print(1)"
    code = f"import sys\nsys.{closed} = None\nfrom phases import cli\nraise SystemExit(cli.run({work} or 3))"
    done = python(code, root)
    assert done.returncode == 3
    assert done.stdout == (b"" if closed == "stdout" else b"out\n")
    assert (b"this is a fault" in done.stderr) == (closed == "stdout")


def test_sigint_is_given_back() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
