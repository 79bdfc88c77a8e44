from pathlib import Path

import numpy as np
import onnx
import onnx.defs
import pytest

from manifest.errors import Problem
from manifest.onnx_import.load import load_bytes, load_model
from manifest.onnx_import.validate import validate
from manifest.onnx_import.validate_text import MAX_PROBLEMS, SHOWN_CHARACTERS
from tests.onnx_models import FLOAT, linear_model, model, node, qdq_pair, tensor, value


def problems(made: onnx.ModelProto) -> list[Problem]:
    return validate(load_bytes(made.SerializeToString()))


def codes(made: onnx.ModelProto) -> list[str]:
    return [problem.code for problem in problems(made)]


def the(made: onnx.ModelProto, code: str) -> str:
    """The only problem of a model, which has to have this code."""
    found = problems(made)
    assert [problem.code for problem in found] == [code]
    return found[0].line()


def relu(**changes: object) -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"], "r")], **changes)  # type: ignore[arg-type]


def test_valid_models_have_no_problems() -> None:
    assert problems(relu()) == []
    assert problems(linear_model()) == []
    assert problems(linear_model(domain="com.microsoft")) == []


# --- versions


NEWEST_IR = onnx.IR_VERSION


@pytest.mark.parametrize(("version", "right"), [(2, False), (3, True), (NEWEST_IR, True), (NEWEST_IR + 1, False)])
def test_ir_version_on_both_sides(version: int, right: bool) -> None:
    assert codes(relu(ir_version=version)) == ([] if right else ["ONNX-IR-VERSION"])


NEWEST = onnx.defs.onnx_opset_version()


@pytest.mark.parametrize(("opset", "right"), [(6, False), (7, True), (NEWEST, True), (NEWEST + 1, False)])
def test_opset_range_on_both_sides(opset: int, right: bool) -> None:
    found = problems(relu(opset=opset))
    assert [p.code for p in found] == ([] if right else ["ONNX-OPSET-RANGE"])
    assert right or f"opset {opset}" in found[0].line()


def test_missing_and_ambiguous_opset() -> None:
    made = relu()
    del made.opset_import[:]
    assert "opset" in the(made, "ONNX-OPSET-MISSING")
    two = relu()
    two.opset_import.add(domain="", version=11)
    assert "11, 13" in the(two, "ONNX-OPSET-AMBIGUOUS")


def test_qdq_below_opset_10_is_about_the_opset() -> None:
    nodes = [node("Clip", ["x", "lo"], ["c"], "two_inputs"), *qdq_pair("c", "y")]
    made = model(nodes, [tensor("lo", 0.0), tensor("s", 0.5), tensor("z", 0, np.uint8)], opset=9)
    line = the(made, "ONNX-OPSET-QDQ")
    assert "Q/DQ need opset 10 (per-axis 13)" in line
    assert "got opset 9" in line
    assert "Clip" not in line
    assert "opset 13 or later first" in line


@pytest.mark.parametrize(("pairs", "more"), [(1, ""), (2, " and 1 more")])
def test_three_nodes_are_named_and_the_others_counted(pairs: int, more: str) -> None:
    nodes = [node("Relu", ["x"], ["c0"], "r")]
    nodes += [n for i in range(pairs) for n in qdq_pair(f"c{i}", "y" if i == pairs - 1 else f"c{i + 1}")]
    line = the(model(nodes, [tensor("s", 0.5), tensor("z", 0, np.uint8)], opset=9), "ONNX-OPSET-QDQ")
    assert line.partition(": Q/DQ need")[0].count("node ") == min(2 * pairs, 3)
    assert line.partition(": Q/DQ need")[0].endswith(more or "(DequantizeLinear)")


@pytest.mark.parametrize(("opset", "right"), [(9, False), (10, True)])
def test_qdq_opset_on_both_sides(opset: int, right: bool) -> None:
    assert codes(linear_model(opset=opset)) == ([] if right else ["ONNX-OPSET-QDQ"])


def test_qdq_of_com_microsoft_needs_no_opset() -> None:
    assert codes(linear_model(opset=8, domain="com.microsoft")) == []
    per_axis = linear_model(opset=8, domain="com.microsoft", weight_scale=[0.5, 1, 2], weight_axis=1)
    assert codes(per_axis) == []


@pytest.mark.parametrize(("opset", "right"), [(12, False), (13, True)])
def test_per_axis_opset_on_both_sides(opset: int, right: bool) -> None:
    expected = [] if right else ["ONNX-OPSET-PER-AXIS"]
    assert codes(linear_model(opset=opset, weight_scale=[0.5, 1, 2], weight_axis=1)) == expected
    assert codes(linear_model(opset=opset, weight_scale=[0.5, 1, 2])) == expected
    assert codes(linear_model(opset=opset, weight_scale=[0.5])) == []


# --- domains


def test_used_domain_without_import_is_refused_unused_import_is_not() -> None:
    made = model([node("Foo", ["x"], ["y"], "n", domain="org.example")])
    assert "'org.example'" in the(made, "ONNX-OPSET-DOMAIN")
    assert codes(relu(imports={"org.pytorch.aten": 1, "com.amd.quark": 1})) == []


@pytest.mark.parametrize("domain", ["qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"])
def test_qonnx_quant_names_op_domain_and_way_out(domain: str) -> None:
    made = model([node("Quant", ["x", "s", "z", "b"], ["y"], "n", domain=domain)], imports={domain: 1})
    made.graph.initializer.extend([tensor("s", 0.5), tensor("z", 0), tensor("b", 8)])
    line = the(made, "ONNX-QONNX")
    assert all(word in line for word in ("Quant", domain, "QCDQ"))


# --- half precision, control flow, functions, sparse


def test_float16_anywhere_is_named() -> None:
    half = onnx.TensorProto.FLOAT16
    made = model([node("Relu", ["x"], ["y"])], inputs=[value("x", (1, 4), half)], outputs=[value("y", (1, 4), half)])
    line = the(made, "ONNX-FLOAT16")
    assert "float16" in line
    assert "input 'x', output 'y'" in line
    cast = model([node("Cast", ["x"], ["h"], "c", to=onnx.TensorProto.BFLOAT16), node("Cast", ["h"], ["y"], to=FLOAT)])
    assert "'c'" in the(cast, "ONNX-FLOAT16")
    constant = model(
        [node("Constant", [], ["k"], "k", value=tensor("", [1.0], np.float16)), node("Relu", ["x"], ["y"])]
    )
    assert "float16" in the(constant, "ONNX-FLOAT16")
    assert codes(model([node("Cast", ["x"], ["y"], to=FLOAT)])) == []


def test_subgraph_is_refused_with_its_node() -> None:
    branch = onnx.helper.make_graph([node("Identity", ["x"], ["o"])], "b", [], [value("o")])
    made = model([node("If", ["c"], ["y"], "branching", then_branch=branch, else_branch=branch)])
    made.graph.initializer.append(tensor("c", True, np.bool_))
    line = the(made, "ONNX-SUBGRAPH")
    assert "'branching'" in line
    assert "If" in line


def test_called_function_is_refused() -> None:
    made = model([node("F", ["x"], ["y"], "call", domain="local")], imports={"local": 1})
    function = made.functions.add(name="F", domain="local", input=["a"], output=["b"])
    function.node.add(op_type="Relu", input=["a"], output=["b"])
    function.opset_import.add(domain="", version=13)
    line = the(made, "ONNX-FUNCTION")
    assert "'call'" in line
    assert "inline" in line


def test_sparse_initializer_is_refused_where_it_is_read() -> None:
    made = model([node("Add", ["x", "sp"], ["y"])])
    sparse = made.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(tensor("sp", [1.0]))
    sparse.indices.CopyFrom(tensor("i", [2], np.int64))
    assert "'sp'" in the(made, "ONNX-SPARSE")


# --- names and structure


def add_name(name: str) -> onnx.ModelProto:
    return model([node("Relu", ["x"], [name], "a"), node("Relu", [name], ["y"], "b")])


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a'b\"c", "line\nbreak", "*/ int x; /*", "ü☃", "\x1b[31m", "a" * 4096]
)
def test_odd_names_are_data(name: str) -> None:
    assert problems(add_name(name)) == []


def test_name_length_on_both_sides_and_in_bytes() -> None:
    assert codes(add_name("a" * 4096)) == []
    assert codes(add_name("ü" * 2048)) == []
    line = the(add_name("a" * 4097), "ONNX-NAME-LENGTH")
    assert "name" in line
    assert "got 4097 bytes" in line
    assert len(line) < 500
    assert "got 4098 bytes" in the(add_name("ü" * 2049), "ONNX-NAME-LENGTH")


def test_nul_in_a_name_is_refused_and_shown_escaped() -> None:
    line = the(add_name("a\0b"), "ONNX-NAME-NUL")
    assert "name" in line
    assert "a\\x00b" in line


def test_hostile_name_in_a_message_stays_on_one_line_and_short() -> None:
    made = linear_model(weight_scale=0.0)
    hostile = "evil\n\x1b[2J" + "x" * 1000
    made.graph.initializer[3].name = hostile
    made.graph.node[2].input[1] = hostile
    line = the(made, "ONNX-SCALE-ZERO")
    assert line.isprintable()
    assert len(line) < 400 + SHOWN_CHARACTERS


def test_duplicate_tensor_names() -> None:
    twice = model([node("Relu", ["x"], ["y"], "a"), node("Neg", ["x"], ["y"], "b")])
    line = the(twice, "ONNX-DUPLICATE-TENSOR")
    assert "'y'" in line
    assert "'a'" in line
    assert "'b'" in line
    clash = model([node("Relu", ["x"], ["k"]), node("Relu", ["k"], ["y"])], [tensor("k", [1.0])])
    assert "'k'" in the(clash, "ONNX-DUPLICATE-TENSOR")
    two = model([node("Add", ["x", "k"], ["y"])], [tensor("k", [1.0]), tensor("k", [2.0])])
    assert "'k'" in the(two, "ONNX-DUPLICATE-TENSOR")
    over_input = model([node("Relu", ["x"], ["x"]), node("Relu", ["x"], ["y"])])
    assert "ONNX-DUPLICATE-TENSOR" in str([p.line() for p in validate(over_input)])
    inputs = model([node("Relu", ["x"], ["y"])], inputs=[value("x"), value("x")])
    assert "'x'" in the(inputs, "ONNX-DUPLICATE-TENSOR")


def test_initializer_may_be_the_default_of_a_graph_input() -> None:
    made = model([node("Add", ["x", "k"], ["y"])], [tensor("k", [1.0] * 4)], inputs=[value("x"), value("k", (4,))])
    assert problems(made) == []


def test_initializer_of_an_old_file_need_not_be_an_input() -> None:
    made = model([node("Add", ["x", "k"], ["y"])], [tensor("k", [1.0] * 4)], ir_version=3)
    assert problems(made) == []


def test_duplicate_node_names_are_refused_unless_they_are_constants() -> None:
    made = model([node("Relu", ["x"], ["a"], "n"), node("Relu", ["a"], ["y"], "n")])
    assert "'n'" in the(made, "ONNX-DUPLICATE-NODE")
    constants = [node("Constant", [], [f"k{i}"], "k", value=tensor("", [1.0])) for i in range(2)]
    assert problems(model([*constants, node("Sum", ["x", "k0", "k1"], ["y"])])) == []
    assert problems(model([node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["y"])])) == []


def test_duplicate_graph_output() -> None:
    assert "'y'" in the(relu(outputs=[value("y"), value("y")]), "ONNX-DUPLICATE-OUTPUT")


def test_what_nothing_produces() -> None:
    line = the(model([node("Add", ["x", "ghost"], ["y"], "n")]), "ONNX-INPUT-MISSING")
    assert "'ghost'" in line
    assert "'n'" in line
    assert "'y'" in the(model([node("Relu", ["x"], ["a"])]), "ONNX-OUTPUT-MISSING")
    assert "ONNX-NO-OUTPUT" in codes(relu(outputs=[]))
    assert codes(model([])) == ["ONNX-EMPTY"]


def test_empty_names() -> None:
    assert "ONNX-NAME-EMPTY" in codes(relu(inputs=[value("x"), value("")]))
    assert "ONNX-NAME-EMPTY" in codes(relu(outputs=[value("y"), value("")]))


def test_graph_values_that_are_no_sane_tensors() -> None:
    made = relu()
    made.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = FLOAT
    assert "sequence" in the(made, "ONNX-VALUE-TYPE")
    assert "[0, 4]" in the(relu(inputs=[value("x", (0, 4))]), "ONNX-SHAPE-EMPTY")
    assert codes(relu(inputs=[value("x", (2**16, 2**15))], outputs=[value("y", ("n",))])) == []
    assert codes(relu(inputs=[value("x", (2**16, 2**15, 2))])) == ["ONNX-SHAPE-SIZE"]
    assert codes(relu(inputs=[value("x", ("batch", None))], outputs=[value("y", ("batch", None))])) == []


# --- the list as a whole


def test_all_problems_come_in_one_run() -> None:
    made = linear_model(weight_scale=[0.5, -1.0, float("nan")], weight_axis=0)
    made.graph.node.append(node("Relu", ["ghost"], ["unused"], "mm"))
    made.opset_import.add(domain="", version=12)
    found = codes(made)
    assert found == [
        "ONNX-OPSET-AMBIGUOUS",
        "ONNX-DUPLICATE-NODE",
        "ONNX-INPUT-MISSING",
        "ONNX-SCALE-NEGATIVE",
        "ONNX-SCALE-NAN",
        "ONNX-SCALE-AXIS",
    ]


def test_number_of_problems_is_limited_and_the_rest_counted() -> None:
    nodes = [node("Relu", [f"ghost{i}"], [f"o{i}"]) for i in range(MAX_PROBLEMS + 5)]
    found = problems(model([*nodes, node("Relu", ["x"], ["y"])]))
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].line() == "[ONNX-MORE] model: 5 more problems of this model are not shown"
    assert len(problems(model([*nodes[5:], node("Relu", ["x"], ["y"])]))) == MAX_PROBLEMS


def test_checker_speaks_on_one_line_where_we_found_nothing() -> None:
    line = the(model([node("Relu", ["x"], ["y"], "n", no_such_attribute=1)]), "ONNX-CHECKER")
    assert "no_such_attribute" in line
    assert line.isprintable()


def test_validate_changes_nothing() -> None:
    made = linear_model(ir_version=3)
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes[::-1])
    before = made.SerializeToString()
    assert validate(made) == []
    assert made.SerializeToString() == before


# --- the corpus and the model cases

REFUSED_CORPUS: dict[str, str] = {
    "cntk_mnist.qdq_s8s4w": "ONNX-QUANTIZED-TYPE",
    "cntk_mnist.quark_s8s8_aaws": "ONNX-OPSET-QDQ",
    "cntk_mnist.quark_xint8": "ONNX-OPSET-QDQ",
    "digits_cnn.qdq_s8s4w": "ONNX-QUANTIZED-TYPE",
    "digits_mlp.qdq_s8s4w": "ONNX-QUANTIZED-TYPE",
    "eltwise_bad_opset": "ONNX-OPSET-DOMAIN",
    "espcn_nn_qonnx": "ONNX-QONNX",
    "lfw_cnn.qdq_s8s4w": "ONNX-QUANTIZED-TYPE",
    "mnist_resnet.qdq_s8s4w": "ONNX-QUANTIZED-TYPE",
    "qat_digits_mlp_pot8_qonnx": "ONNX-QONNX",
    "qat_mnist_cnn_w8a8_qonnx": "ONNX-QONNX",
}


def test_corpus_models_that_onnxruntime_loads_are_valid_and_no_other(shared: Path) -> None:
    found = {}
    for path in sorted((shared / "corpus" / "models").glob("*.onnx")):
        issues = validate(load_model(path))
        if issues:
            found[path.stem] = issues[0].code
    assert found == REFUSED_CORPUS


CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "m03_per_channel_default_axis_clash": ("ONNX-SCALE-AXIS", ("axis 1 (the default)", "DequantizeLinear", "8 scales")),
    "m07_int16_in_opset13": ("ONNX-OPSET-INT16", ("opset 13", "int16", "com.microsoft", "opset 21")),
    "m09_int4_blocked": ("ONNX-QUANTIZED-TYPE", ("int4", "block_size 16")),
    "m12_qonnx_quant": ("ONNX-QONNX", ("Quant", "qonnx")),
    "m35_fp16_quantize": ("ONNX-FLOAT16", ("float16",)),
    "m50_zero_scale": ("ONNX-SCALE-ZERO", ("scale", "'c2'", "channel 1", "got 0.0")),
}


def test_model_cases_are_refused_by_name_and_the_rest_is_valid(shared: Path) -> None:
    for path in sorted((shared / "cases" / "models").glob("*.onnx")):
        if path.stem in ("m61_external_data_escapes", "m63_truncated_file"):
            continue
        found = validate(load_model(path))
        if path.stem not in CASES:
            assert found == [], path.stem
            continue
        code, words = CASES[path.stem]
        text = "\n".join(problem.line() for problem in found)
        assert found[0].code == code
        assert all(word in text for word in words), text
