import numpy as np
import onnx
import pytest

from manifest.onnx_import.validate_tensors import (
    BITS,
    MAX_ELEMENTS,
    MAX_RANK,
    element_count,
    header_problem,
    payload_bytes,
    payload_problem,
    tensor_problems,
)
from tests.onnx_models import model, node, tensor

T = onnx.TensorProto


def code(made: onnx.TensorProto) -> str:
    problem = header_problem("t", made) or payload_problem("t", made)
    return problem.code if problem else ""


def raw(data: bytes, dims: list[int], data_type: int = T.INT8) -> onnx.TensorProto:
    return T(dims=dims, data_type=data_type, raw_data=data)


def test_element_count_stops_early_and_knows_zero() -> None:
    assert element_count([2**16, 2**15]) == MAX_ELEMENTS
    assert element_count([2**16, 2**15 + 1]) == MAX_ELEMENTS + 1
    assert element_count([2**62] * 10_000) == MAX_ELEMENTS + 1
    assert element_count([2**62, 0, 2**62]) == 0
    assert element_count([]) == 1


@pytest.mark.parametrize("data_type", sorted(set(BITS) - {T.COMPLEX64, T.COMPLEX128}))
def test_raw_length_of_every_type_on_both_sides(data_type: int) -> None:
    size = (3 * BITS[data_type] + 7) // 8
    assert payload_bytes(raw(b"", [3], data_type)) == size
    assert code(raw(bytes(size), [3], data_type)) == ""
    assert code(raw(bytes(size - 1), [3], data_type)) == "ONNX-TENSOR-DATA"
    assert code(raw(bytes(size + 1), [3], data_type)) == "ONNX-TENSOR-DATA"


def test_bits_agree_with_onnx() -> None:
    for data_type in set(BITS) & {T.FLOAT, T.INT8, T.UINT8, T.INT16, T.INT64, T.DOUBLE, T.BOOL, T.COMPLEX64}:
        assert onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize * 8 == BITS[data_type]


@pytest.mark.parametrize(
    ("data_type", "field", "count"),
    [
        (T.FLOAT, "float_data", 4),
        (T.DOUBLE, "double_data", 4),
        (T.INT8, "int32_data", 4),
        (T.INT32, "int32_data", 4),
        (T.INT64, "int64_data", 4),
        (T.UINT32, "uint64_data", 4),
        (T.INT4, "int32_data", 2),
        (T.COMPLEX64, "float_data", 8),
    ],
)
def test_typed_data_on_both_sides(data_type: int, field: str, count: int) -> None:
    for have, expected in ((count, ""), (count - 1, "ONNX-TENSOR-DATA"), (count + 1, "ONNX-TENSOR-DATA")):
        made = T(dims=[4], data_type=data_type)
        getattr(made, field).extend([1] * have)
        assert code(made) == expected


def test_data_in_the_wrong_or_in_two_places() -> None:
    wrong = T(dims=[1], data_type=T.FLOAT, int32_data=[1])
    assert code(wrong) == "ONNX-TENSOR-DATA"
    twice = raw(b"1", [1])
    twice.int32_data.append(1)
    assert code(twice) == "ONNX-TENSOR-DATA"


@pytest.mark.parametrize(
    ("data_type", "low", "high"), [(T.INT8, -128, 127), (T.UINT8, 0, 255), (T.INT16, -32768, 32767)]
)
def test_typed_values_have_to_fit(data_type: int, low: int, high: int) -> None:
    assert code(T(dims=[2], data_type=data_type, int32_data=[low, high])) == ""
    assert code(T(dims=[2], data_type=data_type, int32_data=[low - 1, high])) == "ONNX-TENSOR-RANGE"
    assert code(T(dims=[2], data_type=data_type, int32_data=[low, high + 1])) == "ONNX-TENSOR-RANGE"


def test_dims() -> None:
    assert code(raw(b"", [-1])) == "ONNX-TENSOR-DIMS"
    assert code(raw(b"1", [1] * MAX_RANK)) == ""
    assert code(raw(b"1", [1] * (MAX_RANK + 1))) == "ONNX-TENSOR-DIMS"
    assert code(raw(b"", [2**31 + 1])) == "ONNX-TENSOR-SIZE"
    assert code(raw(b"", [2**31])) == "ONNX-TENSOR-DATA"
    assert code(raw(b"", [2**63 - 1, 2**63 - 1])) == "ONNX-TENSOR-SIZE"
    assert code(raw(b"", [0])) == ""
    assert code(raw(b"1", [])) == ""


def test_types_that_are_no_numbers() -> None:
    assert code(T(dims=[1], data_type=T.STRING, string_data=[b"a"])) == "ONNX-TENSOR-STRING"
    assert code(T(dims=[1], data_type=0)) == "ONNX-TENSOR-TYPE"
    assert code(T(dims=[1], data_type=999)) == "ONNX-TENSOR-TYPE"
    segmented = raw(b"1", [1])
    segmented.segment.begin = 0
    assert code(segmented) == "ONNX-TENSOR-SEGMENT"


def test_problems_name_initializer_or_node() -> None:
    bad = raw(b"12", [1])
    bad.name = "w"
    constant = node("Constant", [], ["k"], "const", value=tensor("", [1.0]))
    constant.attribute[0].t.raw_data = b""
    made = model([constant, node("Relu", ["x"], ["y"])])
    made.graph.initializer.append(bad)
    lines = [p.line() for p in tensor_problems(made.graph)]
    assert len(lines) == 2
    assert "initializer 'w'" in lines[0]
    assert "node 'const' (Constant) attribute 'value'" in lines[1]


def test_numpy_arrays_written_by_onnx_are_right() -> None:
    for kind in (np.float32, np.int8, np.uint16, np.int64, np.bool_, np.float16):
        assert code(tensor("t", np.ones((2, 3)), kind)) == ""
