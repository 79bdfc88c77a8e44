import os
import resource
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.errors import Problem, RefusedError
from manifest.onnx_import.load import COUNT_ABOVE_BYTES, load_bytes, load_model, read_bytes, read_model
from manifest.onnx_import.validate import validate
from manifest.onnx_import.validate_wire import too_many_records
from tests.onnx_models import linear_model, model, node, tensor

VALID = linear_model().SerializeToString()


def refusal(data: bytes) -> str:
    with pytest.raises(RefusedError) as caught:
        load_bytes(data)
    return str(caught.value)


def problems_of(data: bytes) -> tuple[Problem, ...]:
    """Problems of loading or else of validating; any other exception fails the test."""
    try:
        return tuple(validate(load_bytes(data)))
    except RefusedError as error:
        return error.problems


def test_valid_model_loads_unchanged_without_notes() -> None:
    loaded = read_bytes(VALID)
    assert loaded.model.SerializeToString() == VALID
    assert loaded.notes == ()


def test_size_limit_on_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(VALID)
    load_model(path, max_bytes=len(VALID))
    load_bytes(VALID, max_bytes=len(VALID))
    with pytest.raises(RefusedError, match=f"FILE-SIZE.*at most {len(VALID) - 1} bytes; got {len(VALID)} bytes"):
        load_model(path, max_bytes=len(VALID) - 1)
    with pytest.raises(RefusedError, match="FILE-SIZE"):
        load_bytes(VALID, max_bytes=len(VALID) - 1)


def test_directory_missing_file_and_fifo_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"FILE-KIND.*a directory"):
        load_model(tmp_path)
    with pytest.raises(RefusedError, match=r"FILE-UNREADABLE.*No such file"):
        load_model(tmp_path / "none.onnx")
    os.mkfifo(tmp_path / "fifo.onnx")
    with pytest.raises(RefusedError, match="FILE-KIND"):
        load_model(tmp_path / "fifo.onnx")
    with pytest.raises(RefusedError, match="FILE-UNREADABLE"):
        load_model(Path("nul\0inside.onnx"))
    with pytest.raises(RefusedError, match="FILE-KIND"):
        load_model(Path("/dev/zero"))


@pytest.mark.parametrize("data", [b"", b"hello, world", b"PK\x03\x04rest of a zip", b"\x89PNG\r\n\x1a\n", b"\0" * 64])
def test_other_files_do_not_parse(data: bytes) -> None:
    assert "parse" in refusal(data)


def test_truncation_anywhere_is_refused_or_names_a_problem() -> None:
    for size in range(len(VALID)):
        assert problems_of(VALID[:size]), f"a model cut at byte {size} of {len(VALID)} was found valid"


@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_a_model_or_a_refusal(changes: list[tuple[int, int]]) -> None:
    data = bytearray(VALID)
    for position, byte in changes:
        data[position] = byte
    assert all(problem.line().isprintable() for problem in problems_of(bytes(data)))


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    assert problems_of(data)


def test_unsorted_nodes_are_sorted_and_noted() -> None:
    shuffled = linear_model()
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in shuffled.graph.node]
    del shuffled.graph.node[:]
    shuffled.graph.node.extend(nodes[::-1])
    loaded = read_bytes(shuffled.SerializeToString())
    assert [note.code for note in loaded.notes] == ["ONNX-NODES-SORTED"]
    seen = {"x", *(t.name for t in loaded.model.graph.initializer)}
    for item in loaded.model.graph.node:
        assert set(item.input) <= seen
        seen.update(item.output)


def test_cycle_names_its_nodes() -> None:
    looped = model([node("Add", ["x", "b"], ["a"], "p"), node("Relu", ["a"], ["b"], "q"), node("Relu", ["b"], ["y"])])
    text = refusal(looped.SerializeToString())
    assert "ONNX-CYCLE" in text
    assert "'p'" in text
    assert "'q'" in text


def test_ai_onnx_is_the_standard_domain() -> None:
    made = model([node("Relu", ["x"], ["y"], domain="ai.onnx")])
    loaded = load_bytes(made.SerializeToString())
    assert loaded.graph.node[0].domain == ""
    assert validate(loaded) == []


def test_com_microsoft_without_import_is_imported_and_noted() -> None:
    made = linear_model(domain="com.microsoft")
    del made.opset_import[1]
    loaded = read_bytes(made.SerializeToString())
    assert [note.code for note in loaded.notes] == ["ONNX-IMPORT-ADDED"]
    assert validate(loaded.model) == []


def test_negative_dim_of_an_input_is_open() -> None:
    made = model([node("Relu", ["x"], ["y"])])
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    dim = load_bytes(made.SerializeToString()).graph.input[0].type.tensor_type.shape.dim[0]
    assert dim.WhichOneof("value") is None


def test_what_inference_does_not_use_is_left_out_and_noted() -> None:
    made = model([node("Relu", ["x"], ["y"])])
    made.training_info.add().initialization.name = "t"
    made.functions.add(name="F", domain="local")
    sparse = made.graph.sparse_initializer.add()
    sparse.values.CopyFrom(tensor("sp", [1.0]))
    sparse.values.data_location = onnx.TensorProto.EXTERNAL
    loaded = read_bytes(made.SerializeToString())
    assert {n.code for n in loaded.notes} == {"ONNX-TRAINING-DROPPED", "ONNX-FUNCTIONS-DROPPED", "ONNX-SPARSE-DROPPED"}
    assert not loaded.model.training_info
    assert not loaded.model.functions
    assert not loaded.model.graph.sparse_initializer
    assert validate(loaded.model) == []


def test_refusal_of_a_tensor_carries_every_other_problem_too() -> None:
    broken = linear_model(weight_scale=[0.5, 0.0, 0.5], weight_axis=1)
    broken.graph.initializer[0].raw_data = b"123"
    text = refusal(broken.SerializeToString())
    assert "ONNX-TENSOR-DATA" in text
    assert "ONNX-SCALE-ZERO" in text


def test_name_that_is_not_utf8_is_refused_by_name() -> None:
    data = VALID.replace(b"\x02mm", b"\x02\xff\xfe")
    assert data != VALID
    text = refusal(data)
    assert "name" in text
    assert "\\xff" in text


def test_bomb_of_empty_records_is_refused_before_it_is_parsed() -> None:
    count = COUNT_ABOVE_BYTES // 2 + 1
    body = b"\x0a\x00" * count
    data = b"\x08\x08\x3a" + varint(len(body)) + body
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = refusal(data)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert "parse" in text
    assert "records" in text
    assert grown < 20 * len(data)


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def test_records_are_counted_on_both_sides_of_the_limit() -> None:
    body = b"\x0a\x00" * 10
    data = b"\x3a" + varint(len(body)) + body
    assert not too_many_records(data, limit=11)
    assert too_many_records(data, limit=10)
    assert not too_many_records(data[:-1], limit=0), "malformed bytes are the parser's to refuse"


def test_every_corpus_model_loads(shared: Path) -> None:
    paths = sorted((shared / "corpus" / "models").glob("*.onnx"))
    assert len(paths) > 100
    sorted_files = set()
    for path in paths:
        loaded = read_model(path)
        if any(note.code == "ONNX-NODES-SORTED" for note in loaded.notes):
            sorted_files.add(path.stem)
    assert "mnist_resnet.quark_xint8" in sorted_files
    assert "mnist_resnet.qdq_s8s8_pt" not in sorted_files


def test_truncated_case_names_parse(shared: Path) -> None:
    with pytest.raises(RefusedError, match="parse"):
        load_model(shared / "cases" / "models" / "m63_truncated_file.onnx")
