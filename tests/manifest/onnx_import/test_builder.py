import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fuse import Plan
from manifest.onnx_import.graph import Constant, build
from manifest.onnx_import.quant import per_tensor
from tests.qdq_models import Sketch


@pytest.fixture
def b() -> Builder:
    s = Sketch()
    s.const([1, 2], np.int8, "w")
    s.node("Relu", [s.input("x", (1, 4))], "y", name="relu")
    s.output("y", (1, 4))
    return Builder(build(s.proto()), Plan(chains={}, absorbed=frozenset()), host_ops=False)


def codes(scale: float = 0.5, values: tuple[int, ...] = (1, 2)) -> Constant:
    return Constant(array=np.array(values, np.int8), quant=per_tensor(scale), origin="w")


def test_a_constant_is_stored_once(b: Builder) -> None:
    first = b.add_constant(codes(), "weight", alias="d")
    assert b.add_constant(codes(), "weight", alias="e") is first
    assert (first.name, first.array, len(b.arrays)) == ("w", "t000001", 1)


def test_another_quantization_takes_the_alias_and_then_a_fresh_name(b: Builder) -> None:
    names = [b.add_constant(codes(scale), "weight", alias="d").name for scale in (0.5, 0.25, 0.125)]
    assert names == ["w", "d", "w#weight"]


def test_other_values_under_the_same_name_are_another_tensor(b: Builder) -> None:
    b.add_constant(codes(), "weight", alias="w")
    other = b.add_constant(codes(values=(1, 3)), "weight", alias="w")
    assert other.name == "w#weight"
    assert b.arrays[other.array or ""].tolist() == [1, 3]


def test_scalars_keep_their_rank(b: Builder) -> None:
    tensor = b.add_constant(
        Constant(array=np.array(7, np.int8), quant=per_tensor(1.0), origin="k"), "constant", alias="k"
    )
    assert tensor.shape == b.arrays[tensor.array or ""].shape == ()


def test_the_range_of_a_constant_is_that_of_its_values(b: Builder) -> None:
    b.add_constant(codes(values=(-5, 9)), "weight", alias="w")
    assert b.ranges["w"] == (-5, 9)


def test_graph_outputs_get_their_role_and_their_integers_a_name_of_their_own(b: Builder) -> None:
    assert b.own_name("z", "codes") == "z"
    assert b.own_name("y", "codes") == "y#codes"
    b.add_tensor("y", (1, 4), "float32", onnx_dtype="float32")
    assert b.tensors["y"].role == "output"


def test_a_constant_where_an_activation_is_wanted_is_refused(b: Builder) -> None:
    node = b.graph.nodes[0]
    b.set("x", "float", "x")
    assert b.value(node, 0).tensor == "x"
    with pytest.raises(RefusedError, match="input 1 is absent, an activation was expected"):
        b.value(node, 1)


def test_types_without_a_name_in_the_manifest_are_a_defect_of_the_importer(b: Builder) -> None:
    with pytest.raises(TypeError, match="constant 'k' has type complex64"):
        b.add_constant(Constant(array=np.ones(1, np.complex64), origin="k"), "constant", alias="k")
