from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Node
from manifest.onnx_import.shapes import (
    broadcast,
    matmul,
    normalize_axis,
    permutation,
    reshape,
    squeeze,
    unsqueeze,
    window,
)


def node(op_type: str = "Conv", **attributes: Any) -> Node:
    return Node(
        index=0,
        name="n",
        key=f":{op_type}",
        domain="",
        type=op_type,
        inputs=("x",),
        outputs=("y",),
        attributes=attributes,
    )


def onnxruntime_shape(op_type: str, shape: tuple[int, ...], weight: tuple[int, ...] | None, **attributes: Any) -> Any:
    """Shape that onnxruntime computes, None where it refuses."""
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    names = ["x"]
    if weight is not None:
        inputs.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, weight))
        names.append("w")
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op_type, names, ["y"], **attributes)], "g", inputs, [output])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    made.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = {n: np.ones(s or (), np.float32) for n, s in zip(names, (shape, weight), strict=False)}
        return session.run(None, feeds)[0].shape
    except Exception:  # noqa: BLE001  (onnxruntime's own exceptions share no base)
        return None


SMALL = st.integers(1, 3)
PAIR = st.tuples(SMALL, SMALL)


@settings(max_examples=150)
@given(
    size=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    window_of=st.tuples(PAIR, PAIR, PAIR),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    ceil_mode=st.booleans(),
)
def test_pools_are_sized_as_in_onnxruntime(
    size: tuple[int, int], window_of: tuple[tuple[int, int], ...], pads: tuple[int, int, int, int], ceil_mode: bool
) -> None:
    kernel, strides, dilations = window_of
    attributes = {"strides": strides, "pads": pads, "dilations": dilations}
    # onnxruntime divides -1 by 2 to 0 and so pools over a window that is larger than its padded input
    assume(all(size[i] + pads[i] + pads[i + 2] > (kernel[i] - 1) * dilations[i] for i in (0, 1)))
    expected = onnxruntime_shape(
        "MaxPool", (1, 1, *size), None, kernel_shape=kernel, ceil_mode=int(ceil_mode), **attributes
    )
    assume(expected is not None)
    got = window(node("MaxPool", **attributes), (1, 1, *size), kernel, ceil_mode=ceil_mode)
    assert (1, 1, *got.output) == expected


@settings(max_examples=100)
@given(
    size=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    kernel=PAIR,
    strides=PAIR,
    mode=st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]),
)
def test_auto_pads_give_the_shape_of_onnxruntime(
    size: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], mode: str
) -> None:
    expected = onnxruntime_shape("Conv", (1, 1, *size), (1, 1, *kernel), strides=strides, auto_pad=mode)
    assume(expected is not None)
    got = window(node(strides=strides, auto_pad=mode), (1, 1, *size), kernel)
    assert (1, 1, *got.output) == expected


@pytest.mark.parametrize(
    ("mode", "expected"), [("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0)), ("VALID", (0, 0, 0, 0))]
)
def test_the_odd_pad_goes_where_auto_pad_says(mode: str, expected: tuple[int, ...]) -> None:
    assert window(node(auto_pad=mode), (1, 1, 4, 4), (2, 2)).pads == expected


def test_defaults_are_filled_in() -> None:
    got = window(node(), (1, 3, 5, 7), (3, 3))
    assert (got.strides, got.pads, got.dilations, got.output) == ((1, 1), (0, 0, 0, 0), (1, 1), (3, 5))


@pytest.mark.parametrize(("size", "expected"), [(5, 3), (6, 3), (7, 4)])
def test_a_ceil_window_has_to_start_inside(size: int, expected: int) -> None:
    """Kernel 1, stride 2 over 6 would start a fourth window at 6, which is outside."""
    got = window(node("MaxPool", strides=(2, 2)), (1, 1, size, size), (1, 1), ceil_mode=True)
    assert got.output == (expected, expected)


@pytest.mark.parametrize(
    ("attributes", "shape", "message"),
    [
        ({"pads": (0, -1, 0, 0)}, (1, 1, 4, 4), "negative pads crop the input"),
        ({}, (1, 1, 4), "1-D Conv is not supported"),
        ({}, (1, 1, 4, 4, 4), "3-D Conv is not supported"),
        ({"strides": (0, 1)}, (1, 1, 4, 4), "attribute strides; expected 2 values >= 1"),
        ({"dilations": (1,)}, (1, 1, 4, 4), "attribute dilations; expected 2 values"),
        ({"pads": (1, 1)}, (1, 1, 4, 4), "attribute pads; expected 4 values"),
        ({}, (1, 1, 2, 4), "the window is larger than its input"),
    ],
)
def test_windows_beyond_the_tool_are_refused_by_name(
    attributes: dict[str, Any], shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(RefusedError, match=message) as error:
        window(node(**attributes), shape, (3, 3))
    assert "'n' (Conv)" in str(error.value)


@given(
    left=st.lists(st.integers(1, 3), max_size=3),
    right=st.lists(st.integers(1, 3), max_size=3),
)
def test_broadcast_equals_numpy(left: list[int], right: list[int]) -> None:
    try:
        expected = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        with pytest.raises(RefusedError, match="do not broadcast"):
            broadcast(node(), [tuple(left), tuple(right)])
    else:
        assert broadcast(node(), [tuple(left), tuple(right)]) == expected


@given(
    left=st.lists(st.integers(1, 3), min_size=1, max_size=4), right=st.lists(st.integers(1, 3), min_size=1, max_size=4)
)
def test_matmul_equals_numpy(left: list[int], right: list[int]) -> None:
    try:
        expected = np.matmul(np.ones(left), np.ones(right)).shape
    except ValueError:
        with pytest.raises(RefusedError):
            matmul(node("MatMul"), tuple(left), tuple(right))
    else:
        assert matmul(node("MatMul"), tuple(left), tuple(right)) == expected


@pytest.mark.parametrize(
    ("target", "allow_zero", "expected"),
    [((0, -1), False, (2, 12)), ((-1,), False, (24,)), ((4, 6), False, (4, 6)), ((0, 3, 4), False, (2, 3, 4))],
)
def test_reshape_targets(target: tuple[int, ...], allow_zero: bool, expected: tuple[int, ...]) -> None:
    assert reshape(node("Reshape"), (2, 3, 4), target, allow_zero=allow_zero) == expected


@pytest.mark.parametrize("target", [(5, -1), (4, 5), (-1, -1), (0, 0, 0, 0), (-2, 12)])
def test_reshape_targets_that_do_not_fit(target: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError, match="target does not fit"):
        reshape(node("Reshape"), (2, 3, 4), target, allow_zero=False)


def test_squeeze_and_unsqueeze_are_inverse() -> None:
    assert squeeze(node(), (1, 3, 1), None) == (3,)
    assert squeeze(node(), (1, 3, 1), (-1,)) == (1, 3)
    assert unsqueeze(node(), (3,), (0, -1)) == (1, 3, 1)
    with pytest.raises(RefusedError, match="have to be of size 1"):
        squeeze(node(), (1, 3), (1,))
    with pytest.raises(RefusedError, match="repeated axes"):
        unsqueeze(node(), (3,), (0, -3))


@pytest.mark.parametrize(("axis", "expected"), [(-3, 0), (2, 2)])
def test_axes_at_the_limits(axis: int, expected: int) -> None:
    assert normalize_axis(node(), axis, 3) == expected


@pytest.mark.parametrize("axis", [-4, 3])
def test_axes_beyond_the_limits(axis: int) -> None:
    with pytest.raises(RefusedError, match="axis out of range; expected -3 to 2"):
        normalize_axis(node(), axis, 3)


def test_permutations() -> None:
    assert permutation(node("Transpose"), 3) == (2, 1, 0)
    with pytest.raises(RefusedError, match="a permutation of 2 axes"):
        permutation(node("Transpose", perm=(0, 0)), 2)
