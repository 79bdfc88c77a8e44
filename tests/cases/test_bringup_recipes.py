"""Known cases of builds, caches and device runs, tried on a port with one 16x16x16 MatMul, and on parts of phase 3."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.backends import BackendOptions, HostBackend, XrtBackend
from bringup.backends.generated import read_generated
from bringup.execute import ExternalAbi, PointerAbi
from bringup.lint import lint
from manifest.device import load_device
from phases.presim.__main__ import main as presim
from presim.design import Kernel
from presim.static import check_design
from tests.bringup.backends import fake_pyxrt
from tests.bringup.backends.folders import inputs, job_in, write_build, write_folder
from tests.bringup_faults import edits
from tests.bringup_faults.bases import Base, matmul
from tests.bringup_faults.board import MODULE, Driver
from tests.bringup_faults.harness import Bench, Fault
from tests.cases.driver import command
from tests.presim.sketches import Sketch, acquire, call, loop, release

RECIPES = "MLIRAIE-3618 MLIRAIE-2579 MLIRAIE-2991 IREE-1133 RAI-78 RAI-304 VAI-1072 IRON-172"
INT8, INT16 = "int8", "int16"
BASES = {
    INT8: Base(name="matmul8", make=matmul),
    INT16: Base(name="matmul16", make=lambda: matmul(np.int16)),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("recipes"), BASES)
    yield made
    made.close()


def tried(bench: Bench, **fields: Any) -> Any:
    """What phase 3 says of a fault in the int8 model."""
    given: dict[str, Any] = {"id": "recipe", "breaks": "", "base": INT8, **fields}
    return bench.try_fault(Fault(**given)).said


def generated(bench: Bench, base: str) -> dict[str, bytes]:
    folder = bench.done(base) / "generated"
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def index(bench: Bench, base: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(generated(bench, base)["generated.json"])
    return found


def ids(bench: Bench, base: str) -> dict[str, str]:
    """What names a build: the folder's hashes and the library that was made of it."""
    folder = bench.done(base) / "generated"
    backend = bench.host.at("npu2")
    made = read_generated(folder)
    library = backend.library(made, made.externals(), frozenset(made.value["kernels"]))
    return {
        "generated": made.sha256,
        "manifest": made.manifest_sha256,
        "design": made.design_sha256,
        "library": library.path.name,
    }


# --- MLIRAIE-3618: code that does not fit a core is told before anything is linked, with the core and the bytes


@pytest.mark.parametrize(("shapes", "fits"), [(32, True), (33, False), (34, False)])
def test_MLIRAIE_3618_the_text_of_every_core_is_estimated(shapes: int, fits: bool) -> None:
    """One kernel of 512 bytes for each shape, all on one core of 16 KiB."""
    names = [f"shape{i}" for i in range(shapes)]
    sketch = Sketch().place("w", 2, 3).place("shim0", 0, 0)
    sketch.worker(
        "w", loop(1, acquire("x"), acquire("y"), *(call(n, "x", "y") for n in names), release("x"), release("y"))
    )
    design = sketch.fifo("x", "shim0", "w").fifo("y", "w", "shim0").fill("x", 1).drain("y", 1).design()
    kernels = tuple(Kernel(name=n, op=n, type="copy", program_bytes=512) for n in names)
    found = check_design(dataclasses.replace(design, device="npu2", kernels=kernels), load_device("npu2"))
    over = [f for checked in found for f in checked.findings if checked.rule == "program_memory"]
    if fits:
        assert over == []
        return
    (one,) = over
    assert (one.severity, one.used, one.limit) == ("error", shapes * 512, 16384)
    assert "core tile (2, 3)" in one.where


# --- MLIRAIE-2579: vectors lie where the widest access of the generation needs them


def test_MLIRAIE_2579_an_odd_stack_is_no_source_to_build(bench: Bench) -> None:
    files = generated(bench, INT8)
    assert lint(files) == ()
    odd = edits.sealed(files, edits.design("stack_size=1024", "stack_size=1028")(dict(files)))
    found = [f for f in lint(odd) if f.rule == "GL033"]
    assert {f.file for f in found} == {n for n in files if n.endswith("design.py")}
    assert all("1028 bytes, no multiple of 64" in f.text for f in found)


def test_MLIRAIE_2579_a_load_off_its_alignment_ends_the_run(bench: Bench) -> None:
    """64 bytes on AIE2P, four bytes off: other bytes would be read on the device, without a word."""
    odd = "    [[maybe_unused]] const auto odd = aie::load_v<64>(weights + 4);"
    said = tried(bench, emitted=edits.call("matmul", odd))
    assert said.exit == 1
    verdict, summary = said.items["BU009"]
    assert verdict == "FAIL"
    assert "load_v: pointer is 4 bytes off the required alignment of 64 bytes" in summary
    assert "kernel k_matmul" in summary


# --- MLIRAIE-2991: builds have ids of their own, and the same ones when they are repeated


def test_MLIRAIE_2991_two_models_have_different_ids_and_one_built_twice_has_equal_ones(bench: Bench) -> None:
    first, other = ids(bench, INT8), ids(bench, INT16)
    assert all(first[name] != other[name] for name in first)
    assert all(set(re.sub(r"[^0-9a-f]", "", value)) != {"0"} for value in (*first.values(), *other.values()))
    keep = bench.scratch / "again.port"
    said = bench.again(INT8, keep)
    assert said.verdict == "PASS"
    again = {p.relative_to(keep).as_posix(): p.read_bytes() for p in (keep / "generated").rglob("*") if p.is_file()}
    assert again == {f"generated/{n}": data for n, data in generated(bench, INT8).items()}


# --- IREE-1133: an output of zeros is no result


def test_IREE_1133_a_depth_of_one_is_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    wanted = tmp_path / "directives.json"
    wanted.write_text(json.dumps({"matmul": {"depth": 1}}))
    run = command(presim, bench.port(INT8), "--directives", wanted)
    assert run.code == 2
    assert "depth" in run.text
    assert "got 1" in run.text


def test_IREE_1133_zeros_for_inputs_that_are_not_fail_on_the_host(bench: Bench) -> None:
    zeros = "    for (int32_t i = 0; i < 16; ++i) out[i] = 0;"
    said = tried(bench, emitted=edits.call("matmul", "", behind=zeros))
    assert {"BU005", "BU010"} <= set(said.failed)
    assert "holds one value everywhere" in said.items["BU010"][1]
    assert "zeros: wrong device, or never written" in said.items["BU005"][1]


def test_IREE_1133_zeros_for_inputs_that_are_not_fail_on_the_device(bench: Bench) -> None:
    said = tried(bench, driver=Driver(spoil=lambda data, _: data.fill(0)))
    assert {"BU013", "BU010"} <= set(said.failed)
    assert "every element of tensor" in said.items["BU013"][1]


# --- RAI-78: the key of what is kept holds the device, and what was built for another is not run


def externals() -> tuple[ExternalAbi, ...]:
    x = PointerAbi(dtype="int32", elements=4, access="in", name="x")
    y = PointerAbi(dtype="int32", elements=4, access="out", name="y")
    return (ExternalAbi(symbol="move", parameters=(x, y), source="kernels/move.cc"),)


def test_RAI_78_a_library_for_another_device_or_source_is_another_file(tmp_path: Path) -> None:
    sources = read_generated(write_folder(tmp_path / "g")).kernel_sources()
    longer = {name: data + b"\n" for name, data in sources.items()}

    def library(device: str, files: dict[str, bytes]) -> Path:
        backend = HostBackend(device, BackendOptions(work=tmp_path / "work"))
        return backend.compiled(files, externals()).path

    names = [library("npu1", sources), library("npu2", sources), library("npu2", longer)]
    assert len({path.name for path in names}) == 3
    assert library("npu2", sources) == names[1]
    assert all(path.is_file() for path in names)


def test_RAI_78_a_build_for_another_device_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_pyxrt, "BOARD", fake_pyxrt.Board(name="RyzenAI-npu1"))
    root = write_folder(tmp_path / "g", device="npu2")
    build = write_build(root)
    write_folder(root, device="npu1")
    newest = max(p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file())
    for path in build.iterdir():
        path.touch()
        assert path.stat().st_mtime_ns >= newest
    outcome = XrtBackend("npu1", BackendOptions(), module=MODULE).run(job_in(root, device="npu1"), inputs())
    assert outcome.status == "stale"
    assert "built from another generated.json" in outcome.text


# --- RAI-304: where it ran is said in words and in JSON; what ran on the host is no hardware


def test_RAI_304_a_run_on_the_host_says_so(bench: Bench) -> None:
    port = bench.done(INT8)
    gate = json.loads((port / "gates/bringup.json").read_text())
    assert (gate["verdict"], gate["level"]) == ("PASS", "host")
    items = {i["code"]: i for i in gate["items"]}
    for code in ("BU005", "BU006", "BU007"):
        assert items[code]["summary"].endswith("(executed on this host)")
        assert "executed on this host" in items[code]["basis"]
        assert "modelled" in items[code]["basis"]
    assert not [c for c, i in items.items() if i["level"] == "hardware" and i["verdict"] != "BLOCKED"]
    for name in ("reports/bringup.md", "reports/report.html"):
        text = (port / name).read_text()
        assert "PASS at host level" in text
        assert "executed on this host, arithmetic of the AI Engine modelled" in text
    above = json.loads((port / "gates/presim.json").read_text())
    assert any("(simulated)" in i["summary"] for i in above["items"])


def test_RAI_304_without_a_device_a_device_run_is_no_pass(bench: Bench) -> None:
    said = tried(bench, driver=Driver(present=False))
    assert (said.exit, said.verdict) == (4, "NOT_RUN")
    assert said.items["BU013"][0] == "BLOCKED"
    assert "no device could be opened" in said.items["BU013"][1]


# --- VAI-1072: what was built for one device is not run on another; both are named, and what to do


def test_VAI_1072_both_devices_and_the_option_are_named(bench: Bench) -> None:
    assert index(bench, INT8)["device"] == "npu2"
    assert b'DEVICE = "npu2"' in generated(bench, INT8)["test.py"]
    said = tried(bench, driver=Driver(reported="RyzenAI-npu1"))
    verdict, summary = said.items["BU012"]
    assert verdict == "FAIL"
    assert "'npu2'" in summary
    assert "'RyzenAI-npu1' (npu1)" in summary
    assert "--device npu1" in summary
    assert "built for npu2, the device is npu1" in said.items["BU013"][1]


# --- IRON-172: another type of the same shape is another artefact


def test_IRON_172_int8_and_int16_of_one_shape_share_no_artefact(bench: Bench) -> None:
    small, wide = generated(bench, INT8), generated(bench, INT16)
    assert ids(bench, INT8)["library"] != ids(bench, INT16)["library"]
    sources = [{n: d for n, d in files.items() if n.endswith(".cc")} for files in (small, wide)]
    assert not {d for d in sources[0].values()} & {d for d in sources[1].values()}


def test_IRON_172_a_build_of_int8_is_not_taken_for_int16(bench: Bench) -> None:
    links = {n: d for n, d in index(bench, INT8)["files"].items() if n.endswith((".cc", "design.py"))}
    other = index(bench, INT16)["files"]
    assert links
    assert all(other.get(name) != sha256 for name, sha256 in links.items())


# --- the list


@pytest.mark.parametrize("recipe", RECIPES.split())
def test_every_recipe_is_in_the_list_and_tried(recipe: str, shared: Path) -> None:
    known = {json.loads(line)["id"] for line in (shared / "cases" / "cases.jsonl").read_text().splitlines()}
    assert recipe in known
    assert f"def test_{recipe.replace('-', '_')}_" in Path(__file__).read_text()
