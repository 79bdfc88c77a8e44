"""Which reference is chosen on which CPU; onnxruntime itself runs on the CPU that is there."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from manifest.onnx_import import Imported
from oracle.cpu import CpuFlags
from oracle.reference import compare_model, compare_random, cpu_evidence
from oracle.reference.plan import make_plan
from tests.qdq_models import Sketch
from tests.reference_models import FEEDS, cnn, sixteen

AVX2 = CpuFlags(frozenset({"sse4_1", "avx2", "fma"}))
VNNI = CpuFlags(AVX2.flags | {"avx512bw", "avx512_vnni"})
ARM = CpuFlags(frozenset({"asimd"}))
UNKNOWN = CpuFlags(frozenset())
PRECISE = "session.x64quantprecision"


def dense(weight: int, *, unit: float = 0.0613, act: Any = np.uint8) -> Imported:
    """x [1, 8] -> Gemm with all weights equal -> y, QDQ; the node is called `gemm`."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 8)), unit, 0, act, out="a")
    g = s.node("Gemm", [x, s.weight(np.full((8, 3), weight), unit, name="w")], "g", name="gemm")
    s.qdq(g, unit * 16, 0, act, out="y")
    s.output("y", (1, 3))
    return s.load()


def qoperator(weight: int, *, add: bool = False) -> Imported:
    """x [1, 8] -> QuantizeLinear -> QLinearMatMul `mat` (-> QLinearAdd `sum` with itself) -> y uint8."""
    s = Sketch()
    q = s.q(s.input("x", (1, 8)), 0.05, 0, np.uint8, out="a")
    scale, zero = s.const(0.05), s.const(0, np.uint8)
    w = s.const(np.full((8, 3), weight), np.int8)
    y_scale = s.const(0.7)
    y = s.node("QLinearMatMul", [q, scale, zero, w, s.const(0.02), s.const(0, np.int8), y_scale, zero], "y", name="mat")
    if add:
        y = s.node(
            "QLinearAdd",
            [y, y_scale, zero, y, y_scale, zero, s.const(1.3), zero],
            "z",
            name="sum",
            domain="com.microsoft",
        )
    s.output(y, (1, 3), TensorProto.UINT8)
    return s.load()


def feeds() -> dict[str, Any]:
    """Random feeds."""
    return {"x": np.random.default_rng(2).uniform(0, 12, (FEEDS, 1, 8)).astype(np.float32)}


def plan_of(imported: Imported, flags: CpuFlags) -> Any:
    """The plan for a model."""
    return make_plan(imported.manifest, imported.arrays, flags)


def test_vnni_needs_no_switch() -> None:
    plan = plan_of(dense(127), VNNI)
    assert not plan.end_to_end
    assert plan.dump is not None
    assert PRECISE not in plan.dump.config
    assert (plan.cpu.switched, plan.cpu.integer_kernels_exact, plan.cpu.hazard_ops) == (False, True, ())
    assert plan.cpu.flags == VNNI.deciding


@pytest.mark.parametrize("flags", [AVX2, UNKNOWN])
def test_saturating_kernels_of_the_dump_are_switched(flags: CpuFlags) -> None:
    plan = plan_of(dense(127), flags)
    assert (plan.cpu.switched, plan.cpu.integer_kernels_exact) == (True, False)
    assert "gemm" in plan.cpu.hazard_ops
    if flags is AVX2:
        assert plan.dump is not None
        assert plan.dump.config[PRECISE] == "1"
        assert PRECISE in plan.cpu.reference_used
    else:
        assert plan.dump is None


@pytest.mark.parametrize(("weight", "hazard"), [(64, False), (65, True)])
def test_weights_at_the_limit_of_a_pair(weight: int, hazard: bool) -> None:
    assert plan_of(dense(weight), AVX2).cpu.switched is hazard


def test_signed_activations_cannot_saturate() -> None:
    assert not plan_of(dense(127, act=np.int8), AVX2).cpu.switched


def test_float_path_of_a_power_of_two_file_is_safe_everywhere() -> None:
    for flags in (AVX2, UNKNOWN):
        plan = plan_of(dense(127, unit=0.0625), flags)
        assert plan.end_to_end
        assert plan.file.level == "off"
        assert not plan.cpu.switched


def test_qoperator_file_with_a_hazard_runs_with_precise_kernels() -> None:
    safe, hazard = plan_of(qoperator(64), AVX2), plan_of(qoperator(127), AVX2)
    assert safe.end_to_end
    assert hazard.end_to_end
    assert safe.file.level == "off"
    assert hazard.file.config[PRECISE] == "1"
    assert hazard.cpu.hazard_ops == ("mat",)
    assert hazard.cpu.switched


def test_add_kernel_of_another_architecture_is_no_reference() -> None:
    assert plan_of(qoperator(1, add=True), ARM).cpu.hazard_ops == ("sum",)
    assert plan_of(qoperator(1, add=True), AVX2).cpu.hazard_ops == ()
    other = plan_of(cnn(0.0613).load(), ARM)
    assert other.dump is None
    assert other.cpu.switched


def test_sixteen_bit_is_never_dumped() -> None:
    plan = plan_of(sixteen().load(), VNNI)
    assert plan.dump is None
    assert "16-bit" in plan.why_no_dump
    assert not plan.cpu.switched


@pytest.mark.parametrize("imported", [dense(127), qoperator(127), qoperator(127, add=True)], ids=["qdq", "mat", "add"])
def test_switched_references_agree_with_the_oracle(imported: Imported) -> None:
    """The switch is made by flags alone, so it can be tried on a CPU that does not need it."""
    for c in compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds(), cpu_flags=AVX2):
        assert c.unexplained == 0
        if c.required:
            assert c.why_not == ""
            assert c.elements > 0
            assert "x64quantprecision" in c.reference or c.kind == "file_op"
    random = compare_random(imported.model_bytes, imported.manifest, imported.arrays, cpu_flags=AVX2)
    assert (random.unexplained, random.why_not) == (0, "")


def test_evidence_is_the_plan_s() -> None:
    imported = dense(127)
    assert cpu_evidence(imported.manifest, imported.arrays, AVX2) == plan_of(imported, AVX2).cpu
    assert cpu_evidence(imported.manifest, imported.arrays).flags
