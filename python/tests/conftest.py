"""Fixtures of the package's own tests. They need the program: the variable LONGWIRE names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def labs() -> None:
    """Skips the test where hosts can't be made."""
    if os.geteuid() != 0:
        pytest.skip("test hosts need root")


@pytest.fixture
def repository() -> Path:
    """The folder of the repository."""
    return REPOSITORY
