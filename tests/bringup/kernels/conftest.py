"""Fixtures of the kernels' tests."""

import pytest

from tests.bringup.kernels.twins import Twins


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """The scalar twins, compiled once."""
    return Twins(tmp_path_factory.mktemp("twins"))
