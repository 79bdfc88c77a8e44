from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manifest.model import Manifest, Tensor
from phases.presim.flow import carries_activation, held, streams
from presim.blocks import to_objects
from presim.design import Design, Endpoint, Fifo, Link, Slice
from tests.ports import small_manifest

SHAPE = (1, 16, 3, 2)
VALUES = np.arange(np.prod(SHAPE), dtype=np.int8).reshape(SHAPE)
WHOLE = to_objects(VALUES)  # 3 rows of (2, 2, 8)
ROW = (2, 2, 8)


def manifest(shape: tuple[int, ...] = SHAPE) -> Manifest:
    t = Tensor(name="t", shape=shape, dtype="int8", onnx_dtype="int8", role="activation")
    w = Tensor(name="w", shape=(4,), dtype="int8", onnx_dtype="int8", role="weight", array="t000001")
    return replace(small_manifest(), tensors=(t, w))


def fifo(name: str, shape: tuple[int, ...], *, tensor: str = "t", **fields: Any) -> Fifo:
    ends = {"producer": Endpoint(actor="a"), "consumers": (Endpoint(actor="b"),)}
    return Fifo(name=name, shape=shape, dtype="int8", tensor=tensor, **{**ends, **fields})


def flow(*fifos: Fifo, links: tuple[Link, ...] = (), values: Any = VALUES) -> dict[str, Any]:
    design = Design(dispatch="d", device="npu2", workers=(), fifos=fifos, links=links)
    return streams(design, manifest(values.shape), {"t": values})


def test_a_tensor_flows_as_its_rows() -> None:
    np.testing.assert_array_equal(flow(fifo("f", ROW))["f"], WHOLE)


def test_constants_and_unnamed_fifos_carry_no_activation() -> None:
    fifos = (fifo("w", (4,), tensor="w"), fifo("n", (4,), tensor=""))
    assert flow(*fifos) == {}
    assert [carries_activation(f, manifest()) for f in (*fifos, fifo("f", ROW))] == [False, False, True]


def test_a_form_cuts_the_same_elements_otherwise() -> None:
    flat = flow(fifo("f", (96,), form=(1, 96)))["f"]
    np.testing.assert_array_equal(flat, VALUES.reshape(1, 96))
    assert flow(fifo("f", (96,), form=(1, 97))) == {}


def test_several_objects_in_one() -> None:
    np.testing.assert_array_equal(flow(fifo("f", (3, *ROW)))["f"].reshape(3, *ROW), WHOLE)


@pytest.mark.parametrize(
    ("part", "shape", "expected"),
    [
        (Slice(axis="channels", first=8, count=8), (1, 2, 8), to_objects(VALUES[:, 8:])),
        (Slice(axis="columns", first=1, count=1), (2, 1, 8), to_objects(VALUES[..., 1:])),
        (Slice(axis="objects", first=0, count=2, step=2), ROW, WHOLE[::2]),
        (Slice(axis="objects", first=1, count=1), ROW, WHOLE[1:2]),
    ],
)
def test_slices(part: Slice, shape: tuple[int, ...], expected: Any) -> None:
    np.testing.assert_array_equal(flow(fifo("f", shape, slices=(part,)))["f"], expected)


def test_parts_of_a_split_and_of_a_join_are_segments_of_the_object() -> None:
    split = Link(kind="split", sources=("f",), targets=("p", "q"), offsets=(0, 24))
    found = flow(fifo("f", ROW), fifo("p", (24,)), fifo("q", (8,)), links=(split,))
    np.testing.assert_array_equal(found["p"], WHOLE.reshape(3, 32)[:, :24])
    np.testing.assert_array_equal(found["q"], WHOLE.reshape(3, 32)[:, 24:])
    join = Link(kind="join", sources=("p", "q"), targets=("f",), offsets=(0, 24))
    joined = flow(fifo("f", ROW), fifo("p", (24,)), fifo("q", (8,)), links=(join,))
    np.testing.assert_array_equal(joined["q"], found["q"])


def test_a_forward_carries_its_source() -> None:
    link = Link(kind="forward", sources=("f",), targets=("g",))
    np.testing.assert_array_equal(flow(fifo("f", ROW), fifo("g", ROW, tensor=""), links=(link,))["g"], WHOLE)


def test_what_cannot_be_derived_is_left_out() -> None:
    assert flow(fifo("f", (7,))) == {}
    outside = Link(kind="split", sources=("f",), targets=("p",), offsets=(30,))
    assert set(flow(fifo("f", ROW), fifo("p", (8,)), links=(outside,))) == {"f"}
    circle = (
        Link(kind="forward", sources=("f",), targets=("g",)),
        Link(kind="forward", sources=("g",), targets=("f",)),
    )
    assert flow(fifo("f", ROW, tensor=""), fifo("g", ROW, tensor=""), links=circle) == {}


def test_vectors_have_their_padding() -> None:
    values = np.arange(10, dtype=np.int8).reshape(1, 10)
    found = flow(fifo("f", (16,)), values=values)["f"]
    np.testing.assert_array_equal(found, [[*range(10), 0, 0, 0, 0, 0, 0]])


def test_consumers_hold_repeated_and_cut_objects() -> None:
    stream = flow(fifo("f", ROW))["f"]
    twice = held(fifo("f", ROW, repeat_count=2), stream)
    np.testing.assert_array_equal(twice, np.repeat(WHOLE.reshape(3, 32), 2, axis=0))
    cut = held(fifo("f", ROW, consumer_shape=(16,)), stream)
    np.testing.assert_array_equal(cut, WHOLE.reshape(6, 16))
    reordered = fifo("f", ROW, producer=Endpoint(actor="a", dims=((32, 1),)))
    assert held(reordered, stream) is None
