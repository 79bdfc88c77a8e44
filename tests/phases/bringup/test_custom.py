"""A person's kernels in a port: the same gate judges them, compiled with sanitizers and run stage by stage."""

import io
import json
import shutil
from contextlib import redirect_stdout
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bringup.backends import BackendOptions, HostBackend
from phases import runner
from phases.__main__ import main as phases_main
from phases.baseline.__main__ import main as baseline
from phases.bringup.__main__ import main
from phases.bringup.options import Arguments, resolve
from phases.bringup.run import run
from phases.port import open_port, writing
from phases.presim import regress
from phases.presim.__main__ import main as presim
from tests.ports import contents
from tests.real_port import write_model

SYMBOL = "k_mm_gemm_8df69a91"
KERNEL = f"kernels/{SYMBOL}.cc"

SCALAR = """#include <aie_api/aie.hpp>

#include <cstdint>

// One column after the other; weights are packed (k, 8).
extern "C" void k_mm_gemm_8df69a91(const uint8_t *__restrict x, const int8_t *__restrict weights,
                                   const int32_t *__restrict requant, uint8_t *__restrict out, int32_t offset) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    for (int32_t n = 0; n < 8; ++n) {
        out[n] = 0;
    }
    for (int32_t n = 0; n < 3; ++n) {
        int64_t sum = 0;
        for (int32_t k = 0; k < 4; ++k) {
            sum += (int64_t(x[k]) - 128) * weights[8 * k + n];
        }
        const int64_t product = sum * requant[0];
        const int64_t floor = product >> requant[1];
        const int64_t twice = 2 * (product - (floor << requant[1]));
        const int64_t one = int64_t(1) << requant[1];
        const int64_t code = 128 + floor + ((twice > one) | ((twice == one) & (floor & 1)));
        out[n] = uint8_t(code < 0 ? 0 : code > 255 ? 255 : code);
    }
    event1();
}
"""
ROUNDED_DOWN = SCALAR.replace("+ ((twice > one) | ((twice == one) & (floor & 1)))", "")
OVERRUN = SCALAR.replace("n < 8; ++n", "n < 9; ++n")

TWIN = """import numpy as np


def run(context, x, weights, *rest):
    requant, out = rest[-2], rest[-1]
    sums = (x[:4].astype(np.int64) - context.attributes["x_zero_point"]) @ weights[:4].astype(np.int64)
    product = sums * int(requant.reshape(-1)[0])
    shift = int(requant.reshape(-1)[1])
    floor = product >> shift
    twice = 2 * (product - (floor << shift))
    code = 128 + floor + ((twice > (1 << shift)) | ((twice == (1 << shift)) & (floor & 1 == 1)))
    out[...] = 0
    out[: len(code)] = np.clip(code, 0, 255)
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix of 4 x 3 through phases 1 and 2; data whose results have to be rounded."""
    folder = tmp_path_factory.mktemp("small")
    model = write_model(folder, weight_scale=0.3)
    port = folder / "m.port"
    with redirect_stdout(io.StringIO()):
        assert baseline([str(model), "--data", str(folder / "real.npz"), "--out", str(port)]) == 0
        assert presim([str(port)]) == 0
    return port


@pytest.fixture
def port(planned: Path, tmp_path: Path) -> Path:
    for name in ("m.onnx", "real.npz"):
        shutil.copy(planned.parent / name, tmp_path / name)
    return shutil.copytree(planned, tmp_path / "m.port")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def give(port: Path, **files: str) -> None:
    folder = port / "kernels/mm"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        suffix = ".py" if name == "twin" else ".cc"
        (folder / f"{name}{suffix}").write_text(text)


def bring_up(port: Path, cache: Path) -> tuple[int, str]:
    """Exit code of phase 3 at host level, and what it printed."""
    said = io.StringIO()
    backend = HostBackend("npu2", BackendOptions(work=cache, schedules=3))
    with writing(port):
        opened = open_port(port)
        options = resolve(Arguments(port=port, level="host"), opened, today=date(2026, 3, 1))
        clearance = runner.clear(port, "presim")
        try:
            console = Console(file=said, width=4000)
            return run(options, opened, clearance, console, host=backend, in_ci=False), said.getvalue()
        finally:
            backend.close()


def items(port: Path) -> dict[str, Any]:
    return {i["code"]: i for i in json.loads((port / "gates/bringup.json").read_text())["items"]}


@pytest.mark.slow
def test_a_kernel_and_a_twin_of_ones_own_pass_the_gate(port: Path, cache: Path) -> None:
    give(port, kernel=SCALAR, twin=TWIN)
    code, said = bring_up(port, cache)
    assert code == 0
    assert f"your kernel: kernels/mm/kernel.cc stands for {SYMBOL}" in said
    assert "your twin: kernels/mm/twin.py for op 'mm' (your code, run in a limited process)" in said
    assert (port / "generated" / KERNEL).read_text().endswith(SCALAR)
    row = json.loads((port / "generated/generated.json").read_text())["kernels"][SYMBOL]
    assert (row["vectorized"], row["notes"]) == (False, ["kernels/mm/kernel.cc of the port"])
    inputs = json.loads((port / "gates/bringup.json").read_text())["inputs"]
    assert {"kernels/mm/kernel.cc", "kernels/mm/twin.py"} <= set(inputs)
    assert "kernels/mm/twin.py in place of" in (port / "reports/bringup.md").read_text()
    with redirect_stdout(io.StringIO()):
        assert phases_main(["check", str(port), "--rerun"]) == 0
        (port / "kernels/mm/kernel.cc").write_text(SCALAR + "\n")
        assert phases_main(["check", str(port), "--through", "presim"]) == 0
        assert phases_main(["check", str(port)]) == 3
    (port / "kernels/mm/kernel.cc").write_text(SCALAR)
    with redirect_stdout(io.StringIO()) as out:
        (port / "kernels/mm/more.md").write_text("notes")
        assert phases_main(["check", str(port)]) == 3
    assert "kernels/mm/more.md: stale: new since the last run" in out.getvalue()


def test_a_wrong_rounding_turns_the_gate_to_fail_and_the_stage_is_named(port: Path, cache: Path) -> None:
    give(port, kernel=ROUNDED_DOWN)
    assert bring_up(port, cache)[0] == 1
    found = items(port)
    assert found["BU005"]["verdict"] == "FAIL"
    assert "_stage_mm" in found["BU005"]["summary"]
    assert "rounding floor" in found["BU005"]["summary"]


def test_a_fixed_kernel_passes_again_and_without_one_the_emitted_one_is_back(port: Path, cache: Path) -> None:
    give(port, kernel=ROUNDED_DOWN)
    assert bring_up(port, cache)[0] == 1
    shutil.rmtree(port / "kernels")
    assert bring_up(port, cache)[0] == 0
    assert "gemm.h" in (port / "generated" / KERNEL).read_text()
    with redirect_stdout(io.StringIO()):
        assert phases_main(["check", str(port)]) == 0


def test_an_overrun_names_kernel_and_argument(port: Path, cache: Path) -> None:
    give(port, kernel=OVERRUN)
    assert bring_up(port, cache)[0] == 1
    summary = items(port)["BU009"]["summary"]
    assert SYMBOL in summary
    assert "out" in summary


def test_the_static_rules_hold_for_a_person_too(port: Path, cache: Path) -> None:
    give(port, kernel=SCALAR.replace("    event1();\n", ""))
    assert bring_up(port, cache)[0] == 1
    assert "GL007" in items(port)["BU002"]["summary"]


def test_a_twin_that_rounds_otherwise_turns_the_stage_to_fail(port: Path, cache: Path) -> None:
    give(port, twin=TWIN.replace("floor + ((twice", "floor + 0 * ((twice"))
    assert bring_up(port, cache)[0] == 1
    summary = items(port)["BU005"]["summary"]
    assert "_stage_mm" in summary
    assert "kernels/mm/twin.py in place of" in summary
    assert "your code, run in a limited process" in summary


def test_the_standing_suite_runs_twins_too(port: Path) -> None:
    assert regress.failure(port, "mm") == ""
    give(port, twin=TWIN)
    assert regress.failure(port, "mm") == ""
    give(port, twin=TWIN.replace("128 + floor", "129 + floor"))
    assert "kernels/mm/twin.py" in regress.failure(port, "mm")
    give(port, twin="def walk(context): pass\n")
    assert "[CUSTOM-TWIN]" in regress.failure(port, "mm")


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("kernels/mm/kernel.cc", SCALAR.replace(SYMBOL, "mine"), "CUSTOM-SYMBOL"),
        ("kernels/mm/kernel.cc", SCALAR.replace(", int32_t offset", ""), "CUSTOM-SIGNATURE"),
        ("kernels/mm/kernel.cc", SCALAR.replace("const int8_t", "const int16_t"), "CUSTOM-SIGNATURE"),
        ("kernels/nn/kernel.cc", SCALAR, "CUSTOM-OP"),
        ("kernels/mm/kernal.cc", SCALAR, "CUSTOM-FILE"),
        ("kernels/kernel.cc", SCALAR, "CUSTOM-FILE"),
        ("kernels/mm/twin.py", "def run(:\n", "CUSTOM-TWIN"),
    ],
)
def test_what_stands_for_nothing_is_one_line_and_exit_2(
    path: str, text: str, code: str, port: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (port / path).parent.mkdir(parents=True, exist_ok=True)
    (port / path).write_text(text)
    before = contents(port)
    assert main([str(port), "--level", "host"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("[")] == [f"[{code}] {path}"]
    assert contents(port) == before


def test_a_link_among_the_kernels_is_refused(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    give(port, kernel=SCALAR)
    (port / "kernels/mm/twin.py").symlink_to(port / "kernels/mm/kernel.cc")
    assert main([str(port), "--level", "host"]) == 2
    assert "[PORT-PERSON-FILE]" in capsys.readouterr().err


def test_the_signature_is_printed_and_leads_to_a_kernel_that_is_taken(
    port: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phases_main(["kernel-signature", str(port)]) == 3
    assert bring_up(port, cache)[0] == 0
    capsys.readouterr()
    assert phases_main(["kernel-signature", str(port), "--op", "mm"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "kernels/mm/kernel.cc" in lines
    declared = next(line for line in lines if line.startswith('extern "C"'))
    assert declared.split("(")[0] == f'extern "C" void {SYMBOL}'
    assert phases_main(["kernel-signature", str(port), "--op", "nn"]) == 2
    assert "[CUSTOM-OP]" in capsys.readouterr().err
