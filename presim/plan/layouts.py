"""Layouts of weights that a directive asks for."""

from collections.abc import Mapping
from typing import Final

from manifest.errors import Problem, RefusedError
from manifest.model import Op
from presim.directives import Directives
from presim.kernels.attributes import Forms
from presim.plan.graph import Graph

ATTRIBUTE: Final = "layout"
"""Attribute of a kernel that names the layout of its weights, where a directive asks for one."""


def layouts_of(graph: Graph, directives: Directives, forms: Forms) -> dict[str, str]:
    """Layout by op, of those that are asked for.

    Raises:
        RefusedError: an op whose weights cannot lie so; all problems.
    """
    ops: Mapping[str, Op] = {node.op.name: node.op for node in graph.nodes}
    problems = []
    found = {}
    for name, op in ops.items():
        layout = directives.of(name).layout
        if layout is None:
            continue
        allowed = _allowed(op, forms)
        if layout in allowed:
            found[name] = layout
        else:
            problems.append(
                Problem(
                    code="PLAN-DIRECTIVE",
                    where=f"op {name!r} ({op.type}), layout",
                    what="its weights cannot lie so",
                    expected=", ".join(allowed) or "no layout: it has no weights",
                    got=layout,
                )
            )
    if problems:
        raise RefusedError(tuple(problems))
    return found


def _allowed(op: Op, forms: Forms) -> tuple[str, ...]:
    """Layouts that the weights of an op can have."""
    if op.type not in ("Conv", "Gemm", "MatMul") or forms.tensors[op.inputs[1]].array is None:
        return ()
    if op.type != "Conv":
        return ("identity", "dense_nk_blocks" if op.attributes.get("transB") else "dense_kn_blocks")
    group, shape = op.attributes.get("group", 1), forms.tensors[op.inputs[1]].shape
    if group == 1:
        return ("identity", "conv_blocks")
    depthwise = ("depthwise_blocks",) if shape[1] == 1 and shape[0] == group else ()
    return ("identity", "grouped_conv_blocks", *depthwise)
