import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.emit import EmitInput, emit, golden_path, step_folder, write
from bringup.lint import lint
from manifest.clearance import Clearance
from manifest.errors import RefusedError, UpstreamError
from manifest.io import canonical_json, sha256_hex
from presim.directives import read_directives

Modules = Any


def test_refused_without_a_gate(digits: Any, doubles: Modules, tmp_path: Path) -> None:
    empty = replace(digits.clearance, port=tmp_path)
    with pytest.raises(UpstreamError, match=r"GATE-MISSING"):
        emit(digits.given, empty, modules=doubles)


def test_refused_with_a_gate_that_is_not_passed(digits: Any, doubles: Modules, tmp_path: Path) -> None:
    port = shutil.copytree(digits.port, tmp_path / "port")
    path = port / "gates/presim.json"
    gate = json.loads(path.read_bytes())
    gate |= {"verdict": "FAIL", "self_sha256": ""}
    gate["self_sha256"] = sha256_hex(canonical_json(gate))
    path.write_bytes(canonical_json(gate))
    gates = (digits.clearance.gates[0], ("presim", sha256_hex(path.read_bytes())))
    with pytest.raises(UpstreamError, match=r"GATE-NOT-PASSED"):
        emit(digits.given, replace(digits.clearance, port=port, gates=gates), modules=doubles)


def test_refused_with_the_gate_of_another_manifest(digits: Any, doubles: Modules) -> None:
    other = replace(digits.given, manifest_bytes=digits.given.manifest_bytes + b" ")
    with pytest.raises(UpstreamError, match=r"GATE-MISMATCH.*another manifest"):
        emit(other, digits.clearance, modules=doubles)


def test_refused_with_an_edited_design(digits: Any, doubles: Modules) -> None:
    edited = replace(digits.given, design_bytes=digits.given.design_bytes.replace(b'"depth": 2', b'"depth": 3', 1))
    assert edited.design_bytes != digits.given.design_bytes
    with pytest.raises(UpstreamError, match=r"GATE-MISMATCH.*another design"):
        emit(edited, digits.clearance, modules=doubles)


def test_refused_with_a_clearance_made_by_hand(digits: Any, doubles: Modules) -> None:
    given = digits.given
    for gates in ((), (("presim", "0" * 64),), (("baseline", "0" * 64), ("presim", "0" * 64))):
        made = Clearance(
            port=digits.port,
            manifest_sha256=sha256_hex(given.manifest_bytes),
            design_sha256=sha256_hex(given.design_bytes),
            gates=gates,
        )
        with pytest.raises(UpstreamError, match=r"GATE-(CHAIN|TAMPERED)"):
            emit(given, made, modules=doubles)


def test_refused_with_the_clearance_of_phase_1_alone(digits: Any, doubles: Modules) -> None:
    below = replace(digits.clearance, gates=digits.clearance.gates[:1], design_sha256=None)
    with pytest.raises(UpstreamError, match=r"GATE-CHAIN"):
        emit(digits.given, below, modules=doubles)


def test_the_same_twice(digits: Any, emitted: Any) -> None:
    assert emit(digits.given, digits.clearance) == emitted


def test_emitted_sources_keep_every_rule(emitted: Any) -> None:
    assert lint(emitted) == ()


def test_files_and_index(digits: Any, doubles: Modules) -> None:
    files = emit(digits.given, digits.clearance, modules=doubles)
    index = json.loads(files["generated.json"])
    assert canonical_json(index) == files["generated.json"]
    assert index["files"] == {n: sha256_hex(d) for n, d in files.items() if n != "generated.json"}
    assert index["manifest_sha256"] == sha256_hex(digits.given.manifest_bytes)
    assert index["design_sha256"] == sha256_hex(digits.given.design_bytes)
    texts = [n for n in files if n.endswith((".py", ".cc", ".h", ".md")) or n == "Makefile"]
    for name in texts:
        assert index["design_sha256"].encode() in files[name][:2000], name
    assert {f"{step_folder(s)}/design.py" for s in digits.given.steps} < set(files)
    assert len({step_folder(s) for s in digits.given.steps}) == len(digits.given.steps)
    job = index["jobs"][0]
    assert (job["design"], job["kind"]) == ("d0/design.py", "dispatch")
    assert [t["name"] for t in job["tensors"]] == ["x_quantized", "y_quantized"]
    assert job["golden"] == {k.removeprefix("d0/"): golden_path(*_split(k)) for k in digits.given.golden}


def _split(key: str) -> tuple[str, int, str]:
    dispatch, inference, tensor = key.split("/", 2)
    return dispatch, int(inference), tensor


def test_no_machine_path_and_no_import_of_ours(digits: Any, doubles: Modules, root: Path) -> None:
    files = emit(digits.given, digits.clearance, modules=doubles)
    for name, data in files.items():
        assert str(root).encode() not in data, name
        assert str(digits.port).encode() not in data, name
    for name in (n for n in files if n.endswith("design.py") or n == "test.py"):
        text = files[name].decode()
        assert not any(f"{word} {package}" in text for word in ("import", "from") for package in ("presim", "bringup"))


def test_weights_are_those_of_the_port(digits: Any, doubles: Modules, tmp_path: Path) -> None:
    write(emit(digits.given, digits.clearance, modules=doubles), tmp_path / "out")
    design = digits.given.designs[0]
    stored = [b for b in design.buffers if b.array is not None]
    for number, buffer in enumerate(stored):
        array = np.load(tmp_path / f"out/d0/weights/{number:03d}.npy", allow_pickle=False)
        np.testing.assert_array_equal(array, digits.given.constants["d0"][buffer.array])


def test_packed_shapes_are_declared(digits: Any, doubles: Modules, make_double: Callable[..., Any]) -> None:
    doubles["conv"] = make_double({"weights": lambda a: np.pad(a.reshape(-1), (0, 8))})
    text = emit(digits.given, digits.clearance, modules=doubles)["d0/design.py"].decode()
    assert "type=int8_80," in text.replace("type=int8_80 ", "type=int8_80,")  # 8 * 1 * 3 * 3 + 8


def test_too_much_for_the_memory_proposes_a_split(
    digits: Any, doubles: Modules, make_double: Callable[..., Any], tmp_path: Path
) -> None:
    doubles["conv"] = make_double({"weights": lambda a: np.zeros(a.size * 40, a.dtype)})
    with pytest.raises(RefusedError, match=r"EMIT-MEMORY.*core tile") as refused:
        emit(digits.given, digits.clearance, modules=doubles)
    (problem,) = refused.value.problems
    assert "at most 65536 bytes" in problem.expected
    assert int(problem.got.split()[0]) > 65536
    directive = json.loads(problem.remedy.partition("in FILE: ")[2])
    assert directive == {"/f/f.3/f.3.0/Conv": {"parallelism": {"cas_num": 2, "cas_length": 1}}}
    path = tmp_path / "directives.json"
    path.write_text(json.dumps(directive))
    assert read_directives(path, digits.given.manifest).of("/f/f.3/f.3.0/Conv").parallelism is not None


def test_all_kernels_that_cannot_be_emitted_are_named(digits: Any) -> None:
    with pytest.raises(RefusedError) as refused:
        emit(digits.given, digits.clearance, modules={})
    assert len(refused.value.problems) == len(digits.given.designs[0].kernels)
    assert {p.code for p in refused.value.problems} == {"EMIT-KERNEL"}


def test_golden_arrays_have_the_size_that_moves(digits: Any, doubles: Modules) -> None:
    key = "d0/0/x_quantized"
    short = {**digits.given.golden, key: digits.given.golden[key][1:]}
    with pytest.raises(RefusedError, match=r"EMIT-GOLDEN.*d0/0/x_quantized"):
        emit(replace(digits.given, golden=short), digits.clearance, modules=doubles)
    with pytest.raises(RefusedError, match=r"EMIT-GOLDEN.*nothing"):
        emit(replace(digits.given, golden={"d0/0/nothing": np.zeros(1, np.int8)}), digits.clearance, modules=doubles)


def test_devices_without_a_runtime_are_refused(digits: Any, doubles: Modules) -> None:
    design = replace(digits.given.designs[0], device="vek280")
    with pytest.raises(RefusedError, match=r"EMIT-DEVICE.*vek280"):
        emit(replace(digits.given, designs=(design,), steps=()), digits.clearance, modules=doubles)


def test_the_design_file_refuses_another_device(digits: Any, doubles: Modules, tmp_path: Path, root: Path) -> None:
    write(emit(digits.given, digits.clearance, modules=doubles), tmp_path / "out")
    command = [sys.executable, str(tmp_path / "out/d0/design.py"), "npu1"]
    environment = {"PYTHONPATH": f"{root / 'presim/iron/standin'}:{root}"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "design.py: expected device npu2, got npu1; remedy: plan the model for that device"
    ]


def test_values_are_frozen(digits: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        digits.given.golden = {}
    assert isinstance(digits.given, EmitInput)
