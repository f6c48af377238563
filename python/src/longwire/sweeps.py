"""Sweeps: a scenario in virtual time for many values of its settings."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

from ._program import Pathlike, Report, program, report_of, run
from ._sweep_rows import ProgressLine, ReportTo, Row, RowFile, Rows, SweepProgress, numbers
from .errors import BUILT, LongwireError
from .scenario import Scenario, Value, as_input, text, toml

#: The values of a setting: a list, or a range, which is a table such as
#: `{"from": "5 ms", "to": "50 ms", "step": "5 ms"}`.
Values = Iterable[Value]


#: What became of a chunk: its rows as lines of JSON, or why there are none.
_Outcome = Union[List[str], LongwireError]


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
    seeds: Union[None, int, Iterable[int]] = None,
    time: Value = None,
    columns: Optional[Sequence[str]] = None,
    executor: Optional[Executor] = None,
    chunk: Optional[int] = None,
    output: Optional[Pathlike] = None,
    progress: Union[bool, ReportTo] = False,
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

    `output` is a file for the rows, which is continued if it has rows of this sweep: only the other
    tasks run, and all rows are returned. It is that of `longwire sweep run --output`. Tasks that were
    lost with a worker are not in it.

    `progress=True` prints after two seconds how many tasks are done, on standard error: a line that is
    redrawn on a terminal, else a line for each tenth. A function receives a `SweepProgress` after
    each task or chunk instead.
    """
    if chunk is not None and chunk < 1:
        raise ValueError("chunk is the number of tasks that a worker runs at a time: 1 or more")
    file, built = as_input(scenario)
    name = os.path.abspath(file) if built is None else _BUILT
    listed = list(seeds) if isinstance(seeds, Iterable) else seeds
    keys: Dict[str, Value] = {"scenario": name, "seeds": listed, "columns": columns}
    keys["for"] = None if time is None else text(time)
    lines = [f"{key} = {toml(value)}" for key, value in keys.items() if value is not None]
    lines += _table("[set]", {key: text(value) for key, value in (fixed or {}).items()})
    lines += _table("[axes]", _listed(axes))
    for together in zipped:
        lines += _table("[[zip]]", _listed(together))
    files = _Files("\n".join(lines) + "\n", built)
    with _shown(progress) as report:
        if output is None:
            return _rows(files, executor, chunk, None, report)
        kept = RowFile(output)
        try:
            return _rows(files, executor, chunk, kept, report)
        finally:
            kept.close()


#: The file of a scenario that was built in Python, beside that of its sweep.
_BUILT = "scenario.toml"
#: Chunks in which tasks go to an executor: enough that many workers end at about the same time.
_CHUNKS = 64
#: Most ranges of tasks in the arguments of one command.
_RANGES = 1000


def _listed(axes: Mapping[str, Values]) -> Dict[str, Value]:
    """Axes with lists in the place of other sequences, such as arrays. What is a range, or no list, is left
    as it is."""

    def listed(one: Values) -> Value:
        is_list = isinstance(one, Iterable) and not isinstance(one, (str, Mapping))
        return list(one) if is_list else one

    return {name: listed(one) for name, one in axes.items()}


def _table(header: str, settings: Mapping[str, Any]) -> List[str]:
    """A table of a sweep's file. A setting is one key, whatever dots are in it."""
    pairs = [f"{json.dumps(key)} = {toml(values)}" for key, values in settings.items()]
    return [header, *pairs] if pairs else []


def _rows(
    files: _Files,
    executor: Optional[Executor],
    chunk: Optional[int],
    file: Optional[RowFile],
    report: Optional[ReportTo],
) -> List[Row]:
    """The rows of all tasks: those in the file, and those that run now."""
    plan = _plan(files) if executor is not None else None
    # Without an executor only progress and a file have to know it.
    count = 0
    if plan is not None:
        count = plan["tasks"]
    elif file is not None or report is not None:
        count = _count(files)
    rows = Rows(count, file, report)
    if file is not None:
        rows.know(_done_before(files, file))
    if executor is not None and plan is not None:
        missing = [task for task in plan["rows"] if not rows.has(task["task"])]
        _run_on(executor, files, missing, plan["sweep"], chunk, rows)
    elif file is None:
        _run(files, [], lambda line: rows.take([line]))
    else:
        ranges = numbers(task for task in range(count) if not rows.has(task))
        for at in range(0, len(ranges), _RANGES):
            chosen = ["--task", ",".join(ranges[at : at + _RANGES])]
            _run(files, chosen, lambda line: rows.take([line]))
    return rows.in_order()


@contextmanager
def _shown(progress: Union[bool, ReportTo]) -> Iterator[Optional[ReportTo]]:
    """What receives the progress, if anything does. Its line on a terminal is gone in the end."""
    if progress is not True:
        yield progress or None
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.close()


def _plan(files: _Files) -> Report:
    """All tasks. Mistakes are raised."""
    with _command(files, ["plan", "FILE", "--json"]) as command:
        return _report(command)


def _count(files: _Files) -> int:
    """The number of tasks. Mistakes are raised."""
    with _command(files, ["plan", "FILE", "--count"]) as command:
        done = run(command)
    if done.returncode != 0:
        # An error in JSON has more to it.
        _plan(files)
    return int(done.stdout)


def _done_before(files: _Files, file: RowFile) -> List[str]:
    """The rows in a file, which the program checks and repairs when it is to run a task that is done."""
    first = file.first_task()
    if first is not None:
        chosen = ["--task", str(first), "--jobs", "1", "--output", file.path]
        with _command(files, ["run", "FILE", "--quiet", "--json", *chosen]) as command:
            _report(command)
    return file.open()


@contextmanager
def _command(files: _Files, arguments: Sequence[str]) -> Iterator[List[str]]:
    """The command `longwire sweep` with the arguments, of which FILE becomes the file of the sweep.

    Errors that it raises inside do not name files that were written for it.
    """
    with tempfile.TemporaryDirectory(prefix="longwire-") as folder:
        file = Path(folder) / "sweep.toml"
        file.write_text(files.sweep, encoding="utf-8")
        if files.scenario is not None:
            (Path(folder) / _BUILT).write_text(files.scenario, encoding="utf-8")
        words = [str(file) if word == "FILE" else word for word in arguments]
        try:
            yield ["sweep", *words]
        except LongwireError as error:
            for one in (error, *error.more):
                one.message = one.message.replace(f"{file}: ", "")
                if one.file is not None and Path(one.file).parent == Path(folder):
                    one.file = BUILT
            raise


def _report(command: Sequence[str]) -> Report:
    """The report of a command; raises its error."""
    done = run(command)
    return report_of(done.stdout, done.stderr, done.returncode)


def _run_on(
    executor: Executor, files: _Files, tasks: List[Row], sweep: str, chunk: Optional[int], rows: Rows
) -> None:
    """Runs tasks of the sweep with this hash on the workers of an executor."""
    size = chunk if chunk is not None else max(1, -(-len(tasks) // _CHUNKS))
    chunks = [tasks[at : at + size] for at in range(0, len(tasks), size)]
    futures: List["Future[_Outcome]"] = []
    errors: List[LongwireError] = []
    try:
        futures += (_submit(executor, files, part) for part in chunks)
        for part, future in zip(chunks, futures):
            outcome = _outcome(future, sweep)
            if isinstance(outcome, LongwireError):
                errors.append(outcome)
                rows.lose([_lost(task, sweep, outcome) for task in part])
            else:
                rows.take(outcome)
    finally:
        # If this was interrupted, the rest is not wanted any more.
        for future in futures:
            future.cancel()
    if errors and len(errors) == len(chunks):
        raise errors[0]


def _submit(executor: Executor, files: _Files, tasks: Sequence[Row]) -> "Future[_Outcome]":
    """Gives tasks to the executor."""
    chosen = ",".join(numbers(task["task"] for task in tasks))
    try:
        return executor.submit(_run_chunk, files, chosen)
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
    if not isinstance(outcome, LongwireError) and any(json.loads(row)["sweep"] != sweep for row in outcome):
        return LongwireError("the worker has another version of Longwire or of the scenario")
    return outcome


def _lost(task: Row, sweep: str, error: LongwireError) -> Row:
    """The row of a task that no worker has finished, like that of one that failed by itself."""
    which = {"task": task["task"], "sweep": sweep, **task["settings"], "seed": task["seed"]}
    return {**which, "status": "failed", "error": str(error)}


def _run_chunk(files: _Files, tasks: str) -> _Outcome:
    """Runs tasks in a worker, on one processor. Errors are values, which all executors carry."""
    lines: List[str] = []
    try:
        _run(files, ["--task", tasks, "--jobs", "1"], lines.append)
    except LongwireError as error:
        return error
    except OSError as error:
        return LongwireError(str(error))
    return lines


def _run(files: _Files, chosen: Sequence[str], take: Callable[[str], None]) -> None:
    """Runs tasks, and gives each row to `take` when it is there, as a line of JSON."""
    other: List[str] = []
    arguments = ["run", "FILE", "--quiet", "--json", *chosen]
    with _command(files, arguments) as command, tempfile.TemporaryFile("w+", encoding="utf-8") as messages:
        words = [program(), *command]
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if _is_row(line):
                        take(line)
                    else:
                        other.append(line)
            except BaseException:
                process.kill()
                raise
        # 1 means that some tasks failed, which their rows say.
        if process.returncode not in (0, 1):
            messages.seek(0)
            said = messages.read()
            report_of("".join(other), said, process.returncode)
            raise LongwireError(said.strip() or f"it ended with status {process.returncode}")


def _is_row(line: str) -> bool:
    """Whether a line is a row, and not one of an error's several."""
    try:
        read = json.loads(line)
    except ValueError:
        return False
    return isinstance(read, dict) and "task" in read
