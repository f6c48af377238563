"""What instances do without one that runs."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from longwire._api import Api
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


class Paged(Api):
    """Links a page at a time, each page counted later than the one before."""

    def ask(self, method: str, path: str, body: Any = None, query: Any = None, **options: Any) -> Any:
        first = query["from"]
        stats: Dict[str, Any] = {field.name: 0 for field in dataclasses.fields(LinkCounters)}
        link = {"name": f"l{first}", "stats": {**stats, "drops": []}}
        return {"total": 3, "from": first, "counted_ns": 100 + first, "objects": [link]}


def test_counters_have_the_time_of_their_page() -> None:
    found = Instance(Paged(Path("none"))).counters()
    assert [(one.link, one.time_ns) for one in found] == [("l0", 100), ("l1", 101), ("l2", 102)]
