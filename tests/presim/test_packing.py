"""Objects of tensors by the manifest, contents of buffers and fifos of a design."""

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.model import Quantization, Tensor
from presim.design import Buffer, Design, Endpoint, Fifo
from presim.kernels.attributes import Part, buffers_of, stream_of
from presim.packing import from_objects, object_count, object_dtype, object_shape, pack_constants, to_objects
from tests.qdq_models import Sketch, linear, op_of

CODES = Tensor(
    name="t",
    shape=(1, 3, 2, 4),
    dtype="uint8",
    onnx_dtype="uint8",
    role="activation",
    quant=Quantization(scales=(0.5,), zero_points=(3,)),
)
EXACT = Tensor(name="e", shape=(2, 5), dtype="exact", onnx_dtype="float32", role="accumulator")
WEIGHT = np.arange(-12, 12, dtype=np.int8).reshape(8, 3)


def design(*buffers: Buffer, fifos: tuple[Fifo, ...] = ()) -> Design:
    return Design(dispatch="d0", device="npu2", workers=(), fifos=fifos, buffers=buffers)


def test_objects_keep_the_storage_type() -> None:
    array = np.arange(24, dtype=np.uint8).reshape(1, 3, 2, 4)
    objects = to_objects(CODES, array)
    assert objects.dtype == np.uint8
    assert objects.shape == (object_count(CODES), *object_shape(CODES)) == (2, 1, 4, 8)
    np.testing.assert_array_equal(from_objects(CODES, objects), array)
    np.testing.assert_array_equal(from_objects(CODES, objects.ravel()), array)
    for dtype in (np.int32, np.int64):
        sums = np.arange(10, dtype=dtype).reshape(2, 5)
        assert to_objects(EXACT, sums).dtype == dtype
        np.testing.assert_array_equal(from_objects(EXACT, to_objects(EXACT, sums)), sums)


@pytest.mark.parametrize(
    ("tensor", "array"),
    [
        (CODES, np.zeros((1, 3, 2, 4), np.int8)),
        (CODES, np.zeros((1, 3, 4, 2), np.uint8)),
        (EXACT, np.zeros((2, 5), np.float32)),
    ],
)
def test_other_arrays_are_refused(tensor: Tensor, array: np.ndarray) -> None:
    with pytest.raises(ValueError, match=f"tensor '{tensor.name}': expected {tensor.dtype} .*, got {array.dtype}"):
        to_objects(tensor, array)


def test_objects_that_are_too_many_are_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        from_objects(CODES, np.zeros(2 * 32 + 8, np.uint8))


def test_storage_of_codes_and_accumulators() -> None:
    s = Sketch(opset=21)
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="xd")
    y = s.node("Gemm", [x, s.weight(np.ones((4, 3)), 0.25)], out="g")
    s.output(y)
    wide = s.node("MatMul", [s.qdq(y, 0.1, 0, np.int16, out="yd"), s.weight(np.full((3, 3), 32767), 1, 0, np.int16)])
    s.output(wide)
    manifest = s.load().manifest
    assert object_dtype(manifest, "xd.q") == "int8"
    exact = [op.outputs[0] for op in manifest.ops if op.type in ("Gemm", "MatMul")]
    exact = [name for name in exact if manifest.tensor(name).dtype == "exact"]
    assert [object_dtype(manifest, name) for name in exact] == ["int32", "int64"]


def test_buffers_and_streams_by_their_key() -> None:
    imported = linear(WEIGHT).load()
    op = op_of(imported.manifest, "Gemm")
    part = Part(out_first=1)
    specs = buffers_of(op, imported.manifest, part)
    stream = stream_of(op, imported.manifest, None, 2)
    buffers = [
        Buffer(name=f"b{i}", tile=None, shape=s.shape, dtype=s.dtype, array=s.array) for i, s in enumerate(specs)
    ]
    scratch = Buffer(name="acc", tile=None, shape=(3,), dtype="int32")
    end = Endpoint(actor="w")
    fifo = Fifo(
        name="f",
        shape=stream.shape,
        dtype=stream.dtype,
        producer=Endpoint(actor="m", kind="mem"),
        consumers=(end,),
        init_array=stream.array,
    )
    packed = pack_constants(design(*buffers, scratch, fifos=(fifo,)), imported.manifest, imported.arrays)
    assert set(packed) == {*(s.array for s in specs), stream.array}
    np.testing.assert_array_equal(packed[str(specs[0].array)], WEIGHT[:, 1:])
    np.testing.assert_array_equal(packed[stream.array][0], WEIGHT[:, :2])
    np.testing.assert_array_equal(packed[stream.array][1], [[row[2], 0] for row in WEIGHT])
    whole = stream_of(op, imported.manifest, None, 3)
    single = Fifo(
        name="f",
        shape=whole.shape,
        dtype=whole.dtype,
        producer=Endpoint(actor="m", kind="mem"),
        consumers=(end,),
        init_array=whole.array,
    )
    packed = pack_constants(design(fifos=(single,)), imported.manifest, imported.arrays)
    np.testing.assert_array_equal(packed[whole.array], WEIGHT[np.newaxis])


@pytest.mark.parametrize(("shape", "dtype"), [((8, 2), "int8"), ((8, 3), "uint8")])
def test_a_buffer_that_is_not_its_contents_is_refused(shape: tuple[int, ...], dtype: str) -> None:
    imported = linear(WEIGHT).load()
    buffer = Buffer(name="w", tile=None, shape=shape, dtype=dtype, array="weights:gemm:all")
    with pytest.raises(ValueError, match=r"buffer 'w': expected .*, its contents are int8 \(8, 3\)"):
        pack_constants(design(buffer), imported.manifest, imported.arrays)


def test_scales_too_far_apart_are_refused() -> None:
    s = Sketch()
    a = s.qdq(s.input("a", (1, 8)), 2**60, out="ad")
    b = s.qdq(s.input("b", (1, 8)), 2**-20, out="bd")
    s.output(s.qdq(s.node("Add", [a, b]), 1.0, out="y"))
    imported = s.load()
    with pytest.raises(RefusedError, match=r"PRESIM-KERNEL.*too far apart to be aligned"):
        buffers_of(op_of(imported.manifest, "Add"), imported.manifest)
