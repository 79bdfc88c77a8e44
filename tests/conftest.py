"""Fixtures shared by all tests."""

import os
from pathlib import Path

# One BLAS thread: several threads on two shared cores collapse. Set before numpy is imported anywhere.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import pytest  # noqa: E402  (after the BLAS settings)
from hypothesis import settings  # noqa: E402

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("nightly", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the model corpus and the model cases, beside the project."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no folder `shared` with the model corpus beside the project")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every hypothesis test `property`, so that the tiers can time them apart."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.property)
