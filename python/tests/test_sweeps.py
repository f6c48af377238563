"""Sweeps: the same rows with every executor."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from longwire import LongwireError, Scenario, sweep

AXES = {"wan.rate": ["1mbit", "2mbit"], "wan.forward.loss": {"from": "0 %", "to": "10 %", "step": "5 %"}}


def net() -> Scenario:
    """Two hosts with more traffic than their link carries."""
    scenario = Scenario(seed=5)
    scenario.host("a")
    scenario.host("b")
    scenario.link("a", "b", "wan", rate="4mbit", delay="10 ms", queue="20 packets")
    scenario.source("a", "b", "load", rate="3mbit", model="poisson")
    return scenario


def test_rows_are_the_same_with_every_executor() -> None:
    rows = sweep(net(), AXES, seeds=2, time=timedelta(seconds=1))
    assert [row["task"] for row in rows] == list(range(12))
    assert all(row["status"] == "ok" and row["elapsed_ns"] == 1_000_000_000 for row in rows)
    assert rows[2]["wan.forward.loss"] == "5 %" and rows[2]["dropped.loss"] > 0
    assert rows[0]["source.load.received"] < rows[6]["source.load.received"]
    with ThreadPoolExecutor(2) as threads:
        assert sweep(net(), AXES, seeds=2, time="1 s", executor=threads, chunk=5) == rows
    with ProcessPoolExecutor(2) as processes:
        assert sweep(net(), AXES, seeds=2, time="1 s", executor=processes) == rows


def test_files_and_columns(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(net().toml())
    together = [{"wan.rate": ["1mbit", "2mbit"], "load.rate": ["500kbit", "5mbit"]}]
    rows = sweep(file, {}, zipped=together, fixed={"wan.delay": "5 ms"}, time="1 s", columns=["*.lost"])
    assert all("taken" not in row and row["wan.rate"] in ("1mbit", "2mbit") for row in rows)
    assert [row["seed"] for row in rows] == [5, 5]
    assert rows[0]["source.load.lost"] < rows[1]["source.load.lost"]


def test_failures_are_rows_and_mistakes_raise() -> None:
    rows = sweep(net(), {"wan.rate": ["1mbit", "fast"]}, time="1 s")
    assert [row["status"] for row in rows] == ["ok", "failed"]
    assert rows[1]["error"].startswith("wan.rate: ")
    with pytest.raises(LongwireError, match="there is no link") as raised:
        sweep(net(), {"wam.rate": ["1mbit"]}, time="1 s")
    assert raised.value.suggestion == "wan"
    with ThreadPoolExecutor(1) as threads, pytest.raises(LongwireError, match="there is no link"):
        sweep(net(), {"wam.rate": ["1mbit"]}, time="1 s", executor=threads)
