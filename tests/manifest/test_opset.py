"""The op table: every row has an answer per layer, and every `yes` has its file."""

import importlib.util
from pathlib import Path

import pytest

from manifest.opset import INTERNAL, NOT_YET, OPSET, UNKNOWN, YES, op_key, refusal

INT16 = {
    "QuantizeLinear", "DequantizeLinear", "MatMul", "Gemm", "Conv", "Add", "Relu", "Clip", "MaxPool",
    "GlobalAveragePool", "Flatten", "Reshape", "Transpose",
}  # fmt: skip
LAYERS = {"importer": "manifest.onnx_import.ops", "oracle": "oracle.ops", "presim": "presim.kernels"}


@pytest.mark.parametrize("key", OPSET)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_row_that_says_yes_has_its_file(key: str, layer: str) -> None:
    row = OPSET[key]
    answer = getattr(row, layer)
    assert answer.strip()
    if answer == YES:
        assert importlib.util.find_spec(f"{LAYERS[layer]}.{row.file}") is not None, f"{LAYERS[layer]}.{row.file}"


@pytest.mark.parametrize("file", INTERNAL.values())
def test_internal_ops_have_a_file_in_the_oracle(file: str) -> None:
    assert importlib.util.find_spec(f"oracle.ops.{file}") is not None


@pytest.mark.parametrize("layer", ["importer", "oracle"])
def test_every_op_file_belongs_to_a_row(layer: str, root: Path) -> None:
    """A module that no row names would never be looked for; names with a leading underscore are helpers."""
    folder = root / LAYERS[layer].replace(".", "/")
    files = {p.stem for p in folder.glob("*.py") if not p.stem.startswith("_")}
    named = {row.file for row in OPSET.values() if getattr(row, layer) == YES} | set(INTERNAL.values())
    assert files <= named, sorted(files - named)


@pytest.mark.parametrize("key", OPSET)
def test_rows_are_consistent(key: str) -> None:
    row = OPSET[key]
    domain, _, op_type = key.partition(":")
    assert op_key(domain, op_type) == key
    if row.importer == YES:
        assert row.file
        assert not row.host
        assert row.dtypes
        assert refusal(key) is None
    else:
        assert row.remedy
        assert not row.dtypes
        assert refusal(key) == (row.importer, row.remedy)
        assert row.oracle != YES
    assert row.bringup in (NOT_YET, row.oracle) or row.bringup == YES


def test_int16_is_taken_where_the_capability_says_so() -> None:
    got = {k.partition(":")[2] for k, row in OPSET.items() if row.int16 and row.oracle == YES}
    assert got - {"Squeeze", "Unsqueeze"} == INT16


def test_host_ops_are_refused_unless_asked_for() -> None:
    refused = refusal(":Softmax")
    assert refused is not None
    assert "--host-ops" in refused[1]
    assert refusal(":Softmax", host_ops=True) is None
    assert refusal(":Resize", host_ops=True) is not None


def test_an_op_without_a_row_is_unknown() -> None:
    assert refusal("my.domain:Foo") == UNKNOWN
    assert refusal("my.domain:Foo", host_ops=True) == UNKNOWN
    assert op_key("ai.onnx", "Conv") == op_key("", "Conv") == ":Conv"


def test_the_table_cannot_be_changed_by_accident() -> None:
    with pytest.raises(AttributeError):
        OPSET[":Conv"].file = "other"  # type: ignore[misc]
