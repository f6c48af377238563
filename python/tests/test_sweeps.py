"""Sweeps: rows, failures and mistakes."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable, List

import pytest
from swept import AXES, net

from longwire import LongwireError, sweep


def test_rows_are_the_same_on_threads() -> None:
    rows = sweep(net(), AXES, seeds=2, time=timedelta(seconds=1))
    assert [row["task"] for row in rows] == list(range(12))
    assert all(row["status"] == "ok" and row["elapsed_ns"] == 1_000_000_000 for row in rows)
    assert rows[2]["wan.forward.loss"] == "5 %" and rows[2]["dropped.loss"] > 0
    assert rows[0]["source.load.received"] < rows[6]["source.load.received"]
    with ThreadPoolExecutor(2) as threads:
        assert sweep(net(), AXES, seeds=2, time="1 s", executor=threads, chunk=5) == rows


def test_files_and_columns(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(net().toml())
    together = [{"wan.rate": ["1mbit", "2mbit"], "load.rate": ["500kbit", "5mbit"]}]
    rows = sweep(file, {}, zipped=together, fixed={"wan.delay": "5 ms"}, time="1 s", columns=["*.lost"])
    assert all("taken" not in row and row["wan.rate"] in ("1mbit", "2mbit") for row in rows)
    assert [row["seed"] for row in rows] == [5, 5]
    assert rows[0]["source.load.lost"] < rows[1]["source.load.lost"]


def test_axes_are_anything_with_values() -> None:
    axes = {"load.packets": range(2, 5), "wan.rate": iter(["1mbit"])}
    options = {"fixed": {"load.interval": "1 ms"}, "columns": ["source.load.sent"]}
    rows = sweep(net(), axes, seeds=range(7, 9), **options)
    assert [(row["source.load.sent"], row["seed"]) for row in rows] == [
        (sent, seed) for sent in (2, 3, 4) for seed in (7, 8)
    ]
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    axes = {"load.packets": numpy.arange(2, 5), "wan.rate": ["1mbit"]}
    assert sweep(net(), axes, seeds=numpy.arange(7, 9), **options) == rows


def test_failures_are_rows_and_mistakes_raise() -> None:
    rows = sweep(net(), {"wan.rate": ["1mbit", "fast"]}, time="1 s")
    assert [row["status"] for row in rows] == ["ok", "failed"]
    assert rows[1]["error"].startswith("wan.rate: ")
    with pytest.raises(LongwireError, match="there is no link") as raised:
        sweep(net(), {"wam.rate": ["1mbit"]}, time="1 s")
    assert raised.value.suggestion == "wan"
    wrong = net()
    wrong.link("a", "b", "lan", delaay="5 ms")
    with pytest.raises(LongwireError, match='^link "lan": there is no key "delaay"'):
        sweep(wrong, AXES, time="1 s")
    with ThreadPoolExecutor(2) as threads:
        axes = {"wan.rate": ["1mbit", "fast"]}
        assert sweep(net(), axes, time="1 s", executor=threads, chunk=1) == rows


class Unused(Executor):
    """An executor on which nothing may run."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        raise AssertionError("something ran")


def test_mistakes_are_found_before_anything_runs() -> None:
    for axes, fixed in [({"wam.rate": ["1mbit"]}, {}), ({}, {"wam.rate": "1mbit"})]:
        with pytest.raises(LongwireError, match="there is no link") as raised:
            sweep(net(), axes, fixed=fixed, time="1 s", executor=Unused())
        assert raised.value.suggestion == "wan"
    with pytest.raises(LongwireError, match='a link has no "dealy"') as raised:
        sweep(net(), {"wan.dealy": ["1 ms"]}, time="1 s", executor=Unused())
    assert raised.value.suggestion == "delay"
    with pytest.raises(LongwireError, match="axes, wan.rate: an integer is no list"):
        sweep(net(), {"wan.rate": 5}, executor=Unused())
    with pytest.raises(LongwireError, match="^the scenario of the sweep: .*no-such.toml: No such file"):
        sweep("no-such.toml", AXES, executor=Unused())
    with pytest.raises(ValueError, match="chunk"):
        sweep(net(), AXES, time="1 s", executor=Unused(), chunk=0)


def test_an_executor_that_runs_nothing_is_an_error() -> None:
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(LongwireError, match="executor: cannot schedule") as raised:
        sweep(net(), AXES, time="1 s", executor=threads)
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_workers_with_another_scenario_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(net().toml())
    other = tmp_path / "other.toml"
    other.write_text(net().toml().replace("10 ms", "11 ms"))

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
            other.replace(file)
            return super().submit(fn, *args, **kwargs)

    message = "another version of Longwire or of the scenario"
    with Elsewhere(1) as threads, pytest.raises(LongwireError, match=message):
        sweep(file, AXES, time="1 s", executor=threads, chunk=len(AXES) * 3)


def test_what_is_left_is_cancelled_at_an_interrupt() -> None:
    submitted: List["Future[Any]"] = []

    class Interrupted(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
            submitted.append(Future())
            if len(submitted) == 1:
                submitted[0].set_exception(KeyboardInterrupt())
            return submitted[-1]

    with pytest.raises(KeyboardInterrupt):
        sweep(net(), AXES, time="1 s", executor=Interrupted(), chunk=1)
    assert len(submitted) == 6 and all(future.cancelled() for future in submitted[1:])
