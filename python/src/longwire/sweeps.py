"""Sweeps: a scenario in virtual time for many values of its settings."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from ._program import Pathlike, program, report_of
from .errors import LongwireError
from .scenario import Scenario, Value, text, toml

#: The row of a task: `task`, the settings of the axes, `seed`, `status`, `error`, and results.
Row = Dict[str, Any]
#: The values of a setting: a list, or a range, which is a table such as
#: `{"from": "5 ms", "to": "50 ms", "step": "5 ms"}`.
Values = Iterable[Value]


#: What became of a chunk: its rows, or why there are none.
_Outcome = Union[List[Row], LongwireError]


class _Files(NamedTuple):
    """The files of a sweep, as texts that any machine can write."""

    sweep: str
    scenario: Optional[str]


def sweep(
    scenario: Union[Scenario, Pathlike],
    axes: Mapping[str, Values],
    *,
    zipped: Iterable[Mapping[str, Values]] = (),
    fixed: Optional[Mapping[str, Value]] = None,
    seeds: Union[None, int, Sequence[int]] = None,
    time: Value = None,
    columns: Optional[Sequence[str]] = None,
    executor: Optional[Executor] = None,
    chunk: Optional[int] = None,
) -> List[Row]:
    """Runs a scenario in virtual time for all combinations of the axes' values, and returns a row for each.

        rows = sweep("net.toml", {"wan.rate": ["1mbit", "10mbit"]}, seeds=3, time="10 s")
        frame = pandas.DataFrame(rows)

    `axes` has the values of each setting: `"wan.rate"` is the setting `rate` of the object `wan`. Each of
    `zipped` has settings whose values change together, `fixed` settings of all tasks. `seeds` is a number
    of seeds or a list, `time` the duration of each run ("10 s" or a timedelta), and `columns` has patterns
    of the results to keep, such as "source.*".

    Tasks run on all processors of this machine, or on an `executor`, `chunk` tasks at a time: any
    `concurrent.futures.Executor`, such as a ProcessPoolExecutor, that of Dask, or
    `longwire.cluster.RayExecutor`. Its workers need Longwire, and the file of the scenario under
    the same name; a `Scenario` built in Python is sent to them. The rows are the same in every
    case, in the order of the tasks.

    A task that fails has a row whose `status` is "failed", and so has each task of a chunk that
    was lost with its worker. Mistakes of the sweep raise `LongwireError` before anything runs. An
    executor on which nothing could run raises it, too.
    """
    built = scenario.toml() if isinstance(scenario, Scenario) else None
    name = _BUILT if isinstance(scenario, Scenario) else os.path.abspath(os.fspath(scenario))
    keys: Dict[str, Value] = {"scenario": name, "seeds": seeds, "columns": columns}
    keys["for"] = None if time is None else text(time)
    lines = [f"{key} = {toml(value)}" for key, value in keys.items() if value is not None]
    lines += _table("[set]", {key: text(value) for key, value in (fixed or {}).items()})
    lines += _table("[axes]", _listed(axes))
    for together in zipped:
        lines += _table("[[zip]]", _listed(together))
    files = _Files("\n".join(lines) + "\n", built)
    if executor is None:
        return _run(files, None)
    if chunk is not None and chunk < 1:
        raise ValueError("chunk is the number of tasks that a worker runs at a time: 1 or more")
    return _run_on(executor, files, chunk)


#: The file of a scenario that was built in Python, beside that of its sweep.
_BUILT = "scenario.toml"
#: Chunks in which tasks go to an executor: enough that many workers end at about the same time.
_CHUNKS = 64


def _listed(axes: Mapping[str, Values]) -> Dict[str, Value]:
    """Axes with lists in the place of other sequences, such as arrays. A range is left as it is."""
    plain = (str, Mapping)
    return {name: one if isinstance(one, plain) else list(one) for name, one in axes.items()}


def _table(header: str, settings: Mapping[str, Any]) -> List[str]:
    """A table of a sweep's file. A setting is one key, whatever dots are in it."""
    pairs = [f"{json.dumps(key)} = {toml(values)}" for key, values in settings.items()]
    return [header, *pairs] if pairs else []


def _call(files: _Files, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Runs `longwire sweep` with the arguments, of which FILE becomes the file of the sweep."""
    with tempfile.TemporaryDirectory(prefix="longwire-") as folder:
        file = Path(folder) / "sweep.toml"
        file.write_text(files.sweep, encoding="utf-8")
        if files.scenario is not None:
            (Path(folder) / _BUILT).write_text(files.scenario, encoding="utf-8")
        words = [str(file) if word == "FILE" else word for word in arguments]
        return subprocess.run(
            [program(), "sweep", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )


def _run_on(executor: Executor, files: _Files, chunk: Optional[int]) -> List[Row]:
    """The rows of all tasks, from the workers of an executor."""
    done = _call(files, ["plan", "FILE", "--json"])
    plan = report_of(done.stdout, done.stderr, done.returncode)
    tasks: List[Row] = plan["rows"]
    size = chunk if chunk is not None else -(-len(tasks) // _CHUNKS)
    chunks = [tasks[at : at + size] for at in range(0, len(tasks), size)]
    futures: List["Future[_Outcome]"] = []
    try:
        futures += (_submit(executor, files, part) for part in chunks)
        outcomes = [_outcome(future, plan["sweep"]) for future in futures]
    finally:
        # If this was interrupted, the rest is not wanted any more.
        for future in futures:
            future.cancel()
    errors = [outcome for outcome in outcomes if isinstance(outcome, LongwireError)]
    if len(errors) == len(chunks):
        raise errors[0]
    rows: List[Row] = []
    for part, outcome in zip(chunks, outcomes):
        if isinstance(outcome, LongwireError):
            rows += (_lost(task, plan["sweep"], outcome) for task in part)
        else:
            rows += outcome
    return rows


def _submit(executor: Executor, files: _Files, tasks: Sequence[Row]) -> "Future[_Outcome]":
    """Gives tasks to the executor."""
    numbers = f"{tasks[0]['task']}-{tasks[-1]['task']}"
    try:
        return executor.submit(_run_chunk, files, numbers)
    except RuntimeError as error:
        # A pool that has lost a worker takes nothing more, and neither does one that was shut down.
        refused: "Future[_Outcome]" = Future()
        refused.set_exception(error)
        return refused


def _outcome(future: "Future[_Outcome]", sweep: str) -> _Outcome:
    """The outcome of a chunk of the sweep with this hash."""
    try:
        outcome = future.result()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        lost = LongwireError(f"no result from the executor: {lines[0]}")
        lost.__cause__ = error
        return lost
    if not isinstance(outcome, LongwireError) and any(row["sweep"] != sweep for row in outcome):
        return LongwireError("the worker has another version of Longwire or of the scenario")
    return outcome


def _lost(task: Row, sweep: str, error: LongwireError) -> Row:
    """The row of a task that no worker has finished, like that of one that failed by itself."""
    which = {"task": task["task"], "sweep": sweep, **task["settings"], "seed": task["seed"]}
    return {**which, "status": "failed", "error": str(error)}


def _run_chunk(files: _Files, tasks: str) -> _Outcome:
    """Runs tasks in a worker, on one processor. Errors are values, which all executors carry."""
    try:
        return _run(files, tasks)
    except LongwireError as error:
        return error
    except OSError as error:
        return LongwireError(str(error))


def _run(files: _Files, tasks: Optional[str]) -> List[Row]:
    """The rows of these tasks on one processor, or of all tasks on all processors."""
    chosen = [] if tasks is None else ["--task", tasks, "--jobs", "1"]
    done = _call(files, ["run", "FILE", "--quiet", "--json", *chosen])
    # 1 means that some tasks failed, which their rows say.
    if done.returncode not in (0, 1):
        report_of(done.stdout, done.stderr, done.returncode)
        raise LongwireError(done.stderr.strip() or f"it ended with status {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]
