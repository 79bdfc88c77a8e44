from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presim.decompositions import DECOMPOSED, DECOMPOSITIONS


def arrays(name: str, seed: int, length: int) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)
    if name == "streaming_attention":
        shapes: tuple[tuple[int, ...], ...] = ((2, 3, 4), (2, length, 4), (2, length, 5))
    else:
        shapes = ((2, 3, length),)
    return tuple((3 * random.standard_normal(shape)).astype(np.float32) for shape in shapes)


def exact(name: str, *given_: Any) -> Any:
    """In float64, written out."""
    x = [np.asarray(a, np.float64) for a in given_]
    if name == "chunked_layer_norm":
        return (x[0] - x[0].mean(-1, keepdims=True)) / np.sqrt(x[0].var(-1, keepdims=True) + 1e-5)
    scores = x[0] if name == "chunked_softmax" else np.einsum("...md,...nd->...mn", x[0], x[1]) / 2
    powers = np.exp(scores)
    weights = powers / powers.sum(-1, keepdims=True)
    return weights if name == "chunked_softmax" else np.einsum("...mn,...ne->...me", weights, x[2])


@pytest.mark.parametrize("name", DECOMPOSITIONS)
@given(seed=st.integers(0, 999), length=st.integers(2, 40), chunk=st.integers(1, 40))
def test_whole_and_pieces_are_the_definition(name: str, seed: int, length: int, chunk: int) -> None:
    row = DECOMPOSITIONS[name]
    taken = arrays(name, seed, length)
    assert row.length(*taken) == length
    assert len(row.inputs) == len(taken)
    expected = exact(name, *taken)
    tolerance = 2e-3 if name == "chunked_layer_norm" else 2e-5
    for result in (row.whole(*taken), row.pieces(*taken, chunk)):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_one_chunk_over_all_is_the_whole(name: str) -> None:
    taken = arrays(name, 3, 12)
    row = DECOMPOSITIONS[name]
    np.testing.assert_allclose(row.pieces(*taken, 12), row.whole(*taken), rtol=1e-5, atol=1e-6)


def test_a_growing_maximum_is_corrected() -> None:
    x = np.array([[0, 1, 50, 51, 90, 91]], np.float32)
    row = DECOMPOSITIONS["chunked_softmax"]
    np.testing.assert_allclose(row.pieces(x, 2), row.whole(x), atol=1e-7)


def test_names_agree() -> None:
    assert all(name == row.name for name, row in DECOMPOSITIONS.items())
    assert set(DECOMPOSED.values()) <= set(DECOMPOSITIONS)
