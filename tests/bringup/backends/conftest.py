"""The fake driver, as new for every test."""

import sys

import pytest

from tests.bringup.backends import fake_pyxrt


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> fake_pyxrt.Board:
    """The device behind `pyxrt`."""
    made = fake_pyxrt.Board()
    monkeypatch.setattr(fake_pyxrt, "BOARD", made)
    monkeypatch.setitem(sys.modules, "pyxrt", fake_pyxrt)
    return made
