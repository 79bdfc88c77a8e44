"""Names of kernels and the registry."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from bringup.kernels import KERNELS
from bringup.kernels.model import symbol_of
from presim.kernels import KERNELS as SIMULATED


@given(st.text(max_size=20))
@example("")
@example("0abc")
@example("conv/out:0")
def test_a_symbol_is_an_identifier(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol_of(name))


@given(st.text(max_size=8), st.text(max_size=8))
@example("a/b", "a_b")
@example("a/b", "a:b")
def test_names_keep_apart(one: str, other: str) -> None:
    assert (symbol_of(one) == symbol_of(other)) == (one == other)


def test_a_plain_name_stays() -> None:
    assert symbol_of("conv_0_rows") == "conv_0_rows"


def test_every_simulated_kernel_is_emitted() -> None:
    assert set(KERNELS) == set(SIMULATED)
