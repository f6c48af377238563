"""Sweeps: a scenario in virtual time for many values of its settings."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from ._program import Pathlike, program, report_of
from .errors import LongwireError
from .scenario import Scenario, Value, text, toml

#: The row of a task: `task`, the settings of the axes, `seed`, `status`, `error`, and results.
Row = Dict[str, Any]
#: The values of a setting: a list, or a range such as `{"from": "5 ms", "to": "50 ms", "step": "5 ms"}`.
Values = Union[Sequence[Value], Mapping[str, Value]]


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

    Tasks run on all processors of this machine, or on an `executor`: any `concurrent.futures.Executor`,
    such as a ProcessPoolExecutor or those of Dask and Ray, `chunk` tasks at a time. Its workers need
    Longwire, and the file of the scenario under the same name; a `Scenario` built in Python is sent to them.
    The rows are the same in every case, in the order of the tasks.

    A task that fails has a row whose `status` is "failed". Mistakes of the sweep raise `LongwireError`.
    """
    built = scenario.toml() if isinstance(scenario, Scenario) else None
    name = _BUILT if isinstance(scenario, Scenario) else os.path.abspath(os.fspath(scenario))
    keys: Dict[str, Value] = {"scenario": name, "seeds": seeds, "columns": columns}
    keys["for"] = None if time is None else text(time)
    lines = [f"{key} = {toml(value)}" for key, value in keys.items() if value is not None]
    lines += _table("[set]", {key: text(value) for key, value in (fixed or {}).items()})
    lines += _table("[axes]", axes)
    for together in zipped:
        lines += _table("[[zip]]", together)
    files = _Files("\n".join(lines) + "\n", built)
    if executor is None:
        return _run(files, None)
    count = _count(files)
    size = chunk if chunk is not None else -(-count // _CHUNKS)
    if size < 1:
        raise ValueError("chunk is the number of tasks that a worker runs at a time: 1 or more")
    firsts = range(0, count, size)
    parts = [executor.submit(_run, files, f"{at}-{min(at + size, count) - 1}") for at in firsts]
    return [row for part in parts for row in part.result()]


#: The file of a scenario that was built in Python, beside that of its sweep.
_BUILT = "scenario.toml"
#: Chunks in which tasks go to an executor: enough that many workers end at about the same time.
_CHUNKS = 64


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


def _count(files: _Files) -> int:
    """The number of tasks."""
    done = _call(files, ["plan", "FILE", "--json"])
    return int(report_of(done.stdout, done.stderr, done.returncode)["tasks"])


def _run(files: _Files, tasks: Optional[str]) -> List[Row]:
    """The rows of these tasks, or of all. Executors call it in other processes, on one processor each."""
    chosen = [] if tasks is None else ["--task", tasks, "--jobs", "1"]
    done = _call(files, ["run", "FILE", "--quiet", "--json", *chosen])
    # 1 means that some tasks failed, which their rows say.
    if done.returncode not in (0, 1):
        report_of(done.stdout, done.stderr, done.returncode)
        raise LongwireError(done.stderr.strip() or f"it ended with status {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]
