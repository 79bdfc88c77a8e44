"""Fixtures of the kernels' tests, and which of them are left to the nightly tier.

Why some are: each compiles kernels of its own for seconds. `make test` keeps every kernel type on one architecture
against the simulator; the other architecture, broken kernels and all kernels of whole models are checked at night.
"""

from typing import Final

import pytest

from tests.bringup.kernels.twins import Twins


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """The scalar twins, compiled once."""
    return Twins(tmp_path_factory.mktemp("twins"))


NIGHTLY: Final = (
    "[aie2p]",
    "test_the_other_architecture",
    "test_faults_are_seen",
    "test_mutants_are_noticed",
    "test_planned_rows.py",
    "test_the_five_models",
)
"""Parts of the names of such tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them slow."""
    for item in items:
        if "tests/bringup/kernels/" in item.nodeid and any(part in item.nodeid for part in NIGHTLY):
            item.add_marker(pytest.mark.slow)
