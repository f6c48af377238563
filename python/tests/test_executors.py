"""Sweeps on processes, Dask and Ray give the same bytes, and a dead worker costs its task only."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, ContextManager, Iterator, List

import pytest
from machines import until
from swept import AXES, net

from longwire import LongwireError, program, sweep
from longwire.cluster import RayExecutor, _executor
from longwire.sweeps import Row

#: Starts workers, and yields an executor on them.
Start = Callable[[], ContextManager[Executor]]

#: A program that ends the worker which runs task 5 with it, the first time or always.
DEADLY = """#!/bin/sh
case "$*" in *"--task 5-5"*) [ -e {mark} ] || {{ {then}kill -9 $PPID; sleep 60; }};; esac
exec {program} "$@"
"""


@contextlib.contextmanager
def on_dask() -> Iterator[Executor]:
    """Two processes of Dask."""
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    scheduler = "distributed.scheduler."
    # A worker has only the task that it runs, which is not tried again if the worker dies.
    config = {f"{scheduler}worker-saturation": 1.0, f"{scheduler}allowed-failures": 0}
    loopback = {"host": "127.0.0.1", "dashboard_address": None}
    workers = {"n_workers": 2, "threads_per_worker": 1, **loopback}
    with dask.config.set(config):
        with distributed.LocalCluster(**workers) as cluster, distributed.Client(cluster) as client:
            yield client.get_executor()


@pytest.fixture(scope="module")
def ray_node() -> Iterator[None]:
    """A node of Ray with two processors, on loopback."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    # Ray's sockets have long names below this folder.
    folder = tempfile.mkdtemp(prefix="lwray", dir="/tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        node = {"num_cpus": 2, "object_store_memory": 100_000_000, "include_dashboard": False}
        ray.init(**node, _node_ip_address="127.0.0.1", _temp_dir=folder, log_to_driver=False)
    yield
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def on_ray(**options: Any) -> Executor:
    """Tasks of Ray, with the program that this process has now."""
    given = {"max_retries": 0, "runtime_env": {"env_vars": {"LONGWIRE": program()}}, **options}
    return RayExecutor(**given)


def on_processes() -> ContextManager[Executor]:
    """A single process, which takes tasks in their order."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture
def deadly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Makes the program deadly, always or once."""

    def put(once: bool) -> None:
        mark = tmp_path / "mark"
        file = tmp_path / "longwire"
        then = f"touch {mark}; " if once else ""
        file.write_text(DEADLY.format(mark=mark, then=then, program=program()))
        file.chmod(0o755)
        monkeypatch.setenv("LONGWIRE", str(file))

    return put


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Start:
    """What starts the executor of a test."""
    if request.param is on_ray:
        request.getfixturevalue("ray_node")
    return request.param


def swept(executor: Executor) -> List[Row]:
    return sweep(net(), AXES, seeds=2, time="1 s", executor=executor, chunk=1)


def here() -> List[Row]:
    """The rows without an executor."""
    return sweep(net(), AXES, seeds=2, time="1 s")


def lines(rows: List[Row]) -> List[str]:
    return [json.dumps(row) for row in rows]


@pytest.mark.parametrize("start", [on_processes, on_dask, on_ray], indirect=True)
def test_the_same_bytes_with_every_executor(start: Start) -> None:
    with start() as executor:
        rows = swept(executor)
    assert len(rows) == 12 and lines(rows) == lines(here())


@pytest.mark.parametrize("start", [on_dask, on_ray], indirect=True)
def test_a_dead_worker_costs_its_task(start: Start, deadly: Callable[[bool], None]) -> None:
    whole = here()
    deadly(False)
    with start() as executor:
        rows = swept(executor)
    lost = rows.pop(5)
    which = {name: whole[5][name] for name in ("task", "sweep", *AXES, "seed")}
    assert lost == {**which, "status": "failed", "error": lost["error"]}
    assert lost["error"].startswith("no result from the executor: ")
    del whole[5]
    assert lines(rows) == lines(whole)


def test_a_broken_pool_keeps_what_is_done(deadly: Callable[[bool], None]) -> None:
    whole = here()
    deadly(False)
    with on_processes() as executor:
        rows = swept(executor)
    assert lines(rows[:5]) == lines(whole[:5])
    assert [row["task"] for row in rows] == list(range(12))
    for row in rows[5:]:
        assert row["status"] == "failed" and "terminated abruptly" in row["error"]


def test_what_a_broken_pool_lost_runs_in_the_next_call(
    deadly: Callable[[bool], None], tmp_path: Path
) -> None:
    whole, output = here(), tmp_path / "rows.jsonl"
    deadly(True)
    counts = []
    for _ in range(2):
        with on_processes() as executor:
            rows = sweep(net(), AXES, seeds=2, time="1 s", executor=executor, chunk=1, output=output)
        counts.append([row["status"] for row in rows].count("failed"))
    assert counts == [7, 0] and lines(rows) == lines(whole)
    assert [json.loads(line)["task"] for line in output.read_text().splitlines()] == list(range(12))


@pytest.mark.usefixtures("ray_node")
def test_ray_tries_again(deadly: Callable[[bool], None]) -> None:
    whole = here()
    deadly(True)
    with on_ray(max_retries=1) as executor:
        assert lines(swept(executor)) == lines(whole)


def test_without_ray_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(LongwireError, match="Ray is not installed; pip install ray"):
        RayExecutor()


def test_a_cancelled_call_of_ray_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [True, True, False]
    context = SimpleNamespace(is_canceled=lambda: answers.pop(0))
    ray = SimpleNamespace(get_runtime_context=lambda: context)
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert _executor._call(divmod, [7, 2], {}) == (3, 1) and not answers
    # A worker that lives on, because its call was only interrupted.
    context.is_canceled = lambda: True
    monkeypatch.setattr(_executor, "_END_TIME", 0.2)
    assert _executor._call(divmod, [7, 2], {}) == (3, 1)
    # A version that does not tell.
    del context.is_canceled
    assert _executor._call(divmod, [7, 2], {}) == (3, 1)


@pytest.mark.usefixtures("ray_node")
def test_ray_has_the_interface_of_executors(tmp_path: Path) -> None:
    # Each call needs both processors, so one that was cancelled has to end before the next.
    with on_ray(num_cpus=2) as executor:
        assert list(executor.map(divmod, [7, 9], [2, 2])) == [(3, 1), (4, 1)]
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 7, 0).result()
        mark = tmp_path / "mark"
        endless = executor.submit(subprocess.run, ["sh", "-c", f"touch {mark}; exec sleep 1000000"])
        assert until(mark.exists) and endless.cancel()
        last = executor.submit(divmod, 7, 2)
        executor.shutdown()
        assert last.done() and last.result() == (3, 1)
        with pytest.raises(RuntimeError, match="after shutdown"):
            executor.submit(divmod, 7, 2)
