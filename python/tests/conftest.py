"""Fixtures of the package's own tests. They need the program: the variable LONGWIRE names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

REPOSITORY = Path(__file__).resolve().parents[2]

# A head of Ray wants a token if the user's home has one, nodes that join it do not send it then, and
# `ray.init` would leave one there. The tests' nodes are in namespaces and on loopback.
os.environ["RAY_AUTH_MODE"] = "disabled"


@pytest.fixture(scope="session")
def labs() -> None:
    """Skips the test where hosts can't be made."""
    if os.geteuid() != 0:
        pytest.skip("test hosts need root")


@pytest.fixture
def repository() -> Path:
    """The folder of the repository."""
    return REPOSITORY
