from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Node
from manifest.onnx_import.ops.constant import value_of


def node(**attributes: Any) -> Node:
    return Node(
        index=0, name="n", key=":Constant", domain="", type="Constant", inputs=(), outputs=("k",), attributes=attributes
    )


@pytest.mark.parametrize(
    ("attributes", "dtype", "expected"),
    [
        ({"value": np.array([1, 2], np.int8)}, "int8", [1, 2]),
        ({"value_int": 7}, "int64", 7),
        ({"value_ints": [7, 8]}, "int64", [7, 8]),
        ({"value_float": 0.5}, "float32", 0.5),
        ({"value_floats": [0.5, 1.5]}, "float32", [0.5, 1.5]),
    ],
)
def test_every_kind_of_value(attributes: dict[str, Any], dtype: str, expected: Any) -> None:
    constant = value_of(node(**attributes))
    assert (constant.array.dtype.name, constant.array.tolist()) == (dtype, expected)
    assert (constant.origin, constant.nodes, constant.quant) == ("k", ("n",), None)


@pytest.mark.parametrize("attributes", [{"value_string": "a"}, {}])
def test_others_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=r"node 'n' \(Constant\): only tensors and numbers are supported"):
        value_of(node(**attributes))
