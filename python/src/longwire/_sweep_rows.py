"""The rows of a sweep as they arrive: counted, shown, and kept in a file that a later call continues."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from typing import IO, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from ._program import Pathlike
from .errors import LongwireError

#: The row of a task: `task`, the settings of the axes, `seed`, `status`, `error`, and results.
Row = Dict[str, Any]
#: Seconds before progress is shown, as by `longwire sweep run`.
_SILENCE = 2.0


class SweepProgress(NamedTuple):
    """How far a sweep is."""

    #: Tasks that have a row, those of an earlier call included, and all tasks.
    done: int
    all: int
    #: Those whose row says that they have failed.
    failed: int

    def __str__(self) -> str:
        return f"{self.done} of {self.all} tasks, {self.failed} failed"


#: What receives the progress.
ReportTo = Callable[[SweepProgress], None]


class RowFile:
    """The file of rows. It is locked while this exists, as it is by `longwire sweep run`."""

    def __init__(self, path: Pathlike) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._file: Optional[IO[str]] = None

    def first_task(self) -> Optional[int]:
        """The task of its first row, 0 if that can't be read; None if there is nothing in it."""
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise LongwireError(f"rows can't be kept in {self.path}", fix="name a regular file")
        try:
            with open(self.path, "rb") as file:
                line = file.readline()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LongwireError(f"the rows in {self.path} can't be read: {error}") from error
        try:
            return int(json.loads(line)["task"]) if line else None
        except (ValueError, KeyError, TypeError):
            return 0

    def open(self) -> List[str]:
        """Opens it to append rows, and returns those that it has."""
        try:
            self._file = open(self.path, "a+", encoding="utf-8", newline="\n")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            return self._file.readlines()
        except BlockingIOError as error:
            self.close()
            raise LongwireError(
                f"another process writes {self.path}", fix="give each sweep a file of its own"
            ) from error
        except OSError as error:
            self.close()
            raise LongwireError(f"rows can't be kept in {self.path}: {error}") from error

    def append(self, lines: Iterable[str]) -> None:
        """Appends rows."""
        if self._file is None:
            return
        try:
            self._file.writelines(lines)
            self._file.flush()
        except OSError as error:
            raise LongwireError(f"rows can't be written to {self.path}: {error}") from error

    def close(self) -> None:
        """Lets others write it."""
        if self._file is not None:
            self._file.close()


class Rows:
    """The rows of a sweep, by task."""

    def __init__(self, count: int, file: Optional[RowFile], report: Optional[ReportTo]) -> None:
        self._count, self._file, self._report = count, file, report
        self._rows: Dict[int, Row] = {}
        self._failed = 0

    def has(self, task: int) -> bool:
        """Whether a task has its row."""
        return task in self._rows

    def know(self, lines: Iterable[str]) -> None:
        """Takes the rows of an earlier call."""
        self._note([json.loads(line) for line in lines])

    def take(self, lines: Sequence[str]) -> None:
        """Takes rows of tasks that have run."""
        if self._file is not None:
            self._file.append(lines)
        self.lose([json.loads(line) for line in lines])

    def lose(self, rows: Iterable[Row]) -> None:
        """Takes rows that no task wrote. The file does not have them: the next call runs those tasks."""
        self._note(rows)
        if self._report is not None:
            self._report(SweepProgress(len(self._rows), self._count, self._failed))

    def _note(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._rows[row["task"]] = row
            self._failed += row["status"] != "ok"

    def in_order(self) -> List[Row]:
        """All rows, in the order of the tasks."""
        return [self._rows[task] for task in sorted(self._rows)]


class ProgressLine:
    """Progress on standard error: a line that is redrawn on a terminal, else a line for each tenth."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._begin = time.monotonic()
        self._tenths: Optional[int] = None
        self._is_shown = False

    def __call__(self, progress: SweepProgress) -> None:
        tenths = progress.done * 10 // max(1, progress.all)
        is_new, self._tenths = tenths != self._tenths, tenths
        if time.monotonic() - self._begin < _SILENCE:
            return
        if self._is_terminal:
            self._is_shown = True
            print(f"\r{progress}\x1b[K", end="", file=sys.stderr, flush=True)
        elif is_new:
            print(progress, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Removes the line from a terminal."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def numbers(tasks: Iterable[int]) -> List[str]:
    """Ranges of tasks, as `--task` takes them: 0-9, 17-17."""
    ranges: List[List[int]] = []
    for task in tasks:
        if ranges and ranges[-1][1] == task - 1:
            ranges[-1][1] = task
        else:
            ranges.append([task, task])
    return [f"{first}-{last}" for first, last in ranges]
