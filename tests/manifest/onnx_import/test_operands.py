import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Constant, Node
from manifest.onnx_import.operands import channel_values, check_channel_axis, exact_constant
from manifest.onnx_import.quant import per_tensor, quantization

NODE = Node(index=0, name="n", key=":Conv", domain="", type="Conv", inputs=("x",), outputs=("y",))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 1, 1), (1, 3, 1, 1)])
def test_a_bias_of_one_value_per_channel_in_any_position(shape: tuple[int, ...]) -> None:
    constant = Constant(array=np.array([1, 2, 3], np.int32).reshape(shape), quant=per_tensor(0.5), origin="b")
    values, quant = channel_values(NODE, constant, 3, "bias")
    assert values.tolist() == [1, 2, 3]
    assert quant == per_tensor(0.5)


def test_a_bias_with_scales_per_channel_keeps_them_on_axis_zero() -> None:
    quant = quantization((0.5, 0.25), (1, 2), 1)
    constant = Constant(array=np.array([[10, 20]], np.int8), quant=quant, origin="b")
    values, found = channel_values(NODE, constant, 2, "bias")
    assert (values.tolist(), values.dtype.name) == ([9, 18], "int32")
    assert found == quantization((0.5, 0.25), (0, 0), 0)


@pytest.mark.parametrize("shape", [(2,), (3, 3), (3, 2)])
def test_a_bias_of_another_size_is_refused(shape: tuple[int, ...]) -> None:
    constant = Constant(array=np.zeros(shape, np.float32), origin="b")
    with pytest.raises(RefusedError, match=r"bias does not add one value per output channel; expected 3 values"):
        channel_values(NODE, constant, 3, "bias")


@pytest.mark.parametrize(
    ("values", "integers", "scale"),
    [
        ([0.5, -1.25], [2, -5], 0.25),
        ([6.0], [3], 2.0),
        ([0.0, 0.0], [0, 0], 1.0),
        ([96.0, -32.0], [3, -1], 32.0),
        ([2.0**-30, 1.0], [1, 2**30], 2.0**-30),
    ],
)
def test_float_constants_become_the_smallest_integers(values: list[float], integers: list[int], scale: float) -> None:
    found = exact_constant(NODE, Constant(array=np.array(values, np.float32), origin="k"))
    assert found.array.tolist() == integers
    assert found.quant == per_tensor(scale)


def test_thirty_one_bits_are_the_limit() -> None:
    fits = Constant(array=np.array([2.0**-30, 1.0], np.float32), origin="k")
    assert exact_constant(NODE, fits).array.dtype == np.int32
    beyond = Constant(array=np.array([2.0**-31, 1.0], np.float32), origin="k")
    with pytest.raises(RefusedError, match="float constant 'k' is not quantised"):
        exact_constant(NODE, beyond)


def test_a_quantised_constant_is_left_alone() -> None:
    constant = Constant(array=np.array([5], np.int8), quant=per_tensor(0.3), origin="k")
    assert exact_constant(NODE, constant) is constant


def test_scales_have_to_lie_along_the_output_channels() -> None:
    check_channel_axis(NODE, quantization((0.5, 0.25), (0, 0), 1), 1, "weight")
    check_channel_axis(NODE, per_tensor(0.5), 0, "weight")
    with pytest.raises(RefusedError, match=r"weight has its scales along axis 1; expected one scale, or .*\(axis 0\)"):
        check_channel_axis(NODE, quantization((0.5, 0.25), (0, 0), 1), 0, "weight")
    with pytest.raises(RefusedError, match="expected one scale"):
        check_channel_axis(NODE, quantization((0.5, 0.25), (0, 0), 1), None, "weight")
