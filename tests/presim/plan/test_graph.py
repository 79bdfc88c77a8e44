"""Graphs of dispatches: what is a view, what moves, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from presim.plan.graph import Graph, graph_of, same_objects
from tests.presim.plan.harness import assert_exact, whole
from tests.presim.plan.models import Net


def graph(imported: Imported) -> Graph:
    return graph_of(imported.manifest, whole(imported.manifest))


def kinds(imported: Imported) -> list[str]:
    return [node.kind for node in graph(imported).nodes]


def exact(imported: Imported) -> None:
    assert_exact(imported.manifest, imported.arrays)


def test_a_flatten_in_front_of_a_dense_layer_is_a_view() -> None:
    net = Net((1, 8, 3, 4))
    rows = net.rounded("Relu", [net.x])
    dense = net.dense(net.node("Flatten", [rows], axis=1), 96, 10)
    imported = net.done(dense)
    assert kinds(imported) == ["relu", "gemm_rows"]
    assert len(graph(imported).views) == 1
    exact(imported)


def test_a_flatten_that_is_rounded_moves() -> None:
    net = Net((1, 8, 3, 4))
    rows = net.rounded("Relu", [net.x])
    imported = net.done(net.rounded("Relu", [net.node("Flatten", [rows], axis=1)], 2.0**-3))
    assert kinds(imported) == ["relu", "flatten"]
    exact(imported)


def test_the_host_brings_its_tensors_in_any_form() -> None:
    net = Net((1, 96))
    image = net.node("Reshape", [net.x, net.const([1, 8, 3, 4], np.int64)])
    imported = net.done(net.conv(image, (8, 8)))
    assert kinds(imported) == ["conv"]
    (value,) = graph(imported).inputs
    assert value.form == (1, 8, 3, 4)
    exact(imported)


@pytest.mark.parametrize(("shape", "form"), [((2, 16, 6), (2, 96)), ((1, 8, 3, 4), (1, 96)), ((2, 32), (1, 64))])
@pytest.mark.parametrize("moved_first", [True, False])
def test_the_host_brings_a_tensor_in_one_form_where_two_are_read(
    shape: tuple[int, ...], form: tuple[int, ...], moved_first: bool
) -> None:
    net = Net(shape)

    def moved() -> str:
        return net.rounded("Relu", [net.rounded("Reshape", [net.x, net.const(form, np.int64)])])

    def plain() -> str:
        return net.rounded("Relu", [net.x], 2.0**-3)

    calls = (moved, plain) if moved_first else (plain, moved)
    imported = net.done(*(call() for call in calls))
    found = graph(imported)
    assert [v.form for v in found.inputs] == [shape]
    assert sorted(n.kind for n in found.nodes) == ["relu", "relu", "reshape"]
    exact(imported)


@pytest.mark.parametrize("forms", [((2, 3, 8), (6, 8)), ((6, 8), (1, 6, 8)), ((1, 1, 8), (1, 8)), ((1, 6, 8), (6, 8))])
@pytest.mark.parametrize("from_host", [True, False])
@pytest.mark.parametrize("reader", ["relu", "mul", "dense", "add", "broadcast", "join"])
def test_readers_of_a_view_of_another_rank(
    reader: str, from_host: bool, forms: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    net = Net(forms[0])
    source = net.x if from_host else net.rounded("Relu", [net.x])
    view = net.rounded("Reshape", [source, net.const(forms[1], np.int64)])
    if reader in ("relu", "mul"):
        imported = net.done(
            net.rounded("Relu", [view]) if reader == "relu" else net.rounded("Mul", [view, net.const(0.5)])
        )
    elif reader == "dense":
        imported = net.done(net.dense(view, 8, 5))
    else:
        shape = (4, *forms[1][-2:]) if reader == "broadcast" else forms[1]
        other = net.qdq(net.input("z", shape), 2.0**-4)
        options = {"axis": 0} if reader == "join" else {}
        imported = net.done(net.rounded("Concat" if reader == "join" else "Add", [view, other], **options))
    exact(imported)


def test_the_host_takes_its_tensors_in_any_form() -> None:
    net = Net((1, 8, 3, 4))
    imported = net.done(net.node("Flatten", [net.rounded("Relu", [net.x])], axis=1))
    found = graph(imported)
    assert [n.kind for n in found.nodes] == ["relu"]
    assert found.outputs[0][1].form == (1, 8, 3, 4)
    exact(imported)


def test_an_input_that_is_an_output_comes_back_through_a_memory_tile() -> None:
    net = Net((1, 8, 3, 4))
    imported = net.done(net.node("Flatten", [net.x], axis=1))
    if whole(imported.manifest).ops:
        design = assert_exact(imported.manifest, imported.arrays)
        assert not design.workers
        assert [link.kind for link in design.links] == ["forward"]


@pytest.mark.parametrize(("shape", "expected"), [((1, 8, 1, 5), ["relu", "transpose"]), ((1, 1, 4, 5), ["relu"])])
def test_a_transpose_of_axes_with_one_place_is_a_view(shape: tuple[int, ...], expected: list[str]) -> None:
    net = Net(shape)
    imported = net.done(net.node("Transpose", [net.rounded("Relu", [net.x])], perm=[0, 2, 3, 1]))
    assert kinds(imported) == expected
    exact(imported)


def test_a_view_in_front_of_an_op_that_takes_other_objects_moves() -> None:
    net = Net((1, 1, 4, 5))
    turned = net.node("Transpose", [net.rounded("Relu", [net.x])], perm=[0, 2, 3, 1])
    imported = net.done(net.rounded("Add", [turned, net.weight(net.random(4, 1, 1), 2.0**-5)], 2.0**-3))
    assert kinds(imported) == ["relu", "transpose", "add"]
    exact(imported)


def test_an_operand_that_comes_twice_is_one_input() -> None:
    net = Net((1, 8, 3, 4))
    x = net.rounded("Relu", [net.x])
    imported = net.done(net.rounded("Add", [x, x], 2.0**-3))
    (node,) = [n for n in graph(imported).nodes if n.kind == "add"]
    assert (len(node.inputs), node.operands) == (1, (0, 0))
    exact(imported)


@pytest.mark.parametrize("shape", [(8, 1, 1), (1, 8, 3, 1), (3, 4), (1, 1, 1, 1)])
def test_constants_of_an_add_are_broadcast(shape: tuple[int, ...]) -> None:
    net = Net((1, 8, 3, 4))
    x = net.rounded("Relu", [net.x])
    imported = net.done(net.rounded("Add", [x, net.weight(net.random(*shape), 2.0**-5)], 2.0**-3))
    exact(imported)


def test_activations_of_an_add_are_broadcast() -> None:
    net = Net((1, 8, 3, 4))
    x = net.rounded("Relu", [net.x])
    pooled = net.rounded("GlobalAveragePool", [x])
    exact(net.done(net.rounded("Add", [x, pooled], 2.0**-3)))


def test_outputs_in_the_middle_and_two_readers() -> None:
    net = Net((1, 8, 4, 4))
    first = net.conv(net.x, (8, 8))
    second = net.conv(first, (8, 8))
    exact(net.done(first, second))


def test_a_product_of_two_activations() -> None:
    net = Net((2, 6, 16))
    left, right = net.rounded("Relu", [net.x]), net.rounded("Clip", [net.x, net.const(-1.0), net.const(1.0)])
    turned = net.node("Transpose", [right], perm=[0, 2, 1])
    exact(net.done(net.rounded("MatMul", [left, turned], 2.0**-1)))


@pytest.mark.parametrize(
    ("channels", "axis", "workers"),
    [((8, 16), 1, 0), ((8, 8, 16, 8), 1, 0), ((3, 5), 1, 1), ((8, 8), 3, 1), ((8, 8), 2, 1)],
)
def test_concats(channels: tuple[int, ...], axis: int, workers: int) -> None:
    net = Net((1, 8, 4, 4))
    parts = [net.conv(net.x, (8, n), 1, pads=[0] * 4) for n in channels]
    imported = net.done(net.node("Concat", parts, axis=axis))
    design = assert_exact(imported.manifest, imported.arrays)
    assert len(design.workers) == len(channels) + workers


def test_a_concat_of_different_scales_is_rounded_by_operand() -> None:
    net = Net((1, 8, 4, 4))
    parts = [net.conv(net.x, (8, 8), 1, pads=[0] * 4) for _ in range(3)]
    scaled = [net.rounded("Relu", [p], 2.0**-k) for k, p in enumerate(parts, start=3)]
    imported = net.done(net.rounded("Concat", scaled, 2.0**-3, axis=1))
    design = assert_exact(imported.manifest, imported.arrays)
    assert [link.kind for link in design.links] == ["join"]


def test_more_operands_than_streams_that_do_not_meet_in_blocks_are_refused() -> None:
    net = Net((1, 8, 4, 4))
    parts = [net.conv(net.x, (8, 3), 1, pads=[0] * 4) for _ in range(3)]
    with pytest.raises(RefusedError, match=r"PLAN-CHANNELS.*3 activations meet on one core") as caught:
        exact(net.done(net.node("Concat", parts, axis=1)))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("constant", "what"), [(False, r"'v_\d+\.q' is joined with itself"), (True, r"constant '\w+' is joined")]
)
@pytest.mark.parametrize("axis", [0, 2])
def test_a_repeat_or_constant_whose_objects_follow_is_refused_by_name(axis: int, constant: bool, what: str) -> None:
    net = Net((2, 3, 4, 5))
    other = net.weight(net.random(2, 3, 4, 5), 2.0**-4) if constant else net.x
    with pytest.raises(RefusedError, match=rf"PLAN-CONCAT.*{what} along axis {axis},"):
        graph(net.done(net.rounded("Concat", [net.x, other], axis=axis)))


@pytest.mark.parametrize("axis", [1, 3])
def test_a_repeat_or_constant_that_meets_in_every_object_is_planned(axis: int) -> None:
    for constant in (False, True):
        net = Net((2, 3, 4, 5))
        other = net.weight(net.random(2, 3, 4, 5), 2.0**-4) if constant else net.x
        exact(net.done(net.rounded("Concat", [net.x, other], axis=axis)))


@pytest.mark.parametrize("axis", [0, 2])
def test_operands_of_different_scales_that_follow_have_to_be_rounded(axis: int) -> None:
    net = Net((2, 3, 4, 5))
    other = net.rounded("Relu", [net.x], 0.3)
    joined = net.node("Concat", [net.x, other], axis=axis)
    imported = net.done(net.node("Relu", [joined]))
    with pytest.raises(RefusedError, match=r"PRESIM-KERNEL.*operands of different scales follow each other") as caught:
        exact(imported)
    assert "behind the Concat" in caught.value.problems[0].remedy


@pytest.mark.parametrize(("axis", "scale"), [(1, 0.3), (3, 0.3), (0, 2.0**-4), (2, 2.0**-4)])
def test_operands_that_meet_or_have_one_scale_need_no_rounding(axis: int, scale: float) -> None:
    net = Net((2, 3, 4, 5))
    joined = net.node("Concat", [net.x, net.rounded("Relu", [net.x], scale)], axis=axis)
    exact(net.done(net.node("Relu", [joined])))


@pytest.mark.parametrize("axis", [0, 2])
def test_a_repeat_behind_its_own_rounding_follows(axis: int) -> None:
    net = Net((2, 3, 4, 5))
    exact(net.done(net.rounded("Concat", [net.x, net.qdq(net.x, 2.0**-4)], axis=axis)))


def test_a_dispatch_on_the_host_is_refused() -> None:
    net = Net((1, 8))
    imported = net.done(net.dense(net.x, 8, 8))
    dispatch = replace(whole(imported.manifest), where="host")
    with pytest.raises(RefusedError, match=r"PLAN-HOST.*dispatch 'd0'"):
        graph_of(imported.manifest, dispatch)


def test_same_objects() -> None:
    assert same_objects((1, 16, 64), (16, 64))
    assert same_objects((1, 8, 4, 4), (1, 8, 4, 4))
    assert not same_objects((1, 8, 4, 4), (1, 128))
    assert not same_objects((1, 8, 1, 1), (1, 8))
    assert not same_objects((2, 32), (1, 64))
