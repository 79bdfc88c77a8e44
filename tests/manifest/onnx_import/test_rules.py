import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Constant, Node
from manifest.onnx_import.ops import RULES
from manifest.onnx_import.rules import Facts

NODE = Node(
    index=0,
    name="n",
    key=":Squeeze",
    domain="",
    type="Squeeze",
    inputs=("x", "axes"),
    outputs=("y",),
    attributes={"old": (3,)},
)


def facts(**constants: object) -> Facts:
    held = {name: Constant(array=np.asarray(value), origin=name) for name, value in constants.items()}
    return Facts(shapes={"x": (1, 2)}, constants=held, opset=13)


def test_shapes_of_activations_and_constants() -> None:
    known = facts(axes=[[1, 2, 3]])
    assert (known.shape(NODE, 0), known.shape(NODE, 1)) == ((1, 2), (1, 3))
    with pytest.raises(RefusedError, match="shape of input 'axes' is not known"):
        facts().shape(NODE, 1)


def test_integers_come_from_the_attribute_or_the_constant_input() -> None:
    assert facts(axes=[1]).integers(NODE, 1, "old") == (3,)
    assert facts(axes=[1, -2]).integers(NODE, 1, "axes") == (1, -2)
    assert facts().integers(NODE, 2, "axes") is None
    with pytest.raises(RefusedError, match=r"node 'n' \(Squeeze\): axes 'axes' is computed at run time"):
        facts().integers(NODE, 1, "axes")


@pytest.mark.parametrize("key", RULES)
def test_every_rule_has_both_functions_documented(key: str) -> None:
    rule = RULES[key]
    assert rule.shape.__doc__
    assert rule.lower.__doc__
