"""Fixtures of the checklist tests."""

import pytest

from oracle.evidence import BaselineEvidence
from tests.baseline_evidence import good_evidence


@pytest.fixture
def good() -> BaselineEvidence:
    """A baseline evidence that passes every item, to be broken one field at a time."""
    return good_evidence()
