"""What instances do without one that runs."""

from __future__ import annotations

import time
from typing import List

import pytest

from longwire.instance import Instance
from longwire.records import LinkCounters


def test_watching_ends_with_its_last_list(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: List[float] = []
    counted: List[LinkCounters] = []
    monkeypatch.setattr(Instance, "counters", lambda _, links: counted)
    monkeypatch.setattr(time, "sleep", slept.append)
    instance = Instance.__new__(Instance)
    assert list(instance.watch(every=10, count=2)) == [counted, counted]
    assert len(slept) == 1, "only between two lists"
